"""The augmented rows behind released tables: drawn from the likelihood, and kept where the release agrees with them.

Proposals for parameters with new rows at once: they move far where the noise is wide, and updates in turn do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pymc_dp.errors import ArgumentError
from pymc_dp.families.family import drawn_levels
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.sums import row_integers
from pymc_dp.step_methods.augmentation.tables import Table, parent_of
from pymc_dp.step_methods.base import Point

MOST_TRIES = 1000
"""To start with rows whose sums are all finite."""
Parameters = Mapping[str, Sequence[Array]]
"""Of the cells of each table."""


class Augmented(NamedTuple):
    """Rows of several tables; one entry per table in each tuple.

    Attributes
    ----------
    levels : (n_rows,) integer array
        Private level of each row; 0 where there is none.
    cells : tuple of (n_rows,) integer arrays
    terms : tuple of arrays
        What each row adds to the exact, unclamped sums: (n_rows,) levels, or (n_rows, n_sums).
    places, steps : (n_rows, n_entries) int64 arrays
        Which released numbers of all tables a row adds to, and how much, in grid steps.
    """

    levels: Array
    cells: tuple[Array, ...]
    terms: tuple[Array, ...]
    places: Array
    steps: Array

    @property
    def finite(self) -> Array:
        """Whether the likelihood of a row can be computed from its sums in floats: (n_rows,) booleans."""
        ones = np.ones(len(self.places), dtype=bool)
        for terms in self.terms:
            ones &= np.isfinite(terms).reshape(len(ones), -1).all(axis=-1)
        return ones

    def where(self, accepted: Array, other: Augmented) -> Augmented:
        """Return these rows where they were accepted, and others elsewhere."""

        def choose(new: Array, old: Array) -> Array:
            return np.where(accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return Augmented(
            levels=choose(self.levels, other.levels),
            cells=tuple(map(choose, self.cells, other.cells)),
            terms=tuple(map(choose, self.terms, other.terms)),
            places=choose(self.places, other.places),
            steps=choose(self.steps, other.steps),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowModel:
    """How rows that several tables see at once come about, given the parameters of their likelihoods.

    A row's public levels are fixed. Where it has private ones, a level is drawn first, from probabilities of its public
    levels with a flat Dirichlet prior: all ways to split the rows among the levels are then equally probable. Tables
    whose cells are levels of another table's variable take them from there.

    Attributes
    ----------
    tables : tuple of Table
        Those that others take their cells from come first.
    parents : tuple of int or None
        Place of the table that each takes its cells from.
    """

    tables: tuple[Table, ...]
    parents: tuple[int | None, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.tables[0].groups)

    @property
    def offsets(self) -> Array:
        """Place of each table's first number among those of all tables."""
        return np.cumsum([0, *[table.released.size for table in self.tables]])

    @property
    def scales(self) -> Array:
        """Scale of the noise of every released number."""
        return np.concatenate([np.tile(table.scales, table.n_cells) for table in self.tables])

    def draw_levels(self, rng: np.random.Generator, counts: Array) -> Array:
        """Draw private levels, given how many rows of each group are at each of them: (n_rows,) integers."""
        if counts.shape[1] == 1:
            return np.zeros(self.n_rows, dtype=np.int64)
        weights = rng.standard_gamma(1.0 + counts)
        weights /= weights.sum(axis=1, keepdims=True)
        return drawn_levels(rng, weights[self.tables[0].groups]).astype(np.int64)

    def draw(self, rng: np.random.Generator, parameters: Parameters, levels: Array) -> Augmented:
        """Draw every row anew, at given private levels."""
        cells: list[Array] = []
        values: list[Array] = []
        for table, parent in zip(self.tables, self.parents, strict=True):
            cells.append(table.cells[table.groups, levels] if parent is None else values[parent].astype(np.int64))
            given = [item[cells[-1]] for item in parameters[table.name]]
            with np.errstate(all="ignore"):  # rows without finite sums are never accepted
                values.append(np.asarray(table.family.draw(rng, *given), dtype=np.float64))
        return self._added_up(levels, cells, values)

    def _added_up(self, levels: Array, cells: Sequence[Array], values: Sequence[Array]) -> Augmented:
        terms, places, steps = [], [], []
        for table, offset, cell, value in zip(self.tables, self.offsets, cells, values, strict=False):
            column, step = _entries(table, value)
            places.append(offset + cell[:, None] * table.width + column)
            steps.append(step)
            terms.append(table.statistic.of_rows(value))
        return Augmented(
            levels=levels,
            cells=tuple(cells),
            terms=tuple(terms),
            places=np.concatenate(places, axis=1),
            steps=np.concatenate(steps, axis=1),
        )

    def level_counts(self, rows: Augmented) -> Array:
        """Count rows by public levels and private level: (n_groups, n_levels)."""
        root = self.tables[0]
        return np.bincount(rows.cells[0], minlength=root.n_cells)[root.cells]


def _entries(table: Table, value: Array) -> tuple[Array, Array]:
    """Return the columns of a table that each row adds to, and how much: (n_rows, n_entries) each."""
    if isinstance(table.statistic, LevelCounts):
        column = value.astype(np.int64)[:, None] - table.dropped
        return np.maximum(column, 0), (column >= 0).astype(np.int64)
    step = row_integers(table.statistic, value)
    if table.sized:
        step = np.concatenate([np.ones((len(value), 1), dtype=np.int64), step], axis=1)
    return np.broadcast_to(np.arange(step.shape[1]), step.shape), step


class AugmentedRows:
    """The current rows of tables that see the same ones, and the noise that they leave.

    Parameters
    ----------
    model : RowModel

    References
    ----------
    Ju, Awan, Gong, Rao (2022), algorithm 1, doi 10.48550/arXiv.2206.00710.
    """

    def __init__(self, model: RowModel) -> None:
        self.model = model
        self.scales = model.scales
        self.fixed = not any(parent is not None for parent in model.parents)  # cells follow from private levels alone
        self.rows: Augmented | None = None

    def start(self, rng: np.random.Generator, parameters: Parameters) -> None:
        """Draw the first rows from the likelihood alone."""
        nowhere = np.zeros(self.model.tables[0].cells.shape)
        levels = self.model.draw_levels(rng, nowhere)
        rows = self.model.draw(rng, parameters, levels)
        for _ in range(MOST_TRIES):
            if (finite := rows.finite).all():
                break
            rows = rows.where(finite, self.model.draw(rng, parameters, levels))
        else:
            names = ", ".join(table.name for table in self.model.tables)
            raise ArgumentError(
                f"At the start of the chain rows of {names} have no finite sums. Give the free variables an initval "
                "near to what is expected."
            )
        self.resume(rows)

    def resume(self, rows: Augmented | None) -> None:
        """Go on with given rows."""
        self.rows = rows
        if rows is not None:
            self.residuals = self.residuals_of(rows)

    def sweep(self, rng: np.random.Generator, parameters: Parameters) -> int:
        """Propose every row anew once, and return how many were accepted."""
        from pymc_dp.step_methods.augmentation.kernels import sweep

        assert self.rows is not None
        levels = self.model.draw_levels(rng, self.model.level_counts(self.rows))
        new = self.model.draw(rng, parameters, levels)
        threshold = np.where(new.finite, -rng.standard_exponential(self.model.n_rows), np.inf)
        accepted = np.zeros(self.model.n_rows, dtype=bool)
        gaussian = self.model.tables[0].gaussian
        old = self.rows
        sweep(old.places, old.steps, new.places, new.steps, threshold, self.residuals, self.scales, gaussian, accepted)
        self.rows = new.where(accepted, old)
        return int(accepted.sum())

    def redrawn(
        self, rng: np.random.Generator, old: Parameters, new: Parameters
    ) -> tuple[Augmented, Array, float] | None:
        """Draw rows whose parameters change anew, at their private levels; nothing is changed yet.

        Returns
        -------
        (Augmented, residuals, float) or None
            Rows, the noise that they leave, and the log of how much more probable it is than that of the current rows.
            None where nothing changes.
        """
        assert self.rows is not None
        changed = np.zeros(self.model.n_rows, dtype=bool)
        for table, cell in zip(self.model.tables, self.rows.cells, strict=True):
            pairs = zip(old[table.name], new[table.name], strict=True)
            moved = [(one != two).reshape(table.n_cells, -1).any(axis=1) for one, two in pairs]
            changed |= np.any(moved, axis=0)[cell] if self.fixed else np.any(moved)
        if not changed.any():
            return None
        rows = self.model.draw(rng, new, self.rows.levels).where(changed, self.rows)
        if not rows.finite.all():
            return rows, self.residuals, -np.inf
        residuals = self.residuals_of(rows)
        return rows, residuals, self._log_noise(residuals) - self._log_noise(self.residuals)

    def replace(self, rows: Augmented, residuals: Array) -> None:
        """Go on with what `redrawn` returned."""
        self.rows, self.residuals = rows, residuals

    def residuals_of(self, rows: Augmented) -> Array:
        """Return released numbers less the sums of rows."""
        found = np.concatenate([table.released.ravel() for table in self.model.tables])
        np.subtract.at(found, rows.places, rows.steps)
        return found

    def _log_noise(self, residuals: Array) -> float:
        z = residuals / self.scales
        return float(-0.5 * z @ z if self.model.tables[0].gaussian else -np.abs(z).sum())

    def sums(self) -> list[Array]:
        """Return the exact sums of unclamped rows and the number of rows, per cell, of one table after the other."""
        assert self.rows is not None
        found = []
        for table, cell, terms in zip(self.model.tables, self.rows.cells, self.rows.terms, strict=True):
            found += [_summed(table, cell, terms), np.bincount(cell, minlength=table.n_cells).astype(np.float64)]
        return found


def _summed(table: Table, cell: Array, terms: Array) -> Array:
    if isinstance(table.statistic, LevelCounts):
        k = table.statistic.n_levels
        return np.bincount(cell * k + terms, minlength=table.n_cells * k).reshape(-1, k).astype(np.float64)
    columns = [np.bincount(cell, weights=column, minlength=table.n_cells) for column in terms.T]
    return np.stack(columns, axis=-1)


def row_models(tables: Sequence[Table]) -> tuple[RowModel, ...]:
    """Put tables together that see the same rows in a way that matters; others are independent given the parameters."""
    columns = {table.name: table.columns for table in tables}
    parents = {table.name: parent_of(table.name, table.columns, columns) for table in tables}
    heads: dict[object, list[Table]] = {}
    for table in sorted(tables, key=lambda table: parents[table.name] is not None):
        alone = table.cells.shape[1] == 1
        head = parents[table.name] or (table.name if alone else table.columns)
        heads.setdefault(head, []).append(table)
    return tuple(_row_model(found, parents) for found in heads.values())


def _row_model(tables: Sequence[Table], parents: Mapping[str, str | None]) -> RowModel:
    names = [table.name for table in tables]
    places = tuple(names.index(parent) if (parent := parents[name]) in names else None for name in names)
    return RowModel(tables=tuple(tables), parents=places)


AT_ONCE = 2
"""Coordinates that a jump moves: parameters of one likelihood often make up for each other in pairs."""
PER_SCAN = 4
REACH = (0.3, 10.0)
"""How far a jump goes, in first intervals of slices, which are as wide as the posterior given the rows."""


def jump(rng: np.random.Generator, point: Point, names: Sequence[str], widths: Mapping[str, Array | float]) -> Point:
    """Move a random pair of coordinates by normal steps of a random scale: as probable as the way back.

    Parameters
    ----------
    names : sequence of str
        Of the real value variables.
    widths : mapping of str to array or float
        By name, fixed beforehand.
    """
    sizes = [point[name].size for name in names]
    edges = np.cumsum([0, *sizes])
    chosen = rng.choice(edges[-1], size=min(AT_ONCE, int(edges[-1])), replace=False)
    scale = np.exp(rng.uniform(*np.log(REACH)))
    new = dict(point)
    for place, step in zip(chosen, scale * rng.standard_normal(len(chosen)), strict=True):
        which = int(np.searchsorted(edges, place, side="right")) - 1
        name, within = names[which], place - edges[which]
        value = np.array(new[name])
        value.reshape(-1)[within] += step * np.broadcast_to(widths[name], value.shape).ravel()[within]
        new[name] = value
    return new


__all__ = ["PER_SCAN", "Augmented", "AugmentedRows", "RowModel", "jump", "row_models"]
