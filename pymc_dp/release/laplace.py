"""The discrete Laplace mechanism on integer vectors, drawn by OpenDP."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp._random import insecure
from pymc_dp.accounting.events import DiscreteLaplaceEvent
from pymc_dp.errors import PrivacyError

Integers = npt.NDArray[np.int64]


def calibrate(sensitivity: int, epsilon: float) -> float:
    """Return the least float scale at which a shift of `sensitivity` costs at most `epsilon`.

    Parameters
    ----------
    sensitivity : int
        Largest L1 sensitivity of the integer vector, >= 1.
    epsilon : float

    Notes
    -----
    The float nearest to ``sensitivity / epsilon`` is too small half of the time; it is raised until the accountants
    (who read `epsilon` as a decimal), binary arithmetic and OpenDP's own privacy map agree that it costs no more.
    """
    scale = DiscreteLaplaceEvent.calibrated(epsilon=epsilon, sensitivity=sensitivity).scale
    while sensitivity / Fraction(scale) > Fraction(epsilon) or privacy_map(scale, sensitivity) > epsilon:
        scale = float(np.nextafter(scale, np.inf))
    return scale


def privacy_map(scale: float, sensitivity: int) -> float:
    """Return OpenDP's own upper bound of the epsilon of one release."""
    return float(_measurement(scale).map(int(sensitivity)))


def add_noise(sums: Integers, scale: float) -> Integers:
    """Add independent discrete Laplace noise to every entry.

    Parameters
    ----------
    sums : int64 array of any shape
        Exact sums in grid steps.
    scale : float
        ``P(noise = k)`` is proportional to ``exp(-|k| / scale)``.

    Notes
    -----
    **Guarantee.** Under any neighbour relation in which the L1 norm of `sums` moves by at most d, the result is
    (d / scale, 0)-differentially private; class exact, arithmetic hardened (exact integer sampling, saturating at the
    ends of int64, which is post-processing). Inside ``testing.insecure_randomness`` there is no guarantee.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2012), doi 10.1137/09076828X; sampler of Canonne, Kamath, Steinke (2020).
    """
    replacement = insecure()
    if replacement is None:
        noised = _measurement(scale)([int(item) for item in sums.ravel()])
        return np.asarray(noised, dtype=np.int64).reshape(sums.shape)
    if replacement.rng is None:
        return sums.copy()
    return sums + discrete_laplace(replacement.rng, scale, sums.shape)


def discrete_laplace(rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Integers:
    """Draw discrete Laplace variables from a NumPy generator: simulation of releases, never a release."""
    p = -np.expm1(-1 / scale)
    return (rng.geometric(p, size) - rng.geometric(p, size)).astype(np.int64)


@cache
def _measurement(scale: float) -> Any:
    # `opendp.prelude` would import scikit-learn, where there is one, for more than a second.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    try:
        return make_laplace(*space, scale=scale)
    except Exception as error:
        raise PrivacyError(
            f"OpenDP refuses discrete Laplace noise of scale {scale:g}; choose a larger epsilon."
        ) from error
