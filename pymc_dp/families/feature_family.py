"""What likelihoods have in common whose statistics are bounded functions of the value.

Likelihoods of whole numbers whose statistic is the sum of the clamped value.
"""

from __future__ import annotations

from abc import abstractmethod
from math import ceil, floor, isfinite
from typing import ClassVar, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem, needs_bounds
from pymc_dp.families.family import BoundedMoments, MomentFamily, Moments, RowStatistic, Tensors, WholeFamily
from pymc_dp.families.features import BoundedFeatures, SumStatistic
from pymc_dp.families.quadrature import LINE, Mass, Scale, feature_moments, mass_of
from pymc_dp.inspection.cumulative import finite_branches
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.row_density import unchecked

SMALLEST, LARGEST = 1e-150, 1e150
"""Of the half width of a feature, in its own units: squares and their rounding stay numbers."""
ABOVE, BELOW = 2.0**-40, 2.0**-10
"""How far within its support bounds of a value are moved that reach beyond it."""
FARTHEST = 2.0**20
"""Half widths that the middle of a feature may be away from zero: floats there are finer than its grid."""


class FeatureFamily(MomentFamily):
    """A continuous likelihood on rows clamped to public bounds; moments by quadrature of its own density.

    Attributes
    ----------
    support : (float, float)
        Of an unclamped value; bounds must lie strictly within, where features are finite.
    from_zero : bool
        Whether a bound may be 0 all the same.
    on : Scale
        Coordinate on which the likelihood is about as wide everywhere.
    """

    support: ClassVar[tuple[float, float]]
    from_zero: ClassVar[bool] = False
    on: ClassVar[Scale] = LINE

    @abstractmethod
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        """Choose the features that the unknown parameters need."""

    @abstractmethod
    def variable(self, parameters: Tensors) -> TensorVariable:
        """Return the likelihood as a random variable, for PyMC's density and distribution function."""

    def log_density(self, parameters: Tensors, x: TensorVariable) -> TensorVariable:
        """Log density of unclamped values: (n, n_values) from (n, 1) parameters and (n, n_values) values."""
        return pm.logp(self.variable(parameters), x)

    @abstractmethod
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        """Return roughly where the value lies on the coordinate `on`, and how wide it spreads there."""

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        if observed.bounds is None:
            return Problem(
                where=observed.name,
                what=f"a {self.title} value has no public bounds, so one row could move its sums by any amount",
                remedy=f"Give a range {self.allowed}: Domain(bounds={{{observed.name!r}: (low, high)}}).",
                kind="declaration",
            )
        low, high = observed.bounds
        if not (self.support[0] < low or (self.from_zero and low == 0)) or high >= self.support[1]:
            return Problem(
                where=observed.name,
                what=f"bounds ({low:g}, {high:g}) reach beyond where a {self.title} value has finite statistics",
                remedy=f"Give a range {self.allowed}; values beyond are clamped to it.",
            )
        with np.errstate(all="ignore"):
            found = self.features(observed, float(low), float(high))
        return found if isinstance(found, Problem) else representable(observed, found)

    @override
    def admitted(self, low: float, high: float) -> tuple[float, float]:
        bottom, top = self.support
        inner = max(low, bottom + (0.0 if self.from_zero else ABOVE)), min(high, top - BELOW)
        return inner if inner[0] < inner[1] else (low, high)

    @property
    def allowed(self) -> str:
        """Text of where bounds may lie."""
        low, high = self.support
        return f"within [{low:g}, {high:g})" if self.from_zero else f"strictly within ({low:g}, {high:g})"

    @property
    def title(self) -> str:
        """Name in texts."""
        return type(self).__name__

    def mass(self, parameters: Tensors, low: float, high: float) -> Mass:
        """Lay nodes where a row's clamped value may be."""
        given = pt.broadcast_arrays(*parameters) if len(parameters) > 1 else list(parameters)
        columns = [item[:, None] for item in given]
        centre, scale = self.window(given)
        one = self.variable(given)
        below, above = (pt.exp(finite_branches(unchecked(pm.logcdf(one, edge)))) for edge in (low, high))
        return mass_of(
            lambda x: unchecked(self.log_density(columns, x)),
            low,
            high,
            centre=centre,
            scale=scale,
            below=below,
            above=pt.clip(1 - above, 0, 1),
            on=self.on,
        )

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """Mean vector and covariance matrix of one clamped row's features, by quadrature."""
        assert isinstance(statistic, BoundedFeatures)
        return feature_moments(self.mass(parameters, statistic.low, statistic.high), statistic)


def representable(observed: Observed, statistic: BoundedFeatures) -> BoundedFeatures | Problem:
    """Refuse bounds between which a feature overflows, or does not move at all in floats."""
    for item, label in zip(statistic.features, statistic.labels, strict=True):
        if not distinguishable(item.centre, item.half_width):
            low, high = statistic.low, statistic.high
            return Problem(
                where=observed.name,
                what=f"between the bounds ({low:g}, {high:g}) the range of its statistic, {label}, is too narrow for "
                "floats, or overflows",
                remedy="Give bounds closer to where values are expected, or measure the value in another unit.",
            )
    return statistic


def distinguishable(centre: float, half_width: float) -> bool:
    """Whether floats can tell numbers between two bounds apart, and hold the squares of their sums."""
    return isfinite(centre) and SMALLEST < half_width < LARGEST and abs(centre) <= half_width * FARTHEST


MOST_TERMS = 1024
"""Values between the bounds that are summed one by one; beyond, the sum is taken at nodes."""
MOST = 2**29
TINY = 1e-300


class CountSum(WholeFamily):
    """Rows of whole numbers clamped to public bounds; moments from the probabilities to exceed each value.

    Attributes
    ----------
    least : int
        Smallest value of an unclamped row.
    """

    least: ClassVar[int] = 0

    @abstractmethod
    def exceeds(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        """Probability that a row is above k: (n_cells, n_values) from (n_cells, 1) parameters and values."""

    @abstractmethod
    def log_mass(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        """Log probability that an unclamped row is k: shapes as in `exceeds`."""

    @override
    def log_masses(self, parameters: Tensors, statistic: BoundedMoments) -> TensorVariable:
        """What is beyond the bounds is at them: below, values are few and added up."""
        low, high = int(statistic.low), int(statistic.high)
        inner = self.log_mass(parameters, pt.constant(np.arange(self.least, high, dtype=float))[None, :])
        below = low - self.least + 1
        first = pt.logsumexp(inner[:, :below], axis=1, keepdims=True)
        last = pt.log(self.exceeds(parameters, pt.constant(float(high - 1))) + TINY)
        return pt.concatenate([first, inner[:, below:], last], axis=1)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        return count_statistic(observed, observed.distribution, least=self.least, sizes_known=sizes_known)

    @override
    def admitted(self, low: float, high: float) -> tuple[float, float]:
        return count_bounds(low, high, least=self.least)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """With D the clamped value less the low bound: E D = Σ P(D > j), and E D² = Σ (2 j + 1) P(D > j)."""
        assert isinstance(statistic, BoundedMoments)
        steps, weights = _steps(int(statistic.high - statistic.low))
        given = [item[:, None] for item in pt.broadcast_arrays(*parameters)]
        tail = pt.clip(self.exceeds(given, pt.constant(steps + statistic.low)[None, :]), 0, 1)
        mean = (weights * tail).sum(axis=-1)
        second = (weights * (2 * steps + 1 - 2 * mean[:, None]) * tail).sum(axis=-1) + mean**2
        width = statistic.half_width
        return [(mean + statistic.low - statistic.centre) / width], [[pt.maximum(second, 0) / width**2]]


def count_statistic(observed: Observed, title: str, *, least: int = 0, sizes_known: bool) -> BoundedMoments | Problem:
    """Sum of a count clamped to public bounds, `least` or more, or why there is none."""
    if observed.bounds is None:
        return Problem(
            where=observed.name,
            what=f"a {title} count has no upper bound, so one row could move the sum by any amount",
            remedy=needs_bounds(observed.name, f"{least}", of="a public range") + ".",
            kind="declaration",
        )
    low, high = observed.bounds
    if low < least or low != int(low) or high != int(high) or high > MOST:
        return Problem(
            where=observed.name,
            what=f"bounds ({low:.12g}, {high:.12g}) of a count must be whole numbers, at least {least}, at most {MOST}",
            remedy=(
                f"Give whole numbers as bounds of {observed.name}, low >= {least}."
                if high <= MOST
                else f"Give bounds of {observed.name} of at most 2**29 = {MOST}: count in thousands, or so."
            ),
            kind="declaration",
        )
    return bounded_count(low, high, sizes_known=sizes_known)


def count_bounds(low: float, high: float, *, least: int = 0) -> tuple[float, float]:
    """Return whole bounds of a count, `least` or more; those given where there are none between them."""
    inner = float(max(floor(low), least)), float(min(ceil(high), MOST))
    return inner if inner[0] < inner[1] else (low, high)


def bounded_count(low: float, high: float, *, sizes_known: bool) -> BoundedMoments:
    """Sum of x; where cells have private sizes, of x less the middle of the bounds (a half-integer grid)."""
    half_width = (high - low) / 2
    if sizes_known:
        return BoundedMoments(low=low, high=high, centre=0.0, unit=1.0, half_width=half_width, powers=(1,))
    unit = 0.5 if (high - low) % 2 else 1.0
    return BoundedMoments(low=low, high=high, centre=low + half_width, unit=unit, half_width=half_width, powers=(1,))


def _steps(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Values 0..width - 1 and weights 1; where there are many, blocks of them by their middles."""
    if width <= MOST_TERMS:
        return np.arange(width, dtype=float), np.ones(width)
    edges = np.unique(np.rint(np.concatenate([np.arange(64), np.geomspace(64, width, MOST_TERMS - 64)])))
    return (edges[:-1] + edges[1:] - 1) / 2, np.diff(edges)


__all__ = [
    "CountSum",
    "FeatureFamily",
    "bounded_count",
    "count_bounds",
    "count_statistic",
    "distinguishable",
    "representable",
]
