"""Which entry of each symbol the entries of an expression depend on: none, one, or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pymc_dp.intervals.expression import Expression, Symbol, Tape
from pymc_dp.intervals.interval import Array, Interval

NONE, MANY = -1, -2
"""No entry of a symbol, or more than one (or it is not known which)."""

Feeds = Mapping[Symbol, Array]
"""For each symbol the place, in the raveled symbol, of the one entry that each entry depends on, `NONE` or `MANY`."""


def feeds_of(tape: Tape, values: Mapping[Expression, Interval]) -> dict[Expression, Feeds]:
    """Say what feeds every node of a tape, over the boxes that its `values` are for.

    Notes
    -----
    **Guarantee.** An entry is the same function of the entry that is named, whatever the other entries of the symbol
    are on the box. An input of an operation does not count where the operation has no slope along it: a factor beside a
    0, a branch that is not taken.
    """
    found: dict[Expression, Feeds] = {}
    for node in tape.nodes:
        found[node] = _of_node(node, [found[item] for item in node.inputs], values)
    return found


def joined(places: Array, axes: int | tuple[int, ...]) -> Array:
    """Merge along axes: the one entry that all name, if any names one."""
    highest = places.max(axis=axes, keepdims=True, initial=NONE)
    several = ((places != highest) & (places != NONE)).any(axis=axes)
    return np.where(several, MANY, highest.reshape(several.shape))


def _of_node(node: Expression, given: Sequence[Feeds], values: Mapping[Expression, Interval]) -> Feeds:
    shape = values[node].shape[1:]
    if node.symbol is not None:
        return {node.symbol: np.arange(node.symbol.size).reshape(shape)}
    match node.kind:
        case "moved":
            return _moved(node, given, values)
        case "reduced":
            return {symbol: _reduced(places, node.axes, shape) for symbol, places in given[0].items()}
        case "elementwise" | "switch":
            return _merged(_along_slopes(node, given, values), shape)
        case "checked":
            whole = [{symbol: joined(places.ravel(), 0) for symbol, places in one.items()} for one in given[1:]]
            return _merged([given[0], *whole], shape)
    return _merged(given, shape)


def _merged(given: Sequence[Feeds], shape: tuple[int, ...]) -> dict[Symbol, Array]:
    found: dict[Symbol, Array] = {}
    for symbol, places in (item for one in given for item in one.items()):
        wide = np.broadcast_to(places, shape)
        found[symbol] = joined(np.stack([found[symbol], wide]), 0) if symbol in found else wide
    return found


def _moved(node: Expression, given: Sequence[Feeds], values: Mapping[Expression, Interval]) -> Feeds:
    assert node.move is not None
    nothing = [np.full(values[item].shape[1:], NONE) for item in node.inputs]
    return {
        symbol: node.move(*(one.get(symbol, none)[None] for one, none in zip(given, nothing, strict=True)))[0]
        for symbol in node.symbols
    }


def _reduced(places: Array, axes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    found = joined(places, axes)
    return found if found.shape == shape else np.broadcast_to(np.expand_dims(found, axes), shape)


def _along_slopes(node: Expression, given: Sequence[Feeds], values: Mapping[Expression, Interval]) -> list[Feeds]:
    """Leave out what feeds an input where its slope is 0."""
    assert node.rule is not None
    out, found = values[node], list[Feeds]()
    with np.errstate(all="ignore"):
        slopes = node.rule.partials(tuple(values[item] for item in node.inputs), out)
    for one, slope in zip(given, slopes, strict=True):
        still = np.broadcast_to((slope.low == 0) & (slope.high == 0) & (slope.flags == 0), out.shape) & (out.flags == 0)
        found.append({symbol: np.where(still[0], NONE, places) for symbol, places in one.items()})
    return found


__all__ = ["MANY", "NONE", "Feeds", "feeds_of", "joined"]
