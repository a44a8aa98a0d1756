"""The exponential mechanism on a finite set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pymc_dp.errors import ArgumentError

EARLY = 2.0**-30
"""Arrivals before it are drawn again on a logarithmic scale: there are 2^23 steps of a generator below it."""
LONG = 20.0
"""Wait after which an exponential variable starts anew: generators know none above 45."""


def choose(rng: np.random.Generator, log_weights: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Choose one index of each row with probability proportional to its weight.

    Parameters
    ----------
    rng : numpy.random.Generator
        ``randomness.secure_generator()`` where the choice is a release.
    log_weights : (..., n_choices) array
        Logarithms up to a constant per row; -inf for what cannot be chosen.

    Returns
    -------
    (...) int64 array
        Indices into the last axis.

    Raises
    ------
    ArgumentError
        For NaN, +inf, no choices, or a row in which all are -inf. No text shows a weight.

    Notes
    -----
    Exponential race: independent E_i ~ Exp(w_i), and the least one wins with probability exactly w_i / sum w. In
    logarithms (the Gumbel-max trick) no weight overflows and nothing is normalised. The work does not depend on the
    weights. Generators give arrivals in steps of 2^-53, and 0 among them: the earliest are drawn once more, on a
    logarithmic scale, so that a weight of e^-800 has the chance it should have, and no more.

    **Guarantee.** Let eta be the supremum over neighbouring data sets of the range of the change,
    ``max_i d_i - min_i d_i`` with ``d = log_weights(X) - log_weights(X')``. The choice is the exponential mechanism of
    bounded range eta: (eta, 0)-differentially private and eta^2/8-zCDP; class exact, arithmetic float64. Weights of
    -inf must be -inf on every data set.

    References
    ----------
    McSherry, Talwar (2007), theorem 6, doi 10.1109/FOCS.2007.66; bounded range: Dong, Durfee, Rogers (2020); eta^2/8:
    Cesar, Rogers (2021).

    Examples
    --------
    >>> choose(np.random.default_rng(1), [[0.0, -np.inf], [-1e6, -1e3]])
    array([0, 1])
    """
    held = np.asarray(log_weights, dtype=np.float64)
    if held.ndim == 0 or held.shape[-1] == 0:
        raise ArgumentError(f"log_weights must have one entry or more on its last axis, got shape {held.shape}.")
    if not (held < np.inf).all() or not (held > -np.inf).any(axis=-1).all():
        raise ArgumentError("log_weights must be numbers or -inf, not all of them -inf. Check what is being weighed.")
    behind = held.max(axis=-1, keepdims=True) - held  # relative to the best, so that the race keeps its digits
    return np.asarray(np.argmin(_log_arrivals(rng, held.shape) + behind, axis=-1), dtype=np.int64)


def settled(public: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the public part of log weights less its largest entry along the first axis, to add a private part to.

    A choice does not depend on what all weights have in common. Added to a huge public number, a private part would
    lose its last digits, and what it is rounded to may differ between neighbours by more than the part itself does.
    Entries that are still huge, and negative, are of weights that are next to nothing.

    Examples
    --------
    >>> settled([-1e16, -1e16 - 2, -np.inf])
    array([  0.,  -2., -inf])
    """
    held = np.asarray(public, dtype=np.float64)
    top = held.max(axis=0, keepdims=True)
    return held - np.where(np.isfinite(top), top, 0.0)


def cells(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], count: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Cut intervals into cells of one width: (count, ...) middles, and the width in each.

    Examples
    --------
    >>> middles, widths = cells(np.array([0.0, 2.0]), np.array([1.0, 4.0]), 2)
    >>> middles.tolist(), widths.tolist()
    ([[0.25, 2.5], [0.75, 3.5]], [0.5, 1.0])
    """
    widths = (high - low) / count
    return low + (np.arange(count) + 0.5).reshape(-1, *[1] * np.ndim(low)) * widths, widths


def crossed(axes: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Return all combinations of values along axes: (n, n_axes) array."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _log_arrivals(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return logarithms of exponential variables, exact far below the least step of a generator.

    Given that it is below a small number, an exponential variable is uniform up to there, but for one part in 2^30;
    minus the logarithm of a uniform one is exponential, and beyond any number such a one starts anew.
    """
    arrivals = rng.standard_exponential(shape)
    early = arrivals < EARLY
    found = np.log(np.where(early, EARLY, arrivals))
    if early.any():
        waits = rng.standard_exponential(int(early.sum()))
        level = LONG
        while (beyond := waits > level).any():
            waits[beyond] = level + rng.standard_exponential(int(beyond.sum()))
            level += LONG
        found[early] -= waits
    return np.asarray(found)
