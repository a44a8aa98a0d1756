"""The layout of a network's coefficients: which they are, and their noise. How far a row moves them the kernel says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pymc_dp.accounting.noise_kinds import NoiseKind
from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem
from pymc_dp.families.characters import NetworkSums, sums_of
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.network import find_network, nodes_of
from pymc_dp.networks import FourierUpdates
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.tables import NETWORK, Block, TablePlan
from pymc_dp.rows.sums import make_cells

TAKEN = (NETWORK, *(f"{NETWORK}_{part}" for part in ("cell", "statistic", "noise_scale", "noise_variance")))


def lay_out_network(
    inspection: Inspection, mechanism: FourierUpdates, noise: NoiseKind
) -> TablePlan | tuple[Problem, ...]:
    """Choose coefficients and sensitivity of a network, or say what is in the way. Reads no row."""
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
    sensitivity = _sensitivity(sums, relation, papers=mechanism.papers)
    block = Block(columns=(0,), steps=(sums.step,), sensitivity=sensitivity, noise=noise)
    table = network_table(sums, inspection, block, inspection.most_rows, counted=inspection.domain.n_max is None)
    return replace(table, papers=mechanism.papers)


def network_table(
    sums: NetworkSums, inspection: Inspection, block: Block, n_rows: int, *, counted: bool, increment: float = 0.0
) -> TablePlan:
    """Return the table of coefficients for the nodes of a model; not `counted` is a number of rows that is a bound."""
    nodes = nodes_of(sums.network, inspection)
    return TablePlan(
        variables=tuple(observed for observed, _ in nodes),
        family=None,
        statistic=sums,
        cells=make_cells((), n_rows, None if counted else n_rows),
        labels=("coefficient",),
        blocks=(block,),
        parents=tuple(make_cells(columns, n_rows, n_rows) for _, columns in nodes),
        increment=increment,
    )


def _sensitivity(sums: NetworkSums, neighbours: Neighbours, *, papers: bool) -> SumSensitivity:
    """Return how far the kernel says that a row moves all coefficients together, and why."""
    shape, count = sums.reading(papers=papers).shape, sums.count
    move = shape.move(neighbours)
    if papers:
        reason = f"every coefficient is taken to change its sign, all {count} of them (Zhang et al. 2016, corollary 2)"
        return SumSensitivity.of(move, reason)
    _, exact = shape.greatest(neighbours)
    what = "one row adds to" if neighbours == "add_remove" else "one row changes the signs of"
    if not sums.whole:
        what = "one row moves"
    many = f"at most {move.l1 // 2 if sums.whole and neighbours == 'replace' else count} of {count} coefficients"
    how = "found by eliminating nodes" if exact else "bounded by eliminating nodes in groups"
    return SumSensitivity.of(move, f"{what} {many}, {how}")


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


__all__ = [
    "lay_out_network",
    "network_table",
    "papers_problems",
    "taken_problems",
]
