"""Kinds of discrete noise on vectors of whole numbers: what a release costs under each, and how OpenDP draws it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import sqrt
from typing import Any, ClassVar, Protocol, final, override

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.accounting.budget import Budget
from pymc_dp.kernel.accounting.calibrate import calibrated
from pymc_dp.kernel.accounting.events import ComposedEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.randomness import insecure

Integers = npt.NDArray[np.int64]

_MOST_TABLED = 2.0**10
"""Scale up to which simulated Gaussian noise comes from a table of its probabilities."""


class Moved(Protocol):
    """How far one row moves a vector of whole numbers, at most: in L1, in squared L2, and place by place if known."""

    @property
    def l1(self) -> int:
        """In steps of the grid."""

    @property
    def l2_squared(self) -> int:
        """In squared steps."""

    @property
    def shifts(self) -> tuple[int, ...] | None:
        """The worst case coordinate by coordinate, where every worst case is a permutation of one."""


class Noise(ABC):
    """One kind of independent discrete noise.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
        As in `Statistics`, and in records.
    name, norm : str
        Of the noise, and of the sensitivity that it is measured against, in texts.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    norm: ClassVar[str]

    @abstractmethod
    def check(self, delta: float) -> None:
        """Refuse a δ that does not fit, with an ArgumentError."""

    @abstractmethod
    def weight(self, sensitivity: Moved) -> float:
        """Return the sensitivity, in grid steps."""

    @abstractmethod
    def part(self, sensitivity: float) -> float:
        """Return a weight in the budget, such that sensitivities of any size get equal noise by it."""

    @abstractmethod
    def scales(
        self, sensitivities: Sequence[Moved], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        """Return the least noise of several integer vectors that together cost at most (ε, δ).

        Parameters
        ----------
        sensitivities : sequence of Moved
        shares : sequence of float
            Weights of the vectors in the budget.
        """

    @abstractmethod
    def event(self, sensitivity: Moved, scale: float) -> Event:
        """Return what one vector costs."""

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

    @abstractmethod
    def deviation(self, scale: float) -> float:
        """Return the standard deviation of wide noise of this scale."""


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
    norm = "Δ1"

    @override
    def check(self, delta: float) -> None:
        if delta > 0:
            raise ArgumentError(
                f"delta={delta:g} would buy nothing: discrete Laplace noise is pure ε. Use delta=0, or a release that "
                'uses a delta: Statistics(noise="gaussian") for counts, sums and linear regression, dp.Gradients() '
                "for any other likelihood."
            )

    @override
    def weight(self, sensitivity: Moved) -> float:
        return float(sensitivity.l1)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity

    @override
    def scales(
        self, sensitivities: Sequence[Moved], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        parts = Budget(epsilon).split(shares)
        return [
            self.calibrate(sensitivity.l1, part.epsilon) for sensitivity, part in zip(sensitivities, parts, strict=True)
        ]

    def calibrate(self, sensitivity: int, epsilon: float) -> float:
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
        while (
            sensitivity / Fraction(scale) > Fraction(epsilon) or mechanism(self, scale).map(int(sensitivity)) > epsilon
        ):
            scale = float(np.nextafter(scale, np.inf))
        return scale

    @override
    def event(self, sensitivity: Moved, scale: float) -> Event:
        return DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity.l1, shifts=sensitivity.shifts)

    @override
    def made(self, vectors: Any, scale: float) -> Any:
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance

        return make_laplace(vectors, l1_distance(T="i64"), scale=scale)

    @override
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Integers:
        p = -np.expm1(-1 / scale)
        return (rng.geometric(p, size) - rng.geometric(p, size)).astype(np.int64)

    @override
    def deviation(self, scale: float) -> float:
        return sqrt(2) * scale


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
    norm = "Δ2"

    @override
    def check(self, delta: float) -> None:
        if delta == 0:
            raise ArgumentError(
                "Gaussian noise needs delta > 0, far below 1 / number of rows, for example delta=1e-6. Without a delta "
                'use Statistics(noise="laplace").'
            )

    @override
    def weight(self, sensitivity: Moved) -> float:
        return sqrt(sensitivity.l2_squared)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity**2

    @override
    def scales(
        self, sensitivities: Sequence[Moved], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        """Shares are of ρ."""
        like = ComposedEvent(
            events=tuple(
                self.event(sensitivity, sqrt(sensitivity.l2_squared / (2 * share)))
                for sensitivity, share in zip(sensitivities, shares, strict=True)
            )
        )
        found = calibrated(like, epsilon, delta)
        assert isinstance(found, ComposedEvent)
        return [part.scale for part in found.events if isinstance(part, DiscreteGaussianEvent)]

    @override
    def event(self, sensitivity: Moved, scale: float) -> Event:
        return DiscreteGaussianEvent(scale=scale, l2_squared=sensitivity.l2_squared, shifts=sensitivity.shifts)

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

    @override
    def deviation(self, scale: float) -> float:
        return scale


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
