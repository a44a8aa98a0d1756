"""Public rows at which numbers of a row are looked at: the ends of what they may be, and others at random."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping

import numpy as np

from pymc_dp.inspection.rows import Array, Column

RANDOM = 256
"""Rows at random."""
CORNERS = 256
"""Rows at ends of all entries: all of them, or so many."""
EVENLY = 65
"""Values of one number, evenly between its ends."""
FEW = 9
"""The same, of one of several entries."""
MOST_ENTRIES, MOST_WHOLE = 16, 256
"""Entries of a row up to which each takes values in turn: of numbers, and of whole numbers, which have no slopes."""
MOST_ROWS = 4096
"""Rows up to which each value of a whole number is combined with all others; beyond, with some of them."""
MOST_VALUES = 1024
"""Values of a whole number that are looked at."""
SHARPENED = 4
"""Rows with the largest and the least number that are moved on to where it is larger."""
FEW_LEVELS, REPEATED = 64, 8
"""Levels of a public column, up to which a row of each is looked at; and beside how many private values, at most."""
SWEEPS = 3
"""Times that each entry takes all of its values, or fewer where none is better."""


class PublicRows:
    """Rows that could be, by a fixed seed, and rows moved on from these to where a number of theirs is largest.

    Parameters
    ----------
    columns : mapping of str to Column
    inputs : mapping of str to Variable
        A row as the kernel takes it.
    public : collection of str
        Columns whose values are public: these are not moved.

    Attributes
    ----------
    rows : dict of str to array
        An array for each column, flat like the kernel's.
    movable : list of str
        Columns of numbers that are moved to their ends at once, where not all of these are looked at anyway.
    width : int
        Entries of these.
    """

    def __init__(
        self, columns: Mapping[str, Column], inputs: Mapping[str, object], public: Collection[str] = ()
    ) -> None:
        self.rows = simulated_rows(columns, inputs)
        private = {name: one for name, one in columns.items() if name not in public}
        self._values = values_to_sweep(private, inputs)
        self._columns = private
        moved = [
            name
            for name, one in private.items()
            if not one.integer and (one.norm is not None or all(np.isfinite(end).all() for end in one.ends))
        ]
        width = sum(private[name].width for name in moved)
        many = width and (2**width > CORNERS or any(private[name].norm is not None for name in moved))
        self.movable, self.width = (moved, width) if many else ([], 0)

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))

    def hold(self, public: Mapping[str, Array]) -> None:
        """Take public values from rows that there are, (n_rows, ...) arrays; only private values are simulated.

        Of each public column rows at both ends are among them, and one of each level where there are few: a level that
        few rows have may tell the most. The others are chosen at random.
        """
        n_rows, count = len(next(iter(public.values()), ())), len(self)
        if n_rows:
            rng = np.random.default_rng(count)
            places, own = rng.integers(0, n_rows, count), _telling(public)
            own = own if len(own) <= count // 2 else rng.choice(own, count // 2, replace=False)
            own = np.tile(own, min(REPEATED, count // 2 // max(len(own), 1)))
            places[rng.permutation(count)[: len(own)]] = own
            self.rows |= {name: values[places] for name, values in public.items()}

    def thin(self, most: int) -> None:
        """Keep so many rows at most, by a fixed seed."""
        if len(self) > most:
            places = np.sort(np.random.default_rng(most).permutation(len(self))[:most])
            self.rows = {name: values[places] for name, values in self.rows.items()}

    def farthest(self, found: Array) -> tuple[dict[str, Array], Array]:
        """Return the rows with the least and the largest of some numbers, and the sign of each."""
        order = np.argsort(found)
        places, signs = np.concatenate([order[:SHARPENED], order[-SHARPENED:]]), np.repeat([-1.0, 1.0], SHARPENED)
        return {name: values[places] for name, values in self.rows.items()}, signs[-len(places) :]

    def swept(
        self, rows: Mapping[str, Array], signs: Array, number: Callable[[Mapping[str, Array]], Array]
    ) -> tuple[dict[str, Array], Array]:
        """Let each entry take each of its values, and keep what is best; return the rows, and all numbers seen.

        The largest number may lie between the ends of what a row may be, or at a combination that no public row has.

        Parameters
        ----------
        rows : mapping of str to (n_rows, ...) array
        signs : (n_rows,) array
            Of the numbers that are looked for: 1 for large ones, -1 for small ones.
        number : callable
            From rows, as many of each of these in a row, to a number of each.
        """
        held, count, seen = dict(rows), len(signs), [np.zeros(0)]
        times = 1 + sum(len(values) for *_, values in self._values)
        for _ in range(SWEEPS if self._values else 0):
            tried = {name: np.repeat(one, times, axis=0) for name, one in held.items()}
            start, parts = 1, list[slice]()  # the first is a row as it is
            for name, entry, values in self._values:
                parts.append(slice(start, start + len(values)))
                tried[name].reshape(count, times, -1)[:, parts[-1], entry] = values
                start += len(values)
            found = number(tried)
            seen.append(found)
            better = signs[:, None] * np.nan_to_num(found).reshape(count, times)
            if (better.max(axis=1) <= better[:, 0]).all():
                break
            moved = {name: np.array(one) for name, one in held.items()}
            for (name, entry, values), part in zip(self._values, parts, strict=True):
                best = better[:, part].argmax(axis=1)
                gains = better[:, part].max(axis=1) > better[:, 0]
                own = moved[name].reshape(count, -1)
                own[:, entry] = np.where(gains, values[best], own[:, entry])
            together, alone = number(moved), np.arange(count) * times + better.argmax(axis=1)
            seen.append(together)
            all_at_once = signs * np.nan_to_num(together) >= better.max(axis=1)
            held = where_rows(all_at_once, moved, {name: one[alone] for name, one in tried.items()})
        return held, np.concatenate(seen)

    def at_ends(self, rows: Mapping[str, Array], slopes: Array) -> dict[str, Array]:
        """Return rows where a linear function of their movable entries is largest, given its (n_rows, width) slopes."""
        found, start = dict(rows), 0
        for name in self.movable:
            column = self._columns[name]
            own = slopes[:, start : start + column.width]
            start += column.width
            if column.norm is not None:
                length = np.linalg.norm(own, axis=1, keepdims=True)
                end = own * (column.norm / np.where(length > 0, length, 1.0))
            else:
                low, high = (np.ravel(side) for side in column.ends)
                end = np.where(own > 0, high, low)
            found[name] = np.ascontiguousarray(end.reshape(rows[name].shape))
        return found


def where_rows(flags: Array, these: Mapping[str, Array], others: Mapping[str, Array]) -> dict[str, Array]:
    """Return these rows where flags are set, and the others elsewhere."""
    return {name: np.where(flags.reshape(-1, *[1] * (one.ndim - 1)), one, others[name]) for name, one in these.items()}


def simulated_rows(columns: Mapping[str, Column], inputs: Mapping[str, object]) -> dict[str, Array]:
    """Return rows at corners and at random, by a fixed seed: an array for each column, flat like the kernel's."""
    rng = np.random.default_rng(20260)
    levels = {name: own for name, column in columns.items() if len(own := _whole(column)) > 2}
    plain = {name: column for name, column in columns.items() if name not in levels}
    base = _plain(plain, rng)
    count = len(next(iter(base.values()))) if base else 1
    for name, own in levels.items():
        if count * len(own) <= MOST_ROWS:
            base = {other: np.repeat(held, len(own), axis=0) for other, held in base.items()}
            base[name], count = np.tile(own, count), count * len(own)
        else:
            times = max(1, -(-len(own) // count))
            base = {other: np.tile(held, (times, *[1] * (held.ndim - 1))) for other, held in base.items()}
            count *= times
            base[name] = own[(np.arange(count) + rng.integers(len(own))) % len(own)]
    return {name: _like(base[name], inputs[name]) for name in columns}


def values_to_sweep(columns: Mapping[str, Column], inputs: Mapping[str, object]) -> list[tuple[str, int, Array]]:
    """Return the values that each entry of a row takes in turn, with its column and its place there.

    Rows with a norm, and those of more than `MOST_ENTRIES` entries, are moved along their slopes instead.
    """
    found = []
    for name, column in columns.items():
        if column.norm is not None or column.width > (MOST_WHOLE if column.integer else MOST_ENTRIES):
            continue
        for entry, (low, high) in enumerate(
            zip(*(np.clip(np.ravel(end), -1e3, 1e3) for end in column.ends), strict=True)
        ):
            if column.integer and not column.row_shape:
                values = _whole(column)
            elif column.integer:
                values = np.unique(np.rint(np.linspace(low, high, FEW if column.width <= MOST_ENTRIES else 2)))
            else:
                values = np.linspace(low, high, EVENLY if column.width == 1 else FEW)
            if len(values):
                found.append((name, entry, values.astype(inputs[name].type.dtype)))  # type: ignore[attr-defined]
    return found


def _whole(column: Column) -> Array:
    """Return the values of a column of single whole numbers; evenly spaced ones where there are many, else none."""
    if len(column.levels):
        return np.asarray(column.levels, dtype=np.float64)
    if not column.integer or column.row_shape or not all(np.isfinite(end) for end in column.ends):
        return np.zeros(0)
    low, high = (float(end) for end in column.ends)
    return np.unique(np.rint(np.linspace(low, high, int(min(high - low + 1, MOST_VALUES)))))


def _like(values: Array, var: object) -> Array:
    dtype, shape = var.type.dtype, var.type.shape  # type: ignore[attr-defined]
    return np.ascontiguousarray(values.reshape(len(values), *shape)).astype(dtype)


def _plain(columns: Mapping[str, Column], rng: np.random.Generator) -> dict[str, Array]:
    """Return rows of columns that are no index, (n_rows, width)."""
    if not columns:
        return {}
    ends = [column.ends for column in columns.values()]
    low, high = (np.concatenate([np.ravel(pair[side]).astype(np.float64) for pair in ends]) for side in (0, 1))
    whole = np.concatenate([np.full(column.width, column.integer) for column in columns.values()])
    width = len(low)
    loose = ~np.isfinite(low) | ~np.isfinite(high)
    low, high = np.where(loose, -1e3, low), np.where(loose, 1e3, high)
    if 2**width <= CORNERS:
        sides = np.array(list(itertools.product([0.0, 1.0], repeat=width)))
    else:
        sides = rng.integers(0, 2, (CORNERS, width)).astype(np.float64)
    shares = np.concatenate([sides, rng.random((RANDOM, width))])
    if width <= 2:
        evenly = np.linspace(0, 1, EVENLY)
        shares = np.concatenate([shares, *[along(evenly, place, width) for place in range(width)]])
    values = low + (high - low) * shares
    anything = rng.normal(size=values.shape) * 10.0 ** rng.uniform(-2, 3, values.shape)
    values = np.where(loose, np.where(rng.random(values.shape) < 0.1, 0.0, anything), values)
    values = np.where(whole, np.rint(values), values)
    edges = np.cumsum([0, *(column.width for column in columns.values())])
    found = {}
    for (name, column), start, stop in zip(columns.items(), edges[:-1], edges[1:], strict=True):
        found[name] = _within(column, values[:, start:stop], rng)
    return found


def along(evenly: Array, place: int, width: int) -> Array:
    """Return evenly spaced shares of one entry, combined with both ends of the others."""
    others = itertools.product([0.0, 1.0], repeat=width - 1)
    return np.array([np.insert(np.array(other), place, share) for other in others for share in evenly])


def _within(column: Column, values: Array, rng: np.random.Generator) -> Array:
    """Return rows at the largest norm that a column allows, in any direction; as they are where it has none."""
    if column.norm is None:
        return values
    directions = rng.normal(size=values.shape)
    return directions * (column.norm / np.linalg.norm(directions, axis=1, keepdims=True))


def _telling(public: Mapping[str, Array]) -> Array:
    """Return places of rows with the ends of each public column, and with each level of one that has few."""
    found: list[int] = []
    for values in public.values():
        flat = np.reshape(values, (len(values), -1))
        for entry in range(flat.shape[1]):
            column = flat[:, entry]
            found += [int(column.argmin()), int(column.argmax())]
            if entry < MOST_ENTRIES:
                levels, first = np.unique(column, return_index=True)
                found += first.tolist() if len(levels) <= FEW_LEVELS else []
    return np.unique(np.array(found, dtype=np.int64))


__all__ = ["PublicRows", "along", "where_rows"]
