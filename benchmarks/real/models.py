"""Regressions as a user would write them: normal priors, columns in public units, scales on the scale of logarithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt

Array = np.ndarray
Rows = dict[str, Array]


@dataclass(frozen=True)
class Column:
    """A covariate, its public bounds, and the public numbers that it is standardised by."""

    name: str
    low: float = 0.0
    high: float = 1.0
    middle: float = 0.0
    unit: float = 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the standardised column."""
        return (self.low - self.middle) / self.unit, (self.high - self.middle) / self.unit


@dataclass(frozen=True)
class Response:
    """A response: its likelihood, its bounds, the numbers it is standardised by, and what its priors are."""

    name: str
    likelihood: str
    bounds: tuple[float, float] | None = None
    middle: float = 0.0
    unit: float = 1.0
    intercept: tuple[float, float] = (0.0, 2.0)
    slopes: float = 1.0
    levels: int = 0


def standardised(rows: Rows, columns: tuple[Column, ...]) -> Array:
    """Return the matrix of the columns within their bounds."""
    parts = [(np.clip(rows[one.name], one.low, one.high) - one.middle) / one.unit for one in columns]
    return np.column_stack(parts).astype(float)


def clamped(rows: Rows, columns: tuple[Column, ...], response: Response) -> Rows:
    """Return what a release uses of the rows: no value is beyond its bounds."""
    found = {one.name: np.clip(np.asarray(rows[one.name], float), one.low, one.high) for one in columns}
    values = np.asarray(rows[response.name], float)
    if response.bounds is not None:
        values = np.clip((values - response.middle) / response.unit, *response.bounds)
    whole = response.likelihood in {"logistic", "poisson", "negative binomial", "ordered"}
    found[response.name] = np.round(values).astype(int) if whole else values
    return found


def regression(rows: Rows, columns: tuple[Column, ...], response: Response, *, apart: bool) -> pm.Model:
    """Return the model of clamped rows.

    Parameters
    ----------
    rows : dict of str to array
    columns : tuple of Column
    response : Response
    apart : bool
        Whether each column is a `pm.Data` of its own, in its own unit, and not one of a design matrix.
    """
    y = rows[response.name]
    with pm.Model(coords={"column": [one.name for one in columns]}) as model:
        model.add_coord("row", length=len(y))
        b = pm.Normal("b", 0, response.slopes, dims="column")
        if apart:
            held = [pm.Data(one.name, rows[one.name], dims="row") for one in columns]
            slopes = sum(
                b[place] * (data - one.middle) / one.unit
                for place, (one, data) in enumerate(zip(columns, held, strict=True))
            )
        else:
            slopes = pm.Data("X", standardised(rows, columns), dims=("row", "column")) @ b
        LIKELIHOODS[response.likelihood](slopes, y, response)
    return model


def bounds(columns: tuple[Column, ...], response: Response, *, apart: bool) -> dict[str, object]:
    """Return what a domain says of the columns and of the response."""
    if apart:
        found: dict[str, object] = {one.name: (one.low, one.high) for one in columns}
    else:
        found = {"X": [one.bounds for one in columns]}
    if response.bounds is not None:
        found[response.name] = response.bounds
    return found


def _intercept(response: Response):
    return pm.Normal("a", *response.intercept)


def _logistic(slopes, y, response):
    pm.Bernoulli(response.name, logit_p=_intercept(response) + slopes, observed=y, dims="row")


def _poisson(slopes, y, response):
    pm.Poisson(response.name, pt.exp(_intercept(response) + slopes), observed=y, dims="row")


def _negative_binomial(slopes, y, response):
    alpha = pm.LogNormal("alpha", 0, 1.5)
    pm.NegativeBinomial(response.name, mu=pt.exp(_intercept(response) + slopes), alpha=alpha, observed=y, dims="row")


def _normal(slopes, y, response):
    sigma = pm.LogNormal("sigma", 0, 1.5)
    pm.Normal(response.name, _intercept(response) + slopes, sigma, observed=y, dims="row")


def _student_t(slopes, y, response):
    sigma = pm.LogNormal("sigma", 0, 1.5)
    pm.StudentT(response.name, nu=4, mu=_intercept(response) + slopes, sigma=sigma, observed=y, dims="row")


def _gamma(slopes, y, response):
    alpha = pm.LogNormal("alpha", 0, 1.5)
    mean = pt.exp(_intercept(response) + slopes)
    pm.Gamma(response.name, alpha=alpha, beta=alpha / mean, observed=y, dims="row")


def _ordered(slopes, y, response):
    first = pm.Normal("first", -1, 2)
    gaps = pm.LogNormal("gaps", 0, 1, shape=response.levels - 2)
    cuts = pt.concatenate([first[None], first + pt.cumsum(gaps)])
    pm.OrderedLogistic(response.name, eta=slopes, cutpoints=cuts, compute_p=False, observed=y, dims="row")


LIKELIHOODS: dict[str, Callable] = {
    "logistic": _logistic,
    "poisson": _poisson,
    "negative binomial": _negative_binomial,
    "normal": _normal,
    "student t": _student_t,
    "gamma": _gamma,
    "ordered": _ordered,
}
"""What a response is, given its linear predictor."""
