"""Where a walk starts: the prior's mean, or, where the prior hardly knows of the responses' bounds, within these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from pymc_dp.gradients.expectations import needed, values_of
from pymc_dp.gradients.legs import HOLDING, Prior
from pymc_dp.gradients.row_parts import expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.inspection.rows import Array

DRAWS, ROWS, MADE_UP = 20, 32, 384
"""Draws from the prior and rows for each, by which it is judged, and rows that are made up where it is vague."""
VAGUE, CERTAIN = 0.5, 0.95
"""Mass within the bounds below which a prior is vague, or mass of one of a few values above which it is."""
SEED, ROUNDS, FAR = 20_251_126, 300, 1e300


def start_of(simulated: Simulated, prior: Prior) -> Array | None:
    """Return where a walk starts, (d,), if not at the prior's mean. Reads no private value.

    Parameters
    ----------
    simulated : Simulated
    prior : Prior
        Of the path, of the interface parameters η.

    Notes
    -----
    Under coefficients with N(0, 100²) nearly all responses would be far outside of their bounds: rows from the prior's
    mean, or from a draw, are all clipped, and say next to nothing of the way. There the walk starts where rows would
    be likeliest, and the prior too, whose responses are spread evenly over their bounds, or over their values,
    whatever the covariates.
    """
    if not _vague(simulated):
        return None
    rng, rows = np.random.default_rng(SEED), simulated.rows
    columns = [column[:MADE_UP] for column in simulated.columns]
    for one in rows.interface.responses:
        column = columns[one.place]
        if one.values is not None:
            values = rng.choice(one.values, size=column.shape)
        elif one.column.bounds is not None:
            values = rng.uniform(*one.column.bounds, size=column.shape)
        else:
            return None
        columns[one.place] = one.column.clamped(values.astype(column.dtype))
    return _likeliest(rows, columns, prior)


def early(simulated: Simulated, prior: Prior, start: Array) -> Prior:
    """Return the prior of a walk's first stage: as if `HOLDING` rows had said that the truth is at the start.

    Parameters
    ----------
    simulated : Simulated
    prior : Prior
        In the coordinates η / D.
    start : (d,) array
        In these too.

    Notes
    -----
    The first gradients say less than one row does. A walk that falls back to the mean of a vague prior meanwhile, or
    follows their noise, comes to scales at which rows say next to nothing, and stays there: of a σ of .2 under
    U(0, 100) it ended at .03, 77 and 86.
    """
    curvature = HOLDING * simulated.mean(start * simulated.scale)
    precision = prior.precision + curvature
    return Prior(mean=np.linalg.solve(precision, prior.weighted + curvature @ start), precision=precision)


def _vague(simulated: Simulated) -> bool:
    """Whether draws from the prior mostly lead outside of the bounds, or leave one of a few values certain."""
    found = np.array([_spread(simulated, place, at) for place, at in enumerate(simulated.parameters[:DRAWS])])
    return bool((np.median(found, axis=0) < VAGUE).any())


def _spread(simulated: Simulated, place: int, at: Array) -> list[float]:
    """Return the mean mass of each response within its bounds; of few values alone, 0 where one is certain."""
    rows, begun = simulated.rows, place * ROWS
    responses = rows.interface.responses
    columns = [column[begun : begun + ROWS] for column in simulated.columns]
    with np.errstate(all="ignore"):
        if all(one.values is not None for one in responses):
            made = expected(rows, columns, at, np.ones(len(at)))
            largest = made.of_rows(made.responses.weights.max(axis=1))
            return [float(np.nan_to_num(largest, nan=1.0).mean() < CERTAIN)]
        predictors, _ = rows.predicted(np.asarray(at, dtype=np.float64), *columns)
        held, found = needed(rows, columns), list[float]()
        for index, one in enumerate(responses):
            if one.values is None and one.column.bounds is not None:
                values, mass = values_of(rows, index, predictors, held)
                assert mass is not None  # of a density, or of quantiles
                low, high = one.column.bounds
                inside = np.where((values >= low) & (values <= high), mass, 0.0).sum(axis=1)
                found.append(float(np.nan_to_num(inside).mean()))
    return found or [1.0]


def _likeliest(rows: RowScores, columns: Sequence[Array], prior: Prior) -> Array:
    """Return where the density of rows times that of the prior is largest, about."""
    spread = np.linalg.cholesky(np.linalg.inv(prior.precision))

    def loss(away: Array) -> tuple[float, Array]:
        at = prior.mean + spread @ away
        predictors, jacobian = rows.predicted(at, *columns)
        scores, *logps = rows.observed(predictors, columns)
        slope = np.einsum("nq,nqd->d", scores, jacobian)
        value = away @ away / 2 - sum(float(one.sum()) for one in logps)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return FAR, np.zeros(len(away))
        return float(value), away - spread.T @ slope

    with np.errstate(all="ignore"):
        found = minimize(loss, np.zeros(len(spread)), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    return np.asarray(prior.mean + spread @ found.x)


__all__ = ["early", "start_of"]
