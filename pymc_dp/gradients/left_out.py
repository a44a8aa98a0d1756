"""Which rows of persons count, and how many do not: noised counts of persons and rows beyond `Unit.max_rows`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pymc_dp.gradients.misfit import LEVEL
from pymc_dp.gradients.row_parts import ROOM
from pymc_dp.inspection.rows import Array
from pymc_dp.release.verdict import Reason
from pymc_dp.rows.persons import Grouped
from pymc_dp.unit import Unit

TIMES = 2
"""Rows of a person that are left out count up to so many times `max_rows`: noise grows with it."""
PERSON = 0.5
"""What a person counts, where all rows that may count are 1: numbers of rows need less noise than those of persons."""
NORM = math.sqrt(2 * PERSON**2 + 2)
"""The most that a person adds."""
MANY = 0.05
"""Share of rows above which it is in the verdict that they are left out."""


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """What persons add to the count of rows that are kept and left out.

    Attributes
    ----------
    most : int
        Rows of a person that are kept, m.

    Notes
    -----
    A person with k rows that are kept, and l that are left out, adds (1/2, 1/2 if l > 0, k/m, min(l, 2 m) / (2 m)),
    over the norm that this has at most, √2.5.

    **Guarantee.** What a person adds is a function of the number of that person's rows alone. The norm is at most 1,
    which the kernel enforces.
    """

    most: int
    count: ClassVar[int] = 4
    """Numbers that are released."""

    @property
    def counted(self) -> int:
        """How many rows of a person that are left out count at most."""
        return TIMES * self.most

    @property
    def _units(self) -> Array:
        return np.array([1 / PERSON, 1 / PERSON, self.most, self.counted]) * (NORM / ROOM)

    def rows(self, chunk: Grouped) -> Array:
        """Return what persons add, (n_persons, 4)."""
        kept = np.diff(chunk.edges).astype(np.float64)
        left = np.zeros(len(kept)) if chunk.left_out is None else np.minimum(chunk.left_out, self.counted)
        return np.column_stack([np.ones(len(kept)), left > 0, kept, left]) / self._units

    def read(self, released: Array, deviation: float) -> LeftOut:
        """Return what noised sums of `rows` say, where the standard deviation of the noise is known."""
        persons, cut, kept, left = released * self._units
        own, _, of_kept, of_left = deviation * self._units
        return LeftOut(
            persons=_share(cut, own, persons, own, 0.0),
            rows=_share(left, of_left, left + kept, math.hypot(of_kept, of_left), of_left**2),
        )


@dataclass(frozen=True, kw_only=True)
class Share:
    """A noised share, and the standard deviation of the noise on it; both nan where noise hides the whole."""

    value: float
    deviation: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "an unknown share (noise hides it)"
        return f"{self.value:.1%} (± {self.deviation:.1%})"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """What was released of persons with more rows than count.

    Attributes
    ----------
    persons : Share
        Of persons, those with more than `max_rows` rows.
    rows : Share
        Of rows, those that are left out, up to `RowCounts.counted` of each person.
    """

    persons: Share
    rows: Share

    @property
    def many(self) -> bool:
        """Whether more rows are left out than noise explains, and more than matter little."""
        return self.rows.value - LEVEL * self.rows.deviation > MANY

    def to_dict(self) -> dict[str, float | None]:
        """Return JSON types; None for what noise hides."""
        numbers = {
            "persons": self.persons.value,
            "persons_deviation": self.persons.deviation,
            "rows": self.rows.value,
            "rows_deviation": self.rows.deviation,
        }
        return {name: None if math.isnan(one) else one for name, one in numbers.items()}

    def says(self, unit: Unit) -> str:
        """Say what is left out."""
        return (
            f"of the persons, {self.persons} have more than max_rows={unit.max_rows} rows; of the rows, {self.rows} "
            f"are left out, not counting more than {RowCounts(most=unit.max_rows).counted} of one person"
        )

    def reasons(self, unit: Unit) -> Iterator[Reason]:
        """Yield why the posterior should not simply be relied on."""
        if self.many:
            what = (
                f"About {self.rows.value:.0%} of the rows are left out, for {self.persons.value:.0%} of the persons "
                f"have more than max_rows={unit.max_rows}: estimates are those of the rows that are kept"
            )
            yield Reason(word="doubtful", what=what, remedy="Use a larger max_rows.")


def _share(part: float, of_part: float, whole: float, of_whole: float, covariance: float) -> Share:
    """Return a part over the whole, both noised, as far as the whole is known; with the covariance of their noises."""
    if not whole > LEVEL * of_whole:
        return Share(value=math.nan, deviation=math.nan)
    value = min(max(float(part / whole), 0.0), 1.0)
    variance = of_part**2 - 2 * value * covariance + (value * of_whole) ** 2
    return Share(value=value, deviation=math.sqrt(variance) / float(whole))


__all__ = ["LeftOut", "RowCounts", "Share"]
