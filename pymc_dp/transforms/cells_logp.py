"""Densities of many cells of a released table as one operation."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import ClassVar, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.released_logp import ReleasedLogp


class NormalCells(ReleasedLogp):
    """Log density of noised sums of a normal value and of its square, one entry per cell.

    Inputs are the release, mean and standard deviation per cell, variances of noise, and what is public.
    """

    kernel = "pymc_dp.transforms.cell_kernels:normal_cells"
    slopes = (1, 2, 3)
    by_cells = True
    free: ClassVar[bool] = False
    """Whether the variances that make Laplace noise of normal noise are free variables; else it is integrated out."""

    @cached_property
    @override
    def structure(self) -> Hashable:
        sizes = self.density.sizes
        return sizes.public, sizes.seen is None, sizes.kind

    def of(
        self, value: TensorVariable, mean: TensorVariable, sd: TensorVariable, variances: TensorVariable | None = None
    ) -> TensorVariable:
        """Return the log density of a release, as ``ReleaseDensity.logp`` does."""
        count = len(self.density.sizes.bound)
        given = [item if item.type.shape == (count,) else pt.broadcast_to(item, (count,)) for item in (mean, sd)]
        if variances is None:
            return self.log_density(value, *given, held(np.ones((count, 2))), *self._known)
        free = FreeNormalCells(self.density)
        return free.log_density(value, *given, 2 * variances, *free._known)

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        found: TensorVariable = self.density.graph(*inputs[:3])
        return found

    @property
    def _known(self) -> list[TensorVariable]:
        density, sizes, statistic = self.density, self.density.sizes, self.density.statistic
        assert isinstance(statistic, BoundedMoments)
        shown = held(np.zeros(0)) if sizes.seen is None else sizes.shown
        laplace = sizes.kind == "laplace"
        described = [sizes.public, sizes.n_private, laplace, sizes.noise, laplace and not self.free]
        shift = statistic.shifts[-1] / statistic.scales[-1]
        bounds = [statistic.centre, statistic.half_width, statistic.low, statistic.high, shift]
        arrays = (density.scales, sizes.bound, shown, np.array(described, dtype=float), np.array(bounds))
        return [held(item) for item in arrays]


class FreeNormalCells(NormalCells):
    """The same with Laplace noise of free variances."""

    free = True

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        found: TensorVariable = self.density.graph(*inputs[:3], inputs[4], inputs[3] / 2)
        return found


__all__ = ["NormalCells"]
