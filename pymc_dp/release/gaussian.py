"""The discrete Gaussian mechanism on integer vectors, drawn by OpenDP."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.errors import PrivacyError

Integers = npt.NDArray[np.int64]

_MOST_TABLED = 2.0**10  # scale up to which simulated noise comes from a table of its probabilities


def privacy_map(scale: float, l2_squared: int) -> float:
    """Return OpenDP's own upper bound of the rho of one release.

    Parameters
    ----------
    scale : float
        Noise scale in grid steps.
    l2_squared : int
        Square of the largest L2 sensitivity of the integer vector between neighbours, >= 1.

    Returns
    -------
    float
        At least l2_squared / (2 scale^2), the rho of its zero-concentrated differential privacy. The events of
        ``accounting`` hold the same number as an exact fraction, which is what a release is charged.

    Examples
    --------
    >>> privacy_map(2.0, 4)
    0.5
    """
    return float(_measurement(_positive(scale)).map(_root_up(_validate.integer("l2_squared", l2_squared))))


def add_noise(sums: Integers, scale: float) -> Integers:
    """Add independent discrete Gaussian noise to every entry.

    Parameters
    ----------
    sums : int64 array of any shape
        Exact sums in grid steps.
    scale : float
        ``P(noise = k)`` is proportional to ``exp(-k**2 / (2 * scale**2))``.

    Returns
    -------
    int64 array of the shape of `sums`
        A new one.

    Raises
    ------
    PrivacyError
        For a `scale` that is not finite and > 0.

    Notes
    -----
    **Guarantee.** Under any neighbour relation in which the L2 norm of `sums` moves by at most d, the result is
    (d^2 / (2 scale^2))-zero-concentrated differentially private; class exact, arithmetic hardened (exact integer
    sampling, saturating at the ends of int64, which is post-processing). Inside ``testing.insecure_randomness`` there
    is no guarantee.

    References
    ----------
    Canonne, Kamath, Steinke (2020), doi 10.29012/jpc.784: proposition 5 and the sampler.
    """
    scale, replacement = _positive(scale), insecure()
    if replacement is None:
        noised = _measurement(scale)([int(item) for item in sums.ravel()])
        return np.asarray(noised, dtype=np.int64).reshape(sums.shape)
    if replacement.rng is None:
        return sums.copy()
    return sums + discrete_gaussian(replacement.rng, scale, sums.shape)


def discrete_gaussian(rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Integers:
    """Draw discrete Gaussian variables from a NumPy generator: simulation of releases, never a release.

    Above a scale of 2^10 they are rounded normal variables, which differ by less than 2e-8 in total variation.
    """
    if scale > _MOST_TABLED:
        return np.rint(rng.normal(0.0, scale, size)).astype(np.int64)
    reach = math.ceil(9 * scale)
    places = np.arange(-reach, reach + 1)
    below = np.cumsum(np.exp(-(places**2) / (2 * scale**2)))
    return (np.searchsorted(below, rng.random(size) * below[-1], side="right") - reach).astype(np.int64)


def _positive(scale: float) -> float:
    """Return `scale`; OpenDP takes 0 for no noise at all."""
    if not 0 < scale < math.inf:
        raise PrivacyError(f"Discrete Gaussian noise needs a finite scale > 0, got {scale:g}; choose a larger epsilon.")
    return float(scale)


def _root_up(square: int) -> float:
    """Return a float whose square is not below `square`."""
    root = math.isqrt(square)
    if root**2 == square and root < 2**53:
        return float(root)
    places = max(0, 64 - root.bit_length())
    scaled = math.isqrt(square << 2 * places) + 1
    return math.nextafter(scaled / 2**places, math.inf)


@cache
def _measurement(scale: float) -> Any:
    # `opendp.prelude` would import scikit-learn, where there is one, for more than a second.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    try:
        return make_gaussian(*space, scale=scale)
    except Exception as error:
        raise PrivacyError(f"OpenDP refuses discrete Gaussian noise of scale {scale:g}.") from error
