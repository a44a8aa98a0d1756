"""What the noise costs: errors of posterior draws as published, and the efficiency that theory promises."""

from __future__ import annotations

import zlib
from functools import cache

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.privatize import plan_for
from tests.paid import draw_release

P = 0.1
EPSILON = 0.1
N_SEEDS = 400
PUBLISHED = {1_000: (0.0218, 0.0104), 10_000: (0.0040, 0.0035), 100_000: (0.0011, 0.0011)}


class Releaser:
    """The release path of a coin, planned once; every call sends other rows through it."""

    def __init__(self, n_rows: int, epsilon: float, n_max: int | None = None) -> None:
        with pm.Model() as model:
            self.rows = pm.Data("rows", np.zeros(n_rows, dtype=np.int64))
            pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=self.rows)
        domain = None if n_max is None else dp.Domain(neighbours="add_remove", n_max=n_max)
        _, self.plan = plan_for(model, epsilon=epsilon, delta=0.0, domain=domain, statistics=dp.Statistics())
        (self.table,) = self.plan.tables

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        self.rows.set_value(rows.astype(self.rows.type.dtype))
        return draw_release(self.plan).values["y"]


@cache
def releases(n_rows: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact counts of ones, and what was released of them, over many tables: (n_seeds,) and (n_seeds, 1 or 2) arrays.

    The papers release the pair (ones, zeros), which one replaced row moves by 2, with noise of scale 2/ε on each. The
    library does so under add_remove at ε/2; its own choice under replace is one count with noise of scale 1/ε.
    """
    rng = np.random.default_rng(zlib.crc32(f"{kind} {n_rows}".encode()))
    pair = kind == "papers"
    ones, released = np.empty(N_SEEDS), []
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):
        release = Releaser(n_rows, EPSILON / 2 if pair else EPSILON, n_rows if pair else None)
        density = ReleaseDensity.of(release.table, noise_aware=False)
        for seed in range(N_SEEDS):
            rows = (rng.random(n_rows) < P).astype(np.int64)
            ones[seed] = rows.sum()
            value = release(rows)
            released.append(density.project(value)[0] if pair else value[0])
    return ones, np.array(released)


def noise_aware_draws(n_rows: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draws from the library's noise-aware posterior of every released table: (n_seeds, n_draws) array."""
    _, released = releases(n_rows, "library")
    value, p = pt.matrix("value", shape=(1, 1)), pt.vector("p")
    density = ReleaseDensity.of(Releaser(n_rows, EPSILON).table, noise_aware=True)
    log_density = pytensor.function([value, p], density.graph(value, p), mode="FAST_COMPILE")
    draws = []
    for value in released:
        spread = 9 * np.hypot(np.sqrt(P * (1 - P) / n_rows), np.sqrt(2) / (EPSILON * n_rows))
        middle = np.clip(value[0] / n_rows, 0, 1)
        low, high = max(middle - spread, 0), min(middle + spread, 1)
        grid = low + (high - low) * (np.arange(600) + 0.5) / 600
        logp = np.ravel(log_density(np.atleast_2d(value), grid))
        weights = np.exp(logp - logp.max())
        picked = rng.choice(grid, size=n_draws, p=weights / weights.sum())
        draws.append(picked + (high - low) / 600 * (rng.random(n_draws) - 0.5))
    return np.array(draws)


def assert_mean(values: np.ndarray, expected: float, *, rounding: float) -> None:
    error = 3 * values.std(ddof=1) / np.sqrt(len(values)) + rounding
    assert abs(values.mean() - expected) < error, (values.mean(), expected, error)


@pytest.mark.parametrize("n_rows", PUBLISHED)
def test_draws_of_the_papers_form_err_as_published(n_rows: int, rng: np.random.Generator) -> None:
    ones, released = releases(n_rows, "papers")
    papers, not_private = PUBLISHED[n_rows]
    assert_mean(np.abs(rng.beta(1 + released[:, 1], 1 + released[:, 0]) - P), papers, rounding=5e-5)
    assert_mean(np.abs(rng.beta(1 + ones, 1 + n_rows - ones) - P), not_private, rounding=5e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("n_rows", [1_000, 10_000])
def test_one_count_errs_less_than_the_papers_pair(n_rows: int, rng: np.random.Generator) -> None:
    _, released = releases(n_rows, "papers")
    papers = np.abs(rng.beta(1 + released[:, 1], 1 + released[:, 0]) - P).mean()
    ours = np.abs(noise_aware_draws(n_rows, 1, rng) - P).mean()
    assert ours < papers
