"""How much two neighbouring tables differ in what a draw is made from, against what is booked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Column, known_rows, shape_of
from tests.fuzz.hostile import Row, hostile_rows
from tests.fuzz.samplers import Subject
from tests.fuzz.seen import Seen, watching

ROUNDING = 1e-9
"""Of the differences that are taken here, relative to what is booked."""
AT_ONCE, MOST_OTHERS = 24, 5
"""Rows that take turns in one table, and rows beside them."""
TURNS = 3
"""At least."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The worst pair of neighbours.

    Attributes
    ----------
    used, claimed : float
        Range of the difference of their log weights, and η that is booked.
    rows : tuple of Row
        Those that one of the tables has in place of that of the other; one row alone if it is missing in the other.
    points : int
        Pairs of a row and a point that were looked at.
    """

    used: float
    claimed: float
    rows: tuple[Row, ...]
    points: int

    @property
    def excess(self) -> float:
        """How many times what is booked is used."""
        return _ratio(self.used, self.claimed)

    @property
    def holds(self) -> bool:
        return self.excess <= 1 + ROUNDING


def fuzz(subject: Subject, neighbours: str, points: int, seed: int) -> Found:
    """Compare neighbouring tables until so many pairs of a row and a point were looked at.

    Tables have one row to six. All rows but one are the same; this one is replaced, or missing in one of them.
    """
    rng, seen = np.random.default_rng(seed), Seen()
    table: dict[object, np.ndarray] = {}
    worst, looked, turn = Found(used=0.0, claimed=1.0, rows=(), points=0), 0, 0
    with watching(seen, table), np.errstate(all="ignore"):
        while looked < points or turn < TURNS:
            rows = hostile_rows(subject.columns, rng, AT_ONCE)
            others = hostile_rows(subject.columns, rng, 40)
            others = [others[int(place)] for place in rng.integers(len(others), size=turn % (MOST_OTHERS + 1))]
            tables = [[*others, row] for row in rows]
            if neighbours == "add_remove":
                tables.insert(0, others)
            noted = []
            for held in tables:
                _put(table, subject.columns, held)
                subject.run(seen, seed + turn)
                noted.append(seen.calls)
            looked += len(rows) * sum(weights.shape[-1] for weights, _ in noted[0])
            worst = max(worst, _worst(noted, rows, neighbours), key=lambda found: found.excess)
            turn += 1
            if not noted[0]:
                break
    return Found(used=worst.used, claimed=worst.claimed, rows=worst.rows, points=looked)


def compare(subject: Subject, one: Sequence[Row], other: Sequence[Row], seed: int = 0) -> Found:
    """Compare two neighbouring tables that are given row by row."""
    noted, table, seen = [], dict[object, np.ndarray](), Seen()
    with watching(seen, table), np.errstate(all="ignore"):
        for held in (one, other):
            _put(table, subject.columns, held)
            subject.run(seen, seed)
            noted.append(seen.calls)
    return _worst(noted, [*one[-1:], *other[-1:]] or [(), ()], "replace")


def _put(table: dict[object, np.ndarray], columns: Sequence[Column], rows: Sequence[Row]) -> None:
    for place, column in enumerate(columns):
        if column.public:
            table[column.leaf] = known_rows(column)[: len(rows)]
            continue
        shape = (len(rows), *shape_of(column.leaf)[1:])
        held = np.zeros(shape, dtype=column.leaf.type.dtype)
        for turn, row in enumerate(rows):
            held[turn] = row[place]
        table[column.leaf] = held


def _worst(noted: Sequence[list[tuple[np.ndarray, float]]], rows: Sequence[Row], neighbours: str) -> Found:
    best = Found(used=0.0, claimed=1.0, rows=(), points=0)
    assert len({len(calls) for calls in noted}) == 1, "how many choices there are depends on a row"
    for calls in zip(*noted, strict=True):
        assert len({claimed for _, claimed in calls}) == 1, "what is booked depends on a row"
        weights, claimed = np.stack([weights for weights, _ in calls]), calls[0][1]
        pairs = ranges(weights) if neighbours == "replace" else ranges(weights, weights[:1])
        i, j = np.unravel_index(np.argmax(pairs), pairs.shape)
        if _ratio(pairs[i, j], claimed) > best.excess:
            both = (rows[i], rows[j]) if neighbours == "replace" else (rows[max(i - 1, 0)],)
            best = Found(used=float(pairs[i, j]), claimed=claimed, rows=both, points=0)
    return best


def ranges(weights: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Range over choices of the differences of log weights, summed over elements: one for each pair of tables.

    Infinite where something can be chosen on one table alone, or a weight is not a number.

    Parameters
    ----------
    weights, others : (n_tables, n_elements, n_choices) arrays
    """
    others = weights if others is None else others
    found = np.empty((len(weights), len(others)))
    for place, other in enumerate(others):
        never = np.isneginf(weights) & np.isneginf(other)
        difference = np.where(never, 0.0, weights - np.where(never, 0.0, other))
        top = np.where(never, -np.inf, difference).max(axis=-1)
        bottom = np.where(never, np.inf, difference).min(axis=-1)
        found[:, place] = np.where(never.all(axis=-1), 0.0, top - bottom).sum(axis=-1)
    return np.where(np.isnan(found), np.inf, found)


def _ratio(used: float, claimed: float) -> float:
    return used / claimed if claimed > 0 else np.inf * used if used > 0 else 0.0


__all__ = ["ROUNDING", "Found", "compare", "fuzz", "ranges"]
