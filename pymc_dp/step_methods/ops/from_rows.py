"""Exact draws from posteriors of rows that are passed over: from a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pymc import Model

from pymc_dp.accounting import Event
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.priors import BALL, OWN_TRANSFORM, Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.found_range import infinite_ends
from pymc_dp.samplers.parameter_points import ParameterPoints
from pymc_dp.samplers.per_unit import PerUnitScores
from pymc_dp.samplers.row_scores import RowScores
from pymc_dp.step_methods.ops.grid import by_name, grid_of, log_prior

CELLS = {1: 4096, 2: 256}
"""Cells per axis."""
MOST_SCALARS = max(CELLS)
PER_UNIT_CELLS = {1: 1024, 2: 48}
"""The same where ε is per unit of a metric: whole weights of many cells cost more there."""


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
        self.points, self.prior = _possible(prior_model, self.priors, points)
        self.scores = RowScores(inspection, prior_model, self.points)
        if problems := _infinite_ends(self.scores, self.priors):
            raise UnsupportedModelError(problems)
        self.most = 2 * self.scores.size if papers else None

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
    points = ParameterPoints(priors)
    return infinite_ends(priors, lambda prior, side: bool(scores.infinite_at(points.at_end(prior, side)[None])[0]))


class PerUnitGrid:
    """A posterior on a grid where ε is per unit of a metric: the kernel chooses a cell by numbers of public nodes.

    Parameters
    ----------
    inspection : RowInspection
        With a metric.
    prior_model : pymc.Model
    priors : tuple of Prior
        Of which `grid_problem` says nothing.
    cells : int, optional
        Per axis.
    """

    words = "independent and exact: a cell of a public grid, then a uniform point within it"
    exact = True
    name = "rows"

    def __init__(
        self, inspection: RowInspection, prior_model: Model, priors: Sequence[Prior], cells: int | None
    ) -> None:
        self.priors = tuple(priors)
        points, self.widths = grid_of(self.priors, cells or PER_UNIT_CELLS[sum(prior.size for prior in priors)])
        self.points, self.prior = _possible(prior_model, self.priors, points)
        self.scores = PerUnitScores(inspection, prior_model, self.points)

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
        place = self.scores.choose(inverse, (inverse if temper_prior else 1.0) * self.prior)
        return by_name(self.priors, self.points[place] + self.widths * (rng.random(len(self.widths)) - 0.5))


def _possible(prior_model: Model, priors: Sequence[Prior], points: Array) -> tuple[Array, Array]:
    """Return the points where the prior has density, and its logarithm there."""
    prior = log_prior(prior_model, priors, points)
    possible = np.isfinite(prior)
    if not possible.any():
        what = "its prior density is 0 on all of the grid"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give other bounds.")])
    return points[possible], prior[possible]


__all__ = ["CELLS", "MOST_SCALARS", "PerUnitGrid", "ScoredGrid", "grid_problem"]
