"""Simulation-based calibration of likelihoods released as histograms, by grids of parameters (Talts et al. 2018)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import rebuild, unwrap
from pymc_dp.transforms.bins import bin_probabilities
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.privatize import plan_for
from tests.paid import draw_release

N_SIMULATIONS, N_ROWS, EPSILON = 300, 200, 0.5


@dataclass(frozen=True)
class Case:
    """A likelihood, its prior by uniform numbers, and a grid of these."""

    build: Callable[[Any], None]
    parameters: Callable[[np.ndarray], np.ndarray]
    simulate: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    bounds: tuple[float, float]
    points: int
    n_parameters: int
    dtype: str


CASES = {
    "StudentT": Case(
        build=lambda y: pm.StudentT("y", 3.0, mu=pm.Normal("a", 0, 2), sigma=1.0, observed=y),
        parameters=lambda u: stats.norm.ppf(u, 0, 2),
        simulate=lambda rng, at: at[0] + rng.standard_t(3, N_ROWS),
        bounds=(-5, 5),
        points=600,
        n_parameters=1,
        dtype="float64",
    ),
    "ZeroInflatedPoisson": Case(
        build=lambda y: pm.ZeroInflatedPoisson("y", pm.Uniform("a"), pm.LogNormal("b", 1, 0.5), observed=y),
        parameters=lambda u: np.stack([u[:, 0], np.exp(stats.norm.ppf(u[:, 1], 1, 0.5))], axis=1),
        simulate=lambda rng, at: (rng.random(N_ROWS) < at[0]) * rng.poisson(at[1], N_ROWS),
        bounds=(0, 8),
        points=48,
        n_parameters=2,
        dtype="int64",
    ),
}


def ranks(case: Case, rng: np.random.Generator, noise: str, n_max: int | None) -> np.ndarray:
    """Posterior probability that each parameter is below its true value: (n_simulations, n_parameters) array."""
    with pm.Model() as model:
        case.build(pm.Data("rows", np.zeros(N_ROWS, dtype=case.dtype)))
    relation = {} if n_max is None else {"neighbours": "add_remove", "n_max": n_max}
    plan = plan_for(
        model,
        epsilon=EPSILON,
        delta=1e-6 if noise == "gaussian" else 0.0,
        domain=dp.Domain(bounds={"y": case.bounds}, **relation),
        statistics=dp.Statistics(noise),
    )[1]
    (table,) = plan.tables
    leaf = unwrap(model["rows"])
    axis = (np.arange(case.points) + 0.5) / case.points
    grid = np.stack([item.ravel() for item in np.meshgrid(*[axis] * case.n_parameters, indexing="ij")], axis=1)
    free = [pt.dscalar() for _ in model.free_RVs]
    graph = bin_probabilities(table.observed, table.cells, table.statistic)
    function = plain_function(free, rebuild([graph], dict(zip(model.free_RVs, free, strict=True)))[0][0])
    probabilities = np.array([function(*at)[0] for at in case.parameters(grid).reshape(len(grid), -1)])
    value, given = (pt.matrix(shape=(len(grid), n)) for n in (len(table.labels), table.statistic.n_levels))
    density = ReleaseDensity.of(table, noise_aware=True)
    sizes = replace(density.sizes, bound=np.repeat(density.sizes.bound, len(grid)))  # every point is a cell
    log_density = pytensor.function([value, given], replace(density, sizes=sizes).logp(value, given))
    found = []
    for _ in range(N_SIMULATIONS):
        truth = rng.random((1, case.n_parameters))
        rows = case.simulate(rng, case.parameters(truth).reshape(-1))
        leaf.set_value(rows.astype(leaf.type.dtype), borrow=True)
        released = np.repeat(draw_release(plan).values["y"], len(grid), axis=0)
        logp = log_density(released, probabilities)
        weights = np.exp(logp - logp.max()).reshape([case.points] * case.n_parameters)
        weights /= weights.sum()
        found.append([_below(weights, place, at) for place, at in enumerate(truth[0])])
    return np.array(found)


def _below(weights: np.ndarray, place: int, at: float) -> float:
    mass = weights.sum(axis=tuple(other for other in range(weights.ndim) if other != place))
    return float(np.interp(at, np.linspace(0, 1, len(mass) + 1), np.concatenate([[0], mass.cumsum()])))


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "n_max"), [("laplace", None), ("gaussian", None), ("laplace", 600)])
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_and_ranks_are_uniform(name: str, noise: str, n_max: int | None) -> None:
    seed = zlib.crc32(f"{name} {noise} {n_max}".encode())
    rng = np.random.default_rng(seed)
    with dp.testing.insecure_randomness(seed % 2**31):
        below = ranks(CASES[name], rng, noise, n_max)
    for found in below.T:
        # Where noise leaves little of a parameter its posterior is the prior, whose ranks are exact: all of them count.
        observed = np.bincount(np.minimum((found * 10).astype(int), 9), minlength=10)
        covered = int(np.sum((found > 0.05) & (found < 0.95)))
        print(f"{name}, {noise}, {n_max}: coverage {covered / N_SIMULATIONS:.3f}, ranks {observed}")
        assert stats.chisquare(observed).pvalue > 1e-4, observed
        assert stats.binomtest(covered, N_SIMULATIONS, 0.9).pvalue > 1e-4, covered
