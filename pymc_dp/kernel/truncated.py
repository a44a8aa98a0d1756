"""Exact draws from truncated conjugate distributions, also far in a tail: rejection from proved envelopes.

Inverting the distribution function fails in tails: icdf(U(cdf(low), cdf(high))) gave 1.0 for Beta(300, 700) on
[.5, .9], and clipping it gave always the wrong end for Beta(1, 100001) on [.2, .8]. Here no mass is ever computed.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Size = int | tuple[int, ...] | None


def truncated_beta(
    rng: np.random.Generator,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    low: npt.ArrayLike = 0.0,
    high: npt.ArrayLike = 1.0,
    *,
    size: Size = None,
) -> Floats:
    """Draw from Beta(a, b) restricted to [low, high].

    Parameters
    ----------
    rng : numpy.random.Generator
        ``randomness.secure_generator()`` where the draw is a release.
    a, b : arrays
        Both > 0, of any size: the density is ``x^(a - 1) (1 - x)^(b - 1)``.
    low, high : arrays
        ``0 <= low < high <= 1``. Public: they are checked, and may be named in errors.
    size : int or tuple of int, optional
        Shape of the result; default: what the parameters broadcast to.

    Returns
    -------
    array of float64, within the bounds

    Raises
    ------
    ArgumentError
        For parameters outside their range. No text shows a or b, which may hold counts of private rows.

    Notes
    -----
    ``y = logit(x)`` has the density ``exp(a y - (a + b) log(1 + e^y))``, log-concave for all a, b > 0 and on every
    interval. It is drawn by rejection from an envelope of three pieces: the density's largest value within the bounds
    in the middle, and on each side the exponential that is tangent to it about where it has dropped by a factor of e. A
    concave function lies below its tangents, so the envelope is valid, and the draw exact, wherever the tangents touch;
    where they do, at least 59% of the proposals are accepted whatever the parameters.

    **Guarantee.** The draw has exactly the stated distribution in real arithmetic with ideal randomness; the arithmetic
    is float64, so that results lie on the grid of floats (an untruncated beta with a < .01 can underflow to 0). It is
    private to the extent that the stated distribution is. The number of proposals, and with it the run time, depends on
    the parameters and is covered by no guarantee.

    References
    ----------
    Devroye (1986), Non-Uniform Random Variate Generation, section VII.2; Gilks, Wild (1992), doi 10.2307/2347565.

    Examples
    --------
    >>> x = truncated_beta(np.random.default_rng(1), 300, 700, 0.5, 0.9, size=3)
    >>> bool(((x >= 0.5) & (x < 0.53)).all())
    True
    """
    _check("a", a, strict=True)
    _check("b", b, strict=True)
    _check_bounds(low, high, 0.0, 1.0)
    return _filled("fill_beta", rng, (a, b, low, high), size)


def truncated_gamma(
    rng: np.random.Generator,
    shape: npt.ArrayLike,
    rate: npt.ArrayLike,
    low: npt.ArrayLike = 0.0,
    high: npt.ArrayLike = np.inf,
    *,
    size: Size = None,
) -> Floats:
    """Draw from Gamma(shape, rate) restricted to [low, high].

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : array
        Any number where ``low > 0``, else > 0: the density is ``x^(shape - 1) e^(-rate x)``.
    rate : array
        ``>= 0``; > 0 where `high` is infinite.
    low, high : arrays
        ``0 <= low < high``. Public.
    size : int or tuple of int, optional

    Returns
    -------
    array of float64, within the bounds

    Raises
    ------
    ArgumentError
        For parameters outside their range. No text shows shape or rate.

    Notes
    -----
    As `truncated_beta`, through ``y = log(x)``, whose density ``exp(shape y - rate e^y)`` is log-concave for every
    shape. The precision of a normal with known mean is such a variable; its variance on [low, high] is the reciprocal
    of one on [1 / high, 1 / low].

    **Guarantee.** See `truncated_beta`.

    Examples
    --------
    >>> x = truncated_gamma(np.random.default_rng(1), 2.0, 1.0, 50.0, size=3)
    >>> bool(((x >= 50) & (x < 70)).all())
    True
    """
    _check("shape", shape)
    _check("rate", rate, strict=False, low=0.0)
    _check_bounds(low, high, 0.0, np.inf)
    if (np.isinf(high) & (np.asarray(rate) == 0)).any():
        raise ArgumentError("rate must be > 0 where high is infinite, got 0: the mass is not finite. Give a high.")
    if ((np.asarray(low) == 0) & (np.asarray(shape) <= 0)).any():
        raise ArgumentError("shape must be > 0 where low is 0: the mass is not finite. Give a low > 0.")
    return _filled("fill_gamma", rng, (shape, rate, low, high), size)


def truncated_normal(
    rng: np.random.Generator,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    low: npt.ArrayLike = -np.inf,
    high: npt.ArrayLike = np.inf,
    *,
    size: Size = None,
) -> Floats:
    """Draw from a normal restricted to [low, high].

    Parameters
    ----------
    rng : numpy.random.Generator
    mean : array
    sd : array
        > 0; infinite (precision 0) for the uniform on bounded intervals.
    low, high : arrays
        ``low < high``, either may be infinite. Public.
    size : int or tuple of int, optional

    Returns
    -------
    array of float64, within the bounds

    Raises
    ------
    ArgumentError
        For parameters outside their range. No text shows mean or sd.

    Notes
    -----
    As `truncated_beta`, without a change of variable: the normal is log-concave.

    **Guarantee.** See `truncated_beta`.

    Examples
    --------
    >>> x = truncated_normal(np.random.default_rng(1), 0.0, 1.0, 30.0, size=3)
    >>> bool(((x >= 30) & (x < 31)).all())
    True
    """
    _check("mean", mean)
    _check("sd", sd, strict=True, finite=False)
    _check_bounds(low, high, -np.inf, np.inf)
    if (np.isinf(sd) & (np.isinf(low) | np.isinf(high))).any():
        raise ArgumentError("sd must be finite where a bound is not, got inf: there is no such uniform. Give bounds.")
    return _filled("fill_normal", rng, (mean, sd, low, high), size)


def truncated_dirichlet(
    rng: np.random.Generator, alpha: npt.ArrayLike, lower: npt.ArrayLike, draws: int | None = None
) -> Floats:
    """Draw from Dirichlet(alpha) restricted to ``p_i >= lower_i``.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : (..., n_categories) array
        Each > 0, of any size.
    lower : array that broadcasts to alpha
        Each >= 0, with a sum below 1 - 1e-9. Public.
    draws : int, optional
        Number of independent draws for each vector of `alpha`.

    Returns
    -------
    (..., n_categories) array, or (draws, ..., n_categories) array

    Raises
    ------
    ArgumentError
        For parameters outside their range. No text shows alpha.

    Notes
    -----
    Drawing components in sequence from truncated betas is not exact: Dirichlet(1, 1, 1) with p_i >= .2 would have a
    mean of .378 in its first component, not 1/3. Here, for any rate r >= 0, the target is proportional to
    ``prod_i p_i^(alpha_i - 1) e^(-r p_i)``, for e^(-r sum p) is a constant. All components but one, k, are drawn from
    these truncated gammas, p_k closes the sum, and the draw is accepted with probability f_k(p_k) / max f_k, f_k
    the factor of p_k: rejection, exact for every r and k. The rate at which the gammas add up to 1 on average, and the
    k whose factor is the widest, make it fast: acceptance is about the standard deviation of that gamma over that of
    their sum, wherever the mode lies (measured: 1 to 4 sqrt(n_categories) proposals where no alpha is below 1). Where
    all alphas are below 1, proposals alternate with draws from the untruncated Dirichlet that are accepted within the
    bounds: both kinds are exact, hence the first that is accepted. Where `lower` is 0 it is the untruncated Dirichlet,
    and with two categories `truncated_beta`.

    **Guarantee.** See `truncated_beta`. The draw ends with probability 1 whatever alpha; the number of proposals
    depends on alpha. It is large only where all alphas are far below 1, n_categories is large, and bounds are tiny but
    not 0.

    References
    ----------
    In sequence, and not exact: Fang, Geng, Tian (2000), as Foulds, Geumlek, Welling, Chaudhuri (2016) use it.

    Examples
    --------
    >>> p = truncated_dirichlet(np.random.default_rng(1), [900.0, 50.0, 50.0], 0.2)
    >>> bool((p >= 0.2).all()), round(float(p.sum()), 12)
    (True, 1.0)
    """
    _check("alpha", alpha, strict=True)
    held, least = np.asarray(alpha, dtype=np.float64), np.asarray(lower, dtype=np.float64)
    if held.ndim == 0 or not _fits(least.shape, held.shape):
        raise ArgumentError(f"alpha of shape {held.shape} must hold lower of shape {least.shape}, categories last.")
    least = np.broadcast_to(least, held.shape)
    if not (least >= 0).all() or not (least.sum(axis=-1) < 1 - 1e-9).all():
        raise ArgumentError(f"lower must be >= 0 with a sum below 1 over the categories, got {lower!r}. Lower it.")
    size = held.shape[-1]
    out = np.empty((1 if draws is None else draws, int(np.prod(held.shape[:-1])), size))
    rows = [_copied(item, held.shape).reshape(-1, size) for item in (held, least)]
    _kernels().fill_dirichlet(rng, *rows, *quadrature(), out)
    return out.reshape(held.shape if draws is None else (draws, *held.shape))


@cache
def quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1] that tune the sampler of Dirichlets; the distribution of draws is the same."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    return (nodes + 1) / 2, weights / 2


def _check(
    name: str, values: npt.ArrayLike, *, low: float = -np.inf, strict: bool | None = None, finite: bool = True
) -> None:
    """Refuse what is no parameter. Says the range, never the value: parameters hold sums over private rows."""
    held = np.asarray(values, dtype=float)
    low = 0.0 if strict else low
    if np.isnan(held).any() or (finite and np.isinf(held).any()) or (held <= low if strict else held < low).any():
        span = "" if np.isinf(low) else f" and {'>' if strict else '>='} {low:g}"
        raise ArgumentError(f"{name} must be {'finite' if finite else 'a number'}{span}. Check the prior's parameters.")


def _check_bounds(low: npt.ArrayLike, high: npt.ArrayLike, least: float, most: float) -> None:
    """Refuse bounds that are empty or leave the support; they are public and shown."""
    first, last = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if not ((least <= first) & (first < last) & (last <= most)).all():
        raise ArgumentError(f"bounds must satisfy {least:g} <= low < high <= {most:g}, got low={low!r}, high={high!r}.")


def _filled(kernel: str, rng: np.random.Generator, parameters: tuple[npt.ArrayLike, ...], size: Size) -> Floats:
    held = [np.asarray(item, dtype=np.float64) for item in parameters]
    own = np.broadcast_shapes(*(item.shape for item in held))
    shape = own if size is None else (size,) if isinstance(size, int) else tuple(size)
    if not _fits(own, shape):
        raise ArgumentError(f"size {shape} does not hold parameters that broadcast to {own}. Put {own} at its end.")
    out = np.empty(shape)
    getattr(_kernels(), kernel)(rng, *(_copied(item, shape).reshape(-1) for item in held), out.reshape(-1))
    return out


def _copied(array: Floats, shape: tuple[int, ...]) -> Floats:
    """Broadcast into memory of its own: for numba, views and read-only arrays are other types to compile for."""
    return np.array(np.broadcast_to(array, shape), order="C")


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array of one shape broadcasts to another."""
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(shape[::-1], into[::-1], strict=False))


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.kernel import truncated_loops

    return truncated_loops
