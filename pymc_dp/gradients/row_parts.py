"""What a row adds to a gradient and to a curvature: within what is charged, whatever the row holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np

from pymc_dp.gradients.clipping import Clipped, Responses, clipped, clipped_alike
from pymc_dp.gradients.in_turn import expected_responses
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.row_functions.builder import ALIKE, filled

ENTRIES = 2**18
"""Most numbers of rows at a time, in the widest array: few enough for a cache, enough for calls to cost little."""
ROOM = 1 - 1e-6
"""Rounding never takes a row beyond what is charged: there it would add nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """Some rows at a position.

    Attributes
    ----------
    jacobian : (n_rows, q, d) array
        Of the predictors, in the coordinates of the sums.
    gram : (n_rows, q, q) array
        Jacobian times its transpose.
    responses : Responses
        What the model says about the responses.
    observed : (n_rows, q) array
        Scores of the responses in the table.
    alike : bool
        Whether rows differ in these alone: all else is that of the first row.
    """

    jacobian: Array
    gram: Array
    responses: Responses
    observed: Array
    alike: bool = False

    def turned(self, limits: Limits) -> Expected:
        """Return the same rows in the coordinates of some limits."""
        if limits.basis is None:
            return self
        own = np.ascontiguousarray(self.jacobian[:1] if self.alike else self.jacobian, dtype=np.float64)
        jacobian = np.zeros(own.shape)
        if limits.levels is None:
            _turn(own, np.ascontiguousarray(limits.basis), jacobian)
        else:
            basis = limits.sparse_basis
            _turn_blocks(own, basis.indptr, basis.indices, basis.data, jacobian)
        found = [np.broadcast_to(one, (len(self.observed), *one.shape[1:])) for one in (jacobian, _grams(jacobian))]
        return replace(self, jacobian=found[0], gram=found[1])

    def clipped(self, limits: Limits) -> Clipped:
        """Return the rows' clipped scores and factors in terms of the predictors."""
        ends = {"clip_norm": limits.clip_norm, "clip_curvature": limits.clip_curvature}
        if self.alike:
            first = Responses(weights=self.responses.weights[:1], scores=self.responses.scores[:1])
            return clipped_alike(first, self.observed, self.gram[:1], **ends)
        return clipped(self.responses, self.observed, self.gram, **ends)


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
    error or warning is raised and no number of steps depends on a row. That it is within the limits is enforced by
    `integers`, which leaves out what is not; a row that holds NaN, or overflows, adds nothing.
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
        found = [
            combined(part.scores[:, None], jacobian, unit)[:, 0] for part, jacobian in self.clipped(chunk, at, limits)
        ]
        return self.joined(found, at)

    def factors(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Array:
        """Return factors, (n_rows, q, d), in units of √C_F: a row's curvature is Σ v vᵀ, of Frobenius norm 1 at most.

        Parameters are those of `scores`; responses in the table do not matter.
        """
        unit = ROOM / np.sqrt(limits.clip_curvature)
        found = [
            combined(part.factors.transpose(0, 2, 1), jacobian, unit)
            for part, jacobian in self.clipped(chunk, at, limits)
        ]
        return self.joined(found, at, self.rows.count)

    def clipped(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Iterator[tuple[Clipped, Array]]:
        """Yield blocks of rows, clipped in terms of their predictors, and the Jacobians of these."""
        size = block_size(self.rows)
        for start in range(0, len(chunk[0]), size):
            block = [column[start : start + size] for column in chunk]
            with np.errstate(all="ignore"):
                found = expected(self.rows, block, at * limits.scale, limits.scale).turned(limits)
            yield found.clipped(limits), found.jacobian[: 1 if found.alike else None]

    @staticmethod
    def joined(found: Sequence[Array], at: Array, *counts: int) -> Array:
        """Return what was found of some blocks as one array."""
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros((0, *counts, len(at)))


def block_size(rows: RowScores) -> int:
    """Return how many rows to take at a time, a multiple of what compiled code works off alike."""
    entries = max(3 * rows.count * rows.interface.size, rows.nodes * max(rows.count**2, 8))
    if rows.alike:  # of which one row has all of these
        entries = 8 * rows.count
    return max(ALIKE, ENTRIES // entries // ALIKE * ALIKE)


def expected(rows: RowScores, columns: Sequence[Array], at: Array, scale: Array) -> Expected:
    """Evaluate some rows, with rows of zeros after them up to a multiple of what is evaluated alike.

    Parameters
    ----------
    rows : RowScores
    columns : sequence of (n_rows, ...) arrays
    at : (d,) array
    scale : (d,) array
    """
    count = filled(len(columns[0]))
    held = [_padded(column, count) for column in columns]
    predictors, jacobian = rows.predicted(np.asarray(at, dtype=np.float64), *held)
    jacobian = jacobian * scale  # not in place: it may be a view of the columns
    first = slice(ALIKE if rows.alike else None)
    responses = expected_responses(rows, predictors[first], [column[first] for column in held])
    parts = jacobian, _grams(jacobian[first]), responses.weights, responses.scores
    own = [_of_all(one[0], len(columns[0])) if rows.alike else one[: len(columns[0])] for one in parts]
    return Expected(
        jacobian=own[0],
        gram=own[1],
        responses=Responses(weights=own[2], scores=own[3]),
        observed=rows.scored(predictors, *held)[0][: len(columns[0])],
        alike=rows.alike,
    )


def _of_all(one: Array, count: int) -> Array:
    return np.broadcast_to(one, (count, *one.shape))


def _grams(jacobian: Array) -> Array:
    return np.matmul(jacobian, jacobian.transpose(0, 2, 1))


def combined(weights: Array, jacobian: Array, unit: float) -> Array:
    """Return sums of the rows of Jacobians, (n_rows, p, d), times a number.

    Parameters
    ----------
    weights : (n_rows, p, q) array
    jacobian : (n_rows, q, d) array, or (1, q, d) of all rows
    unit : float
    """
    found = np.zeros((len(weights), weights.shape[1], jacobian.shape[2]))
    _combine(np.ascontiguousarray(weights, dtype=np.float64), np.ascontiguousarray(jacobian), float(unit), found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _combine(weights, jacobian, unit, found):  # type: ignore[no-untyped-def]
    alike, count, size = jacobian.shape
    for row in range(len(found)):
        at = 0 if alike == 1 else row
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


def _padded(column: Array, count: int) -> Array:
    if len(column) == count:
        return column
    return np.concatenate([column, np.zeros((count - len(column), *column.shape[1:]), dtype=column.dtype)])


__all__ = ["Expected", "RowParts", "block_size", "combined", "expected"]
