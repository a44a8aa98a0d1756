"""Densities of many cells of a released table as one operation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.normal import Normal
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.released_logp import ReleasedLogp

if TYPE_CHECKING:
    from pymc_dp.transforms.density import ReleaseDensity


class NormalCells(ReleasedLogp):
    """Log density of noised sums of a normal value and of its square, one entry per cell.

    Inputs are the release, mean and standard deviation per cell, variances of noise, and what is public.
    """

    __props__ = ("structure",)
    kernel = "pymc_dp.transforms.cell_kernels:normal_cells"
    slopes = (1, 2, 3)
    by_cells = True

    def __init__(self, density: ReleaseDensity, *, free: bool = False) -> None:
        super().__init__()
        self.density = density
        # Laplace noise on the sums is integrated out where the variances that make it of normal noise are not free.
        self.integrated = density.sizes.kind == "laplace" and not free
        self.structure = (density.sizes.public, density.sizes.seen is None, density.sizes.kind, self.integrated)

    @override
    def __reduce__(self) -> Any:
        return partial(type(self), free=not self.integrated), (self.density,)

    def of(
        self, value: TensorVariable, mean: TensorVariable, sd: TensorVariable, variances: TensorVariable | None = None
    ) -> TensorVariable:
        """Return the log density of a release, as ``ReleaseDensity.logp`` does."""
        count = len(self.density.sizes.bound)
        given = [item if item.type.shape == (count,) else pt.broadcast_to(item, (count,)) for item in (mean, sd)]
        if variances is None:
            return self.log_density(value, *given, held(np.ones((count, 2))), *self._known)
        operation = type(self)(self.density, free=True)
        return operation.log_density(value, *given, 2 * variances, *operation._known)

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        free = self.density.sizes.kind == "laplace" and not self.integrated
        return self.density.graph(*inputs[:3], *([inputs[4], inputs[3] / 2] if free else []))

    @property
    def _known(self) -> list[TensorVariable]:
        density, sizes, statistic = self.density, self.density.sizes, self.density.statistic
        assert isinstance(statistic, BoundedMoments)
        shown = held(np.zeros(0)) if sizes.seen is None else sizes.shown
        described = [sizes.public, sizes.n_private, sizes.kind == "laplace", sizes.noise, self.integrated]
        shift = statistic.shifts[-1] / statistic.scales[-1]
        bounds = [statistic.centre, statistic.half_width, statistic.low, statistic.high, shift]
        arrays = (density.scales, sizes.bound, shown, np.array(described, dtype=float), np.array(bounds))
        return [held(item) for item in arrays]


def cells_operation(density: ReleaseDensity) -> NormalCells | None:
    """Return the operation of a table of cells, where there is one."""
    if not density.noise_aware or not density.scales.any() or not isinstance(density.family, Normal):
        return None
    assert isinstance(density.statistic, BoundedMoments)
    return NormalCells(density) if density.statistic.powers == (1, 2) else None


__all__ = ["NormalCells", "cells_operation"]
