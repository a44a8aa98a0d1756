"""Logistic regression on Adult and Abalone by ``dp.Gradients``, as a user runs it: one release, then NUTS.

Rows have norm 1 at most, one row is replaced, δ = 1e-5; the prior of the coefficients is normal with standard deviation
3, for every table and budget. `python benchmarks/bench_gradients.py 10` takes ten seeds a budget.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings

import numpy as np
import pymc as pm
from _logistic import Table, abalone, adult, score, summary

import pymc_dp as dp

DELTA, SEEDS = 1e-5, 10
EPSILONS = {
    "Adult, 30 columns": (0.1, 0.3, 1.0, 3.0, 10.0),
    "Adult, 109 columns": (0.1, 0.3, 1.0, 3.0, 10.0),
    "Abalone": (1.0,),
}
SAMPLER = {"draws": 300, "tune": 300, "chains": 1, "cores": 1, "progressbar": False}


def draws_of(table: Table, epsilon: float, neighbours: str = "replace") -> np.ndarray:
    """Draws of the coefficients, (n_draws, d)."""
    n_max = len(table.y) if neighbours == "add_remove" else None
    with pm.Model():
        w = pm.Normal("w", 0, 3, shape=table.x.shape[1])
        pm.Bernoulli("y", logit_p=pm.Data("x", table.x) @ w, observed=table.y)
        found = dp.sample(
            epsilon=epsilon,
            delta=DELTA,
            domain=dp.Domain(norms={"x": 1.0}, neighbours=neighbours, n_max=n_max),
            statistics=dp.Gradients(),
            ledger=dp.Ledger(epsilon, DELTA),
            **SAMPLER,
        )
    assert epsilon * (1 - 1e-3) < found.dp.epsilon <= epsilon
    return found["posterior"]["w"].values[0]


def tables(name: str, seed: int) -> tuple[Table, Table]:
    """Rows to learn from, and others."""
    return abalone(seed) if name == "Abalone" else adult(every_level="109" in name)


def main(seeds: int) -> None:
    """Print a line a table and budget."""
    for name, budgets in EPSILONS.items():
        for epsilon in budgets:
            scores, begun = [], time.process_time()
            for seed in range(seeds):
                train, test = tables(name, seed)
                scores.append(score(draws_of(train, epsilon), test))
            seconds = (time.process_time() - begun) / seeds
            print(f"{name}, ε = {epsilon:g}: {summary(scores)}, {seconds:.0f} CPU s a fit", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
