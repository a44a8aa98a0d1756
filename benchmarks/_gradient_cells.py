"""Models and designs on which the intervals of ``dp.Gradients`` are calibrated, and one table's fit in closed form.

The parameters of every model here have independent normal priors, so that the posterior of a release is normal too and
needs no sampler: what is measured is the release. A test holds NUTS against it.
"""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.findings import Inspection
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.walk_kinds import Vector

DELTA = 1e-5
LEVEL = 1.6448536269514722
"""Standard deviations to each side of a normal's middle that hold 90% of it."""
Array = np.ndarray


@dataclass(frozen=True)
class Design:
    """Covariates of a table: how rows are drawn, and what the domain says of them; without bounds there are none."""

    size: int
    n_rows: int
    draw: Callable[[np.random.Generator, int, int], Array]
    norm: float | None = None
    bound: float | None = 4.0
    columns: Callable[[int], object] | None = None


@dataclass(frozen=True)
class Family:
    """A likelihood: the model over given covariates, and means and deviations of its priors, in order of labels."""

    build: Callable[[Array, Array], pm.Model]
    respond: Callable[[np.random.Generator, Array, Array], dict[str, Array]]
    prior: Callable[[int], tuple[Array, Array]]
    bounds: dict[str, tuple[float, float]]


def _unit(rng, n, d):
    rows = rng.normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _cut(rows):
    return np.clip(rows, -4, 4)


def _correlated(rng, n, d):
    loadings = np.random.default_rng(7).normal(size=(3, d))
    rows = rng.normal(size=(n, 3)) @ loadings + 0.5 * rng.normal(size=(n, d))
    return _cut(rows / np.sqrt((loadings**2).sum(axis=0) + 0.25))


def _sparse(rng, n, d):
    return (rng.random((n, d)) < 0.05).astype(float)


DRAWS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "normal": lambda rng, n, d: _cut(rng.normal(size=(n, d))),
    "skewed": lambda rng, n, d: _cut(rng.exponential(size=(n, d)) - 1),
    "heavy": lambda rng, n, d: _cut(rng.standard_t(3, size=(n, d))),
    "sparse": _sparse,
    "correlated": _correlated,
}
DESIGNS = {
    "unit 5": Design(5, 5000, _unit, norm=1.0),
    "unit 24": Design(24, 20_000, _unit, norm=1.0),
    **{name: Design(12, 8000, draw) for name, draw in DRAWS.items()},
    **{f"{name}, wide": Design(12, 8000, DRAWS[name], bound=8.0) for name in ("normal", "heavy", "sparse")},
    "normal, stated": Design(12, 8000, DRAWS["normal"], columns=lambda d: pm.Normal.dist(0, 1, shape=d)),
    "items": Design(6, 3000, lambda rng, n, d: np.zeros((n, d)), bound=None),
    "four": Design(4, 5000, lambda rng, n, d: np.clip(rng.normal(size=(n, d)), -2.5, 2.5), bound=2.5),
}


def _logistic(x, y):
    with pm.Model() as model:
        b = pm.Normal("b", shape=x.shape[1])
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=y)
    return model


def _poisson(x, y):
    with pm.Model() as model:
        a, b = pm.Normal("a", 1, 0.7), pm.Normal("b", sigma=0.4, shape=x.shape[1])
        pm.Poisson("y", pt.exp(a + pm.Data("x", x) @ b), observed=y)
    return model


def _negative_binomial(x, y):
    with pm.Model() as model:
        a, b = pm.Normal("a", 1, 0.7), pm.Normal("b", sigma=0.4, shape=x.shape[1])
        alpha = pm.LogNormal("alpha", 0.5, 0.7)
        pm.NegativeBinomial("y", mu=pt.exp(a + pm.Data("x", x) @ b), alpha=alpha, observed=y)
    return model


def _normal(x, y):
    with pm.Model() as model:
        a, b, sigma = pm.Normal("a", 0, 2), pm.Normal("b", 0, 2, shape=x.shape[1]), pm.LogNormal("sigma")
        pm.Normal("y", a + pm.Data("x", x) @ b, sigma, observed=y)
    return model


def _distributional(x, y):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 2), pm.Normal("b", 0, 2, shape=x.shape[1])
        c, e = pm.Normal("c"), pm.Normal("e", 0, 0.4, shape=x.shape[1])
        held = pm.Data("x", x)
        pm.Normal("y", a + held @ b, pt.exp(c + held @ e), observed=y)
    return model


def _student_t(x, y):
    with pm.Model() as model:
        a, b, sigma = pm.Normal("a", 0, 2), pm.Normal("b", 0, 2, shape=x.shape[1]), pm.LogNormal("sigma")
        pm.StudentT("y", nu=4, mu=a + pm.Data("x", x) @ b, sigma=sigma, observed=y)
    return model


def _tobit(x, y):
    with pm.Model() as model:
        a, b, sigma = pm.Normal("a", 0.5), pm.Normal("b", shape=x.shape[1]), pm.LogNormal("sigma", 0, 0.6)
        whole = pm.Normal.dist(a + pm.Data("x", x) @ b, sigma)
        pm.Censored("y", whole, lower=0, upper=None, observed=y)
    return model


def _ordered(x, y):
    with pm.Model() as model:
        b, first, gaps = (
            pm.Normal("b", shape=x.shape[1]),
            pm.Normal("first", -1.3, 0.7),
            pm.Normal("gaps", 0, 0.4, shape=2),
        )
        cuts = pt.concatenate([first[None], first + pt.cumsum(pt.exp(gaps))])
        pm.OrderedLogistic("y", eta=pm.Data("x", x) @ b, cutpoints=cuts, compute_p=False, observed=y)
    return model


def _two(x, y1, y2):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=x.shape[1])
        a2, c = pm.Normal("a2", 0, 2), pm.Normal("c", 0, 2, shape=x.shape[1])
        sigma = pm.LogNormal("sigma", 0, 0.8)
        held = pm.Data("x", x)
        pm.Bernoulli("y", logit_p=a + held @ b, observed=y1)
        pm.Normal("z", a2 + held @ c, sigma, observed=y2)
    return model


def _item_response(x, y):
    with pm.Model() as model:
        log_a, b = pm.Normal("log_a", 0, 0.4, shape=x.shape[1]), pm.Normal("b", shape=x.shape[1])
        theta = pm.Normal("theta", shape=len(x))
        pm.Bernoulli("y", logit_p=pt.exp(log_a) * (theta[:, None] - b), observed=y)
    return dp.integrate(model, "theta", nodes=15)


def _priors(*parts):
    """Return means and deviations; a part of size None has as many entries as there are covariates."""

    def of(d):
        repeats = [d if size is None else size for *_, size in parts]
        return tuple(np.repeat([float(part[k]) for part in parts], repeats) for k in (0, 1))

    return of


def _ordered_answers(rng, x, p):
    d = x.shape[1]
    cuts = p[d] + np.concatenate([[0.0], np.cumsum(np.exp(p[d + 1 :]))])
    return {"y": (x @ p[:d] + rng.logistic(size=len(x)) > cuts[:, None]).sum(axis=0)}


def _two_answers(rng, x, p):
    d = x.shape[1]
    first = (rng.random(len(x)) < special.expit(p[0] + x @ p[1 : d + 1])).astype(int)
    return {"y": first, "z": p[d + 1] + x @ p[d + 2 : -1] + np.exp(p[-1]) * rng.normal(size=len(x))}


def _distributional_answers(rng, x, p):
    d = x.shape[1]
    return {"y": p[0] + x @ p[1 : d + 1] + np.exp(p[d + 1] + x @ p[d + 2 :]) * rng.normal(size=len(x))}


def _item_answers(rng, x, p):
    (n, d), theta = x.shape, rng.normal(size=(len(x), 1))
    return {"y": (rng.random((n, d)) < special.expit(np.exp(p[:d]) * (theta - p[d:]))).astype(int)}


def _rates(x, p):
    return np.exp(np.minimum(p[0] + x @ p[1 : x.shape[1] + 1], 15))


FAMILIES = {
    "logistic": Family(
        _logistic, lambda rng, x, p: {"y": (rng.random(len(x)) < special.expit(x @ p)).astype(int)},
        _priors((0, 1, None)), {},
    ),
    "poisson": Family(
        _poisson, lambda rng, x, p: {"y": rng.poisson(_rates(x, p))},
        _priors((1, 0.7, 1), (0, 0.4, None)), {"y": (0, 60)},
    ),
    "negative binomial": Family(
        _negative_binomial,
        lambda rng, x, p: {"y": rng.poisson(_rates(x, p) * rng.gamma(np.exp(p[-1]), np.exp(-p[-1]), len(x)))},
        _priors((1, 0.7, 1), (0, 0.4, None), (0.5, 0.7, 1)), {"y": (0, 100)},
    ),
    "normal": Family(
        _normal, lambda rng, x, p: {"y": p[0] + x @ p[1:-1] + np.exp(p[-1]) * rng.normal(size=len(x))},
        _priors((0, 2, 1), (0, 2, None), (0, 1, 1)), {"y": (-100, 100)},
    ),
    "distributional": Family(
        _distributional, _distributional_answers,
        _priors((0, 2, 1), (0, 2, None), (0, 1, 1), (0, 0.4, None)), {"y": (-100, 100)},
    ),
    "student t": Family(
        _student_t, lambda rng, x, p: {"y": p[0] + x @ p[1:-1] + np.exp(p[-1]) * rng.standard_t(4, size=len(x))},
        _priors((0, 2, 1), (0, 2, None), (0, 1, 1)), {"y": (-100, 100)},
    ),
    "tobit": Family(
        _tobit,
        lambda rng, x, p: {"y": np.maximum(p[0] + x @ p[1:-1] + np.exp(p[-1]) * rng.normal(size=len(x)), 0)},
        _priors((0.5, 1, 1), (0, 1, None), (0, 0.6, 1)), {"y": (0, 30)},
    ),
    "ordered": Family(_ordered, _ordered_answers, _priors((0, 1, None), (-1.3, 0.7, 1), (0, 0.4, 2)), {}),
    "item response": Family(_item_response, _item_answers, _priors((0, 0.4, None), (0, 1, None)), {}),
    "two": Family(
        _two, _two_answers, _priors((0, 1, 1), (0, 1, None), (0, 2, 1), (0, 2, None), (0, 0.8, 1)), {"z": (-100, 100)}
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One setting: a family, a design, a budget and a relation."""

    family: str
    design: str
    epsilon: float
    neighbours: str = "replace"
    steps: int = 60

    @property
    def name(self) -> str:
        """Key in the file of results."""
        return f"{self.family}, {self.design}, eps {self.epsilon:g}, {self.neighbours}, {self.steps} steps"

    @property
    def parts(self) -> dict[str, slice]:
        """Where parameters of each kind are, in the arrays of a `Fit`."""
        return {"all": slice(None)}


@dataclass(frozen=True)
class Fit:
    """One table's release: where the truth lies, in standard deviations, and widths over those of two others.

    `limit` is the posterior given the whole budget on one gradient at the truth, with the curvature known; `plain` that
    of the rows themselves.
    """

    z: Array
    limit: Array
    plain: Array
    chi_squared: float
    seconds: float
    """CPU seconds, without what all tables share."""


@functools.cache
def _interface(family: str, design: str, neighbours: str):
    law, table = FAMILIES[family], DESIGNS[design]
    rng = np.random.default_rng(0)
    x = table.draw(rng, table.n_rows, table.size)
    model = law.build(x, *law.respond(rng, x, law.prior(table.size)[0]).values())
    n_max = table.n_rows if neighbours == "add_remove" else None
    covariates = {"norms": {"x": table.norm}} if table.norm else {}
    bounds = law.bounds if table.norm or not table.bound else {"x": (-table.bound, table.bound), **law.bounds}
    domain = dp.Domain(bounds=bounds, neighbours=neighbours, n_max=n_max, **covariates)
    return interface_of(model, domain)


@functools.cache
def planned(cell: Cell) -> Planned:
    """Return what is public of a release in a cell: one for all its tables."""
    interface, table = _interface(cell.family, cell.design, cell.neighbours), DESIGNS[cell.design]
    columns = None if table.columns is None else {"x": table.columns(table.size)}
    choice = dp.Gradients(steps=cell.steps, columns=columns)
    return Planned.of(choice, interface, Budget(cell.epsilon, DELTA))


def table_of(cell: Cell, rng: np.random.Generator) -> tuple[Array, list[Array]]:
    """Draw parameters from the prior and rows given them: the columns of the inspection, clamped."""
    law, table = FAMILIES[cell.family], DESIGNS[cell.design]
    mean, deviation = law.prior(table.size)
    truth = mean + deviation * rng.normal(size=len(mean))
    x = table.draw(rng, table.n_rows, table.size)
    drawn = {"x": x, **law.respond(rng, x, truth)}
    return truth, clamped(_interface(cell.family, cell.design, cell.neighbours).inspection, drawn)


def clamped(inspection: Inspection, drawn: dict[str, Array]) -> list[Array]:
    """Return the columns of an inspection, of rows that were drawn."""
    return [
        column.clamped(np.asarray(drawn[column.name], dtype=column.leaf.type.dtype)) for column in inspection.columns
    ]


def fit(cell: Cell, rng: np.random.Generator) -> Fit:
    """Release one table, and compare with the truth."""
    plan = planned(cell)
    truth, columns = table_of(cell, rng)
    began = time.process_time()
    found = plan.walk(columns)
    mean, deviation = FAMILIES[cell.family].prior(DESIGNS[cell.design].size)
    middle, covariance = plan.quadratic(found).posterior(mean, np.diag(deviation**-2.0))
    seconds = time.process_time() - began
    width = np.sqrt(np.diag(covariance))
    limit, plain = (
        np.sqrt(np.diag(np.linalg.inv(np.diag(deviation**-2.0) + one))) for one in information(plan, truth, columns)
    )
    return Fit(
        z=(truth - middle) / width,
        limit=width / limit,
        plain=width / plain,
        chi_squared=found.chi_squared,
        seconds=seconds,
    )


def information(plan: Planned, truth: Array, columns: list[Array]) -> tuple[Array, Array]:
    """Return the precision that rows give their parameters: by one gradient that has all the budget, and unreleased."""
    limits = plan.limits
    whole = _curvature(plan, replace(limits, clip_norm=UNLIMITED, clip_curvature=1e12), truth, columns)
    limits = limits.whitened(whole, len(columns[0]))
    curvature = _curvature(plan, limits, truth, columns)
    shares = np.sqrt(np.clip(plan.simulated.shares(truth), 0.05, 1.0))
    scale = plan.schedule.scale_of(Vector(len(truth)), 1.0) / UNITS
    variance = (scale * limits.clip_norm) ** 2
    own = curvature * np.outer(shares, shares) + limits.curvature(variance * np.eye(len(truth)))
    back = np.outer(limits.scale, limits.scale)
    return curvature @ np.linalg.solve(own, curvature) / back, whole / back


def _curvature(plan: Planned, limits: Limits, truth: Array, columns: list[Array]) -> Array:
    """Curvature at the truth, clipped as in `limits`."""
    parts = RowParts(rows=plan.simulated.rows)
    total = np.zeros((len(truth), len(truth)))
    for start in range(0, len(columns[0]), 4096):
        factors = parts.factors([column[start : start + 4096] for column in columns], truth / limits.scale, limits)
        total += np.einsum("nqd,nqe->de", factors, factors, optimize=True) * limits.clip_curvature
    return limits.curvature(total)


def seed(cell: Cell, place: int) -> int:
    """Return the seed of a table of a cell."""
    return zlib.crc32(f"{cell.name}, {place}".encode())


OTHERS = {"four": "logistic", "items": "item response"}
"""Designs that the logistic regressions leave out, and families that the design of four columns does."""
CELLS = [
    *(Cell("logistic", design, epsilon) for epsilon in (1.0, 3.0, 0.3) for design in DESIGNS if design not in OTHERS),
    *(Cell(family, "four", epsilon) for epsilon in (1.0, 3.0) for family in FAMILIES if family not in OTHERS.values()),
    *(Cell("item response", "items", epsilon) for epsilon in (1.0, 3.0)),
    *(Cell("logistic", design, 1.0, "add_remove") for design in ("unit 5", "normal")),
]
"""All that are calibrated, those that take longest last."""
