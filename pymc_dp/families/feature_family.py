"""What likelihoods have in common whose statistics are bounded functions of the value."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, override

import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.family import MomentFamily, RowStatistic, Tensors
from pymc_dp.families.features import BoundedFeatures, SumStatistic
from pymc_dp.families.quadrature import LINE, Mass, Scale, feature_moments, mass_of
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.row_density import unchecked


class FeatureFamily(MomentFamily):
    """A continuous likelihood on rows clamped to public bounds; moments by quadrature of its own density.

    Attributes
    ----------
    support : (float, float)
        Of an unclamped value; bounds must lie strictly within, where features are finite.
    on : Scale
        Coordinate on which the likelihood is about as wide everywhere.
    """

    support: ClassVar[tuple[float, float]]
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
            low, high = self.support
            return Problem(
                where=observed.name,
                what=f"a {self.title} value has no public bounds, so one row could move its sums by any amount",
                remedy=f"Give a range strictly within ({low:g}, {high:g}): Domain(bounds={{{observed.name!r}: "
                "(low, high)}).",
            )
        low, high = observed.bounds
        if not self.inside(low, high):
            return Problem(
                where=observed.name,
                what=f"bounds ({low:g}, {high:g}) reach beyond where a {self.title} value has finite statistics, "
                f"({self.support[0]:g}, {self.support[1]:g})",
                remedy="Give bounds strictly within; values beyond are clamped to them.",
            )
        return self.features(observed, float(low), float(high))

    def inside(self, low: float, high: float) -> bool:
        """Whether bounds are ones of clamped values."""
        return self.support[0] < low and high < self.support[1]

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
        below, above = (pt.exp(unchecked(pm.logcdf(one, edge))) for edge in (low, high))
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
    def moments(
        self, parameters: Tensors, statistic: SumStatistic
    ) -> tuple[list[TensorVariable], list[list[TensorVariable]]]:
        """Mean vector and covariance matrix of one clamped row's features, by quadrature."""
        assert isinstance(statistic, BoundedFeatures)
        return feature_moments(self.mass(parameters, statistic.low, statistic.high), statistic)


__all__ = ["FeatureFamily"]
