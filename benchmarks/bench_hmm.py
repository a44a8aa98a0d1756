"""Hidden Markov models of the size of the case study: 14 regions, 47 months, 10 states, 5 fields; 200 iterations."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pymc as pm
from _measure import Report

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.funding import Claims
from pymc_dp.step_methods.gibbs import TemperedGibbs

REGIONS, MONTHS, STATES, ROWS, ITERATIONS = 14, 47, 10, 20_000, 200
PRIORS = (
    "start",
    "transition",
    *(f"{name}_profile" for name in ("kind", "actor", "civilians", "state_forces", "others")),
)
LEVELS = {"kind": 3, "actor": 8, "civilians": 2, "state_forces": 2, "others": 2}


def events(seed: int = 1) -> pm.Model:
    """Simulated events: states persist, and each has a profile of its own."""
    rng = np.random.default_rng(seed)
    moves = 0.9 * np.eye(STATES) + 0.1 / STATES
    states = np.zeros((REGIONS, MONTHS), dtype=int)
    states[:, 0] = rng.integers(STATES, size=REGIONS)
    for t in range(1, MONTHS):
        states[:, t] = [rng.choice(STATES, p=moves[k]) for k in states[:, t - 1]]
    region, month = rng.integers(REGIONS, size=ROWS), rng.integers(MONTHS, size=ROWS)
    coords = {"region": range(REGIONS), "month": range(MONTHS), "state": range(STATES)}
    with pm.Model(coords=coords) as model:
        start = pm.Dirichlet("start", np.ones(STATES), dims="state")
        transition = pm.Dirichlet("transition", np.ones((STATES, STATES)))
        hidden = dp.markov.MarkovStates("states", start, transition, dims=("region", "month"))
        cell = hidden[pm.Data("region_index", region), pm.Data("month_index", month)]
        for name, levels in LEVELS.items():
            true = rng.dirichlet(np.ones(levels), size=STATES)[states[region, month]]
            seen = (rng.random((ROWS, 1)) > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
            profile = dp.TruncatedDirichlet(f"{name}_profile", np.ones((STATES, levels)), 0.02)
            pm.Categorical(name, profile[cell], observed=seen)
    return model


def numpy_paths(rng: np.random.Generator) -> Callable[[], None]:
    """Forward filtering and backward sampling by NumPy, one region after the other."""
    evidence = rng.normal(size=(REGIONS, MONTHS, STATES))
    start, moves = np.ones(STATES) / STATES, rng.dirichlet(np.ones(STATES), size=STATES)

    def one_pass() -> None:
        for region in range(REGIONS):
            filtered = np.empty((MONTHS, STATES))
            for t in range(MONTHS):
                arriving = start if t == 0 else filtered[t - 1] @ moves
                weight = arriving * np.exp(evidence[region, t] - evidence[region, t].max())
                filtered[t] = weight / weight.sum()
            state = rng.choice(STATES, p=filtered[-1])
            for t in range(MONTHS - 2, -1, -1):
                weight = filtered[t] * moves[:, state]
                state = rng.choice(STATES, p=weight / weight.sum())

    return one_pass


def stepped(advance: Callable, model: pm.Model) -> Callable[[], None]:
    state = {name: np.asarray(value) for name, value in model.initial_point().items()}

    def scan() -> None:
        nonlocal state
        state = advance(state)

    return scan


def released(model: pm.Model, domain: dp.Domain, noise_aware: bool) -> Callable[[], None]:
    statistics = dp.Statistics(noise_aware=noise_aware)
    private = dp.privatize(model, epsilon=1.0, domain=domain, statistics=statistics)
    step, rng = TemperedGibbs(model=private), np.random.default_rng(1)
    return stepped(lambda point: step.released.advance(rng, point), private)


def paid(model: pm.Model, domain: dp.Domain) -> Callable[[], None]:
    specification = TemperedGibbs()
    inspection = specification.inspect(model, domain)
    step, _ = specification.bound(inspection, Budget(1.0, 1e-6), chains=1, steps=2 * ITERATIONS)
    with opened_gate():
        step.load()
    with Claims(1).take(0, ITERATIONS).begins():
        step.start_chain()
    step.generator = np.random.default_rng(1)
    return stepped(step.advance, step.prior_model)


def seconds(call: Callable[[], None], count: int) -> float:
    """Processor time of some calls, after one to warm up."""
    call()
    begun = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - begun


def main() -> bool:
    warnings.simplefilter("ignore")
    report = Report(f"{ITERATIONS} iterations, {REGIONS} x {MONTHS} cells, {STATES} states, {len(LEVELS)} fields")
    model, public = events(), dp.Domain(public=("region_index", "month_index", *PRIORS))
    things = {
        "Gibbs on statistics, noise-aware, public cells": released(model, public, True),
        "Gibbs on statistics, noise-aware, private cells": released(model, dp.Domain(public=PRIORS), True),
        "Gibbs on statistics, plug-in": released(model, public, False),
        "paid Gibbs on rows": paid(model, public),
    }
    reference = seconds(numpy_paths(np.random.default_rng(1)), 20) * ITERATIONS / 20
    report.add("NumPy, forward filtering and backward sampling alone", f"{reference:.1f} s")
    for name, call in things.items():
        taken = seconds(call, ITERATIONS)
        report.add(name, f"{taken:.1f} s, {taken / reference:.2f} of NumPy", "<= 1.5", met=taken <= 1.5 * reference)
    return report.finish()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
