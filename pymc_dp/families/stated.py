"""Vectors whose density is written by hand and states its statistics (``dp.models.with_statistics``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.family import RowStatistic, Tensors, VectorFamily
from pymc_dp.families.feature_family import distinguishable
from pymc_dp.families.features import SumStatistic
from pymc_dp.families.quadrature import normal_logp
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.row_density import vectorized
from pymc_dp.inspection.stated import Statement

TINY = 1e-9
"""Rows that an empty cell counts for, and variance, in squares of the largest value, that any sum has per row."""


@dataclass(frozen=True)
class Stated(VectorFamily):
    """A density of one's own: its statistics, their moments and their likelihood are those that it states."""

    statement: Statement

    distribution = "stated statistics"

    @property
    def event_ndims(self) -> tuple[int, ...]:  # type: ignore[override]
        """Trailing axes of each parameter."""
        return tuple(item.type.ndim for item in self.statement.parameters)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        if observed.bounds is not None and observed.bounds != self.statement.values:
            return Problem(
                where=observed.name,
                what=f"its bounds {observed.bounds} are not the values that its statistics are stated for",
                remedy="Leave the bounds out: dp.models.with_statistics says what is released.",
            )
        found = sums_of(self.statement)
        for half, centre, label in zip(found.scales, found.shifts, found.labels, strict=True):
            if not distinguishable(centre, half):
                return Problem(
                    where=observed.name,
                    what=f"the range of {label} between its stated bounds is too narrow for floats, or overflows",
                    remedy="State statistics in other units, or less a number known beforehand.",
                )
        return found

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        """Finite parameters."""
        found = [
            pt.all(pt.lt(pt.abs(item), np.inf), axis=tuple(range(-ndim, 0))) if ndim else pt.lt(pt.abs(item), np.inf)
            for item, ndim in zip(parameters, self.event_ndims, strict=True)
        ]
        result = found[0]
        for item in found[1:]:
            result = result & item
        return result

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> tuple[TensorVariable, TensorVariable]:
        half = np.array(statistic.scales)
        ends = [self.statement.mean, self.statement.covariance]
        mean, covariance = self._per_cell(ends, parameters)
        return mean / half, covariance / np.outer(half, half)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """Return the stated log-likelihood of exact sums, or that of normal sums with the stated moments."""
        stated = self.statement
        if stated.log_likelihood is not None:
            return self._per_cell([stated.log_likelihood], parameters, {stated.sums: sums, stated.size: sizes})[0]
        mean, covariance = self._per_cell([stated.mean, stated.covariance], parameters)
        n = pt.maximum(sizes, TINY)
        tiny = TINY * np.array([half**2 for half in sums_of(stated).scales])
        return normal_logp(sums - n[:, None] * mean, n[:, None, None] * covariance, n[:, None] * tiny)

    @override
    def shapes(self, statistic: SumStatistic) -> list[tuple[int | None, ...]]:
        """Shape of each parameter of one cell."""
        return [item.type.shape for item in self.statement.parameters]

    @override
    def signature(self) -> list[str]:
        """Axes of each parameter in a gufunc signature: no two parameters need be as long."""
        return [
            f"({','.join(f'p{place}_{axis}' for axis in range(ndim))})" for place, ndim in enumerate(self.event_ndims)
        ]

    def _per_cell(
        self, ends: Sequence[Variable], parameters: Tensors, beside: Mapping[Variable, TensorVariable] | None = None
    ) -> list[TensorVariable]:
        """Evaluate what is stated for one cell in all cells, along a new first axis."""
        given: dict[Variable, Any] = {
            stand_in: pt.specify_shape(item.astype(stand_in.type.dtype), (None, *stand_in.type.shape))
            for stand_in, item in zip(self.statement.parameters, parameters, strict=True)
        } | dict(beside or {})
        if all(item.type.shape[0] == 1 for item in given.values()):  # no need for loops over cells
            found = clone_replace(list(ends), {stand_in: item[0] for stand_in, item in given.items()})
            return [item[None] for item in found]
        return list(vectorized(list(ends), given))


@lru_cache(maxsize=8)
def sums_of(statement: Statement) -> StatedSums:
    """Lay out the sums of a statement, once: possible rows may be many."""
    return StatedSums.of(statement)


__all__ = ["Stated", "sums_of"]
