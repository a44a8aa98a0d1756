"""Exact draws from posteriors of rows that are passed over: from a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, override

import numpy as np
from pymc import Model

from pymc_dp.accounting import Event
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.priors import BALL, OWN_TRANSFORM, Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.row_scores import RowScores
from pymc_dp.step_methods.ops.grid import GridDraws, box_of, by_name, grid_of, log_prior
from pymc_dp.step_methods.ops.row_density import Held, RowDensity
from pymc_dp.step_methods.row_functions import Bound, NodeBound, Nodes

CELLS = {1: 4096, 2: 256}
"""Cells per axis."""
MOST_SCALARS = max(CELLS)
INSIDE = 0.01
"""Share of a support that is proposed to be cut off, at an end where a likelihood is infinite."""


def grid_problem(priors: Sequence[Prior]) -> str:
    """Say why no grid can be laid over the supports of some priors; empty if one can."""
    scalars = sum(prior.size for prior in priors)
    if scalars > MOST_SCALARS or any(prior.distribution == "dirichlet" for prior in priors):
        return f"a grid needs at most {MOST_SCALARS} scalar parameters (there are {scalars})"
    if any(prior.distribution == BALL for prior in priors):
        return "the cells of a grid do not form a ball"
    if any(prior.distribution.endswith(OWN_TRANSFORM) for prior in priors):
        return "a grid needs priors without transforms set by hand"
    if any(not prior.variable.type.dtype.startswith("float") for prior in priors):
        return "a grid needs continuous parameters"
    return "" if all(prior.bounded for prior in priors) else "a grid needs bounded parameters, see dp.truncate"


class ScoredGrid:
    """A posterior on a grid, of which the kernel chooses a cell: θ is uniform within it.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    priors : tuple of Prior
        Of which `grid_problem` says nothing.
    cells : int, optional
        Per axis.
    papers : bool
        Whether 2 Δl is enforced and paid for instead of the range.
    """

    words = "independent and exact: a cell of a public grid, then a uniform point within it"
    exact = True
    name = "rows"

    def __init__(
        self, inspection: RowInspection, prior_model: Model, priors: Sequence[Prior], cells: int | None, *, papers: bool
    ) -> None:
        self.priors = tuple(priors)
        count = cells or CELLS[sum(prior.size for prior in priors)]
        points, self.widths = grid_of(self.priors, count)
        prior = log_prior(prior_model, self.priors, points)
        possible = np.isfinite(prior)
        if not possible.any():
            what = "its prior density is 0 on all of the grid"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give other bounds.")])
        self.points, self.prior = points[possible], prior[possible]
        self.scores = RowScores(inspection, prior_model, self.points)
        if problems := _infinite_ends(self.scores, self.priors):
            raise UnsupportedModelError(problems)
        self.most = 2 * self.scores.size if papers else None

    @property
    def added(self) -> float:
        """What a draw costs above its range: the slack of whole weights."""
        return self.scores.slack

    def read(self) -> None:
        """Read the rows, once. The budget was charged."""
        self.scores.load()

    def begin(self, held: None, paid: Event, steps: int) -> None:
        """Begin a chain of so many draws, each of which `paid` was charged for."""
        self.scores.begin(paid, steps)

    def forget(self) -> None:
        """Let go of the rows."""
        self.scores.forget()

    def draw(self, rng: np.random.Generator, held: None, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        place = self.scores.choose(inverse, (inverse if temper_prior else 1.0) * self.prior, self.most)
        return by_name(self.priors, self.points[place] + self.widths * (rng.random(len(self.widths)) - 0.5))


def _infinite_ends(scores: RowScores, priors: Sequence[Prior]) -> list[Problem]:
    """Say towards which ends of the priors' supports one row moves its likelihood by any amount.

    A grid has no point there, and a finite range; but a draw would have a temperature that depends on its cells.
    """
    (low, high), found, start = box_of(priors), list[Problem](), 0
    for prior in priors:
        own, ends = slice(start, start + prior.size), list[float]()
        start += prior.size
        for end in (low, high):
            point = low / 2 + high / 2
            point[own] = end[own]
            ends.append(float(scores.infinite_at(point[None])[0]))
        if any(ends):
            least, most, width = low[own].min(), high[own].max(), (high[own] - low[own]).min()
            inside = least + ends[0] * INSIDE * width, most - ends[1] * INSIDE * width
            what = "one row can move its likelihood by any amount towards an end of the prior of this variable"
            remedy = f"Truncate it: dp.truncate(model, {{{prior.name!r}: ({inside[0]:.6g}, {inside[1]:.6g})}})."
            found.append(Problem(where=prior.name, what=what, remedy=remedy))
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class RowGridPosterior(GridDraws):
    """A posterior on a grid, of rows that are held one by one, where ε is per unit of a metric."""

    density: RowDensity
    bound: Bound | None = None
    nodes: Nodes | None = None

    @classmethod
    def of(cls, density: RowDensity, cells: int | None) -> Self | str:
        """Lay out the grid, or say what is in the way."""
        if problem := grid_problem(density.priors):
            return problem
        points, widths = grid_of(density.priors, cells or CELLS[density.dimension])
        return cls(priors=density.priors, density=density, points=points, widths=widths)

    def on(self, nodes: Nodes, charge: float) -> Self:
        """Return the same for rows that count for public nodes, where `charge` is per unit of a metric."""
        return replace(self, nodes=nodes, bound=NodeBound(nodes=nodes, most=charge))

    def read(self) -> Held:
        """Hold the rows, or count them at nodes. Reads private data."""
        return self.density.read(self.nodes)

    @override
    def log_densities(self, held: Held) -> tuple[Array, Array]:
        return self.density.held_sums(self.points, held, self.bound)


__all__ = ["CELLS", "MOST_SCALARS", "RowGridPosterior", "ScoredGrid", "grid_problem"]
