"""Small settings on which our own methods are measured, stored, and held to what is stored.

`thresholds.json` holds for each setting the mean and the standard deviation over `runs` fits with fresh noise, each on
a table of its own. A later check makes fewer fits, k, and fails where their mean falls short of the stored one by more
than ``MARGIN`` standard errors of the difference, sd √(1/runs + 1/k): four of them are exceeded once in thirty thousand
checks if nothing has changed. ``python benchmarks/_thresholds.py store`` measures and stores afresh; the change
of a stored number then shows in the diff.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm
from scipy import special

import pymc_dp as dp

STORED = Path(__file__).resolve().parent / "thresholds.json"
RUNS, MARGIN = 20, 4.0
EPSILON, DELTA, N_ROWS = 1.0, 1e-5, 2000
QUIET = {"progressbar": False, "chains": 1, "cores": 1}


@dataclass(frozen=True)
class Setting:
    """What is measured, greater being better, and how many fits a check makes."""

    measure: Callable[[np.random.Generator], float]
    checked: int


def _log_score(draws: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    p = special.expit(draws @ x.T).mean(axis=0)
    return float(np.log(np.clip(np.where(y == 1, p, 1 - p), 1e-12, 1)).mean())


def _logistic(rng: np.random.Generator, step: Callable[[], object], draws: int) -> float:
    """Mean log probability of answers not learnt from."""
    x = rng.normal(size=(2 * N_ROWS, 3))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    y = (rng.random(2 * N_ROWS) < special.expit(x @ [2.0, -1.0, 1.0])).astype(int)
    with pm.Model() as model:
        w = pm.Normal("w", 0, 2, shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("x", x[:N_ROWS]) @ w, observed=y[:N_ROWS])
    with dp.truncate(model, norms={"w": 6.0}):
        ledger, domain = dp.Ledger(EPSILON, DELTA), dp.Domain(norms={"x": 1.0})
        settings = {"tune": 0, **QUIET} if draws > 1 else {"progressbar": False}
        found = dp.sample(draws, epsilon=EPSILON, delta=DELTA, domain=domain, ledger=ledger, step=step(), **settings)
    held = found["posterior"]["w"].values.reshape(-1, 3)
    return _log_score(held[len(held) // 2 :], x[N_ROWS:], y[N_ROWS:])


def one_sample(rng: np.random.Generator) -> float:
    return _logistic(rng, lambda: dp.OPS(assume_converged=True), 1)


def chain(rng: np.random.Generator) -> float:
    return _logistic(rng, lambda: dp.SGLD(batch_size=100, clip_norm=1.0, steps_per_draw=10), 100)


def shares(rng: np.random.Generator) -> float:
    """Minus the error of shares from noised counts at ε = 0.1, in standard errors that the rows leave."""
    truth, group = np.array([0.1, 0.3, 0.5, 0.8]), rng.integers(4, size=N_ROWS)
    with pm.Model():
        p = pm.Beta("p", 1, 1, shape=4)
        pm.Bernoulli("y", p[pm.Data("group", group)], observed=(rng.random(N_ROWS) < truth[group]).astype(int))
        found = dp.sample(epsilon=0.1, ledger=dp.Ledger(0.1), tune=300, draws=300, **QUIET)
    error = found["posterior"]["p"].values[0].mean(axis=0) - truth
    return -float(np.sqrt(np.mean(error**2 / (truth * (1 - truth) * 4 / N_ROWS))))


def scans(rng: np.random.Generator) -> float:
    """Minus the error of a share by tempered Gibbs scans."""
    truth = rng.uniform(0.2, 0.8)
    with pm.Model():
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.05, 0.95)
        pm.Bernoulli("y", p, observed=(rng.random(N_ROWS) < truth).astype(int))
        settings = {"step": dp.TemperedGibbs(), "tune": 5, **QUIET}
        found = dp.sample(20, epsilon=EPSILON, delta=DELTA, ledger=dp.Ledger(EPSILON, DELTA), **settings)
    return -abs(float(found["posterior"]["p"].mean()) - truth)


SETTINGS = {
    "OPS: log score of logistic regression": Setting(one_sample, 8),
    "SGLD: log score of logistic regression": Setting(chain, 4),
    "released counts: minus error of four shares": Setting(shares, 3),
    "TemperedGibbs: minus error of a share": Setting(scans, 6),
}


def measured(name: str, runs: int, first: int) -> list[float]:
    """One number per table; tables are simulated from `first` on, so that a check has others than what is stored."""
    return [SETTINGS[name].measure(np.random.default_rng([seed, 9])) for seed in range(first, first + runs)]


def least(stored: dict[str, float], fits: int) -> float:
    """What the mean over some fits must reach."""
    return stored["mean"] - MARGIN * stored["sd"] * float(np.sqrt(1 / stored["runs"] + 1 / fits))


def check(name: str) -> tuple[float, float]:
    """Mean of fresh fits, and the least that it may be."""
    fits = SETTINGS[name].checked
    stored = json.loads(STORED.read_text(encoding="utf-8"))[name]
    return float(np.mean(measured(name, fits, first=1000))), least(stored, fits)


def store(runs: int = RUNS) -> None:
    found = {}
    for name in SETTINGS:
        values = measured(name, runs, first=0)
        found[name] = {"mean": round(np.mean(values), 6), "sd": round(np.std(values, ddof=1), 6), "runs": runs}
        print(name, found[name], flush=True)
    STORED.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> bool:
    met = True
    for name in SETTINGS:
        mean, limit = check(name)
        print(f"{name}: {mean:.4f}, at least {limit:.4f}: {'ok' if mean >= limit else 'WORSE THAN STORED'}", flush=True)
        met &= mean >= limit
    return met


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "store" in sys.argv[1:]:
        store(int(sys.argv[2]) if len(sys.argv) > 2 else RUNS)
    else:
        sys.exit(not main())
