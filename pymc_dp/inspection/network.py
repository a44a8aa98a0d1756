"""Discrete Bayesian networks: observed variables with levels whose probabilities are indexed by one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.rows import Column

DISTRIBUTIONS = {"bernoulli": "Bernoulli", "categorical": "Categorical"}
"""Of nodes, and their names in texts."""
OTHERS = "Leave it out of this model, or leave mechanism out, which releases the statistics of every likelihood."


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node of a network; public.

    Attributes
    ----------
    name : str
        Of the observed variable.
    n_levels : int
        Its levels are 0..n_levels - 1.
    parents : tuple of int
        Places of its parents in the network, ascending.
    """

    name: str
    n_levels: int
    parents: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Network:
    """A directed acyclic graph of discrete variables; holds no row.

    Attributes
    ----------
    nodes : tuple of Node
        Every parent comes before its children.
    """

    nodes: tuple[Node, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(node.name for node in self.nodes)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return sum(len(node.parents) for node in self.nodes)

    def family(self, place: int) -> tuple[int, ...]:
        """Places of the parents of a node, and its own at the end."""
        return (*self.nodes[place].parents, place)

    def shape(self, place: int) -> tuple[int, ...]:
        """Number of levels of every member of a family."""
        return tuple(self.nodes[member].n_levels for member in self.family(place))

    def n_cells(self, place: int) -> int:
        """Number of configurations of the parents of a node."""
        return prod(self.shape(place)[:-1])

    @cached_property
    def n_probabilities(self) -> int:
        """Numbers that all tables of conditional probabilities hold together."""
        return sum(prod(self.shape(place)) for place in range(len(self.nodes)))

    def drawn(self) -> list[str]:
        """Draw the network as a tree of text, one line per edge and root.

        A node stands under its first parent, the others in brackets; under these it stands again, with an arrow and
        without what follows from it.
        """
        children: dict[int, list[int]] = {place: [] for place in range(len(self.nodes))}
        for place, node in enumerate(self.nodes):
            for parent in node.parents:
                children[parent].append(place)
        roots = [place for place, node in enumerate(self.nodes) if not node.parents]
        return [line for root in roots for line in self._branch(root, None, "", "", children)]

    def _branch(
        self, place: int, under: int | None, first: str, rest: str, children: Mapping[int, Sequence[int]]
    ) -> Iterator[str]:
        node = self.nodes[place]
        levels = "" if node.n_levels == 2 else f" ({node.n_levels})"
        if under is not None and under != node.parents[0]:
            yield f"{first}{node.name} ↑"
            return
        others = [self.nodes[parent].name for parent in node.parents if parent != under]
        yield f"{first}{node.name}{levels}" + (f" [also {', '.join(others)}]" if others else "")
        for count, child in enumerate(children[place], start=1):
            last = count == len(children[place])
            corner, bar = ("└── ", "    ") if last else ("├── ", "│   ")
            yield from self._branch(child, place, rest + corner, rest + bar, children)


def find_network(inspection: Inspection) -> Network | tuple[Problem, ...]:
    """Return the network that the observed variables of a model form, or everything that keeps them from being one.

    Parameters
    ----------
    inspection : Inspection
        Its own problems are not repeated.

    Notes
    -----
    An edge is a column of a likelihood that another one observes: ``p[a]`` of an observed variable `a`, or ``p[data]``
    of the ``pm.Data`` that it observes. Reads no row.
    """
    found = inspection.observed
    problems = [problem for one in found for problem in node_problems(one)]
    holders: dict[Variable, str] = {}
    for one in found:
        if one.leaf in holders:
            what = f"it observes the same column as {holders[one.leaf]!r}, so that one of them is no node"
            problems.append(Problem(where=one.name, what=what, remedy="Give every node a column of its own."))
        holders.setdefault(one.leaf, one.name)
    problems += [_unobserved(one, column) for one in found for column in one.columns if column.leaf not in holders]
    if problems:
        return tuple(problems)
    parents = {one.name: tuple(holders[column.leaf] for column in one.columns) for one in found}
    levels = {one.name: known for one in found if (known := levels_of_node(one)) is not None}
    problems += [
        _other_length(one, column, levels[holders[column.leaf]])
        for one in found
        for column in one.columns
        if len(column.levels) != levels[holders[column.leaf]] or column.levels[0] != 0
    ]
    order = _topological(parents)
    if order is None:
        what = "its variables index each other in a circle, which is no Bayesian network"
        problems.append(Problem(where="model", what=what, remedy="Leave out an edge of the circle."))
    if problems or order is None:
        return tuple(problems)
    place = {name: index for index, name in enumerate(order)}
    return Network(
        nodes=tuple(
            Node(name=name, n_levels=levels[name], parents=tuple(sorted(place[parent] for parent in parents[name])))
            for name in order
        )
    )


def levels_of_node(observed: Observed) -> int | None:
    """Return the number of levels of a Bernoulli or Categorical variable; None where it is neither, or not known."""
    if observed.cumulative is not None or observed.design is not None:
        return None
    if observed.distribution == "bernoulli":
        return 2
    return observed.static_shapes[0][-1] if observed.distribution == "categorical" else None


def nodes_of(network: Network, inspection: Inspection) -> tuple[tuple[Observed, tuple[Column, ...]], ...]:
    """Return the likelihood of every node, and the columns of its parents in their order, as these count them.

    A value that is no level counts as level 0 in the table of its own node, and so it does in those of its children:
    one row is one configuration of the whole network. Bounds of a domain would send it to the nearest level there.
    """
    named = {observed.name: observed for observed in inspection.observed}
    found = [named[name] for name in network.names]
    place = {observed.leaf: index for index, observed in enumerate(found)}
    return tuple(
        (
            observed,
            tuple(
                replace(column, outside="first")
                for column in sorted(observed.columns, key=lambda column: place[column.leaf])
            ),
        )
        for observed in found
    )


def node_problems(observed: Observed) -> Iterator[Problem]:
    """Yield what keeps one likelihood from being a node."""
    if observed.distribution not in DISTRIBUTIONS or observed.cumulative is not None or observed.design is not None:
        kinds = " or ".join(DISTRIBUTIONS.values())
        yield Problem(where=observed.name, what=f"it is {observed.title}, and nodes are {kinds}", remedy=OTHERS)
        return
    levels = levels_of_node(observed)
    if levels is None:
        yield Problem(
            where=observed.name,
            what="the number of its categories is not known before sampling",
            remedy="Give the probability vector dims= or a constant shape.",
        )
    elif observed.bounds not in (None, (0, levels - 1)):
        yield Problem(
            where=observed.name,
            what=f"its bounds {observed.bounds} are not its levels 0..{levels - 1}",
            remedy="Leave the bounds out: the likelihood already says which values there are.",
        )


def _unobserved(observed: Observed, column: Column) -> Problem:
    return Problem(
        where=observed.name,
        what=f"it is indexed by {column.name!r}, which no likelihood of the model observes",
        remedy="Index it by the observed variable itself, p[variable], or let both hold one pm.Data; a column that is "
        "no node gets a likelihood of its own, or stays a column with mechanism=dp.networks.LaplaceUpdates().",
    )


def _other_length(observed: Observed, column: Column, levels: int) -> Problem:
    return Problem(
        where=observed.name,
        what=f"{column.name!r} indexes an axis of length {len(column.levels)}, but has {levels} levels",
        remedy=f"Give the axis the length {levels}.",
    )


def _topological(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Order names so that every parent comes first, else as they were; None where they run in a circle."""
    order: dict[str, None] = {}
    while len(order) < len(parents):
        ready = (name for name in parents if name not in order and all(parent in order for parent in parents[name]))
        found = next(ready, None)
        if found is None:
            return None
        order[found] = None
    return list(order)


__all__ = ["Network", "Node", "find_network", "levels_of_node", "node_problems", "nodes_of"]
