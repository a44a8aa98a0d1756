"""Gibbs scans: their cost does not grow with the number of rows, on exact sums and on releases alike."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pymc as pm
from _measure import Report, in_turn

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.funding import Claims
from pymc_dp.step_methods.gibbs import TemperedGibbs

N_GROUPS = 5


def survey(n_rows: int, seed: int = 1) -> pm.Model:
    """Bernoulli rows with one truncated probability for each of five groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(N_GROUPS, size=n_rows).astype(np.int8)
    answer = (rng.random(n_rows) < np.array([0.7, 0.6, 0.5, 0.35, 0.2])[group]).astype(np.int8)
    with pm.Model(coords={"group": range(N_GROUPS)}) as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.05, 0.95, dims="group")
        pm.Bernoulli("y", p[pm.Data("index", group)], observed=answer)
    return model


def scan_of(step: TemperedGibbs, model: pm.Model):
    """One scan after the other, as PyMC's loop makes them."""
    step.generator = np.random.default_rng(1)
    state = {name: np.asarray(value) for name, value in model.initial_point().items()}

    def scan() -> None:
        nonlocal state
        state = step.advance(state)

    return scan


def held(n_rows: int):
    specification, model = TemperedGibbs(), survey(n_rows)
    step, _ = specification.bound(specification.inspect(model, None), Budget(1.0), chains=1, steps=10**4)
    with opened_gate():
        step.load()
    with Claims(1).take(0, 10**6).begins():
        step.start_chain()
    return scan_of(step, step.prior_model)


def released(n_rows: int):
    private = dp.privatize(survey(n_rows), epsilon=1.0)
    return scan_of(TemperedGibbs(model=private), private)


def main() -> bool:
    warnings.simplefilter("ignore")
    report = Report("A Gibbs scan, Bernoulli in 5 private groups: n = 1e6 over n = 1e3")
    for name, make in (("rows held", held), ("private model", released)):
        small, large = make(1_000), make(1_000_000)
        times = in_turn({"1e3": small, "1e6": large}, repeats=9, calls=50)
        median, least = times.ratio("1e6", "1e3")
        report.add(
            f"{name}: {1e6 * times.median('1e6'):.0f} / {1e6 * times.median('1e3'):.0f} µs",
            f"{median:.2f} (least {least:.2f})",
            "<= 1.1",
            met=min(median, least) <= 1.1,
        )
    return report.finish()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
