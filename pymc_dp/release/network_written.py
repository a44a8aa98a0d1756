"""Plans of released coefficients in JSON types, and back: what a third party needs to fit a network of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pymc_dp.errors import Problem
from pymc_dp.families.characters import NetworkSums, sums_of
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.network import Network, Node, find_network, nodes_of
from pymc_dp.inspection.rows import Column
from pymc_dp.release.block import Block
from pymc_dp.release.network_plan import NAME, NetworkPlan, taken_problems
from pymc_dp.release.noise import NOISES
from pymc_dp.release.written import dim_labels, sensitivity_written
from pymc_dp.rows.sums import make_cells


def written_network(plan: NetworkPlan) -> dict[str, Any]:
    """Return the graph, number of rows and noise of released coefficients in JSON types."""
    return {
        "kind": NAME,
        "nodes": [asdict(node) | {"parents": list(node.parents)} for node in plan.sums.network.nodes],
        "labels": _labels(zip(plan.observed, (cells.columns for cells in plan.cells), strict=True)),
        "sized": plan.sums.sized,
        "n_rows": plan.n_rows,
        "counted": plan.counted,
        "increment": plan.increment,
        "noise": plan.kind,
        "scale": plan.block.scale,
        "step": plan.block.steps[0],
        "sensitivity": asdict(plan.block.sensitivity),
    }


def is_network(plan: Mapping[str, Any]) -> bool:
    """Whether a plan in JSON types is one of coefficients."""
    return plan.get("kind") == NAME


def sums_written(plan: Mapping[str, Any]) -> NetworkSums:
    """Return the coefficients that were released."""
    nodes = tuple(Node(**{**node, "parents": tuple(node["parents"])}) for node in plan["nodes"])
    return NetworkSums(network=Network(nodes=nodes), sized=plan["sized"])


def read_network(
    plan: Mapping[str, Any], delta: float, inspection: Inspection
) -> tuple[NetworkPlan, list[int]] | tuple[Problem, ...]:
    """Return the plan of released coefficients for the network of another model, or say why they do not fit.

    Parameters
    ----------
    plan : mapping
        What `written_network` returned.
    delta : float
        Of the whole release.
    inspection : Inspection
        Of the other model. Its rows are not read.

    Returns
    -------
    NetworkPlan, list of int
        And the places of its coefficients among those released.
    """
    network, held = find_network(inspection), sums_written(plan)
    if isinstance(network, tuple):
        return (*taken_problems(inspection), *network)
    sums = sums_of(network, sized=held.sized)
    if isinstance(sums, tuple):
        return sums
    levels = {node.name: node.n_levels for node in held.network.nodes}
    problems = taken_problems(inspection)
    problems += [
        _misfit(
            node.name, f"it has {node.n_levels} levels, but the release has {levels.get(node.name, 'no such node')}"
        )
        for node in network.nodes
        if levels.get(node.name) != node.n_levels
    ]
    known = {_named(held, one): place for place, one in enumerate(held.coefficients)}
    wanted = [_named(sums, one) for one in sums.coefficients]
    problems += [
        _misfit(node.name, f"it needs a table of {', '.join(network.names[one] for one in network.family(place))}")
        for place, node in enumerate(network.nodes)
        if not problems and any(name not in known for name in _family_names(sums, place))
    ]
    nodes = nodes_of(network, inspection)
    problems = problems or list(_other_labels(_labels(nodes), plan["labels"]))
    if problems:
        return tuple(problems)
    sensitivity = sensitivity_written(plan)
    noise = NOISES[plan["noise"]]
    block = Block(columns=(0,), steps=(plan["step"],), scale=plan["scale"], sensitivity=sensitivity, noise=noise)
    return NetworkPlan(
        sums=sums,
        observed=tuple(observed for observed, _ in nodes),
        cells=tuple(make_cells(columns, plan["n_rows"], plan["n_rows"]) for _, columns in nodes),
        n_rows=plan["n_rows"],
        counted=plan["counted"],
        block=block,
        delta=delta,
        increment=plan["increment"],
    ), [known[name] for name in wanted]


def _named(sums: NetworkSums, one: tuple[tuple[int, int], ...]) -> frozenset[tuple[str, int]]:
    """A coefficient by the names of its nodes."""
    return frozenset((sums.network.nodes[place].name, function) for place, function in one)


def _family_names(sums: NetworkSums, place: int) -> list[frozenset[tuple[str, int]]]:
    members = set(sums.network.family(place))
    return [_named(sums, one) for one in sums.coefficients if {node for node, _ in one} <= members]


def _labels(nodes: Iterable[tuple[Observed, Sequence[Column]]]) -> dict[str, list[list[str]]]:
    """Labels that dims give to the levels of each node, wherever it is an index; none where no dim has labels."""
    nodes = tuple(nodes)
    names = {observed.leaf: observed.name for observed, _ in nodes}
    found: dict[str, list[list[str]]] = {}
    for _, columns in nodes:
        for column in columns:
            known, labels = found.setdefault(names[column.leaf], []), dim_labels(column, column.levels)
            if labels is not None and labels not in known:
                known.append(labels)
    return found


def _other_labels(own: Mapping[str, list[list[str]]], released: Mapping[str, list[list[str]]]) -> Iterator[Problem]:
    """Yield where the levels of a node have other labels than in the release, which may be another order of them."""
    for name, several in own.items():
        held = released.get(name, [])
        for labels in several:
            if held and labels not in held:
                one, other = next(pair for pair in zip(labels, held[0], strict=True) if pair[0] != pair[1])
                yield Problem(
                    where=name,
                    what=f"one of its levels is {one!r} in its dim, and {other!r} in the release",
                    remedy="Label the levels as in the release, in the same order.",
                )


def _misfit(where: str, what: str) -> Problem:
    return Problem(
        where=where,
        what=f"the released coefficients do not say what this node needs: {what}",
        remedy="Use nodes of the release, each with parents that were in one family with it.",
    )


__all__ = ["is_network", "read_network", "sums_written", "written_network"]
