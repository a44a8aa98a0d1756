"""How far one row can move the log-likelihoods of candidates against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from pymc import Model

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array, Column, shape_of
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.remedies import problems_of
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.proofs.row_ranges import SLACK, prove_range
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.row_functions import Nodes
from pymc_dp.step_methods.row_functions.node_bounds import MOST_NUMBERS, Numbers, centred, node_values

MOST_ROWS, MOST_WORK = 1024, 4e8
"""Values that a row may have, and differences of them at candidates, up to which all are looked at."""
ROUNDING = 1e-11
"""Of the largest log-likelihood: what differences of four, computed in floats, may be off by."""


def candidate_range(inspection: RowInspection, prior_model: Model, density: RowDensity, points: Array) -> RowRange:
    """Bound the range of one row over candidates: sup over x, x' of max_θ d - min_θ d, d = l(x, θ) - l(x', θ).

    It is proved over the box about all candidates; where rows can have few values, whole numbers all, it is the largest
    of all differences at the candidates themselves, if that is less.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    density : RowDensity
    points : (n_candidates, n_scalars) array

    Raises
    ------
    UnsupportedModelError
        If nothing bounds it, or if rows tell nothing about which candidate is best.
    """
    neighbours = inspection.domain.neighbours
    rows, _ = row_likelihoods(inspection, prior_model, about(density.priors, points))
    prove = partial(prove_range, neighbours=neighbours)
    proofs = [prove(row) for row in rows]
    total = sum(proof.value for proof in proofs)
    listed = largest_of_all(density, points, neighbours)
    if not math.isfinite(min(total, listed)):
        raise UnsupportedModelError(problems_of(rows, proofs, prove))
    if not min(total, listed) > 0:
        what = "no row can tell anything about which candidate is best"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give other candidates.")])
    reason = "over the box about the candidates, proved from the graph by interval arithmetic and branch and bound"
    if listed < total:
        reason = "the largest of all differences, of every value that a row can have, at every candidate"
    return RowRange(value=min(total, listed), sensitivity=math.inf, reason=reason)


def candidate_slope(nodes: Nodes, density: RowDensity, points: Array) -> RowRange:
    """Return the range over candidates per unit of a metric: the largest of all differences of numbers of the nodes.

    Raises
    ------
    UnsupportedModelError
        If there are too many numbers, if one of them is none, or if rows tell nothing about which candidate is best.
    """
    if nodes.count * len(points) > MOST_NUMBERS:
        what = f"{len(points)} candidates are too many for the {nodes.count} nodes of rows under a metric"
        remedy = f"Give {MOST_NUMBERS // nodes.count} at most."
        raise UnsupportedModelError([Problem(where="candidates", what=what, remedy=remedy)])
    values, _ = centred(node_values(lambda at, rows: density.each(at, rows)[1], points, nodes))
    if not np.isfinite(values).all():
        what = "the log-likelihood of some possible rows is NaN at some candidates, but not at others"
        remedy = "Give narrower bounds for the values of rows (dp.Domain), or other candidates."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
    value = Numbers.of(nodes, values).steepest
    if not value > 0:
        what = "no row can tell anything about which candidate is best"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give other candidates.")])
    reason = f"per unit of ρ = {nodes.metric}, the largest of all differences at {nodes}"
    return RowRange(value=value, sensitivity=math.inf, reason=reason)


def about(priors: Sequence[Prior], points: Array) -> tuple[Prior, ...]:
    """Return priors whose supports are the least box about candidates."""
    found, start = [], 0
    for prior in priors:
        part = points[:, start : start + prior.size].reshape(-1, *prior.shape)
        found.append(replace(prior, low=part.min(axis=0), high=part.max(axis=0)))
        start += prior.size
    return tuple(found)


def largest_of_all(density: RowDensity, points: Array, neighbours: Neighbours) -> float:
    """Return the range over candidates of any two rows that there can be; inf where these cannot be listed."""
    rows = _every_row(density.columns)
    if rows is None:
        return math.inf
    count = len(rows[0])
    if count * (1 if neighbours == "add_remove" else count) * len(points) > MOST_WORK:
        return math.inf
    held = (([column[place : place + 1] for column in rows], np.ones(1)) for place in range(count))
    values = (density.at(points, row)[1] for row in held)
    found = _alone(values) if neighbours == "add_remove" else _in_pairs(np.stack(list(values)))
    if not np.isfinite(found).all():
        return math.inf
    largest, size = found
    return (largest + ROUNDING * size) * SLACK if largest > 0 else 0.0


def _alone(values: Iterable[Array]) -> tuple[float, float]:
    """Return the largest range and the largest size of what rows add, of which no two are held at once."""
    with np.errstate(invalid="ignore"):
        return tuple(np.max([(np.ptp(one), np.abs(one).max()) for one in values], axis=0))


def _in_pairs(values: Array) -> tuple[float, float]:
    """Return the largest range of a difference of two rows, and the largest size of one."""
    with np.errstate(invalid="ignore"):
        largest = np.max([np.ptp(values - other, axis=1).max() for other in values])
    return float(largest), float(np.abs(values).max())


def _every_row(columns: Sequence[Column]) -> list[Array] | None:
    """Return every row that there can be, one array per column; None where they are too many."""
    axes = []
    for column in columns:
        kind = np.dtype(column.leaf.type.dtype).kind
        if column.public or shape_of(column.leaf)[1:] or not column.integer or (column.bounds is None and kind != "b"):
            return None
        low, high = (0, 1) if kind == "b" else (int(end) for end in column.bounds or ())
        axes.append(range(low, high + 1))
    if not axes or math.prod(map(len, axes)) > MOST_ROWS:
        return None
    table = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return [column.clamped(table[:, place]) for place, column in enumerate(columns)]


__all__ = ["about", "candidate_range", "candidate_slope", "largest_of_all"]
