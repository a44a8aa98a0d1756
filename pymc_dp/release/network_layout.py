"""The layout of a network's coefficients: which they are, and how far one row can move them all together.

How far one row can move the coefficients of a network: exact where the graph is narrow, a bound elsewhere.

A row x adds ``k_γ(x)`` to coefficient γ, where k depends on the nodes of γ alone. Replacing it by x' moves them by
``sum_γ |k_γ(x) - k_γ(x')|`` in all: a sum of functions of one family each, of the pairs (x, x') of its nodes. Its
greatest value is found by eliminating one node after the other (dynamic programming on the graph), which takes time
exponential in the width of the graph and never in the number of nodes. Where a table of more than `MOST_STATES` entries
would be needed, the functions that meet in it are maximised apart, in groups: a sum's maximum is at most the sum of
maxima, so that the result is still a bound. A family that is too large by itself is bounded by the length of its
vectors: all K products of a table of K cells are orthogonal functions, so that ``sum_γ u_γ(x) u_γ(x')`` is K where
x = x' and 0 elsewhere. All numbers are integers.

With two levels, ``k_γ(x) = (-1)^{γ·x}`` and the sensitivity is twice the number of γ with an odd number of nodes among
those whose level changes, whatever the levels were: a node then counts as changed or not.

References
----------
Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (2007), theorem 6 (``2 |N|``, which counts coefficients that cannot all
move); Dechter, Rish (2003), Mini-buckets, doi 10.1145/636865.636866 (the bound).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem
from pymc_dp.families.characters import Coefficient, NetworkSums, sums_of
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.network import find_network, nodes_of
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.noise import Noise
from pymc_dp.networks import FourierUpdates
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.tables import NETWORK, Block, TablePlan
from pymc_dp.rows.sums import make_cells

MOST_STATES = 2**18
"""Entries of one table of the elimination."""
MOST_WORK = 2**24
"""States of one family times its coefficients."""
Norm = Callable[[Array], Array]


def network_sensitivity(sums: NetworkSums, neighbours: Neighbours) -> SumSensitivity:
    """Sensitivity of the released coefficients of a network, in grid steps.

    Parameters
    ----------
    sums : NetworkSums
    neighbours : {"replace", "add_remove"}
    """
    (l1, exact), (square, _) = (_greatest(sums, neighbours, norm) for norm in (np.abs, np.square))
    what = "one row adds to" if neighbours == "add_remove" else "one row changes the signs of"
    if not sums.whole:
        what = "one row moves"
    many = f"at most {l1 // 2 if sums.whole and neighbours == 'replace' else sums.count} of {sums.count} coefficients"
    how = "found by eliminating nodes" if exact else "bounded by eliminating nodes in groups"
    return SumSensitivity(l1=l1, l2_squared=square, shifts=None, reason=f"{what} {many}, {how}")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Term:
    """A function of the states of some nodes: an axis for each, in their order."""

    nodes: tuple[int, ...]
    values: Array


def _greatest(sums: NetworkSums, neighbours: Neighbours, norm: Norm) -> tuple[int, bool]:
    """Greatest sum of norms that one row can cause, or a bound on it; whether it is exact."""
    states = [_n_states(node.n_levels, neighbours) for node in sums.network.nodes]
    total, exact, terms = 0, True, []
    for place in range(-1, len(sums.network.nodes)):
        own = [one for one, family in zip(sums.coefficients, sums.families, strict=True) if family == place]
        nodes = tuple(sorted({node for one in own for node, _ in one}))
        size = prod(states[node] for node in nodes)
        if size > MOST_STATES or size * len(own) > MOST_WORK:
            alone = sum(_alone(sums.steps_of(one), neighbours, norm) for one in own)
            total, exact = total + min(alone, _by_length(sums, place, len(own), neighbours, norm)), False
        elif own:
            terms.append(_term(sums, own, nodes, states, neighbours, norm))
    found, also = _eliminated(terms, states)
    return total + found, exact and also


def _n_states(n_levels: int, neighbours: Neighbours) -> int:
    """Number of states of a node that matter: pairs of levels, or whether two levels change; signs alone never do."""
    if n_levels == 2:
        return 2 if neighbours == "replace" else 1
    return n_levels**2 if neighbours == "replace" else n_levels


def _alone(steps: Array, neighbours: Neighbours, norm: Norm) -> int:
    """Greatest sensitivity of one coefficient."""
    return int(norm(np.ptp(steps)) if neighbours == "replace" else norm(steps).max())


def _by_length(sums: NetworkSums, place: int, count: int, neighbours: Neighbours, norm: Norm) -> int:
    """Bound on what some coefficients of a family move together, by the length of the vector of all of them.

    Two rows are √(2 K) apart, one is √K long. Rounding moves an entry by half a step, twice where a row is replaced.
    """
    squared = prod(sums.network.shape(place)) * (2 if neighbours == "replace" else 1) * round(1 / sums.step) ** 2
    if norm is np.abs:
        return _root(count * squared) + count
    return (_root(squared) + _root(count)) ** 2


def _root(number: int) -> int:
    """Square root, rounded up."""
    return isqrt(number - 1) + 1 if number else 0


def _term(
    sums: NetworkSums,
    own: Sequence[Coefficient],
    nodes: tuple[int, ...],
    states: Sequence[int],
    neighbours: Neighbours,
    norm: Norm,
) -> _Term:
    """Sum of the sensitivities of some coefficients, as a function of the states of their nodes."""
    total = np.zeros([states[node] for node in nodes], dtype=np.int64)
    levels = {node: sums.network.nodes[node].n_levels for node in nodes}
    for one in own:
        signs = [node for node, _ in one if levels[node] == 2]
        # At level 0 the function of two levels is 1: what is left is the product over the other nodes.
        rest = sums.steps_of(one)[tuple(0 if levels[node] == 2 else slice(None) for node, _ in one)]
        shape = [1] * len(nodes)
        for node, _ in one:
            shape[nodes.index(node)] = states[node]
        if neighbours == "add_remove":
            total += norm(rest).reshape(shape)
            continue
        before, after = _pairs(rest)
        odd = np.zeros([1] * len(nodes), dtype=np.int64)
        for node in signs:
            odd = odd ^ np.arange(2).reshape([2 if other == node else 1 for other in nodes])
        plain = [1 if node in signs else size for node, size in zip(nodes, shape, strict=True)]
        total += np.where(odd, norm(before + after).reshape(plain), norm(before - after).reshape(plain))
    return _Term(nodes=nodes, values=total)


def _pairs(steps: Array) -> tuple[Array, Array]:
    """Return values at x and at x', both over all pairs of levels of every axis: axes of length K²."""
    squared = [size**2 for size in steps.shape]
    before, after = steps, steps
    for axis in range(steps.ndim):
        before = np.repeat(before, steps.shape[axis], axis=axis)
        after = np.concatenate([after] * steps.shape[axis], axis=axis)
    return before.reshape(squared), after.reshape(squared)


def _eliminated(terms: Sequence[_Term], states: Sequence[int]) -> tuple[int, bool]:
    """Greatest sum of functions over all states, or a bound on it; whether it is exact."""
    held: dict[int, list[_Term]] = {}
    total, exact = _hold(terms, held), True
    sizes = {node: _size(_scope(found), states) for node, found in held.items()}
    while sizes:
        node = min(sizes, key=lambda one: (sizes[one], one))
        del sizes[node]
        meeting = held.pop(node)
        touched = set(_scope(meeting)) - {node}
        for other in touched:
            held[other] = [term for term in held[other] if node not in term.nodes]
        groups = _groups(meeting, states)
        exact = exact and len(groups) == 1
        total += _hold([_without(node, group) for group in groups], held)
        sizes.update({other: _size(_scope(held[other]), states) for other in touched})
    return total, exact


def _hold(terms: Sequence[_Term], held: dict[int, list[_Term]]) -> int:
    """Note functions under each of their nodes; return the sum of those that have none."""
    for term in terms:
        for node in term.nodes:
            held.setdefault(node, []).append(term)
    return sum(int(term.values) for term in terms if not term.nodes)


def _scope(terms: Sequence[_Term]) -> tuple[int, ...]:
    return tuple(sorted({node for term in terms for node in term.nodes}))


def _size(nodes: Sequence[int], states: Sequence[int]) -> int:
    return prod(states[node] for node in nodes)


def _groups(meeting: Sequence[_Term], states: Sequence[int]) -> list[list[_Term]]:
    """Functions to be maximised together, the largest first, so that no table is too large."""
    groups: list[tuple[set[int], list[_Term]]] = []
    for term in sorted(meeting, key=lambda one: -len(one.nodes)):
        for scope, group in groups:
            if _size(sorted(scope.union(term.nodes)), states) <= MOST_STATES:
                scope.update(term.nodes)
                group.append(term)
                break
        else:
            groups.append((set(term.nodes), [term]))
    return [group for _, group in groups]


def _without(node: int, group: Sequence[_Term]) -> _Term:
    """Add up functions and take the greatest value over one node."""
    nodes = _scope(group)
    total = np.zeros((), dtype=np.int64)
    for term in group:
        shape = [1] * len(nodes)
        for other, size in zip(term.nodes, term.values.shape, strict=True):
            shape[nodes.index(other)] = size
        total = total + term.values.reshape(shape)
    axis = nodes.index(node)
    return _Term(nodes=nodes[:axis] + nodes[axis + 1 :], values=total.max(axis=axis))


TAKEN = (NETWORK, *(f"{NETWORK}_{part}" for part in ("cell", "statistic", "noise_scale", "noise_variance")))


def lay_out_network(inspection: Inspection, mechanism: FourierUpdates, noise: Noise) -> TablePlan | tuple[Problem, ...]:
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
    sensitivity = _of_paper(sums) if mechanism.papers else network_sensitivity(sums, relation)
    block = Block(columns=(0,), steps=(sums.step,), sensitivity=sensitivity, noise=noise)
    return network_table(sums, inspection, block, inspection.most_rows, counted=inspection.domain.n_max is None)


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


__all__ = [
    "MOST_STATES",
    "lay_out_network",
    "network_sensitivity",
    "network_table",
    "papers_problems",
    "taken_problems",
]
