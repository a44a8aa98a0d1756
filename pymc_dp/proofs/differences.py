"""By how much expressions differ between two places of the parameter space, enclosed by interval arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pytensor.scalar.basic import Invert

from pymc_dp.intervals import chain_rule, rules
from pymc_dp.intervals.expression import Expression, Symbol, elementwise, in_order, replaced
from pymc_dp.intervals.interval import NAN, Interval
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.meeting_points import roles
from pymc_dp.proofs.meeting_ranges import Enclosed

MOST_UNITS = 6
"""Entries of meetings whose slopes are followed one by one."""
TOGETHER = -1
"""Key of what changes by known numbers."""
Ways = dict[int, Interval]
"""Change of a node: a known part, and slopes by entry of the meetings, whose changes are intervals."""


class Changes:
    """Expressions laid out for two places at once.

    The slopes of a rule hold every difference quotient between points of a box at which the function is finite, so that
    the change of a node lies in the sum of slopes times changes of its inputs: no path between the places is needed.
    The change of a meeting is an interval, whose sign two terms share: its slope is followed, and multiplied last.

    Parameters
    ----------
    ends : sequence of Expression

    Attributes
    ----------
    symbols : tuple of Symbol
    """

    def __init__(self, ends: Sequence[Expression]) -> None:
        self.ends = tuple(ends)
        self._nodes, self._moving = in_order(ends), _values_of(ends)
        self.symbols = tuple(node.symbol for node in self._nodes if node.symbol is not None)
        met = [symbol for symbol in self.symbols if symbol.role in ("joint", "public joint")]
        starts = np.cumsum([0, *(symbol.size for symbol in met)])
        self._units = dict(zip(met, map(int, starts), strict=False)) if starts[-1] <= MOST_UNITS else {}
        self._held: dict[Expression, Interval] = {}
        self.hold({})

    def hold(self, given: Mapping[Symbol, Enclosed]) -> None:
        """Remember what depends on none but these symbols, which are from now on always the same."""
        with np.errstate(all="ignore"):
            for node in self._nodes:
                if node.symbols <= given.keys():
                    self._held[node] = _value(node, self._held, given)

    def between(self, given: Mapping[Symbol, Enclosed]) -> list[Enclosed]:
        """Enclose the ends, given the symbols: intervals with a leading axis of boxes, of one length or of length 1."""
        known, changes = self._nodes_between(given)
        return [Enclosed(known[end], self._summed(end, known, changes, given)) for end in self.ends]

    def _summed(
        self,
        node: Expression,
        known: Mapping[Expression, Interval],
        changes: Mapping[Expression, Ways],
        given: Mapping[Symbol, Enclosed],
    ) -> Interval:
        """Multiply slopes by changes of the meetings."""
        ways, axes = changes[node], (None,) * (len(known[node].shape) - 1)
        parts = [ways[TOGETHER]] if TOGETHER in ways else []
        for symbol, start in self._units.items():
            for entry, place in enumerate(np.ndindex(symbol.shape)):
                if start + entry in ways:
                    parts.append(
                        ways[start + entry] * given[symbol].change[(slice(None), *place)][(slice(None), *axes)]
                    )
        return sum(parts[1:], parts[0]) if parts else chain_rule.still(known[node])

    def obstacle(self, given: Mapping[Symbol, Enclosed]) -> Expression | None:
        """Return the first node that may be undefined, or whose change has no bound."""
        known, changes = self._nodes_between(given)
        for node in self._moving:
            if node.inputs and ((known[node].flags > 0).any() or any(map(_wide, changes[node].values()))):
                return node
        return None

    def settled(self, given: Mapping[Symbol, Enclosed]) -> tuple[Expression, list[Expression]]:
        """Return the only end without the switches on parameters that are decided, and the conditions that hold then.

        Beyond them nothing is claimed; a sum is then a sum of its terms, which a switch around it would hide.
        """
        (end,), conditions = self.ends, list[Expression]()
        known, _ = self._nodes_between(given)
        for node in reversed(self._moving):  # the outer ones first: what is inside of them stays what it is
            if node.kind != "switch" or not OF_PARAMETERS & roles(node.inputs[0]):
                continue
            condition, yes, no = node.inputs
            found = known[condition]
            if found.low.min() == found.high.max() and not found.flags.any():
                holds = bool(found.low.min())
                end = replaced(end, node, yes if holds else no)
                conditions.append(condition if holds else elementwise("Invert", rules.RULES[Invert], [condition]))
        return end, conditions

    def _nodes_between(
        self, given: Mapping[Symbol, Enclosed]
    ) -> tuple[dict[Expression, Interval], dict[Expression, Ways]]:
        """Enclose every node, and the change of those whose change matters."""
        known, changes = dict(self._held), dict[Expression, Ways]()
        with np.errstate(all="ignore"):
            for node in self._nodes:
                if node not in known:
                    known[node] = _value(node, known, given)
            for node in self._moving:
                changes[node] = (
                    _change(node, known, [changes.get(item, {}) for item in node.inputs])
                    if node.symbol is None
                    else self._started(node.symbol, given[node.symbol].change)
                )
        return known, changes

    def _started(self, symbol: Symbol, change: Interval) -> Ways:
        """A unit for every entry of a meeting, else the change itself."""
        if not (change.low.any() or change.high.any() or change.flags.any()):
            return {}
        if symbol not in self._units:
            return {TOGETHER: change}
        units = np.eye(symbol.size).reshape(symbol.size, 1, *symbol.shape)
        return {self._units[symbol] + entry: Interval.point(unit) for entry, unit in enumerate(units)}


def _value(node: Expression, known: Mapping[Expression, Interval], given: Mapping[Symbol, Enclosed]) -> Interval:
    inputs = [known[item] for item in node.inputs]
    if node.symbol is not None:
        return given[node.symbol].value
    if node.constant is not None:
        return Interval.point(np.asarray(node.constant, dtype=np.float64)[None])
    if node.rule is not None:
        return node.rule.value(*inputs)
    if node.move is not None:
        return chain_rule.rearranged(node.move, inputs)
    return chain_rule.with_conditions(inputs) if node.reduce is None else node.reduce(*inputs)


def _change(node: Expression, known: Mapping[Expression, Interval], given: Sequence[Ways]) -> Ways:
    """Enclose the change of a node, given those of its inputs."""
    keys = sorted(set().union(*given)) if given else []
    if not keys:
        return {}
    inputs, output = tuple(known[item] for item in node.inputs), known[node]
    ways = {key: [one.get(key) for one in given] for key in keys}
    if node.kind == "switch":
        meets = node.name != "Switch"
        return {
            key: chain_rule.switched(inputs[0], output, [None if meets else way[0], *way[1:]])
            for key, way in ways.items()
        }
    if node.rule is not None:
        partials = node.rule.partials(inputs, output)
        return {key: chain_rule.chained(partials, way) for key, way in ways.items()}
    if node.move is not None:
        return {key: chain_rule.moved_slopes(node.move, inputs, way) for key, way in ways.items()}
    if node.slopes is not None:
        return {key: node.slopes(inputs[0], output, one) for key, one in given[0].items()}
    return dict(given[0])


def _wide(change: Interval) -> bool:
    return bool(((change.flags & NAN) > 0).any() or np.isinf(change.low).any() or np.isinf(change.high).any())


def _values_of(ends: Sequence[Expression]) -> list[Expression]:
    """Nodes that make up the values of `ends`: not those that only say where these are defined."""
    order, wanted = in_order(ends), set(ends)
    for node in reversed(order):
        if node in wanted:
            wanted |= set(node.inputs[:1] if node.kind == "checked" else node.inputs)
    return [node for node in order if node in wanted]


__all__ = ["Changes"]
