"""Areas of a published noisy table: intervals of a hierarchical model cover what they say, and without the noise not."""

from __future__ import annotations

import zlib

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.release.noise import NOISES

N_AREAS, N_TABLES, SCALE, TOTAL_SCALE = 200, 12, 5.0, 2.0
MIDDLE, SPREAD = np.log(15.0), 0.5
SAMPLER = {"draws": 500, "tune": 500, "chains": 1, "progressbar": False, "compute_convergence_checks": False}


def areas() -> pm.Model:
    """Rates of areas about a common one."""
    with pm.Model(coords={"area": np.arange(N_AREAS)}) as model:
        middle = pm.Normal("middle", MIDDLE, 0.5)
        spread = pm.LogNormal("spread", np.log(SPREAD), 0.3)
        z = pm.Normal("z", 0, 1, dims="area")
        rate = pm.Deterministic("rate", pm.math.exp(middle + spread * z), dims="area")
        pm.Poisson("count", rate, dims="area", observed=np.zeros(N_AREAS, dtype=int))
    return model


def coverage(kind: str, *, total: bool, noise_aware: bool, n_tables: int = N_TABLES) -> tuple[float, float]:
    """Share of 90% intervals that hold the truth, which the prior drew: of rates, and of what all areas share."""
    rng, model = np.random.default_rng(zlib.crc32(f"{kind} {total}".encode())), areas()
    noise = NOISES[kind].simulated
    rates, shared = [], []
    for number in range(n_tables):
        truth = {"middle": rng.normal(MIDDLE, 0.5), "spread": np.exp(rng.normal(np.log(SPREAD), 0.3))}
        truth["rate"] = np.exp(truth["middle"] + truth["spread"] * rng.normal(size=N_AREAS))
        exact = rng.poisson(truth["rate"])
        values = {"count": exact + noise(rng, SCALE, (N_AREAS,))}
        if total:
            values["total"] = exact.sum() + noise(rng, TOTAL_SCALE, (1,))[0]
        release = dp.Release.of_counts(
            values,
            {"count": SCALE, "total": TOTAL_SCALE} if total else SCALE,
            noise=f"discrete {kind}",
            dims={"count": "area", "total": ()} if total else "area",
            made_by="a simulation",
            guarantee="none",
        )
        with dp.condition(model, release, noise_aware=noise_aware):
            posterior = pm.sample(**SAMPLER, random_seed=number, nuts_sampler="pymc")["posterior"]
        ends = posterior.to_dataset().quantile([0.05, 0.95], ("chain", "draw"))
        held = {name: (ends[name][0] <= value) & (value <= ends[name][1]) for name, value in truth.items()}
        rates.append(float(held["rate"].mean()))
        shared += [bool(held["middle"]), bool(held["spread"])]
    return float(np.mean(rates)), float(np.mean(shared))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "total"), [("gaussian", False), ("laplace", False), ("gaussian", True)])
def test_intervals_of_areas_cover_what_they_say(kind: str, total: bool) -> None:
    of_rates, of_shared = coverage(kind, total=total, noise_aware=True)
    print(f"{kind}, total {total}: rates {of_rates:.3f}, shared {of_shared:.3f}")
    assert 0.86 <= of_rates <= 0.94
    assert of_shared >= 0.75


@pytest.mark.slow
def test_intervals_that_take_published_counts_for_exact_do_not() -> None:
    of_rates, of_shared = coverage("gaussian", total=False, noise_aware=False)
    print(f"plug-in: rates {of_rates:.3f}, shared {of_shared:.3f}")
    assert of_rates < 0.8 and of_shared < 0.6
