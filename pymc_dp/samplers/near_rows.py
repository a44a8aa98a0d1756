"""How far one row moves log-likelihoods at public points: the largest that is found on public rows, moved on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytensor.tensor as pt

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.middle import middle
from pymc_dp.samplers.public_rows import PublicRows, where_rows
from pymc_dp.samplers.rows import ModelRows, OfPublicRows

ROOM = 1e-9
"""By how much a found range is widened, relatively."""
ROUNDING = 1e-6
"""Relative difference of two ranges that is put down to rounding."""
SPREAD = 400
"""Points at which all public rows are looked at; those that are the farthest there, at all points."""
ROUNDS, GAIN = 4, 0.002
"""Times that a centre is looked for, and by how much moved rows must lie farther out for another time."""
FARTHEST, TURNS = 12, 2
"""Rows with the largest range, and how many times they are moved on to where it is larger."""
COMPARED = 96
"""Rows of which a mean is taken as the centre."""
CHUNK = 2**21
"""Numbers held at once."""
DIGITS = 1e-3
"""How much the rounding of the numbers of all rows may be, of what one row can move."""


class NearRows:
    """Numbers of public rows at points, and how far they range. Reads no row.

    Attributes
    ----------
    public : PublicRows
    points : (n_points, n_scalars) array
        Others may take their place.
    leading : int
        How many of the points, the first ones, are among those at which all rows are looked at.
    centre : tuple of (mapping of str to array, array)
        After `found`: the public rows whose weighted mean was taken off all others, and their weights; none where
        nothing was.
    far : mapping of str to array
        After `found`: the rows that range farthest, moved on to where that is larger.
    """

    def __init__(self, rows: ModelRows, known: Sequence[str], public: PublicRows, points: Array) -> None:
        self.public, self.points = public, points
        self.centre: tuple[Mapping[str, Array], Array] = ({}, np.zeros(0))
        self.far: Mapping[str, Array] = {}
        self.leading = 0
        self._plain = self._centred = OfPublicRows(rows, rows.logp, several=True)
        if known:  # public columns
            self._centred = OfPublicRows(rows, pt.sub(rows.logp, rows.middle_of_ends(known)), several=True)
        self._slopes = OfPublicRows(rows, rows.slopes(public.movable)) if public.movable else None

    def at(self, rows: Mapping[str, Array], points: Array, *, centred: bool = False) -> Array:
        """Return (n_rows, n_points) numbers, as floats return them."""
        function = self._centred if centred else self._plain
        size = max(1, CHUNK // max(len(next(iter(rows.values()))), 1))
        parts = [function.at(rows, points[start : start + size]) for start in range(0, len(points), size)]
        return np.concatenate(parts).T

    def found(self, n_rows: int, *, replace: bool, centre_wanted: bool = True) -> tuple[float, float, Array]:
        """Return R, Δl, and the centre: (n_points,) array; of tables with so many rows at most.

        Where no centre is wanted it is 0.

        Raises
        ------
        UnsupportedModelError
            Where a number is none, or floats have too few digits.
        """
        spread = self.points[np.union1d(np.arange(self.leading), _spread(self.points))]
        width, rows = 0.0, dict(self.public.rows)
        centre_wanted = centre_wanted and replace and self._centred is self._plain
        if centre_wanted:
            rows = self._with_opposites(rows, spread)
        for _ in range(ROUNDS):
            plain = self.at(rows, spread)
            require_finite(plain)
            by_row = self._centred is not self._plain
            found = self.at(rows, spread, centred=True) if by_row else plain
            weights = best_centre(found) if centre_wanted else {}
            centre, near = np.zeros(len(self.points)), np.zeros(len(spread))
            self.centre = ({}, np.zeros(0))
            if weights:
                places, shares = list(weights), np.array(list(weights.values()))
                some = {name: values[places] for name, values in rows.items()}
                self.centre = some, shares
                centre, near = shares @ self.at(some, self.points), shares @ plain[places]
            width, moved = self._widest(rows, found - near, centre)
            self.far = moved
            if width <= float(np.ptp(found - near, axis=1).max()) * (1 + GAIN):
                break  # rows that were moved on lie no farther out, and would have no say in where the middle is
            rows = {name: np.concatenate([moved[name], values]) for name, values in rows.items()}
        size = np.ptp(plain, axis=0).max() if replace else np.abs(plain).max()
        sense = 2 if replace else 1
        if not width > 0:
            return 0.0, float(size), centre
        if (problem := no_digits(np.abs(plain).max(), n_rows, width, REMEDY)) is not None:
            raise UnsupportedModelError([problem])
        range_ = sense * width * (1 + ROOM)
        return range_, max(float(size) * (1 + ROOM), range_ / 2), centre

    def _widest(self, rows: Mapping[str, Array], near: Array, centre: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the largest range over all points, of rows that range far at some, and moved on; and these rows."""
        order = np.argsort(np.ptp(near, axis=1))[-FARTHEST:]
        far: Mapping[str, Array] = {name: values[order] for name, values in rows.items()}
        largest = float(np.ptp(near, axis=1).max())
        for turn in range(TURNS + 1):
            found = self.at(far, self.points, centred=True) - centre
            if not np.isfinite(found).all():
                break
            largest = max(largest, float(np.ptp(found, axis=1).max()))
            if turn < TURNS:
                far = self._moved_on(far, found.argmax(axis=1), found.argmin(axis=1), centre)
        return largest, far

    def _with_opposites(self, rows: Mapping[str, Array], spread: Array) -> dict[str, Array]:
        """Return more rows: far ones, and those that differ most from them, which limit how good a centre is."""
        found = self.at(rows, spread)
        if not np.isfinite(found).all():
            return dict(rows)
        order, none = np.argsort(np.ptp(found, axis=1))[-FARTHEST:], np.zeros(len(self.points))
        far: Mapping[str, Array] = {name: values[order] for name, values in rows.items()}
        plain = self.at(far, self.points)
        high, low = np.nan_to_num(plain).argmax(axis=1), np.nan_to_num(plain).argmin(axis=1)
        several = [self._moved_on(far, high, low, none), self._moved_on(far, low, high, none), rows]
        return {name: np.concatenate([one[name] for one in several]) for name in rows}

    def _moved_on(self, rows: Mapping[str, Array], high: Array, low: Array, centre: Array) -> dict[str, Array]:
        """Move each row on to where its number at one point exceeds that at another by more."""
        places = np.concatenate([high, low])
        points, count = self.points[places], len(high)

        def difference(tried: Mapping[str, Array]) -> Array:
            """Of rows that come in `count` equal parts."""
            found = self.at(tried, points, centred=True) - centre[places]
            own = np.repeat(np.arange(count), len(found) // count)
            every = np.arange(len(found))
            return np.asarray(found[every, own] - found[every, own + count])

        if self._slopes is not None:
            slopes = np.stack([np.subtract(*self._steep(rows, turn, points, count)) for turn in range(count)])
            moved = self.public.at_ends(rows, np.nan_to_num(slopes))
            better = difference(moved) > difference(rows)
            rows = where_rows(better, moved, rows)
        return self.public.swept(dict(rows), np.ones(count), difference)[0]

    def _steep(self, rows: Mapping[str, Array], turn: int, points: Array, count: int) -> list[Array]:
        assert self._slopes is not None
        row = {name: values[turn : turn + 1] for name, values in rows.items()}
        return [self._slopes.at(row, points[place])[0] for place in (turn, turn + count)]


REMEDY = (
    "Give every column of numbers bounds (dp.Domain), narrower ones where it has some; write the density such that it "
    "stays finite (logit_p= instead of p=, pm.logcdf, pm.math.log1mexp); bound every row's log-likelihood by "
    "dp.clamp(model, low, high); or take points away from where it is infinite (dp.truncate)."
)


def no_digits(size: float, n_rows: int, moved: float, remedy: str) -> Problem | None:
    """Say that sums of so many numbers of a size may be rounded by more than a share of what one row moves them by."""
    if size * np.finfo(np.float64).eps * n_rows <= DIGITS * moved:
        return None
    what = "one row may have a log-likelihood so large that floats have no digits left for the others"
    return Problem(where="model", what=what, remedy=remedy)


def _spread(points: Array) -> Array:
    """Return the numbers of some points: those at the ends in each direction, and others evenly."""
    count, width = points.shape
    if count <= SPREAD:
        return np.arange(count)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    scale = np.maximum(np.ptp(points, axis=0), 1e-300)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (64, width))
    directions = np.concatenate([np.eye(width), -np.eye(width), signs])
    ends = np.argmax((points - middle) / scale @ directions.T, axis=0)
    return np.unique(np.concatenate([ends, np.linspace(0, count - 1, SPREAD).astype(int)]))


def best_centre(found: Array) -> dict[int, float]:
    """Return weights of the public rows whose mean lies in the middle of all; none where nothing is gained.

    By linear programs, since what is found once for all states is paid for by each draw.

    Parameters
    ----------
    found : (n_rows, n_points) array
    """
    chosen = np.unique(
        [*range(min(ROUNDS * FARTHEST, len(found))), *np.linspace(0, len(found) - 1, COMPARED, dtype=int)]
    )
    weights, alone = dict[int, float](), float(np.ptp(found, axis=1).max())
    for _ in range(3):  # rows that are far from that mean take part in the next
        least = _least(found[chosen]) * (1 + GAIN)
        if alone <= least:
            return {}
        part = middle([found[chosen].T], least)
        weights = {int(chosen[place]): weight for place, weight in part.items()}
        mean = np.array(list(weights.values())) @ found[list(weights)]
        widths = np.ptp(found - mean, axis=1)
        if widths.max() <= np.ptp(found[chosen] - mean, axis=1).max() * (1 + ROUNDING):
            break
        chosen = np.unique(np.concatenate([chosen, np.argsort(widths)[-COMPARED // 4 :]]))
    return weights if widths.max() < alone * (1 - ROUNDING) else {}


def _least(found: Array) -> float:
    """Return half of how far two rows range from each other: about no centre do both range by less."""
    return max(float(np.ptp(found - one, axis=1).max()) for one in found) / 2


def require_finite(found: Array) -> None:
    """Refuse numbers of public rows at public points that are infinite or NaN."""
    if not np.isfinite(found).all():
        what = "its log-likelihood is infinite or NaN for some rows that there may be, at some points"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=REMEDY)])


def require_informative(range_: float) -> None:
    """Refuse numbers that are the same at all points."""
    if not range_ > 0:
        what = "no row can tell anything about the parameters, or about which candidate is best"
        remedy = "Give other candidates, or a likelihood that depends on a free variable."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])


__all__ = ["CHUNK", "REMEDY", "ROOM", "NearRows", "best_centre", "no_digits", "require_finite", "require_informative"]
