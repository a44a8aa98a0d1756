"""Plans of released tables in JSON types, and back: what a third party needs to fit a model of its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.errors import Problem
from pymc_dp.families import Family
from pymc_dp.families.cells import Cells
from pymc_dp.families.characters import NetworkSums, sums_of
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums, Source
from pymc_dp.families.histogram import Binned, Bins
from pymc_dp.families.regression import better_by_gradients, needs_square
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.network import Network, Node, find_network, nodes_of
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.release.network_layout import network_table, taken_problems
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.statistics import family_of, has_bins
from pymc_dp.release.tables import NETWORK, Block, TablePlan


def written(table: TablePlan) -> dict[str, Any]:
    """Return the statistic, cells and noise of a table in JSON types."""
    cells = table.cells
    blocks = [
        {
            "columns": list(block.columns),
            "steps": list(block.steps),
            "scale": block.scale,
            "sensitivity": _plain(asdict(block.sensitivity)),
        }
        for block in table.blocks
    ]
    if isinstance(table.statistic, NetworkSums):
        (block,) = blocks
        return {
            "kind": NETWORK,
            "nodes": [asdict(node) | {"parents": list(node.parents)} for node in table.sums.network.nodes],
            "labels": _node_labels(table.variables, [parents.columns for parents in table.parents]),
            "sized": table.sums.sized,
            "n_rows": int(cells.groups[0]),
            "counted": table.sizes_known,
            "increment": table.increment,
            "noise": table.kind,
            "scale": block["scale"],
            "step": block["steps"][0],
            "sensitivity": block["sensitivity"],
        }
    return {
        "statistic": facts_of(table.statistic),
        "columns": [column.name for column in cells.columns],
        "public_columns": [column.name for column in cells.columns if column.public],
        "levels": [level.tolist() for level in cells.levels],
        "labels": [_dim_labels(column, level) for column, level in zip(cells.columns, cells.levels, strict=True)],
        "sizes": None if cells.sizes is None else cells.sizes.tolist(),
        "groups": np.asarray(cells.groups).tolist(),
        "n_private": cells.n_private,
        "gram": None if table.gram is None else table.gram.tolist(),
        "reach": table.reach,
        "boxed": table.boxed,
        "noise": table.kind,
        "blocks": blocks,
    }


def read(plan: Mapping[str, Any], labels: tuple[str, ...], observed: Observed) -> TablePlan | Problem:
    """Return the plan of a released table for a likelihood of another model, or say why they do not fit.

    Parameters
    ----------
    plan : mapping
        What `written` returned.
    labels : tuple of str
        Of the released columns.
    observed : Observed
        Likelihood of the same name. Its rows are not read.
    """
    found = _products(observed, plan) if plan["statistic"].get("kind") == "gram" else _statistic(observed, plan)
    if isinstance(found, Problem):
        return found
    family, statistic = found
    named = {column.name: column for column in observed.columns}
    if sorted(named) != sorted(plan["columns"]):
        indexed, released = (", ".join(sorted(names)) or "nothing" for names in (named, plan["columns"]))
        return _misfit(observed, f"its parameters are indexed by {indexed}, the cells by {released}")
    levels = [np.asarray(level) for level in plan["levels"]]
    for name, level, texts in zip(plan["columns"], levels, plan["labels"], strict=True):
        if what := _other_levels(named[name], level, texts):
            return _misfit(observed, what)
    columns = tuple(_with_levels(named[name], level) for name, level in zip(plan["columns"], levels, strict=True))
    cells = Cells(
        columns=columns,
        lookup=np.zeros(0, dtype=np.int64),  # of rows, of which there are none
        levels=tuple(levels),
        sizes=None if plan["sizes"] is None else np.asarray(plan["sizes"]),
        groups=np.asarray(plan["groups"]),
        n_private=plan["n_private"],
    )
    return TablePlan(
        variables=(observed,),
        family=family,
        statistic=statistic,
        cells=cells,
        blocks=tuple(_block(block, plan["noise"]) for block in plan["blocks"]),
        labels=labels,
        gram=None if plan.get("gram") is None else np.asarray(plan["gram"]),
        reach=plan.get("reach", 0.0),
        boxed=plan.get("boxed", False),
    )


def _products(observed: Observed, plan: Mapping[str, Any]) -> tuple[None, GramSums] | Problem:
    """Return the released products for a regression of another model, or say why it needs others."""
    design, facts = observed.design, dict(plan["statistic"])
    if design is None:
        return _misfit(observed, "it is not a regression on continuous columns, but the release is")
    if problem := better_by_gradients(observed, plan["noise"]):
        return problem
    sources, response = [_source(item) for item in facts.pop("sources")], _source(facts.pop("response"))
    tuples = {name: None if facts.get(name) is None else tuple(facts[name]) for name in ("cells", "longest")}
    statistic = GramSums(**{**facts, **tuples}, sources=tuple(sources), response=response)
    own, released = ([(item.name, item.width) for item in items] for items in (design.predictors, sources))
    if own != released:
        both = (", ".join(f"{name} ({width})" for name, width in pairs) for pairs in (own, released))
        return _misfit(observed, "its predictors are {}, those released {}".format(*both))
    wanted = {
        "a release with sums of first order, for its intercept": design.constant and not statistic.constant,
        "squares of the response, for its standard deviation": needs_square(observed) and not statistic.square,
        "products cell by cell, for its slopes": design.apart and not statistic.apart and len(statistic.cells) > 1,
    }
    missing = [what for what, lacks in wanted.items() if lacks]
    return _misfit(observed, f"it needs {missing[0]}") if missing else (None, statistic)


def _source(facts: Mapping[str, Any]) -> Source:
    return Source(**{**facts, "centres": tuple(facts["centres"]), "halves": tuple(facts["halves"])})


def _statistic(observed: Observed, plan: Mapping[str, Any]) -> tuple[Family, RowStatistic] | Problem:
    """Return the statistic of a released table for a likelihood, or say why it has another one."""
    if observed.design is not None:
        return _misfit(observed, "it is a regression on continuous columns, and needs products of them")
    if "edges" in plan["statistic"]:  # bins are for any likelihood with a distribution function
        if not has_bins(observed):
            return _misfit(observed, f"PyMC has no distribution function (logcdf) of a {observed.title} likelihood")
        edges, labels = (tuple(plan["statistic"][name]) for name in ("edges", "labels"))
        return Binned(), Bins(labels=labels, edges=edges)
    family = family_of(observed)
    statistic = None if family is None else family.statistic(observed, sizes_known=plan["sizes"] is not None)
    if family is None or isinstance(statistic, Problem) or statistic is None:
        what = statistic.what if isinstance(statistic, Problem) else f"{observed.title!r} has no statistics"
        return _misfit(observed, what)
    facts = facts_of(statistic)
    if "of" in facts and facts["of"] != plan["statistic"].get("of", facts["of"]):
        return _misfit(observed, f"its exposure is {facts['of']}, that of the release {plan['statistic']['of']}")
    if facts != plan["statistic"]:
        return _misfit(observed, f"a {observed.distribution} likelihood needs {', '.join(statistic.labels)}")
    return family, statistic


def _dim_labels(column: Column, levels: Array) -> list[str] | None:
    """Labels that the dim of a column gives to the levels of cells; None where it gives none."""
    known = column.dim is not None and column.labels[0].startswith(f"{column.dim}=")
    if not known or column.labels == tuple(f"{column.name}={level.item()}" for level in column.levels):
        return None
    places = np.searchsorted(column.levels, levels)
    return [column.labels[place].removeprefix(f"{column.dim}=") for place in places.tolist()]


def _other_levels(column: Column, levels: Array, labels: Sequence[str] | None) -> str:
    """Say how the levels of released cells are not those of a column; nothing where they are, or may be."""
    if not np.isin(levels, column.levels).all():
        fixed = column.dim is not None or not column.public
        return f"it has {len(column.levels)} levels of {column.name!r}, but the cells go beyond them" if fixed else ""
    own = None if labels is None else _dim_labels(column, levels)
    pairs = [] if own is None or labels is None else list(zip(own, labels, strict=True))
    differing = [
        f"{one!r} in its dim {column.dim!r}, and {other!r} in the cells" for one, other in pairs if one != other
    ]
    return f"a level of {column.name!r} is {differing[0]}" if differing else ""


def _with_levels(column: Column, levels: Array) -> Column:
    """Return a column with the levels of the released cells, where these are not what the model's dims say."""
    return column if np.isin(levels, column.levels).all() else replace(column, levels=np.unique(levels), labels=())


def _block(block: Mapping[str, Any], noise: str) -> Block:
    facts = block[next(name for name in ("sensitivity", "movement") if name in block)]  # by either name it had in files
    shifts = None if facts["shifts"] is None else tuple(facts["shifts"])
    return Block(
        columns=tuple(block["columns"]),
        steps=tuple(block["steps"]),
        scale=block["scale"],
        sensitivity=SumSensitivity(**{**facts, "shifts": shifts}),
        noise=NOISE_KINDS[noise],
    )


def is_network(plan: Mapping[str, Any]) -> bool:
    """Whether a plan in JSON types is one of coefficients."""
    return plan.get("kind") == NETWORK


def sums_written(plan: Mapping[str, Any]) -> NetworkSums:
    """Return the coefficients that were released."""
    nodes = tuple(Node(**{**node, "parents": tuple(node["parents"])}) for node in plan["nodes"])
    return NetworkSums(network=Network(nodes=nodes), sized=plan["sized"])


def read_network(plan: Mapping[str, Any], inspection: Inspection) -> TablePlan | tuple[Problem, ...]:
    """Return the plan of released coefficients for the network of another model, or say why they do not fit.

    Parameters
    ----------
    plan : mapping
        What `written` returned.
    inspection : Inspection
        Of the other model. Its rows are not read.
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
        _network_misfit(
            node.name, f"it has {node.n_levels} levels, but the release has {levels.get(node.name, 'no such node')}"
        )
        for node in network.nodes
        if levels.get(node.name) != node.n_levels
    ]
    known = set(_names_of(held))
    problems += [
        _network_misfit(
            node.name, f"it needs a table of {', '.join(network.names[one] for one in network.family(place))}"
        )
        for place, node in enumerate(network.nodes)
        if not problems and any(name not in known for name in _names_of(sums, set(network.family(place))))
    ]
    problems = problems or list(_other_labels(_node_labels(*zip(*nodes_of(network, inspection), strict=True)), plan))
    if problems:
        return tuple(problems)
    block = _block({**plan, "columns": [0], "steps": [plan["step"]]}, plan["noise"])
    return network_table(sums, inspection, block, plan["n_rows"], counted=plan["counted"], increment=plan["increment"])


def released_rows(plan: Mapping[str, Any], table: TablePlan) -> slice | list[int]:
    """Places of the rows of a table among those that were released: a network may need some coefficients of another."""
    if not is_network(plan):
        return slice(None)
    known = {name: place for place, name in enumerate(_names_of(sums_written(plan)))}
    return [known[name] for name in _names_of(table.sums)]


def _names_of(sums: NetworkSums, members: Collection[int] | None = None) -> list[frozenset[tuple[str, int]]]:
    """Coefficients, or those of some nodes, by the names of their nodes."""
    nodes = sums.network.nodes
    return [
        frozenset((nodes[place].name, function) for place, function in one)
        for one in sums.coefficients
        if members is None or all(place in members for place, _ in one)
    ]


def _node_labels(variables: Sequence[Observed], parents: Sequence[Sequence[Column]]) -> dict[str, list[list[str]]]:
    """Labels that dims give to the levels of each node, wherever it is an index; none where no dim has labels."""
    names = {observed.leaf: observed.name for observed in variables}
    found: dict[str, list[list[str]]] = {}
    for columns in parents:
        for column in columns:
            known, labels = found.setdefault(names[column.leaf], []), _dim_labels(column, column.levels)
            if labels is not None and labels not in known:
                known.append(labels)
    return found


def _other_labels(own: Mapping[str, list[list[str]]], plan: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield where the levels of a node have other labels than in the release, which may be another order of them."""
    for name, several in own.items():
        held = plan["labels"].get(name, [])
        for labels in several:
            if held and labels not in held:
                one, other = next(pair for pair in zip(labels, held[0], strict=True) if pair[0] != pair[1])
                yield Problem(
                    where=name,
                    what=f"one of its levels is {one!r} in its dim, and {other!r} in the release",
                    remedy="Label the levels as in the release, in the same order.",
                )


def _network_misfit(where: str, what: str) -> Problem:
    return Problem(
        where=where,
        what=f"the released coefficients do not say what this node needs: {what}",
        remedy="Use nodes of the release, each with parents that were in one family with it.",
    )


def _misfit(observed: Observed, what: str) -> Problem:
    return Problem(
        where=observed.name,
        what=f"the released table does not say what this likelihood needs: {what}",
        remedy="Use a likelihood with the same statistics, indexed by the same columns.",
    )


def facts_of(statistic: RowStatistic | GramSums | NetworkSums) -> Any:
    """Return what a statistic is, in JSON types."""
    return _plain(statistic.facts if isinstance(statistic, StatedSums) else asdict(statistic))


def _plain(value: Any) -> Any:
    """Return what JSON makes of a value."""
    return json.loads(json.dumps(value))


__all__ = ["facts_of", "is_network", "read", "read_network", "released_rows", "sums_written", "written"]
