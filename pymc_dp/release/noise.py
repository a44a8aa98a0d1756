"""Kinds of noise on integer vectors: what a release costs under each, and how OpenDP draws it.

How far one row can move released sums: exact integers, proved case by case.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import sqrt
from typing import Any, ClassVar, final, override

import numpy as np
import numpy.typing as npt

from pymc_dp._random import insecure
from pymc_dp.accounting import Budget, ComposedEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent, Event, calibrated
from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.families.features import SumStatistic
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import LevelCounts, OwnTotals


@dataclass(frozen=True, kw_only=True)
class SumSensitivity:
    """The largest sensitivity of an integer vector between neighbours.

    Attributes
    ----------
    l1 : int
        Sensitivity in the L1 norm, in grid steps.
    l2_squared : int
        Square of the sensitivity in the L2 norm, in squared grid steps.
    shifts : tuple of int or None
        The exact worst case coordinate by coordinate, where every worst case is a permutation of one; accountants
        may use it for tighter composition.
    reason : str
        The proof in a line.
    """

    l1: int
    l2_squared: int
    shifts: tuple[int, ...] | None
    reason: str

    def of_person(self, rows: int) -> SumSensitivity:
        """Return that of a person with up to `rows` rows: so many times as much, in L2 too, for all may be alike."""
        if rows == 1:
            return self
        reason = f"{self.reason}; a person adds {rows} rows at most"
        return SumSensitivity(l1=rows * self.l1, l2_squared=rows**2 * self.l2_squared, shifts=None, reason=reason)


def counts_sensitivity(statistic: LevelCounts, neighbours: Neighbours, *, sizes_known: bool) -> SumSensitivity:
    """Sensitivity of a table of counts; with two levels and public sizes, of the second count alone.

    Two vectors of counts >= 0 with sums of m at most differ by at most 2m in L1, and by 2m² in squared L2 (a² + b² -
    2ab, with a² <= m² and ab >= 0), in one cell or in two; both are attained by rows of one level each.

    Parameters
    ----------
    statistic : LevelCounts
    neighbours : {"replace", "add_remove"}
    sizes_known : bool
        Whether the number of rows of every cell is public, so that a row cannot change its cell.
    """
    if statistic.trials is not None:
        alone = sizes_known and statistic.n_levels == 2 and not isinstance(statistic, OwnTotals)
        return _trials_sensitivity(statistic.trials, neighbours, alone=alone)
    if neighbours == "add_remove":
        return SumSensitivity(l1=1, l2_squared=1, shifts=(1,), reason="one row adds 1 to one count")
    if sizes_known and statistic.n_levels == 2:
        reason = "one row moves one count by 1; the other count is the public size less it"
        return SumSensitivity(l1=1, l2_squared=1, shifts=(1,), reason=reason)
    return SumSensitivity(l1=2, l2_squared=2, shifts=(1, 1), reason="one row leaves one count and joins another")


def _trials_sensitivity(trials: int, neighbours: Neighbours, *, alone: bool) -> SumSensitivity:
    """Sensitivity of counts of which one row adds `trials`; `alone` if one count is released, without the other."""
    square = trials**2
    if neighbours == "add_remove":
        reason = f"one row adds {trials} to all counts together"
        return SumSensitivity(l1=trials, l2_squared=square, shifts=None, reason=reason)
    if alone:
        reason = f"one row moves one count by {trials} at most; the other count is the public total less it"
        return SumSensitivity(l1=trials, l2_squared=square, shifts=(trials,), reason=reason)
    reason = f"one row moves {trials} at most from some counts to others"
    return SumSensitivity(l1=2 * trials, l2_squared=2 * square, shifts=None, reason=reason)


def sizes_sensitivity(neighbours: Neighbours) -> SumSensitivity:
    """Sensitivity of the numbers of rows per cell, where these are private."""
    if neighbours == "add_remove":
        return SumSensitivity(l1=1, l2_squared=1, shifts=(1,), reason="one row adds 1 to the size of one cell")
    return SumSensitivity(l1=2, l2_squared=2, shifts=(1, 1), reason="one row leaves one cell and joins another")


def sums_sensitivity(statistic: SumStatistic, neighbours: Neighbours, *, sizes_known: bool) -> SumSensitivity:
    """Sensitivity of sums of bounded numbers.

    Within one cell two rows differ by at most `spread`; a row that changes its cell takes its whole statistic
    (`magnitude`) out of one and puts another into the other.
    """
    if neighbours == "add_remove":
        l1, l2, reason = statistic.magnitude, statistic.magnitude_squared, "one row adds its centred value"
    elif sizes_known:
        l1, l2 = statistic.spread, statistic.spread_squared
        known = isinstance(statistic, StatedSums) and statistic.table is not None
        reason = "no two possible rows are further apart" if known else "one row changes its value between the bounds"
    else:
        l1 = max(statistic.spread, 2 * statistic.magnitude)
        l2 = max(statistic.spread_squared, 2 * statistic.magnitude_squared)
        reason = "one row takes its centred value from one cell to another"
    one = len(statistic.labels) == 1 and (neighbours == "add_remove" or sizes_known)
    return SumSensitivity(l1=l1, l2_squared=l2, shifts=(l1,) if one else None, reason=reason)


Integers = npt.NDArray[np.int64]

_MOST_TABLED = 2.0**10
"""Scale up to which simulated Gaussian noise comes from a table of its probabilities."""


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
    def weight(self, sensitivity: SumSensitivity) -> float:
        """Return the sensitivity, in grid steps."""

    @abstractmethod
    def part(self, sensitivity: float) -> float:
        """Return a weight in the budget, such that sensitivities of any size get equal noise by it."""

    @abstractmethod
    def scales(
        self, sensitivities: Sequence[SumSensitivity], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        """Return the least noise of several integer vectors that together cost at most (ε, δ).

        Parameters
        ----------
        sensitivities : sequence of Sensitivity
        shares : sequence of float
            Weights of the vectors in the budget.
        """

    @abstractmethod
    def event(self, sensitivity: SumSensitivity, scale: float) -> Event:
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
    def weight(self, sensitivity: SumSensitivity) -> float:
        return float(sensitivity.l1)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity

    @override
    def scales(
        self, sensitivities: Sequence[SumSensitivity], shares: Sequence[float], epsilon: float, delta: float
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
    def event(self, sensitivity: SumSensitivity, scale: float) -> Event:
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
    def weight(self, sensitivity: SumSensitivity) -> float:
        return sqrt(sensitivity.l2_squared)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity**2

    @override
    def scales(
        self, sensitivities: Sequence[SumSensitivity], shares: Sequence[float], epsilon: float, delta: float
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
    def event(self, sensitivity: SumSensitivity, scale: float) -> Event:
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


__all__ = ["GAUSSIAN", "LAPLACE", "NOISES", "Noise", "mechanism"]
