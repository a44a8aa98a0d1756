"""Exact draws from posteriors of rows held one by one: from a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, override

from pymc_dp.inspection.priors import BALL, OWN_TRANSFORM
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.ops.grid import GridDraws, grid_of
from pymc_dp.step_methods.ops.row_density import Held, RowDensity
from pymc_dp.step_methods.ops.row_proofs import Fit
from pymc_dp.step_methods.row_functions import Bound, NodeBound, Nodes

CELLS = {1: 4096, 2: 256}
"""Cells per axis."""
MOST_SCALARS = max(CELLS)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowGridPosterior(GridDraws):
    """A posterior on a grid, of rows that are held one by one."""

    density: RowDensity
    bound: Bound | None
    nodes: Nodes | None = None

    @classmethod
    def of(cls, density: RowDensity, cells: int | None, fit: Fit | None) -> Self | str:
        """Lay out the grid, or say what is in the way. Nothing is enforced on rows without a `fit`."""
        priors = density.priors
        if density.dimension > MOST_SCALARS or any(prior.distribution == "dirichlet" for prior in priors):
            return f"a grid needs at most {MOST_SCALARS} scalar parameters (there are {density.dimension})"
        if any(prior.distribution == BALL for prior in priors):
            return "the cells of a grid do not form a ball"
        if any(prior.distribution.endswith(OWN_TRANSFORM) for prior in priors):
            return "a grid needs priors without transforms set by hand"
        if not all(prior.bounded for prior in priors):
            return "a grid needs bounded parameters, see dp.truncate"
        points, widths = grid_of(priors, cells or CELLS[density.dimension])
        bound = None if fit is None else fit.over(points)
        return cls(priors=priors, density=density, points=points, widths=widths, bound=bound)

    def on(self, nodes: Nodes, charge: float) -> Self:
        """Return the same for rows that count for public nodes, where `charge` is per unit of a metric."""
        return replace(self, nodes=nodes, bound=NodeBound(nodes=nodes, most=charge))

    def read(self) -> Held:
        """Hold the rows, or count them at nodes. Reads private data."""
        return self.density.read(self.nodes)

    @override
    def log_densities(self, held: Held) -> tuple[Array, Array]:
        return self.density.held_sums(self.points, held, self.bound)


__all__ = ["CELLS", "MOST_SCALARS", "RowGridPosterior"]
