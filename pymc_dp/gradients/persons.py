"""What a person with several rows adds to a gradient and to a curvature: one score, of all of that person's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.person_sums import add_multiples, add_up
from pymc_dp.gradients.row_parts import ROOM, Expected, RowParts
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.persons import Grouped

OUTCOMES = 512
"""Of all responses of a person together: all where there are at most so many, else as many that stand for them."""
ORDERS = 256
"""Rows of a person whose levels are of different coordinates of a net."""
FEW_ENTRIES = 2**21
"""Of the factors, and of what the model says of the responses, of some persons at a time."""
MOST_SIZE = 4096
"""Parameters for which sums of the products of so many factors fit into 64 bits."""
ROUNDS = 60
"""Of the search for the centre, at most."""
LONGEST = 4096
"""Rows of a person that may count: memory grows with them."""
SPREAD = 1e3 * np.sqrt(2)
"""Rows with other covariates are taken at other levels."""


class Sums(NamedTuple):
    """What persons add, in the coordinates of some limits.

    Attributes
    ----------
    scores : (n_persons, d) array
        Of norm C at most.
    factors : (n_persons, k, d) array
        Curvatures are Σ v vᵀ over the k vectors of a person, of Frobenius norm C_F at most.
    roots : (n_persons, k, d) array
        The same of the variances of scores under the model.
    """

    scores: Array
    factors: Array
    roots: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonParts:
    """Scores and factors of rows that come person by person, as `RowParts` has them of rows: one of each person.

    Attributes
    ----------
    parts : RowParts

    Notes
    -----
    A person's score S is the sum of the scores of that person's rows, which are independent given the parameters, as
    the model says. It is clipped as a whole, to ψ = w c (S - a), c = min(1, C / ‖S - a‖), with a such that E ψ = 0
    given the covariates of all of the rows: responses do not always agree, so that C need not be as large as the norms
    of all rows together. Its slope is -w E c (S - a)(S - a)ᵀ, and w sees covariates only: it is min(1, C_F / size),
    with the size of the curvature without clipping times what clipping leaves of E ‖S‖².

    The expectation is over all outcomes of the responses where these are few. Elsewhere it is over a net of `OUTCOMES`
    points (Sobol', shifted by the covariates of each row), by which only what clipping takes away is estimated. The
    mean of clipped scores is then off by less than a hundredth of their deviation, either way.

    **Guarantee.** What a person gives is a function of that person's rows, the position and public constants, to the
    last bit: floats are added row by row, whoever else is in a chunk. How long that takes depends on the rows that are
    kept. That it is within C and C_F is enforced by the kernel on whole numbers, as of a row.
    """

    parts: RowParts

    def scores(self, rows: Grouped, at: Array, limits: Limits) -> Array:
        """Return clipped scores of persons, (n_persons, d), in units of C: of a norm of at most 1."""
        found = added(list(self.parts.turned(rows.columns, at, limits)), rows.edges, limits)
        return found.scores * (ROOM / limits.clip_norm)

    def factors(self, rows: Grouped, at: Array, limits: Limits) -> Array:
        """Return factors of persons, (n_persons, k, d), in units of √C_F."""
        found = added(list(self.parts.turned(rows.columns, at, limits)), rows.edges, limits, curved=True)
        return found.factors * (ROOM / np.sqrt(limits.clip_curvature))

    def few(self, rows: int) -> int:
        """Return how many rows to take at a time, of so many: factors of a person may have d² entries."""
        held = self.parts.rows
        size = held.interface.size
        return max(1, min(rows, FEW_ENTRIES // max(size * min(size, OUTCOMES), held.nodes * held.count)))


def added(blocks: Sequence[Expected], edges: Array, limits: Limits, *, curved: bool = False) -> Sums:
    """Return what persons add, of blocks of their rows in the coordinates of some limits.

    Parameters
    ----------
    blocks : sequence of Expected
        Of rows one after the other.
    edges : (n_persons + 1,) array
        Rows from one of them to the next are of one person.
    limits : Limits
    curved : bool
        Whether curvatures and variances are asked for; else there are none.
    """
    parts = map(np.concatenate, zip(*map(_of_rows, blocks), strict=True))
    weights, scores, jacobian, observed, levels = _complete(*parts)
    order = np.lexsort((levels, np.repeat(np.arange(len(edges) - 1), np.diff(edges))))
    count, size = len(edges) - 1, jacobian.shape[2]
    width = min(size, OUTCOMES)
    own = np.zeros((count, size))
    factors, roots = (np.zeros((count if curved else 0, width, size)) for _ in range(2))
    given = (np.ascontiguousarray(one, dtype=np.float64) for one in (weights, scores, jacobian, observed))
    ends = float(limits.clip_norm), float(limits.clip_curvature), ROUNDS if limits.clip_norm < UNLIMITED else 1
    whole = np.ascontiguousarray(edges, dtype=np.int64), _net()
    add_up(*given, levels, order, *whole, *ends, limits.weighing, own, factors, roots)
    return Sums(scores=own, factors=factors, roots=roots)


def _of_rows(block: Expected) -> tuple[Array, Array, Array, Array]:
    weights, scores = block.responses.weights, block.responses.scores
    return block.of_rows(weights), block.of_rows(scores), block.of_rows(block.jacobian), block.observed


def _complete(weights: Array, *others: Array) -> tuple[Array, ...]:
    """Return all of it, and levels of rows; zeros for a row that holds something that is no number: it adds nothing."""
    missing = np.zeros(len(weights), dtype=bool)
    for one in (weights, *others):
        missing |= ~np.isfinite(one).reshape(len(one), -1).all(axis=1)
    kept = [np.where(missing.reshape(-1, *[1] * (one.ndim - 1)), 0.0, one) for one in others]
    weights = np.where(missing[:, None], 1.0, weights)
    levels = np.where(missing, LAST, _levels(kept[1], weights))
    return weights, *kept, levels


LAST = 2.0
"""Level of rows that add nothing: after all others of a person."""


def _levels(*parts: Array) -> Array:
    """Return a level between 0 and 1 of each row, which depends on its covariates alone."""
    found = np.zeros(len(parts[0]))
    for one in parts:
        flat = np.ascontiguousarray(one.reshape(len(one), int(np.prod(one.shape[1:]))), dtype=np.float64)
        add_multiples(flat, np.sqrt(np.arange(2.0, 2.0 + flat.shape[1])) * SPREAD, found)
    return np.asarray(found - np.floor(found))


@cache
def _net() -> Array:
    """Return whole numbers below `OUTCOMES`, (ORDERS, OUTCOMES): in each row every one of them once. Public."""
    from scipy.stats.qmc import Sobol

    points = Sobol(ORDERS, rng=np.random.default_rng(7)).random_base2(OUTCOMES.bit_length() - 1)
    return np.ascontiguousarray((points.T * OUTCOMES).astype(np.int64))


def require_few(size: int, domain: Domain) -> None:
    """Refuse more parameters, or rows of a person, than sums of persons have room for, before anything is spent."""
    if domain.unit is None:
        return
    if domain.unit.max_rows > LONGEST:
        raise ArgumentError(
            f"max_rows must be at most {LONGEST} for dp.Gradients, got {domain.unit.max_rows}. Lower max_rows of "
            "dp.Unit, or release exact sums."
        )
    if size > MOST_SIZE:
        raise ArgumentError(
            f"dp.Gradients of persons takes up to {MOST_SIZE} parameters, and the likelihood has {size}. Use fewer "
            "groups, or ε for a row."
        )


__all__ = ["LONGEST", "PersonParts", "Sums", "added", "require_few"]
