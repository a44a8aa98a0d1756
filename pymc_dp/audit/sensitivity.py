"""Searching for two neighbouring tables between which a statistic moves by more than is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, final

import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
from pymc_dp.domain import NEIGHBOURS, Neighbours
from pymc_dp.errors import ArgumentError

Row = tuple[Any, ...]
Table = tuple[Row, ...]
StatisticOfRows = Callable[[Table], npt.ArrayLike]
MAX_ROUNDS = 200


@final
@dataclass(frozen=True, kw_only=True)
class WorstPair:
    """The two neighbouring tables between which a statistic was seen to move furthest.

    Attributes
    ----------
    sensitivity : float
        L1 distance between the two statistics, computed exactly and rounded to the nearest float; inf where either is
        NaN or infinite, or their shapes differ.
    claimed : float
        The bound that was to hold.
    passed : bool
        Whether it held, compared exactly.
    table, neighbour : tuples of rows
        The witness.
    tried : int
        Number of pairs looked at.

    Examples
    --------
    >>> found = fuzz_sensitivity(lambda rows: len(rows), [(0,), (1,)], claimed=0, relation="add_remove")
    >>> found.passed, found.sensitivity
    (False, 1.0)
    """

    sensitivity: float
    claimed: float
    passed: bool
    table: Table
    neighbour: Table
    tried: int

    def report(self) -> str:
        """Return the finding in plain words."""
        if self.passed:
            return (
                f"no violation found: the statistic moved by at most {self.sensitivity:.12g} in {self.tried} pairs of "
                f"tables, {self.claimed:.12g} is claimed. This is not a proof: other tables were not tried."
            )
        return (
            f"claim disproved: the statistic moves by {self.sensitivity:.12g}, but at most {self.claimed:.12g} is "
            f"claimed, between the tables\n  {list(self.table)}\n  {list(self.neighbour)}"
        )


def fuzz_sensitivity(
    statistic_of_rows: StatisticOfRows,
    corner_rows: Sequence[Row],
    random_rows: Callable[[np.random.Generator, int], Sequence[Row]] | None = None,
    *,
    claimed: float,
    relation: Neighbours = "replace",
    sizes: Sequence[int] = (1, 2, 5),
    tries: int = 200,
    seed: int = 0,
) -> WorstPair:
    """Search for the neighbouring tables between which a statistic moves furthest.

    Pairs of corner rows (`tries` of them) and of random rows are tried among other corner rows, in tables of several
    sizes; then the worst pair is made worse one entry at a time, over the values that corners have in that column.

    Parameters
    ----------
    statistic_of_rows : callable
        From a tuple of rows to a number or array. It should be what the release really computes, clamping included.
    corner_rows : sequence of tuples
        Extreme rows: bounds, values far beyond them, NaN, infinities, wrong categories, tiny numbers.
    random_rows : callable, optional
        ``random_rows(rng, n)`` returns `n` more rows.
    claimed : float
        The bound on the L1 sensitivity that is to be disproved. Integers are compared exactly.
    relation : {"replace", "add_remove"}
    sizes : sequence of int
        Sizes of the tables, the row that changes included.
    tries : int
        Pairs per size.
    seed : int
        Of the search; it has nothing to do with privacy.

    Returns
    -------
    WorstPair

    Notes
    -----
    **Guarantee.** None: what was not found may exist. A witness is a proof that the claim is wrong.

    Examples
    --------
    A sum of values in [5, 100] moves by 95 when a row is replaced, and by 100 when one is added:

    >>> def total(rows):
    ...     return sum(min(max(x, 5), 100) for (x,) in rows)
    >>> fuzz_sensitivity(total, [(5,), (100,), (1e9,)], claimed=95).passed
    True
    >>> print(fuzz_sensitivity(total, [(5,), (100,)], claimed=95, relation="add_remove", sizes=(1,)).report())
    claim disproved: the statistic moves by 100, but at most 95 is claimed, between the tables
      [(100,)]
      []
    """
    relation = "add_remove" if _validate.choice("relation", relation, NEIGHBOURS) == "add_remove" else "replace"
    corners = [tuple(row) for row in corner_rows]
    if not corners or len({len(row) for row in corners}) != 1:
        raise ArgumentError(
            "corner_rows must be one row or more, all of one length. Write each as a tuple, (x,) for a single column."
        )
    search = _Search(statistic_of_rows, corners, random_rows, relation, np.random.default_rng(seed))
    for size in sizes:
        search.explore(_validate.integer("each of sizes", size), _validate.integer("tries", tries))
    search.climb()
    table, neighbour = search.tables(*search.worst)
    exact = search.sensitivity
    passed = exact is not None and exact <= Fraction(claimed)
    shown = math.inf if exact is None else float(exact)
    return WorstPair(
        sensitivity=shown, claimed=float(claimed), passed=passed, table=table, neighbour=neighbour, tried=search.tried
    )  # fmt: skip


class _Search:
    """The worst pair so far: rows before and after the one that changes, its old value, and its new one."""

    def __init__(
        self,
        statistic: StatisticOfRows,
        corners: Sequence[Row],
        random_rows: Callable[[np.random.Generator, int], Sequence[Row]] | None,
        relation: Neighbours,
        rng: np.random.Generator,
    ) -> None:
        self.statistic, self.corners, self.random_rows = statistic, corners, random_rows
        self.relation, self.rng = relation, rng
        self.worst: tuple[Table, Row, Row, int] = ((), corners[0], corners[0], 0)
        self.sensitivity: Fraction | None = Fraction(-1)
        self.tried = 0

    def tables(self, others: Table, old: Row, new: Row, place: int) -> tuple[Table, Table]:
        changed = () if self.relation == "add_remove" else (new,)
        return (*others[:place], old, *others[place:]), (*others[:place], *changed, *others[place:])

    def explore(self, size: int, tries: int) -> None:
        corners, count = self.corners, len(self.corners)
        pairs = list(product(range(count), repeat=2)) if self.relation == "replace" else [(i, i) for i in range(count)]
        if size > 1:
            pairs *= max(1, tries // len(pairs))  # each among other rows
        if len(pairs) > tries:
            pairs = [pairs[i] for i in self.rng.choice(len(pairs), tries, replace=False)]
        for old, new in pairs:
            others = tuple(corners[i] for i in self.rng.integers(count, size=size - 1))
            self.consider(others, corners[old], corners[new], int(self.rng.integers(size)))
        if self.random_rows is not None:
            for _ in range(tries // 4):
                rows = [tuple(row) for row in self.random_rows(self.rng, size + 1)]
                self.consider(tuple(rows[2:]), rows[0], rows[1], int(self.rng.integers(size)))

    def climb(self) -> None:
        """Coordinate ascent: change one entry of one row of the worst pair as long as that makes it worse."""
        for _ in range(MAX_ROUNDS):
            if self.sensitivity is None or not any(self.consider(*candidate) for candidate in self._nearby()):
                return

    def consider(self, others: Table, old: Row, new: Row, place: int) -> bool:
        """Look at one pair; return whether it is the worst so far."""
        if self.sensitivity is None:
            return False
        self.tried += 1
        first, second = (self.statistic(table) for table in self.tables(others, old, new, place))
        moved = distance(first, second)
        if moved is not None and moved <= self.sensitivity:
            return False
        self.worst, self.sensitivity = (others, old, new, place), moved
        return True

    def _nearby(self) -> Iterator[tuple[Table, Row, Row, int]]:
        others, old, new, place = self.worst
        for column in range(len(old)):
            values = list(dict.fromkeys(row[column] for row in self.corners))
            for value in values:
                yield others, _with(old, column, value), new, place
                yield others, old, _with(new, column, value), place
                for i, row in enumerate(others):
                    yield (*others[:i], _with(row, column, value), *others[i + 1 :]), old, new, place
        for i in range(len(others) + 1):
            yield others, old, new, i


def distance(first: npt.ArrayLike, second: npt.ArrayLike) -> Fraction | None:
    """Return the exact L1 distance; None where it is not finite or the shapes differ.

    Examples
    --------
    >>> distance([2**62, 1], [-(2**62), 0])
    Fraction(9223372036854775809, 1)
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape:
        return None
    try:
        pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        return sum((abs(Fraction(x) - Fraction(y)) for x, y in pairs), Fraction(0))
    except (ValueError, OverflowError):  # NaN, infinity
        return None


def _with(row: Row, column: int, value: Any) -> Row:
    return (*row[:column], value, *row[column + 1 :])
