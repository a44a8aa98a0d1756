"""Kinds of discrete noise on vectors of whole numbers, as OpenDP draws them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, final, override

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.errors import PrivacyError
from pymc_dp.kernel.randomness import insecure

Integers = npt.NDArray[np.int64]

_MOST_TABLED = 2.0**10
"""Scale up to which simulated Gaussian noise comes from a table of its probabilities."""


class Noise(ABC):
    """One kind of independent discrete noise.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
        As in `Statistics`, and in records.
    name : str
        In texts.
    """

    kind: ClassVar[str]
    name: ClassVar[str]

    @final
    def add(self, sums: Integers, scale: float) -> Integers:
        """Return new sums with independent noise on every entry. A private release.

        Parameters
        ----------
        sums : int64 array of any shape
            Exact sums in grid steps.
        scale : float
            In grid steps.

        Raises
        ------
        PrivacyError
            For a `scale` that is not finite and > 0.

        Notes
        -----
        **Guarantee.** That of the kind of noise, under any neighbour relation by which `sums` moves by no more than its
        sensitivity; class exact, arithmetic hardened (whole numbers, saturating at the ends of int64, which is
        post-processing). It rests on OpenDP to draw this distribution. OpenDP has vetted its proof for the sampler of
        discrete Gaussian noise; those of its Laplace sampler, `make_laplace` and `make_gaussian` are contributed, and
        not vetted. Inside ``testing.insecure_randomness`` there is no guarantee.
        """
        if not 0 < scale < math.inf:
            raise PrivacyError(
                f"The scale of {self.name} noise must be finite and > 0, got {scale:g}; choose a larger epsilon."
            )
        replacement = insecure()
        if replacement is None:
            noised = mechanism(self, float(scale))([int(item) for item in sums.ravel()])
            return np.asarray(noised, dtype=np.int64).reshape(sums.shape)
        if replacement.rng is None:
            return sums.copy()
        return sums + self.simulated(replacement.rng, scale, sums.shape)

    @abstractmethod
    def made(self, vectors: Any, scale: float) -> Any:
        """Return OpenDP's mechanism on a domain of vectors."""

    @abstractmethod
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Integers:
        """Draw noise from a NumPy generator for a simulation, never for a release."""


@final
class Laplace(Noise):
    """Discrete Laplace noise: pure ε.

    ``P(noise = k)`` is proportional to ``exp(-|k| / scale)``; if the L1 norm of a vector moves by at most d, its
    release is (d / scale, 0)-differentially private.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2012), doi 10.1137/09076828X; sampler of Canonne, Kamath, Steinke (2020).
    """

    kind = "laplace"
    name = "discrete Laplace"

    @override
    def made(self, vectors: Any, scale: float) -> Any:
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance

        return make_laplace(vectors, l1_distance(T="i64"), scale=scale)

    @override
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Integers:
        p = -np.expm1(-1 / scale)
        return (rng.geometric(p, size) - rng.geometric(p, size)).astype(np.int64)


@final
class Gaussian(Noise):
    """Discrete Gaussian noise: (ε, δ), δ > 0; less noise than Laplace's on long vectors.

    ``P(noise = k)`` is proportional to ``exp(-k**2 / (2 * scale**2))``; if the L2 norm of a vector moves by at most d,
    its release is (d^2 / (2 scale^2))-zero-concentrated differentially private.

    References
    ----------
    Canonne, Kamath, Steinke (2020), doi 10.29012/jpc.784: proposition 5 and the sampler.
    """

    kind = "gaussian"
    name = "discrete Gaussian"

    @override
    def made(self, vectors: Any, scale: float) -> Any:
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance

        return make_gaussian(vectors, l2_distance(T="f64"), scale=scale)

    @override
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Integers:
        """Draw as in `Noise.simulated`; rounded normal variables, off by less than 2e-8, above a scale of 2^10."""
        if scale > _MOST_TABLED:
            return np.rint(rng.normal(0.0, scale, size)).astype(np.int64)
        reach = math.ceil(9 * scale)
        places = np.arange(-reach, reach + 1)
        below = np.cumsum(np.exp(-(places**2) / (2 * scale**2)))
        return (np.searchsorted(below, rng.random(size) * below[-1], side="right") - reach).astype(np.int64)


@cache
def mechanism(noise: Noise, scale: float) -> Any:
    """Return OpenDP's mechanism, which draws one kind of noise and bounds its loss by itself."""
    # `opendp.prelude` would import scikit-learn, where there is one, for more than a second.
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    try:
        return noise.made(vector_domain(atom_domain(T="i64")), scale)
    except Exception as error:
        raise PrivacyError(f"OpenDP refuses {noise.name} noise of scale {scale:g}; choose a larger epsilon.") from error


LAPLACE, GAUSSIAN = Laplace(), Gaussian()
NOISES: dict[str, Noise] = {noise.kind: noise for noise in (LAPLACE, GAUSSIAN)}
DIGITS = Context(60, ROUND_HALF_EVEN, -999_999, 999_999, capitals=1, clamp=0, flags=[], traps=[])
"""A context of its own: that of the caller may round otherwise."""


def tail(scale: float, least: int) -> Fraction:
    """Return a bound on the probability that discrete Laplace noise is at least `least` >= 1, 1e-40 above it at most.

    It is ``r^least / (1 + r)`` with ``r = exp(-1 / scale)``, the sum of ``(1 - r) / (1 + r) r^k`` from `least` on.
    `Decimal.exp` is rounded correctly, to 60 digits here.
    """
    with localcontext(DIGITS):
        exact, slack = Decimal(scale), 1 + Decimal("1e-45")
        above = (-Decimal(least) / exact).exp() * slack
        ratio = (-1 / exact).exp() / slack
    return Fraction(above) / (1 + Fraction(ratio))


__all__ = ["GAUSSIAN", "LAPLACE", "NOISES", "Noise", "mechanism", "tail"]
