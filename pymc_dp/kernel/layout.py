"""How far neighbours move public linear functions of exact sums: what a row adds lies between few known corners."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple, final

import numpy as np

from pymc_dp.kernel import draw
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import ApproximateEvent, BoundedRangeEvent, Event
from pymc_dp.kernel.arguments import keep, positive, whole, word
from pymc_dp.kernel.choices import accept_event
from pymc_dp.kernel.corner_ranges import moves_of, range_of, range_of_each
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.payer import Array
from pymc_dp.kernel.readings import Counts, Numbers, Places, Powers
from pymc_dp.kernel.shapes import GRID, Move
from pymc_dp.kernel.sums import ORDERS
from pymc_dp.kernel.tallies import Tally

TANGENTS = 16
"""Of an arc of squares, which lies within the polygon of so many tangents and of its chord."""
MOST_NUMBERS = 6
"""Of a row that are read apart: their corners are those of a box."""
COARSE = 24
"""Bits of the largest move of a sum that noise is added to."""
SOFT = 39
"""Units of a soft maximum are no finer than 2^-39 nats."""
SHARE_BITS = 40
"""Shares are in units of 2^-40."""
NEAREST = 2.0**13
"""Nats below which lies what a row adds to a choice of its own."""
MOST_OF_A_ROW = 2.0**61
MOST_PAIRS = 2**16
"""Of corners that are compared one by one; where there are more, each is compared with one centre."""
REMEMBERED = 16
"""Ranges of the last public arrays, of which a price is asked first, and then paid."""
LARGEST = 2.0**900
"""Of an exponent's coefficient: above it floats could become infinite."""


class Corners(NamedTuple):
    """What one row adds to a cell: within the hull of `at`, (n, size), give or take `room` in each number."""

    at: Array
    room: Array


def corners(tally: Tally) -> Corners:
    """Return what one row adds at most; refuse readings whose corners are not known."""
    reading = tally.reading
    if type(reading) is Places or type(reading) is Counts:
        most, start = (reading.most, not reading.rest) if type(reading) is Counts else (1, False)
        at = most * np.eye(reading.size + reading.second)[:, int(reading.second) :]
        at = np.concatenate([at, np.zeros((int(start), reading.size))])
    elif type(reading) is Powers:
        at = _of_powers(reading)
    elif type(reading) is Numbers and reading.together == "curve":
        at = _arc(-GRID, GRID) - [0.0, GRID / 2]
    elif type(reading) is Numbers and reading.together == "apart" and len(reading.reaches) <= MOST_NUMBERS:
        at = np.array(list(product(*((-float(reach), float(reach)) for reach in reading.reaches))))
    else:
        what = "places, counts, powers, or few numbers"
        raise ArgumentError(f"Choices by sums are of {what}, got a {type(reading).__name__}.")
    room = np.zeros(at.shape[1])
    if (type(reading) is Powers and reading.powers == (1, 2)) or (
        type(reading) is Numbers and reading.together == "curve"
    ):
        room[1] = 1.0  # squares are rounded, and so are corners
    if tally.sized:
        at, room = np.insert(at, 0, 1.0, axis=1), np.insert(room, 0, 0.0)
    return Corners(at, room)


def _of_powers(reading: Powers) -> Array:
    """Return ends of a number, or of its square; of both together those of an arc."""
    if reading.powers == (1, 2):
        return _arc(*reading.reach) - [0.0, float(reading.offset)]
    low, high = reading.ends if reading.powers == (2,) else reading.reach
    return np.array([[float(low)], [float(high)]])


def _arc(low: int, high: int) -> Array:
    """Return corners of (k, k² / GRID), low <= k <= high: its ends, and where tangents at neighbouring places cross."""
    touch = [low + (high - low) * place // TANGENTS for place in range(TANGENTS + 1)]
    return np.array([((a + b) / 2, a * b / GRID) for a, b in [(low, low), *pairwise(touch), (high, high)]])


def far_pairs(at: Array) -> Array:
    """Return pairs of corners, (n, 2): between their differences, up to the sign, lie those of any two.

    In a plane they are the corners of the hull of all differences, which whole numbers find without rounding; in more
    numbers all pairs, and none if these are more than `MOST_PAIRS`.

    Examples
    --------
    >>> far_pairs(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).tolist()
    [[0, 3], [1, 2]]
    """
    held = at[:, np.ptp(at, axis=0) > 0]
    if held.shape[1] == 0:
        return np.zeros((1, 2), dtype=np.int64)
    if held.shape[1] == 1:
        return np.array([[held.argmin(), held.argmax()]])
    if len(at) * (len(at) - 1) // 2 > MOST_PAIRS:
        return np.zeros((0, 2), dtype=np.int64)
    every = np.stack(np.triu_indices(len(at), 1), axis=1)
    return every if held.shape[1] > 2 else _far_in_a_plane(held, every)


def _far_in_a_plane(held: Array, every: Array) -> Array:
    """Return pairs whose differences are corners of the hull of all: of one half of it, as the other mirrors it."""
    exact = [[Fraction(number) for number in one] for one in held.tolist()]
    unit = max(number.denominator for one in exact for number in one)  # powers of 2
    places = [[int(number * unit) for number in one] for one in exact]
    moves = dict[tuple[int, int], tuple[int, int]]()
    for one, two in every.tolist():
        x, y = places[one][0] - places[two][0], places[one][1] - places[two][1]
        moves[x, y] = moves[-x, -y] = (one, two)
    hull: list[tuple[int, int]] = []
    for move in sorted(moves):
        while len(hull) > 1 and not _turns_left(hull[-2], hull[-1], move):
            hull.pop()
        hull.append(move)
    return np.unique([moves[move] for move in hull], axis=0)


def _turns_left(one: tuple[int, int], two: tuple[int, int], three: tuple[int, int]) -> bool:
    return (two[0] - one[0]) * (three[1] - one[1]) > (two[1] - one[1]) * (three[0] - one[0])


class Block(NamedTuple):
    """Sums of one tally.

    Attributes
    ----------
    cells, size : int
    corners : Corners
        Of one cell.
    groups : (n_groups, n) array
        Cells that a row may move among; in a group some may stand several times.
    absent : (n_groups,) array of bool
        Whether it may also be in none.
    pairs : (n_pairs, 2) array
        Of corners: between their differences, up to the sign, lie those of any two. None where there are too many.
    """

    cells: int
    size: int
    corners: Corners
    groups: Array
    absent: Array
    pairs: Array

    def at_corners(self, own: Array, at: Array | None = None) -> Array:
        """Return what (n, cells * size) linear functions are at each corner of each cell: (n, cells, n_corners)."""
        at = self.corners.at if at is None else at
        return np.asarray((own.reshape(-1, self.size) @ at.T).reshape(len(own), self.cells, len(at)))

    def of_groups(self, found: Array, *, together: bool) -> Array:
        """Return numbers of the corners of each group, (n, n_groups, n_corners), of (n, cells, n) numbers.

        Last is the 0 of a row in no cell, where there is one. If not `together`, each corner is a group.
        """
        if not together:
            return found.reshape(len(found), -1, 1)
        own = found[:, self.groups].reshape(len(found), len(self.groups), -1)
        if not self.absent.any():
            return own
        return np.concatenate([own, np.where(self.absent, 0.0, own[:, :, 0])[:, :, None]], axis=2)


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """Sums of some tallies of the same rows, one after the other, cell by cell; public.

    Parameters
    ----------
    tallies : sequence of Tally
        Of places, counts, powers, or few numbers; without weights.
    neighbours : {"replace", "add_remove"}
    n_rows : int, optional
        Public under replace alone.

    Attributes
    ----------
    size : int
        How many sums there are.
    finer : int
        Exponents are in units of 2^-(48 + finer) nats.
    """

    tallies: tuple[Tally, ...]
    neighbours: str
    n_rows: int | None = None

    def __post_init__(self) -> None:
        neighbours = word("neighbours", self.neighbours, ("replace", "add_remove"))
        n_rows = None if self.n_rows is None else whole("n_rows", self.n_rows, 0, MOST_ROWS)
        if (neighbours == "replace") != (n_rows is not None):
            raise ArgumentError("The number of rows is public under replace, and under replace alone.")
        keep(self, tallies=tuple(self.tallies), neighbours=neighbours, n_rows=n_rows)
        if not self.tallies or any(type(tally) is not Tally for tally in self.tallies):
            raise ArgumentError("A layout needs a tally, and each must be a Tally.")
        if self.size > 2**20:
            raise ArgumentError("There are more than 2^20 sums.")
        if any(tally.weighted or tally.per_unit is not None for tally in self.tallies):
            raise ArgumentError("Choices by sums are of rows that count once, and not per unit of a metric.")
        self._blocks  # noqa: B018

    @cached_property
    def size(self) -> int:
        """How many sums there are."""
        return sum(tally.cells.count * (tally.sized + tally.reading.size) for tally in self.tallies)

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        return tuple(map(self._block, self.tallies))

    @cached_property
    def finer(self) -> int:
        """By how many bits exponents are finer than 2^-48 nats: what rounds all coefficients is below 2^-25 nats."""
        most = MOST_ROWS if self.n_rows is None else max(self.n_rows, 1)
        largest = max(int(np.abs(block.corners.at).max(initial=1.0)) for block in self._blocks)
        return max(0, (most * largest * max(self.size, 1)).bit_length() - draw.SHIFT // 2)

    def _block(self, tally: Tally) -> Block:
        cells, found = tally.cells, corners(tally)
        shape = [len(key.levels) for key in cells.keys]
        lookup = np.arange(math.prod(shape)) if cells.lookup is None else cells.lookup
        public = [place for place, key in enumerate(cells.keys) if key.public and self.neighbours == "replace"]
        group = np.zeros(len(lookup), dtype=np.int64)
        if public:
            levels = np.unravel_index(np.arange(len(lookup)), shape)
            group = np.ravel_multi_index([levels[place] for place in public], [shape[place] for place in public])
        held = [np.unique(lookup[group == one]) for one in np.unique(group)]
        held = [one for one in held if one[-1] >= 0]
        if not held:
            raise ArgumentError("A tally needs a cell that a row may be in.")
        most = max(int((one >= 0).sum()) for one in held)
        groups = np.stack([np.resize(one[one >= 0], most) for one in held])
        absent = np.array([one[0] < 0 for one in held])
        return Block(cells.count, found.at.shape[1], found, groups, absent, far_pairs(found.at))

    def exponents(self, coefficients: Any, beta: float) -> Array:
        """Return (..., size) coefficients times beta as whole numbers, in units of 2^-(48 + finer) nats; as floats."""
        return self._whole(coefficients, beta, self.finer)

    def exponents_of_rows(self, coefficients: Any, beta: float, log_weights: Array) -> tuple[Array, int]:
        """Return exponents of choices that each row makes by itself, and by how many bits they are finer than 2^-48.

        Parameters
        ----------
        coefficients : (n, size) array
        beta : float
        log_weights : (n,) array
            Public, as `given_candidates` returns them.

        Notes
        -----
        They are multiples of 2^-(48 + bits) nats, in the units of `exponents`: as fine as what a row adds, and public
        log weights, stay below 2^61 each.
        """
        possible = log_weights[log_weights > -np.inf].tolist()
        span = max(possible) - min(possible)
        largest = max(self._size(self._whole(coefficients, beta, 0)), span * 2.0**draw.SHIFT, 1.0)
        for bits in range(min(self.finer, max(62 - math.frexp(largest)[1], 0)), -1, -1):
            found = self._whole(coefficients, beta, bits)
            if max(self._size(found), span * 2.0 ** (draw.SHIFT + bits)) < MOST_OF_A_ROW:
                return found * 2.0 ** (self.finer - bits), bits
        raise ArgumentError(
            f"What a row adds, and differences of public, must be below {NEAREST:g} for a choice of each."
        )

    def _size(self, exponents: Array) -> float:
        """Return a bound of every product and sum of products of which what one row adds to an exponent is made."""
        total = 0.0
        for block, own in self.parts(np.abs(exponents)):
            held = own.reshape(len(own), block.cells, block.size)
            ends = np.einsum("kcj,vj->kcv", held, np.abs(block.corners.at)).max(axis=2, initial=0.0)
            total += float((ends + held @ block.corners.room).max(initial=0.0))
        return total * (1 + 2.0**-40)

    def _whole(self, coefficients: Any, beta: float, bits: int) -> Array:
        (beta,) = positive(beta=beta)
        given = numbers(coefficients)
        if given.ndim < 2 or given.shape[-1] != self.size:
            raise ArgumentError(f"Coefficients must be (n, {self.size}) numbers, one for each sum.")
        with np.errstate(all="ignore"):
            found = np.rint(given * beta * 2.0 ** (draw.SHIFT + bits))
        if not (np.abs(found) < LARGEST).all():
            raise ArgumentError("Coefficients must be finite, and not too large for floats.")
        return found

    def nats(self, units: float) -> Fraction:
        """Return what so many units are in nats."""
        return Fraction(units) / 2 ** (draw.SHIFT + self.finer)

    def range(self, exponents: Array) -> float:
        """Return by how much neighbours move the exponents of candidates at most, as a range over these; in units.

        Several tallies are of the same row: their ranges add up.
        """
        return self._total(exponents, replace=self.neighbours == "replace")

    def owners(self, owners: Any, n: int) -> Array:
        """Return a copy of the elements that sums are of, (size,), each below n, -1 for none: one for each cell."""
        try:
            found = np.array(owners)
        except (TypeError, ValueError):
            found = np.array(None)
        if found.shape != (self.size,) or found.dtype.kind not in "iuf" or not (found == np.rint(found)).all():
            raise ArgumentError(f"owners must be {self.size} whole numbers, one for each sum.")
        if not ((found >= -1) & (found < n)).all():
            raise ArgumentError(f"owners must be elements below {n}, or -1.")
        for block, own in self.parts(found[None]):
            cells = own.reshape(block.cells, block.size)
            if (cells != cells[:, :1]).any():
                raise ArgumentError("All sums of a cell must be of one element.")
        return found.astype(np.int64)

    def range_each(self, exponents: Array, owners: Array, possible: Array) -> float:
        """Return a bound of Σ_e of the range over k of what neighbours move exponent (e, k) by; in units.

        Parameters
        ----------
        exponents : (K, size) array
        owners : (size,) array
            The element that each sum counts for, -1 for none.
        possible : (n, K) array of bool
            Which candidates of each element count, one at least.
        """
        return self._each(exponents, owners, possible)[0]

    def _each(self, exponents: Array, owners: Array, possible: Array) -> tuple[float, int]:
        """Return `range_each`, and how many elements a row moves at most."""
        if not possible.all():  # others are copies of one that counts
            places = np.where(possible, np.arange(possible.shape[1]), possible.argmax(axis=1)[:, None])
            exponents = np.take_along_axis(exponents, places[owners].T, axis=0)
        exponents = np.where(owners >= 0, exponents, 0.0)
        replace = self.neighbours == "replace"
        found = [range_of_each(block, own, replace=replace) for block, own in self.parts(exponents)]
        elements = min(sum(one.elements for one in found), len(possible))
        return sum(one.wide for one in found) * (1 + 2.0**-40), elements

    def largest_move(self, exponents: Array) -> float:
        """Return by how much neighbours move one of the exponents at most, (n, size); in units."""
        replace = self.neighbours == "replace"
        found = [moves_of(block, own, replace=replace) for block, own in self.parts(exponents)]
        return float(np.sum(found, axis=0).max(initial=0.0)) * (1 + 2.0**-40)

    def farthest(self, exponents: Array) -> float:
        """Return the largest size of what one row adds to one exponent, (1, size); in units."""
        return self._total(np.concatenate([np.zeros_like(exponents), exponents]), replace=False)

    def _total(self, exponents: Array, *, replace: bool) -> float:
        found = sum(range_of(block, own, replace=replace) for block, own in self.parts(exponents))
        return float(found) * (1 + 2.0**-40)

    def parts(self, linear: Array) -> list[tuple[Block, Array]]:
        """Return the coefficients of each tally, (n, n_sums): of the same row, so that what they move adds up."""
        edges = np.cumsum([0, *(block.cells * block.size for block in self._blocks)])
        return [(block, linear[:, a:b]) for block, (a, b) in zip(self._blocks, pairwise(edges), strict=True)]

    def least_and_most(self, linear: Array) -> tuple[Array, Array]:
        """Return bounds of what one row adds to linear functions of the sums, (n,) each: but for `room`, and floats."""
        least, most = np.zeros((2, len(linear)))
        for block, own in self.parts(linear):
            held = block.at_corners(own)
            least, most = least + held.min(axis=(1, 2)).clip(max=0), most + held.max(axis=(1, 2)).clip(min=0)
        return least, most

    def _remembered[T](self, make: Callable[..., T], name: Any, *of: Any) -> T:
        """Return what `make` makes of public arrays and numbers; of the last few it is remembered, by their digests.

        It is given plain copies: what is remembered is that of the bytes that were looked at.
        """
        held = [np.array(one) if isinstance(one, np.ndarray) else one for one in of]
        key = (name, *(_digest(one) if isinstance(one, np.ndarray) else one for one in held))
        found: T | None = self._memory.get(key)
        if found is None:
            found = self._memory[key] = make(*held)
            for old in list(self._memory)[:-REMEMBERED]:
                self._memory.pop(old, None)
        return found

    @cached_property
    def _memory(self) -> dict[Any, Any]:
        return {}

    def choice(self, exponents: Array, candidates: int | None = None) -> BoundedRangeEvent:
        """Return what a choice costs: the range of its exponents, and the slack of whole weights."""
        wide = self.nats(self._remembered(self.range, "range", exponents))
        return BoundedRangeEvent(eta=float_up(wide + draw.slack(len(exponents) if candidates is None else candidates)))

    def choices(self, exponents: Array, owners: Array, possible: Array) -> BoundedRangeEvent:
        """Return what independent choices cost together, arguments as of `range_each`.

        The slack is that of the choices which a row moves: of all others no weight changes.
        """
        wide, moved = self._remembered(self._each, "each", exponents, owners, possible)
        slack = max(moved, 1) * draw.slack(len(exponents))
        return BoundedRangeEvent(eta=float_up(self.nats(wide) + slack))

    def choice_for_each(self, coefficients: Any, *, beta: float = 1.0, public: Any = None) -> BoundedRangeEvent:
        """Return what a choice of each row costs: that of one; arguments as of `ByTotals.choose_for_each`."""
        given, log_weights = given_candidates(coefficients, public)
        exponents, _ = self.exponents_of_rows(given, beta, log_weights)
        return self.choice(exponents[log_weights > -np.inf], len(given))

    def soft_max_move(self, exponents: Array) -> tuple[int, int]:
        """Return by how many bits units of a soft maximum are coarser than exponents, and what it moves by in these.

        Neighbours move an exponent by about 2^24 units, or by few of 2^-39 nats, whichever is more: floats of a soft
        maximum err by less than a unit.
        """
        moved = math.ceil(self.largest_move(exponents))
        coarser = max(moved.bit_length() - COARSE, self.finer + draw.SHIFT - SOFT, 0)
        return coarser, (moved >> coarser) + 4

    def soft_max(self, exponents: Array, noise: str, scale: float) -> Event:
        """Return what a soft maximum costs; refuse noise that cannot be drawn."""
        return _noised(self.soft_max_move(exponents)[1], word("noise", noise, ORDERS), scale)

    def shares_move(self, exponents: Array) -> int:
        """Return by how much neighbours move all shares together (L1), in units of 2^-40, each rounded down.

        Notes
        -----
        **Guarantee.** Let p and q be the shares on two neighbours, and A the candidates of which p > q. By the range η
        of log(p / q) the odds of p(A) and q(A) differ by a factor of e^η at most. Of all numbers whose logits are η
        apart at most, p(A) - q(A) is largest for σ(η/2) - σ(-η/2) = tanh(η/4). So the L1 distance, 2 (p(A) - q(A)), is
        at most 2 tanh(η/4). Rounding down moves each share by less than a unit, and floats move all of them together by
        less than half a unit on each table.
        """
        half = math.tanh(float_up(self.nats(self.range(exponents))) / 4) * (1 + 2.0**-40)
        return math.ceil(2 * min(half, 1.0) * 2**SHARE_BITS) + len(exponents) + 1

    def shares(self, exponents: Array, scale: float) -> Event:
        """Return what noised shares cost; refuse noise that cannot be drawn."""
        return _noised(self.shares_move(exponents), "laplace", scale, several=len(exponents) > 1)

    def accepting(self, exponents: Array, public: float) -> ApproximateEvent:
        """Return what Metropolis's own bit costs; see `Choices.accept`. Exponents are cut to multiples of 2^-48."""
        cut = Fraction(1, 2**draw.SHIFT)
        pair = np.concatenate([np.zeros_like(exponents), exponents])
        fall = None
        if self.n_rows is not None:
            fall = abs(Fraction(public)) + self.n_rows * self.nats(self.farthest(exponents)) + 2 * cut
        return accept_event(self.nats(self.range(pair)) + cut, fall)


def _noised(moved: int, kind: str, scale: float, *, several: bool = False) -> Event:
    (scale,) = positive(scale=scale)
    draw.check_noise(kind, scale * moved)
    move = Move(l1=moved, l2_squared=moved**2, shifts=None if several else (moved,))
    return move.event(kind, scale * moved)


def _digest(array: Array) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest()


def numbers(values: Any) -> Array:
    """Return a copy of an array of real numbers, as floats; refuse anything else."""
    try:
        found = np.array(values)
    except (TypeError, ValueError):
        found = np.array(None)
    if found.dtype.kind not in "biuf":
        raise ArgumentError("Coefficients must be an array of real numbers.")
    return found.astype(np.float64)


def given_candidates(coefficients: Any, public: Any) -> tuple[Array, Array]:
    """Check candidates: return coefficients, 0 for what is excluded, and public log weights."""
    given = numbers(coefficients)
    if given.ndim != 2 or not len(given):
        raise ArgumentError("Coefficients must have a row for each candidate.")
    log_weights = draw.log_weights(public, given.shape[:-1])
    draw.slack(given.shape[-2])  # refuses too many
    given[log_weights == -np.inf] = 0.0
    return given, log_weights
