"""Areas of a published noisy table: intervals cover what they say, and without a model of the noise they do not.

Posteriors are exact but for grids: given what all areas share these are independent, so that what the private model
says about each area, as a function of its rate, is all that is needed. A total joins them; it weighs draws.
"""

from __future__ import annotations

import zlib

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.release.noise import NOISES

N_AREAS, N_TABLES, N_DRAWS = 200, 30, 400
MORE = 5
"""Times as many draws where these are weighed."""
SCALE, TOTAL_SCALE = 5.0, 2.0
MIDDLE, SPREAD = stats.norm(np.log(15.0), 0.5), stats.lognorm(0.3, scale=0.5)
LOG_RATES = np.linspace(np.log(0.05), np.log(1000.0), 300)
ENDS = {"middle": (np.log(15.0) - 2.5, np.log(15.0) + 2.5), "spread": (0.1, 1.8)}


def simulated(rng: np.random.Generator, kind: str, *, total: bool) -> tuple[dict[str, np.ndarray], dp.Release]:
    """Draw the truth from the prior, and publish it."""
    noise = NOISES[kind].simulated
    truth = {"middle": MIDDLE.rvs(random_state=rng), "spread": SPREAD.rvs(random_state=rng)}
    truth["rate"] = np.exp(truth["middle"] + truth["spread"] * rng.normal(size=N_AREAS))
    exact = rng.poisson(truth["rate"])
    values = {"count": exact + noise(rng, SCALE, (N_AREAS,))}
    if total:
        values["total"] = exact.sum() + noise(rng, TOTAL_SCALE, (1,))[0]
    scales = {"count": SCALE, "total": TOTAL_SCALE} if total else SCALE
    dims = {"count": "area", "total": ()} if total else "area"
    stated = {"noise": f"discrete {kind}", "made_by": "a simulation", "guarantee": "none"}
    return truth, dp.Release.of_counts(values, scales, dims=dims, **stated)


def densities(release: dp.Release, *, noise_aware: bool):
    """Log densities of what was published, as the private model has them, by the logarithms of rates."""
    with pm.Model(coords={"area": np.arange(N_AREAS)}) as model:
        log_rate = pm.Normal("log_rate", 0, 10, dims="area")
        pm.Poisson("count", pm.math.exp(log_rate), dims="area", observed=np.zeros(N_AREAS, dtype=int))
    private = dp.condition(model, release, noise_aware=noise_aware)
    terms = private.logp(vars=private.observed_RVs, sum=False)
    function = private.compile_fn(terms, inputs=private.value_vars)
    return lambda log_rates: function({"log_rate": log_rates})


def posterior(rng: np.random.Generator, release: dp.Release, *, noise_aware: bool) -> dict[str, np.ndarray]:
    """Draw what all areas share by a grid about its mode, and each rate by another."""
    function = densities(release, noise_aware=noise_aware)
    known = np.array([function(np.full(N_AREAS, at))[0] for at in LOG_RATES])
    known = np.exp(known - known.max(axis=0))

    def log_density(middle: np.ndarray, spread: np.ndarray) -> np.ndarray:
        weights = stats.norm.pdf(LOG_RATES, middle[:, None], spread[:, None])
        with np.errstate(divide="ignore"):  # far from the mode
            found = np.log(weights @ known).sum(axis=1)
        return found + MIDDLE.logpdf(middle) + SPREAD.logpdf(spread)

    ends = dict(ENDS)
    for _ in range(3):
        grid = [axis.ravel() for axis in np.meshgrid(*(np.linspace(*pair, 41) for pair in ends.values()))]
        logp = log_density(*grid)
        share = np.exp(logp - logp.max())
        share /= share.sum()
        for (name, (low, high)), axis in zip(list(ends.items()), grid, strict=True):
            mean = share @ axis
            wide = 5 * np.sqrt(share @ (axis - mean) ** 2) + 2 * (high - low) / 40
            ends[name] = (max(mean - wide, ENDS[name][0]), min(mean + wide, ENDS[name][1]))
    total = len(release.tables) > 1 and noise_aware
    n_draws = N_DRAWS * (MORE if total else 1)
    chosen = rng.choice(len(share), n_draws, p=share)
    found = {name: axis[chosen] for name, axis in zip(ends, grid, strict=True)}
    rates = np.empty((n_draws, N_AREAS))
    for row, (middle, spread) in enumerate(zip(*found.values(), strict=True)):
        below = np.cumsum(stats.norm.pdf(LOG_RATES, middle, spread)[:, None] * known, axis=0)
        places = (below < rng.random(N_AREAS) * below[-1]).sum(axis=0)
        rates[row] = LOG_RATES[places] + (rng.random(N_AREAS) - 0.5) * (LOG_RATES[1] - LOG_RATES[0])
    found["rate"] = np.exp(rates)
    if total:
        logp = np.array([np.sum(function(row)[1]) for row in rates])
        weight = np.exp(logp - logp.max())
        assert weight.sum() ** 2 / (weight**2).sum() > N_DRAWS / 8
        kept = rng.choice(n_draws, N_DRAWS, p=weight / weight.sum())
        found = {name: draws[kept] for name, draws in found.items()}
    return found


def coverage(kind: str, *, total: bool, noise_aware: bool, n_tables: int = N_TABLES) -> tuple[float, float]:
    """Share of 90% intervals that hold the truth: of rates, and of what all areas share."""
    rng = np.random.default_rng(zlib.crc32(f"{kind} {total}".encode()))
    rates, shared = [], []
    for _ in range(n_tables):
        truth, release = simulated(rng, kind, total=total)
        draws = posterior(rng, release, noise_aware=noise_aware)
        ends = {name: np.quantile(one, [0.05, 0.95], axis=0) for name, one in draws.items()}
        held = {name: (ends[name][0] <= value) & (value <= ends[name][1]) for name, value in truth.items()}
        rates.append(held["rate"].mean())
        shared += [held["middle"], held["spread"]]
    return float(np.mean(rates)), float(np.mean(shared))


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("kind", "total"), [("gaussian", False), ("laplace", False), ("gaussian", True)])
def test_intervals_of_areas_cover_what_they_say(kind: str, total: bool) -> None:
    of_rates, of_shared = coverage(kind, total=total, noise_aware=True)
    print(f"{kind}, total {total}: rates {of_rates:.3f}, shared {of_shared:.3f}")
    assert 0.86 <= of_rates <= 0.94
    assert 0.8 <= of_shared <= 0.98


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_intervals_that_take_published_counts_for_exact_do_not() -> None:
    of_rates, of_shared = coverage("gaussian", total=False, noise_aware=False)
    print(f"plug-in: rates {of_rates:.3f}, shared {of_shared:.3f}")
    assert of_rates < 0.8 and of_shared < 0.6
