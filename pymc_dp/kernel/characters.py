"""Coefficients of a network's tables in an orthonormal basis: what a row adds, and how far a row moves all of them.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import isqrt, prod
from typing import final, override

import numpy as np

from pymc_dp.kernel.arguments import exact, exact_all, flag, word
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.shapes import LONGEST, Array, Facts, Move, Shape

BITS = 20
"""Of the grid of products that are no whole numbers: off by 2**-21 a row at most."""
MOST_CONFIGURATIONS = 2**16
"""Of one family."""
MOST_STATES = 2**18
"""Entries of one table of the elimination."""
MOST_WORK = 2**24
"""States of one family times its coefficients."""
Coefficient = tuple[tuple[int, int], ...]
"""Pairs of a node's place and of one of its functions 1..K-1, nodes ascending; nothing for the number of rows."""
Norm = Callable[[Array], Array]


def basis(n_levels: int) -> Array:
    """Return orthonormal functions of levels under equal weights, (n_levels, n_levels): one in each row, 1 first.

    Cosines and sines of the levels around a circle; none is larger than √2, and with two levels they are 1 and ±1.
    """
    angle = 2 * np.pi * np.arange(n_levels) / n_levels
    waves = range(1, (n_levels + 1) // 2)
    rows: list[Array] = [np.ones(n_levels)]
    rows += [np.sqrt(2) * wave(k * angle) for k in waves for wave in (np.cos, np.sin)]
    if n_levels % 2 == 0:
        rows.append((-1.0) ** np.arange(n_levels))
    return np.array(rows)


@final
@dataclass(frozen=True)
class Coefficients(Shape):
    """A row is a level of each node; it adds a product of functions of some of them to each coefficient.

    Products are rounded to steps of 2^-20, and looked up in public tables; with two levels everywhere they are ±1.

    Parameters
    ----------
    levels : tuple of int
        How many each node has.
    families : tuple of tuple of int
        Sets of nodes whose configurations are counted, in the order of the axes of these counts.
    coefficients : tuple of Coefficient
        Each once.
    places : tuple of int
        The family that each coefficient is computed from; -1 for the number of rows.
    papers : bool
        Whether a row that is replaced counts as changing every coefficient by 2, as in corollary 2 of Zhang et al.
        (2016), which is never less than it does. For two levels alone.

    Notes
    -----
    Move: `greatest`, by elimination; it is computed of the whole numbers that rows add.
    """

    levels: tuple[int, ...]
    families: tuple[tuple[int, ...], ...]
    coefficients: tuple[Coefficient, ...]
    places: tuple[int, ...]
    papers: bool = False

    def __post_init__(self) -> None:
        exact_all(None, levels=self.levels, places=self.places)
        exact(1, **{f"levels[{node}]": count for node, count in enumerate(self.levels)})
        if type(self.families) is not tuple or type(self.coefficients) is not tuple:
            raise ArgumentError("families and coefficients must be tuples.")
        exact_all(None, **{f"families[{place}]": family for place, family in enumerate(self.families)})
        for family in self.families:
            exact(0, len(self.levels) - 1, **{f"node {node} of a family": node for node in family})
            if not family or len(set(family)) < len(family) or prod(self.shape(family)) > MOST_CONFIGURATIONS:
                raise ArgumentError(f"A family must be of nodes once each, with up to {MOST_CONFIGURATIONS} cells.")
        if not self.coefficients or len(self.places) != len(self.coefficients) or not self.families:
            raise ArgumentError("There must be a family and a coefficient, and a place for each coefficient.")
        for one, place in zip(self.coefficients, self.places, strict=True):
            self._check(one, place)
        if len(set(self.coefficients)) < len(self.coefficients):  # orthogonal functions are so once each
            raise ArgumentError("Each coefficient must be there once.")
        if flag("papers", self.papers) and not self.whole:
            raise ArgumentError("The noise of the paper is for nodes of two levels.")
        if self.entry > LONGEST or sum(4 * self._largest(one) ** 2 for one in self.coefficients) >= 2**62:
            raise ArgumentError("What a row adds would not fit into 64 bits. Take fewer coefficients.")

    def _check(self, one: Coefficient, place: int) -> None:
        if type(one) is not tuple:
            raise ArgumentError("A coefficient must be a tuple of pairs.")
        exact_all(2, **{f"coefficient[{k}]": pair for k, pair in enumerate(one)})
        exact(0 if one else -1, len(self.families) - 1 if one else -1, places=place)
        nodes = [node for node, _ in one]
        if sorted(set(nodes)) != nodes or not set(nodes) <= set(self.families[place] if one else ()):
            raise ArgumentError("Nodes of a coefficient must ascend, and be of its family.")
        for node, function in one:
            exact(1, self.levels[node] - 1, function=function)

    def shape(self, family: Sequence[int]) -> tuple[int, ...]:
        """Number of levels of each node of a family."""
        return tuple(self.levels[node] for node in family)

    @property
    def whole(self) -> bool:
        """Whether all products are whole numbers, as they are with two levels everywhere."""
        return max(self.levels) <= 2

    @property
    def units(self) -> int:
        """Steps of 1."""
        return 1 if self.whole else 2**BITS

    @cached_property
    def entry(self) -> int:  # type: ignore[override]
        """Largest entry of what a row adds."""
        return max(map(self._largest, self.coefficients))

    def _largest(self, one: Coefficient) -> int:
        return int(np.abs(self.steps_of(one)).max())

    def _values(self, one: Coefficient) -> Array:
        factors = [basis(self.levels[node])[function] for node, function in one]
        return np.asarray(reduce(np.multiply.outer, factors, np.ones(())) * self.units)

    def steps_of(self, one: Coefficient) -> Array:
        """Return what a row adds to a coefficient, in whole steps: an axis for every node of its product."""
        return np.rint(self._values(one)).astype(np.int64)

    def combined(self, tables: Sequence[Array]) -> Array:
        """Return sums of all rows, (count,) int64, from counts of the configurations of each family."""
        found = np.empty(len(self.coefficients), dtype=np.int64)
        for index, (one, place) in enumerate(zip(self.coefficients, self.places, strict=True)):
            if one:
                found[index] = (self._in_family(self.families[place], one) * tables[place]).sum()
            else:
                found[index] = tables[0].sum() * self.units
        return found

    def _in_family(self, members: tuple[int, ...], one: Coefficient) -> Array:
        """Return what a row adds, with an axis for every node of a family, of length 1 for those not in the product."""
        axes = [members.index(node) for node, _ in one]
        shape = [1] * len(members)
        for axis in axes:
            shape[axis] = self.levels[members[axis]]
        return np.transpose(self.steps_of(one), np.argsort(axes)).reshape(shape)

    @property
    @override
    def facts(self) -> Facts:
        (one, _), (spread, _) = self.greatest("add_remove"), self.greatest("replace")
        return Facts(len(self.levels), len(self.coefficients), (one.l1, one.l2_squared), (spread.l1, spread.l2_squared))

    @cached_property
    def _found(self) -> dict[str, tuple[Move, bool]]:
        return {}

    def greatest(self, neighbours: str) -> tuple[Move, bool]:
        """Return by how much one row moves all coefficients at most, and whether some row moves them so much in L1."""
        if neighbours not in self._found:
            (l1, sharp), (square, _) = (_greatest(self, neighbours == "replace", norm) for norm in (np.abs, np.square))
            self._found[neighbours] = Move(l1=max(l1, 1), l2_squared=max(square, 1)), sharp
        return self._found[neighbours]

    @override
    def move(self, neighbours: str, *, moves: bool = False, weighted: bool = False, rows: int = 1) -> Move:
        if weighted or moves:
            raise ArgumentError("Coefficients of a network are of all rows together, which have no weights.")
        found, _ = self.greatest(word("neighbours", neighbours, ("replace", "add_remove")))
        count = len(self.coefficients) if self.papers and neighbours != "add_remove" else 0
        return Move(l1=max(rows * found.l1, 2 * count), l2_squared=max(rows**2 * found.l2_squared, 4 * count))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        raise ArgumentError("Coefficients of a network are added up as `character_sums.Configurations` reads them.")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Term:
    """A function of the states of some nodes: an axis for each, in their order."""

    nodes: tuple[int, ...]
    values: Array


def _greatest(sums: Coefficients, replaced: bool, norm: Norm) -> tuple[int, bool]:
    """Greatest sum of norms that one row can cause, or a bound on it; whether it is exact."""
    states = [_n_states(count, replaced) for count in sums.levels]
    total, sharp, terms = 0, True, []
    for place in range(-1, len(sums.families)):
        own = [one for one, family in zip(sums.coefficients, sums.places, strict=True) if family == place]
        nodes = tuple(sorted({node for one in own for node, _ in one}))
        size = prod(states[node] for node in nodes)
        if size > MOST_STATES or size * len(own) > MOST_WORK:
            alone = sum(_alone(sums.steps_of(one), replaced, norm) for one in own)
            total, sharp = total + min(alone, _by_length(sums, place, own, replaced, norm)), False
        elif own:
            terms.append(_term(sums, own, nodes, states, replaced, norm))
    found, also = _eliminated(terms, states)
    return total + found, sharp and also


def _n_states(n_levels: int, replaced: bool) -> int:
    """Number of states of a node that matter: pairs of levels, or whether two levels change; signs alone never do."""
    if n_levels == 2:
        return 2 if replaced else 1
    return n_levels**2 if replaced else n_levels


def _alone(steps: Array, replaced: bool, norm: Norm) -> int:
    """Greatest sensitivity of one coefficient."""
    return int(norm(np.ptp(steps)) if replaced else norm(steps).max())


def _by_length(sums: Coefficients, place: int, own: Sequence[Coefficient], replaced: bool, norm: Norm) -> int:
    """Bound on what some coefficients of a family move together, by the length of the vector of all of them.

    Two rows are √(2 K) apart, one is √K long. Rounding moves an entry by half a step, twice where a row is replaced.
    Floats err by less than 2^-48 of a value: where one is so close to the middle of two steps, one step more counts.
    """
    count = len(own) + any(_close(sums._values(one)) for one in own)
    squared = prod(sums.shape(sums.families[place])) * (2 if replaced else 1) * sums.units**2
    if norm is np.abs:
        return _root(len(own) * squared) + count
    return (_root(squared) + _root(count)) ** 2


def _close(values: Array) -> bool:
    """Whether some value may be rounded to the farther step."""
    return bool((np.abs(np.abs(values - np.rint(values)) - 0.5) <= np.abs(values) * 2.0**-48).any())


def _root(number: int) -> int:
    """Square root, rounded up."""
    return isqrt(number - 1) + 1 if number else 0


def _term(
    sums: Coefficients,
    own: Sequence[Coefficient],
    nodes: tuple[int, ...],
    states: Sequence[int],
    replaced: bool,
    norm: Norm,
) -> _Term:
    """Sum of the sensitivities of some coefficients, as a function of the states of their nodes."""
    total = np.zeros([states[node] for node in nodes], dtype=np.int64)
    for one in own:
        signs = [node for node, _ in one if sums.levels[node] == 2]
        # At level 0 the function of two levels is 1: what is left is the product over the other nodes.
        rest = sums.steps_of(one)[tuple(0 if node in signs else slice(None) for node, _ in one)]
        shape = [1] * len(nodes)
        for node, _ in one:
            shape[nodes.index(node)] = states[node]
        if not replaced:
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
    total, sharp = _hold(terms, held), True
    sizes = {node: _size(_scope(found), states) for node, found in held.items()}
    while sizes:
        node = min(sizes, key=lambda one: (sizes[one], one))
        del sizes[node]
        meeting = held.pop(node)
        touched = set(_scope(meeting)) - {node}
        for other in touched:
            held[other] = [term for term in held[other] if node not in term.nodes]
        groups = _groups(meeting, states)
        sharp = sharp and len(groups) == 1
        total += _hold([_without(node, group) for group in groups], held)
        sizes.update({other: _size(_scope(held[other]), states) for other in touched})
    return total, sharp


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
