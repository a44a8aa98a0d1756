"""What a row adds to a gradient and to a curvature: within what is charged, whatever the row holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np

from pymc_dp.gradients.clipping import Clipped, Responses, clipped
from pymc_dp.gradients.compiled_rows import ALIKE, filled
from pymc_dp.gradients.covariate_cells import CovariateCells, Places
from pymc_dp.gradients.in_turn import expected_responses
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.rows import Array

ENTRIES = 2**18
"""Most numbers of rows at a time, in the widest array: few enough for a cache, enough for calls to cost little."""
FEWER = 2
"""How many rows there are to a cell at least where cells are evaluated in their place."""
ROOM = 1 - 1e-6
"""Rounding never takes a row beyond what is charged: there it would add nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """Some rows at a position.

    Attributes
    ----------
    jacobian : (n_cells, q, d) array
        Of the predictors, in the coordinates of the sums.
    gram : (n_cells, q, q) array
        Jacobian times its transpose.
    responses : Responses
        What the model says about the responses, of each cell.
    observed : (n_rows, q) array
        Scores of the responses in the table.
    cells : (n_rows,) array of int or None
        The cell of each row, of all of which the model says the same. None: each row is one.
    """

    jacobian: Array
    gram: Array
    responses: Responses
    observed: Array
    cells: Places | None = None

    def turned(self, limits: Limits) -> Expected:
        """Return the same rows in the coordinates of some limits."""
        if limits.basis is None:
            return self
        own = np.ascontiguousarray(self.jacobian, dtype=np.float64)
        jacobian = np.zeros(own.shape)
        if limits.levels is None:
            _turn(own, np.ascontiguousarray(limits.basis), jacobian)
        else:
            basis = limits.sparse_basis
            _turn_blocks(own, basis.indptr, basis.indices, basis.data, jacobian)
        return replace(self, jacobian=jacobian, gram=_grams(jacobian))

    def clipped(self, limits: Limits) -> Clipped:
        """Return the rows' clipped scores and factors in terms of the predictors."""
        ends = {"clip_norm": limits.clip_norm, "clip_curvature": limits.clip_curvature}
        return clipped(self.responses, self.observed, self.gram, weighing=limits.weighing, cells=self.cells, **ends)

    def of_rows(self, of_cells: Array) -> Array:
        """Return for every row what was found of its cell."""
        return of_cells if self.cells is None else of_cells[self.cells]

    def combined(self, weights: Array, unit: float) -> Array:
        """Return sums of the rows of Jacobians, (n_rows, p, d), times a number.

        Parameters
        ----------
        weights : (n_rows, p, q) array
        unit : float
        """
        found = np.zeros((len(weights), weights.shape[1], self.jacobian.shape[2]))
        places = np.arange(len(weights)) if self.cells is None else self.cells
        given = (np.ascontiguousarray(one, dtype=np.float64) for one in (weights, self.jacobian))
        _combine(*given, places, float(unit), found)
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class RowParts:
    """Scores and factors of rows, in units of C and of the square root of C_F.

    Attributes
    ----------
    rows : RowScores

    Notes
    -----
    Of several observed variables, scores add up; expectations are over all responses together, and the score of the
    row as a whole is clipped, once.

    **Guarantee.** What a row gives is a function of that row, the position and public constants: no draw is made, no
    error or warning is raised and no number of steps depends on a row. The kernel trusts this, for it cannot check it.
    That it is within the limits is enforced by the kernel; a row that holds NaN, or overflows, adds nothing.
    """

    rows: RowScores

    def scores(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Array:
        """Return clipped scores, (n_rows, d), in units of C: of a norm of at most 1.

        Parameters
        ----------
        chunk : sequence of (n_rows, ...) arrays
            One per column of the inspection, clamped (`Column.clamped`).
        at : (d,) array
            In the coordinates of the walk, η / D.
        limits : Limits
        """
        unit = ROOM / limits.clip_norm
        found = [rows.combined(part.scores[:, None], unit)[:, 0] for part, rows in self.clipped(chunk, at, limits)]
        return self.joined(found, at)

    def factors(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Array:
        """Return factors, (n_rows, q, d), in units of √C_F: a row's curvature is Σ v vᵀ, of Frobenius norm 1 at most.

        Parameters are those of `scores`; responses in the table do not matter.
        """
        unit = ROOM / np.sqrt(limits.clip_curvature)
        found = [rows.combined(part.factors.transpose(0, 2, 1), unit) for part, rows in self.clipped(chunk, at, limits)]
        return self.joined(found, at, self.rows.count)

    def clipped(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Iterator[tuple[Clipped, Expected]]:
        """Yield what is left of blocks of rows in terms of their predictors, and what they were."""
        for found in self.turned(chunk, at, limits):
            yield found.clipped(limits), found

    def turned(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Iterator[Expected]:
        """Yield blocks of rows in the coordinates of some limits."""
        size = block_size(self.rows)
        for start in range(0, len(chunk[0]), size):
            block = [column[start : start + size] for column in chunk]
            with np.errstate(all="ignore"):
                found = expected(self.rows, block, at * limits.scale, limits.scale).turned(limits)
            yield found

    @staticmethod
    def joined(found: Sequence[Array], at: Array, *counts: int) -> Array:
        """Return what was found of some blocks as one array."""
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros((0, *counts, len(at)))


def block_size(rows: RowScores) -> int:
    """Return how many rows to take at a time, a multiple of what compiled code works off alike."""
    cells = shared_cells(rows, rows.interface.inspection.most_rows)
    return _block(_entries(rows) if cells is None else rows.count * max(8, rows.interface.size))


def _entries(rows: RowScores) -> int:
    """Return the numbers that evaluating a row takes, in the widest array."""
    return max(3 * rows.count * rows.interface.size, rows.nodes * max(rows.count**2, 8))


def _block(entries: int) -> int:
    return max(ALIKE, ENTRIES // entries // ALIKE * ALIKE)


def shared_cells(rows: RowScores, count: int) -> CovariateCells | None:
    """Return the cells to evaluate in the place of so many rows; None where rows themselves are fewer, or nearly."""
    cells = rows.cells
    if cells is None or (cells.crossed and (cells.count * FEWER > count or cells.count > _block(_entries(rows)))):
        return None
    return cells


def expected(rows: RowScores, columns: Sequence[Array], at: Array, scale: Array) -> Expected:
    """Evaluate some rows, with rows of zeros after them up to a multiple of what is evaluated alike.

    Parameters
    ----------
    rows : RowScores
    columns : sequence of (n_rows, ...) arrays
    at : (d,) array
    scale : (d,) array

    Notes
    -----
    Rows whose covariates have few values are evaluated cell by cell, which gives the same to the last digit: how many
    cells there are is public, and all of them are evaluated, whether or not a row is in them.
    """
    count = len(columns[0])
    cells, held = shared_cells(rows, count), _padded(columns)
    whole = held if cells is None else _padded(cells.rows())
    predictors, jacobian = rows.predicted(np.asarray(at, dtype=np.float64), *whole)
    jacobian = jacobian * scale  # not in place: it may be a view of the columns
    some = slice(1 if rows.alike else None)  # an expectation is over many rows then, made of the one
    responses = expected_responses(rows, predictors[some], [column[some] for column in whole])
    places = None if cells is None else cells.of_rows(held)
    first = count if cells is None else cells.count
    return Expected(
        jacobian=jacobian[:first],
        gram=_grams(jacobian[:first]),
        responses=Responses(weights=responses.weights[:first], scores=responses.scores[:first]),
        observed=_observed(rows, predictors, responses, held, places)[:count],
        cells=None if places is None else places[:count],
    )


def _observed(
    rows: RowScores, predictors: Array, responses: Responses, held: Sequence[Array], places: Places | None
) -> Array:
    """Return the scores of rows at their own responses: of all values that there are one is looked up."""
    (one, *_) = rows.interface.responses
    if rows.by_values is None or one.values is None or one.widths is not None:
        return rows.observed(predictors if places is None else predictors[places], held)[0]
    own = held[one.place].astype(np.int64) - int(one.values[0])
    at = np.arange(len(own)) if places is None else places
    return np.asarray(responses.scores[at, np.clip(own, 0, one.count - 1)])


def _grams(jacobian: Array) -> Array:
    return np.matmul(jacobian, jacobian.transpose(0, 2, 1))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _combine(weights, jacobian, cells, unit, found):  # type: ignore[no-untyped-def]
    _, count, size = jacobian.shape
    for row in range(len(found)):
        at = cells[row]
        for one in range(found.shape[1]):
            for i in range(count):
                weight = weights[row, one, i] * unit
                for place in range(size):
                    found[row, one, place] += weight * jacobian[at, i, place]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _turn(jacobian, basis, found):  # type: ignore[no-untyped-def]
    """Multiply the Jacobians of rows by a matrix, each on its own."""
    n_rows, count, size = jacobian.shape
    for row in range(n_rows):
        for one in range(count):
            for place in range(size):
                weight = jacobian[row, one, place]
                if weight != 0.0:  # NaN too
                    for other in range(size):
                        found[row, one, other] += weight * basis[place, other]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _turn_blocks(jacobian, starts, others, basis, found):  # type: ignore[no-untyped-def]
    """Do what `_turn` does by a matrix of few entries, by rows."""
    n_rows, count, size = jacobian.shape
    for row in range(n_rows):
        for one in range(count):
            for place in range(size):
                weight = jacobian[row, one, place]
                if weight != 0.0:  # NaN too
                    for at in range(starts[place], starts[place + 1]):
                        found[row, one, others[at]] += weight * basis[at]


def _padded(columns: Sequence[Array]) -> list[Array]:
    """Return rows with rows of zeros after them."""
    more = filled(len(columns[0])) - len(columns[0])
    if not more:
        return list(columns)
    return [np.concatenate([one, np.zeros((more, *one.shape[1:]), dtype=one.dtype)]) for one in columns]


__all__ = ["Expected", "RowParts", "block_size", "expected", "shared_cells"]
