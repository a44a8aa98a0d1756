"""What a row adds to a gradient and to a curvature: within what is charged, whatever the row holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numba
import numpy as np

from pymc_dp.gradients.clipping import Clipped, Responses, clipped
from pymc_dp.gradients.limits import Limits
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.row_functions.chunks import ALIKE, filled

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
        What the model says of the responses.
    observed : (n_rows, q) array
        Scores of the responses in the table.
    """

    jacobian: Array
    gram: Array
    responses: Responses
    observed: Array

    def turned(self, limits: Limits) -> Expected:
        """Return the same rows in the coordinates of some limits."""
        if limits.basis is None:
            return self
        jacobian = np.zeros(self.jacobian.shape)
        _turn(np.ascontiguousarray(self.jacobian, dtype=np.float64), np.ascontiguousarray(limits.basis), jacobian)
        return replace(self, jacobian=jacobian, gram=_grams(jacobian))

    def clipped(self, limits: Limits) -> Clipped:
        """Return the rows' clipped scores and factors in terms of the predictors."""
        return clipped(
            self.responses,
            self.observed,
            self.gram,
            clip_norm=limits.clip_norm,
            clip_curvature=limits.clip_curvature,
        )


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
            One per column of the inspection, clamped (`RowColumn.clamped`).
        at : (d,) array
            In the coordinates of the walk, η / D.
        limits : Limits
        """
        unit = ROOM / limits.clip_norm
        found = [
            combined(part.scores[:, None], jacobian, unit)[:, 0] for part, jacobian in self._clipped(chunk, at, limits)
        ]
        return self._joined(found, at)

    def factors(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Array:
        """Return factors, (n_rows, q, d), in units of √C_F: a row's curvature is Σ v vᵀ, of Frobenius norm 1 at most.

        Parameters are those of `scores`; responses in the table do not matter.
        """
        unit = ROOM / np.sqrt(limits.clip_curvature)
        found = [
            combined(part.factors.transpose(0, 2, 1), jacobian, unit)
            for part, jacobian in self._clipped(chunk, at, limits)
        ]
        return self._joined(found, at, self.rows.count)

    def _clipped(self, chunk: Sequence[Array], at: Array, limits: Limits) -> Iterator[tuple[Clipped, Array]]:
        """Yield blocks of rows, clipped in terms of their predictors, and the Jacobians of these."""
        size = block_size(self.rows)
        for start in range(0, len(chunk[0]), size):
            block = [column[start : start + size] for column in chunk]
            with np.errstate(all="ignore"):
                found = expected(self.rows, block, at * limits.scale, limits.scale).turned(limits)
            yield found.clipped(limits), found.jacobian[: len(block[0])]

    @staticmethod
    def _joined(found: Sequence[Array], at: Array, *counts: int) -> Array:
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros((0, *counts, len(at)))


def block_size(rows: RowScores) -> int:
    """Return how many rows to take at a time, a multiple of what compiled code works off alike."""
    nodes = int(np.prod([one.count for one in rows.interface.responses]))
    entries = max(3 * rows.count * rows.interface.size, nodes * max(rows.count**2, 8))
    return max(ALIKE, ENTRIES // entries // ALIKE * ALIKE)


def expected(rows: RowScores, columns: Sequence[Array], at: Array, scale: Array) -> Expected:
    """Evaluate some rows, filled up with rows of zeros to a multiple of what is evaluated alike.

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
    return Expected(
        jacobian=jacobian,
        gram=_grams(jacobian),
        responses=_responses(rows, predictors, held),
        observed=rows.scored(predictors, *held)[0],
    )


def _grams(jacobian: Array) -> Array:
    return np.matmul(jacobian, jacobian.transpose(0, 2, 1))


def combined(weights: Array, jacobian: Array, unit: float) -> Array:
    """Return sums of the rows of Jacobians, (n_rows, p, d), times a number.

    Parameters
    ----------
    weights : (at least n_rows, p, q) array
    jacobian : (n_rows, q, d) array
    unit : float
    """
    found = np.zeros((len(jacobian), weights.shape[1], jacobian.shape[2]))
    _combine(np.ascontiguousarray(weights, dtype=np.float64), np.ascontiguousarray(jacobian), float(unit), found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _combine(weights, jacobian, unit, found):  # type: ignore[no-untyped-def]
    n_rows, count, size = jacobian.shape
    for row in range(n_rows):
        for one in range(found.shape[1]):
            for i in range(count):
                weight = weights[row, one, i] * unit
                for place in range(size):
                    found[row, one, place] += weight * jacobian[row, i, place]


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


def _padded(column: Array, count: int) -> Array:
    if len(column) == count:
        return column
    return np.concatenate([column, np.zeros((count - len(column), *column.shape[1:]), dtype=column.dtype)])


def _responses(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through all values that the responses of each row may have together, the last one fastest."""
    responses, n_rows = rows.interface.responses, len(predictors)
    needed = set().union(*(call.places for call in (rows.scored, *rows.quantiles) if call is not None))
    held: list[Array] = [column if place + 1 in needed else column[:0] for place, column in enumerate(columns)]
    at, masses = predictors, list[Array]()
    for place, (one, quantile) in enumerate(zip(responses, rows.quantiles, strict=True)):
        masses.append(_below(rows, place, at, held))
        at, held = _repeated(at, held, one.count)
        if quantile is None:
            assert one.values is not None
            held[one.place] = np.tile(one.column.clamped(one.values), len(at) // one.count)
        else:
            assert one.levels is not None
            held[one.place] = np.tile(one.levels.astype(one.column.leaf.type.dtype), len(at) // one.count)
            (values,) = quantile(at, *held)
            held[one.place] = one.column.clamped(values)
    scores, *logps = rows.scored(at, *held)
    shape = (n_rows, *(one.count for one in responses))
    own = list[Array]()
    for axis, (one, logp, mass) in enumerate(zip(responses, logps, masses, strict=True), start=1):
        along = np.moveaxis(logp.reshape(shape), axis, -1)
        lengths = (*shape[:axis], *(1 for _ in shape[axis + 1 :]))
        own.append(np.moveaxis(one.weighted(along, mass.reshape(lengths)), -1, axis))
    weights = reduce(np.multiply, own)
    return Responses(weights=weights.reshape(n_rows, -1), scores=scores.reshape(n_rows, -1, rows.count))


def _repeated(at: Array, held: Sequence[Array], count: int) -> tuple[Array, list[Array]]:
    return np.repeat(at, count, axis=0), [np.repeat(column, count, axis=0) for column in held]


def _below(rows: RowScores, place: int, at: Array, held: Sequence[Array]) -> Array:
    """Return the probability of values that a response is clamped from, up to its least, for every row."""
    one = rows.interface.responses[place]
    count = len(one.below)
    if not count:
        return np.zeros(len(at))
    more, columns = _repeated(at, held, count)
    columns[one.place] = np.tile(one.below, len(at))
    logp: Array = rows.scored(more, *columns)[1 + place]
    return np.asarray(np.exp(logp).reshape(-1, count).sum(axis=1))


__all__ = ["Expected", "RowParts", "block_size", "combined", "expected"]
