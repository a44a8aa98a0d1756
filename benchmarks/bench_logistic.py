"""Logistic regression on Adult and Abalone: one posterior draw, by a chain, against objective perturbation.

Neighbours differ in one row (replace), rows have norm 1 at most, δ = 1e-6 but where a method has none. No budget pays
for prior scales and ridges, so they are chosen on simulated tables of the same shape, for every method alike:
`python benchmarks/bench_logistic.py choose` does it again and prints `CHOSEN`.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pymc as pm
from _logistic import Table, abalone, adult, chaudhuri, constant, kifer, minimum, score, simulated, summary
from _measure import Report
from _peer import diffprivlib
from _ridges import CHOSEN, EPSILONS, GAUSSIAN, ONE, PURE, THEIRS
from scipy import stats

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError

DELTA, SEEDS = 1e-6, 10
LONGEST = 8.0
"""Of a vector of coefficients."""
UNIT_ROWS = dp.Domain(norms={"x": 1.0})
TABLES: dict[str, Callable[[int], tuple[Table, Table]]] = {"Adult": lambda seed: adult(), "Abalone": abalone}
SHAPES = {"Adult": (32561, 30), "Abalone": (3341, 9)}
"""Rows to learn from and columns, for what is simulated."""
Method = Callable[[Table, float, float], np.ndarray]


def posterior(table: Table, epsilon: float, spread: float) -> np.ndarray:
    """One draw of the coefficients, whose prior is normal with this standard deviation within a ball."""
    with pm.Model() as model:
        w = pm.Normal("w", 0, spread, shape=table.x.shape[1])
        pm.Bernoulli("y", logit_p=pm.Data("x", table.x) @ w, observed=table.y)
    with dp.truncate(model, norms={"w": LONGEST}):
        found = dp.sample(
            epsilon=epsilon,
            delta=DELTA,
            step=dp.OPS(assume_converged=True),
            domain=UNIT_ROWS,
            ledger=dp.Ledger(epsilon, DELTA),
            progressbar=False,
        )
    return found["posterior"]["w"].values[0, 0]


def pure_objective(table: Table, epsilon: float, ridge: float) -> np.ndarray:
    return chaudhuri(np.random.default_rng(), table, epsilon, ridge)


def objective(table: Table, epsilon: float, ridge: float) -> np.ndarray:
    return kifer(np.random.default_rng(), table, epsilon, DELTA, ridge)


METHODS: dict[str, Method] = {ONE: posterior, GAUSSIAN: objective, PURE: pure_objective}
SPREADS, RIDGES = (0.25, 0.5, 1.0, 2.0, 4.0), (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def choose(runs: int = 5) -> None:
    """Print the settings with the least mean log loss on simulated tables."""
    for name, shape in SHAPES.items():
        for method in (ONE, GAUSSIAN, PURE):
            candidates = SPREADS if method == ONE else RIDGES
            losses = [[_loss(method, shape, epsilon, x, runs) for x in candidates] for epsilon in EPSILONS]
            print(f"{name}, {method}: {[candidates[place] for place in np.argmin(losses, axis=1)]}", flush=True)


def _loss(method: str, shape: tuple[int, int], epsilon: float, setting: float, runs: int) -> float:
    """Mean log loss, infinite where chains on simulated tables do not agree."""
    try:
        pairs = [simulated(*shape, seed) for seed in range(runs)]
        return float(np.mean([score(METHODS[method](one, epsilon, setting), other)[1] for one, other in pairs]))
    except UnsupportedModelError:
        return np.inf


def agreement(report: Report, runs: int = 400) -> None:
    """Ours and diffprivlib's minima of perturbed objectives, with and without its ridge raised."""
    table, _ = simulated(500, 3, 0)
    for epsilon, ridge in ((3.0, 1.0), (0.5, 0.1)):
        what = f"ε = {epsilon:g}, ridge {ridge:g}: {runs} coefficients of ours and diffprivlib's, least p"
        theirs = diffprivlib("logistic", table.x[None], table.y[None], epsilon, runs=runs, ridge=ridge)
        if isinstance(theirs, str):
            report.add(what, theirs)
            continue
        one, other = np.array([pure_objective(table, epsilon, ridge) for _ in range(runs)]), theirs[0]
        apart = min(stats.ks_2samp(a, b).pvalue for a, b in zip(one.T, other.T, strict=True))
        report.add(
            what,
            f"{apart:.3f}",
            "> 0.001",
            met=bool(apart > 1e-3),
        )


def compare(name: str) -> bool:
    report = Report(f"{name}: accuracy and log loss on rows not learnt from, {SEEDS} seeds")
    pairs = [TABLES[name](seed) for seed in range(SEEDS)]
    report.add("the larger class", summary([constant(one.y.mean(), other) for one, other in pairs]))
    report.add("not private", summary([score(minimum(one, 0.1), other) for one, other in pairs]))
    for place, epsilon in enumerate(EPSILONS):
        for method, settings in CHOSEN[name].items():
            draws = _fits(method, [one for one, _ in pairs], epsilon, settings[place])
            shown = draws if isinstance(draws, str) else summary(_scores(draws, [other for _, other in pairs]))
            report.add(f"ε = {epsilon:g}, {method}", shown)
    return report.finish()


def _fits(method: str, tables: list[Table], epsilon: float, setting: float) -> list[np.ndarray] | str:
    """Coefficients for every table, or why a method is not there."""
    if method != THEIRS:
        return [METHODS[method](table, epsilon, setting) for table in tables]
    x, y = np.stack([table.x for table in tables]), np.stack([table.y for table in tables])
    found = diffprivlib("logistic", x, y, epsilon, ridge=setting)
    return found if isinstance(found, str) else list(found[0])


def _scores(draws: list[np.ndarray], tables: list[Table]) -> list[tuple[float, float]]:
    return [score(one, table) for one, table in zip(draws, tables, strict=True)]


def main() -> bool:
    report = Report("Objective perturbation as published")
    agreement(report)
    return all([report.finish(), *(compare(name) for name in TABLES)])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sys.exit(choose() if "choose" in sys.argv[1:] else not main())
