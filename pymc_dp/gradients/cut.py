"""The fewest numbers through which variables reach a graph: a least cut."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.tensor.shape import Shape, Shape_i

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array, rebuild

NEVER = 10**6
"""Cost of what is never cut; above the size of any interface."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """Variables through which all that flows from the sources to the ends flows.

    Attributes
    ----------
    groups : tuple of tuple of Variable
        Each group computes one and the same; in the order in which they are computed.
    cost : int
        What all of them cost together, `NEVER` or more where there is no cut.
    """

    groups: tuple[tuple[Variable, ...], ...]
    cost: int


def least_cut(
    ends: Sequence[Variable],
    sources: Sequence[Variable],
    *,
    within: Callable[[Variable], bool],
    costs: Callable[[Sequence[Variable]], Mapping[Variable, int]],
    opaque: Collection[Variable] = (),
) -> Cut:
    """Return the cut of least cost, of several the one nearest to the sources.

    Parameters
    ----------
    ends : sequence of Variable
    sources : sequence of Variable
    within : callable
        Whether a variable may be before the cut: what is not is behind it.
    costs : callable
        Cost of each variable, given all that depend on the sources and are within.
    opaque : collection of Variable
        Constants whose values are not looked at: they are compared by identity.

    Notes
    -----
    Maximum flow through nodes of limited capacity (Menger; Ford, Fulkerson 1956). What two graphs compute alike counts
    once. Shapes carry no values.
    """
    nodes = list(toposort(list(ends), blockers=list(sources)))
    alike = _merged(nodes, sources, frozenset(opaque))
    reached, steps, last = dict.fromkeys(map(alike.__getitem__, sources)), set[tuple[Variable, Variable]](), set()
    for node in nodes:
        before = [alike[var] for var in node.inputs if alike[var] in reached]
        if not before or isinstance(node.op, Shape | Shape_i):
            continue
        for out in node.outputs:
            if within(out):
                reached[alike[out]] = None
                steps |= {(var, alike[out]) for var in before}
            else:
                last.update(before)
    last |= {alike[end] for end in ends if end in alike and alike[end] in reached and within(end)}
    if not last:
        return Cut(groups=(), cost=0)
    order = list(reached)
    price = costs(order)
    chosen, cost = _minimum(order, [price[var] for var in order], list(map(alike.get, sources)), steps, last)
    members: dict[Variable, list[Variable]] = {var: [] for var in order if var in chosen}
    for var, one in alike.items():
        if one in members:
            members[one].append(var)
    return Cut(groups=tuple(map(tuple, members.values())), cost=cost)


def _merged(nodes: Sequence[Any], sources: Sequence[Variable], opaque: frozenset[Variable]) -> dict[Variable, Variable]:
    """Map every variable to the first one that is computed in the same way."""
    known: dict[Hashable, Variable] = {}
    found: dict[Variable, Variable] = {source: source for source in sources}

    def of_leaf(var: Variable) -> Variable:
        if var not in found:
            key = var.signature() if isinstance(var, Constant) and var not in opaque else var
            found[var] = known.setdefault(key, var)
        return found[var]

    for node in nodes:
        inputs = tuple(of_leaf(var) for var in node.inputs)
        for place, out in enumerate(node.outputs):
            found.setdefault(out, known.setdefault((node.op, inputs, place), out))
    return found


def _minimum(
    order: Sequence[Variable],
    price: Sequence[int],
    sources: Sequence[Variable | None],
    steps: Iterable[tuple[Variable, Variable]],
    last: Collection[Variable],
) -> tuple[set[Variable], int]:
    """Return the variables of a least cut: each is an edge of its cost from 2 k to 2 k + 1."""
    from scipy.sparse import csr_array  # both take long to import
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    place = {var: index for index, var in enumerate(order)}
    begin, end = 2 * len(order), 2 * len(order) + 1
    edges = {(2 * k, 2 * k + 1): min(int(cost), NEVER) for k, cost in enumerate(price)}
    edges |= {(2 * place[one] + 1, 2 * place[other]): NEVER for one, other in steps}
    edges |= {(begin, 2 * place[var]): NEVER for var in sources if var in place}
    edges |= {(2 * place[var] + 1, end): NEVER for var in last}
    rows, columns = np.array(list(edges)).T
    size = end + 1
    capacity = csr_array((np.array(list(edges.values()), dtype=np.int32), (rows, columns)), shape=(size, size))
    found = maximum_flow(capacity, begin, end)
    left = csr_array(capacity - found.flow)
    left.eliminate_zeros()
    near = set(breadth_first_order(left, begin, return_predecessors=False).tolist())
    chosen = {var for var, k in place.items() if 2 * k in near and 2 * k + 1 not in near}
    return chosen, int(found.flow_value)


def sizes_of(variables: Sequence[Variable], inputs: Mapping[Variable, tuple[int, ...]]) -> dict[Variable, int]:
    """Return how many numbers variables hold, given the shapes of what they are computed from."""
    open_ones = [var for var in variables if None in var.type.shape]
    found = {var: int(np.prod(var.type.shape)) for var in variables if None not in var.type.shape}
    if open_ones:
        zeros = {var: np.zeros(shape, dtype=var.type.dtype) for var, shape in inputs.items()}
        held = {var: var.type.make_constant(value) for var, value in zeros.items()}
        graphs = rebuild(open_ones, held)[0]
        with np.errstate(all="ignore"):
            values: list[Array] = plain_function([], graphs)()
        found |= {var: int(np.size(value)) for var, value in zip(open_ones, values, strict=True)}
    return found


__all__ = ["NEVER", "Cut", "least_cut", "sizes_of"]
