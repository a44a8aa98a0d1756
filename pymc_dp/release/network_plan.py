"""The plan of a network's coefficients, and their release: made from public knowledge, then one pass and one draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pymc_dp._random import insecure
from pymc_dp.accounting import Event, total_epsilon
from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem
from pymc_dp.families.cells import Cells
from pymc_dp.families.characters import NetworkSums, sums_of
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.network import find_network, nodes_of
from pymc_dp.inspection.rows import Array
from pymc_dp.networks import FourierUpdates
from pymc_dp.release.block import Block
from pymc_dp.release.network_sensitivity import network_sensitivity
from pymc_dp.release.noise import NOISES, Noise
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.rows.gate import private_values
from pymc_dp.rows.sums import make_cells, sum_rows

NAME = "network"
"""Of the released table, and of its observed variable in a private model."""
TAKEN = (NAME, *(f"{NAME}_{part}" for part in ("cell", "statistic", "noise_scale", "noise_variance")))


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkPlan:
    """Everything public about the release of the coefficients of one network.

    Attributes
    ----------
    sums : NetworkSums
    observed : tuple of Observed
        Likelihoods of the nodes, in their order.
    cells : tuple of Cells
        Configurations of the parents of each node.
    n_rows : int
        Public number of rows, or the bound on it where that is private.
    counted : bool
        Whether `n_rows` is the number itself.
    block : Block
        The noise.
    delta : float
        Of the whole release.
    increment : float
        Rows that tables of the plug-in form have more, spread evenly.
    """

    sums: NetworkSums
    observed: tuple[Observed, ...]
    cells: tuple[Cells, ...]
    n_rows: int
    counted: bool
    block: Block
    delta: float
    increment: float = 0.0

    @property
    def name(self) -> str:
        """Name of the release."""
        return NAME

    @property
    def labels(self) -> tuple[str, ...]:
        """One per released column."""
        return ("coefficient",)

    @property
    def cell_labels(self) -> tuple[str, ...]:
        """One text per coefficient."""
        return self.sums.labels

    @property
    def event(self) -> Event:
        """What the release costs."""
        return self.block.event

    @property
    def epsilon(self) -> float:
        """What the release costs, at the δ of the whole release."""
        return total_epsilon(self.event, self.delta).epsilon

    @property
    def noise(self) -> Noise:
        """Kind of noise."""
        return self.block.noise

    @property
    def kind(self) -> str:
        """Name of the kind of noise, as in `Statistics`."""
        return next(name for name, known in NOISES.items() if known is self.noise)

    @property
    def scale(self) -> float:
        """Scale of the noise of a coefficient; 0 inside ``testing.without_noise``."""
        replacement = insecure()
        return 0.0 if replacement is not None and replacement.rng is None else self.block.scale * self.block.steps[0]

    def tables(self, values: Array) -> list[Array]:
        """Return the tables of all nodes that released coefficients make, the increment added; they agree.

        Parameters
        ----------
        values : (count, 1) array
            As released.

        Returns
        -------
        list of (n_cells, n_levels) arrays
        """
        n_rows = float(self.n_rows) if self.counted else float(values[0, 0])
        return self.sums.tables(values[:, 0], n_rows + self.increment)


def plan_network(
    inspection: Inspection, mechanism: FourierUpdates, noise: Noise, epsilon: float, delta: float
) -> NetworkPlan | tuple[Problem, ...]:
    """Choose coefficients, sensitivity and noise of a network, or say what is in the way. Reads no row."""
    relation, network = inspection.domain.neighbours, find_network(inspection)
    problems = taken_problems(inspection)
    if isinstance(network, tuple):
        return (*problems, *network)
    if mechanism.papers:
        problems += _not_in_the_paper(inspection, [node.n_levels for node in network.nodes])
    sums = sums_of(network, sized=mechanism.papers or relation == "add_remove")
    if isinstance(sums, tuple) or problems:
        return (*problems, *(sums if isinstance(sums, tuple) else ()))
    if not sums.count:
        what = "none of its nodes has more than one level"
        return (Problem(where="model", what=what, remedy="There is nothing to release; sample the prior instead."),)
    nodes = nodes_of(network, inspection)
    n_max = inspection.domain.n_max
    sensitivity = _of_paper(sums) if mechanism.papers else network_sensitivity(sums, relation)
    (scale,) = noise.scales([sensitivity], [1.0], epsilon, delta)
    return NetworkPlan(
        sums=sums,
        observed=tuple(observed for observed, _ in nodes),
        cells=tuple(make_cells(columns, inspection.n_rows, n_max) for _, columns in nodes),
        n_rows=inspection.n_rows if n_max is None else n_max,
        counted=n_max is None,
        block=Block(columns=(0,), steps=(sums.step,), scale=scale, sensitivity=sensitivity, noise=noise),
        delta=delta,
        increment=2 * mechanism.t * sums.count * scale * sums.step,
    )


def draw_network(plan: NetworkPlan) -> Array:
    """Count every family, make coefficients of the counts exactly, and add noise: (count, 1) array. Reads the rows."""
    steps = plan.sums.exact(_exact_tables(plan))
    return plan.noise.add(steps, plan.block.scale)[:, None] * plan.sums.step


def _exact_tables(plan: NetworkPlan) -> list[Array]:
    network, found = plan.sums.network, []
    for place, (observed, cells) in enumerate(zip(plan.observed, plan.cells, strict=True)):
        levels = LevelCounts(labels=tuple(map(str, range(network.nodes[place].n_levels))))
        counts = sum_rows(cells, levels, private_values(observed.leaf), with_sizes=False)
        found.append(counts.reshape(network.shape(place)))
    return found


def _of_paper(sums: NetworkSums) -> SumSensitivity:
    count = sums.count
    reason = f"every coefficient is taken to change its sign, all {count} of them (Zhang et al. 2016, corollary 2)"
    return SumSensitivity(l1=2 * count, l2_squared=4 * count, shifts=None, reason=reason)


def taken_problems(inspection: Inspection) -> list[Problem]:
    """Say so where a name of the model is one that the release needs, or one of its tables (`Release.marginals`)."""
    model = inspection.model
    used: Mapping[str, object] = {**model.named_vars, **model.dim_lengths, **model.coords}
    tables = [f"{observed.name}_table" for observed in inspection.observed]
    nodes = {observed.name for observed in inspection.observed}
    taken = [*(name for name in TAKEN if name in used), *(name for name in tables if name in nodes)]
    return [
        Problem(where="model", what=f"the name {name!r} is taken, which the release needs", remedy=f"Rename {name!r}.")
        for name in taken
    ]


def _not_in_the_paper(inspection: Inspection, levels: list[int]) -> list[Problem]:
    return papers_problems(inspection.domain.neighbours) + [
        Problem(
            where="model",
            what=f"a node has {count} levels, but algorithm 2 is for nodes of two",
            remedy="Leave papers=True out.",
        )
        for count in sorted(set(levels) - {2})
    ]


def papers_problems(neighbours: Neighbours) -> list[Problem]:
    """Say so where the noise of the papers is not for this relation."""
    if neighbours == "replace":
        return []
    return [
        Problem(
            where="model",
            what="the noise of the papers is for replacing a row, not for one more or fewer",
            remedy="Leave papers=True out.",
        )
    ]


__all__ = ["NAME", "NetworkPlan", "draw_network", "papers_problems", "plan_network", "taken_problems"]
