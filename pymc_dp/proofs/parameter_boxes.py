"""Bounds of graphs over free variables within public boxes, and which element feeds which entry of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, toposort

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import constant_values
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.intervals.expression import Symbol, Tape, UnknownOperation, constant, leaf
from pymc_dp.intervals.feeds import NONE, feeds_of
from pymc_dp.intervals.interval import NAN
from pymc_dp.proofs.lowering import Lowering


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """What is known of one array.

    Attributes
    ----------
    low, high : arrays
        Bounds of every entry, rounded outward.
    feeds : mapping of str to integer array of the same shape
        For each free variable the one element that an entry depends on, else `NONE` or `MANY`.
    """

    low: Array
    high: Array
    feeds: Mapping[str, Array] = field(default_factory=dict)

    def owner(self, name: str) -> Array:
        """Element of a free variable that feeds each entry."""
        return self.feeds.get(name, np.full(self.low.shape, NONE))


def boxes_of(outputs: Sequence[Variable], free: Mapping[Variable, Box]) -> list[Box]:
    """Bound graphs over free variables by interval arithmetic.

    Parameters
    ----------
    outputs : sequence of Variable
        Graphs that depend on nothing random but `free`.
    free : mapping of Variable to Box
        Public bounds of each free variable.

    Raises
    ------
    UnknownOperation
        Naming the operation without a rule.
    """
    symbols = {var: _symbol(var, box) for var, box in free.items()}
    lowering = Lowering({var: leaf(symbol) for var, symbol in symbols.items()})
    still = _still(outputs, free)
    values = constant_values(still)
    if values is None:
        raise UnknownOperation("a random number that is no free variable")
    # Computed as the model does, so that a known parameter is one number: enclosed, it would have two ends.
    lowering.known.update({var: constant(value) for var, value in zip(still, values, strict=True)})
    tape = Tape([lowering.of(out) for out in outputs])
    enclosed = tape.values(tape.low[None], tape.high[None])
    feeds = feeds_of(tape, enclosed)
    found = []
    for end in tape.ends:
        item = enclosed[end]
        lost = (item.flags & NAN) > 0
        named = {symbol.name: places for symbol, places in feeds[end].items()}
        low, high = np.where(lost, -np.inf, item.low)[0], np.where(lost, np.inf, item.high)[0]
        found.append(Box(low=low, high=high, feeds=named))
    return found


def _symbol(var: Variable, box: Box) -> Symbol:
    return Symbol(name=str(var.name), low=box.low, high=box.high, integer=var.type.dtype.startswith(("int", "uint")))


def _still(outputs: Sequence[Variable], free: Mapping[Variable, Box]) -> list[Variable]:
    """Return what is computed from no free variable, and enters what is."""
    moving, wanted = set(free), set(outputs)
    for node in toposort(list(outputs), blockers=list(free)):
        if any(var in moving for var in node.inputs):
            moving.update(node.outputs)
            wanted.update(node.inputs)
    still = wanted - moving
    return [var for var in still if hasattr(var.type, "dtype") and not isinstance(var, Constant)]


def check_bounds(
    outputs: Sequence[Variable], free: Mapping[Variable, Box], boxes: Sequence[Box], points: int = 8
) -> None:
    """Hold the bounds against graphs at random public places, as a guard against an error in the rules.

    Raises
    ------
    PrivacyError
        If a value lies outside of its box, or moves with a variable that is said not to feed it.
    """
    met = set(ancestors(list(outputs), blockers=list(free)))  # what is not met feeds nothing
    free = {var: box for var, box in free.items() if var in met}
    rng, variables = np.random.default_rng(0), list(free)
    inputs = [var.type() for var in variables]
    graphs, _ = rebuild(outputs, dict(zip(variables, inputs, strict=True)))
    function = plain_function(inputs, graphs, few=True)
    with np.errstate(all="ignore"):
        for _ in range(points):
            place = [somewhere(rng, var, box) for var, box in free.items()]
            values = function(*place)
            for value, box in zip(values, boxes, strict=True):
                room = 1e-9 * (1 + np.abs(value))
                inside = (value >= box.low - room) & (value <= box.high + room)
                if np.shape(value) != box.low.shape or not (inside | ~np.isfinite(value)).all():
                    raise PrivacyError("The bounds of a parameter do not hold; this is an error of pymc_dp.")
            for i, var in enumerate(variables):
                moved = function(*place[:i], somewhere(rng, var, free[var]), *place[i + 1 :])
                for value, other, box in zip(values, moved, boxes, strict=True):
                    changed = ~((value == other) | (np.isnan(value) & np.isnan(other)))
                    if (changed & (box.owner(str(var.name)) == NONE)).any():
                        raise PrivacyError("What feeds a parameter was overlooked; this is an error of pymc_dp.")


def somewhere(rng: np.random.Generator, var: Variable, box: Box) -> Array:
    """Draw a value of a free variable within its public bounds."""
    low = np.where(np.isfinite(box.low), box.low, np.minimum(-3.0, box.high - 1))
    high = np.where(np.isfinite(box.high), box.high, np.maximum(3.0, low + 1))
    dtype = np.dtype(var.type.dtype)
    if dtype.kind in "iub":
        return np.asarray(rng.integers(low.astype(int), high.astype(int), endpoint=True), dtype=dtype)
    return np.asarray(low + (high - low) * rng.random(low.shape), dtype=dtype)


__all__ = ["Box", "boxes_of", "check_bounds", "somewhere"]
