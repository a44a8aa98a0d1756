"""UCI Adult, naive Bayes on eight categorical columns: what is predicted from a private release.

Noise-aware: `pm.sample` of the private model, predictions averaged over the posterior. Plug-in: the release taken for
the counts, posterior in closed form. All models and rows as in `_adult.py`.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pandas as pd
from _adult import COLUMNS, NOT_PRIVATE, TARGETS, fit, naive_bayes, predict, score, tables
from _measure import Report

import pymc_dp as dp
from pymc_dp.datasets.adult import adult_categories
from pymc_dp.transforms.privatize import record_of

N_SEEDS = 3
LEVELS = {column: len(adult_categories()[column]) for column in COLUMNS}
# Least sum of noise variances over all cells: the share of a table grows with the cube root of its number of levels.
SHARE = {"income": 0.5, **{column: count ** (1 / 3) for column, count in LEVELS.items()}}


def plugin_prediction(released: dict[str, np.ndarray], n_rows: int, rows: pd.DataFrame) -> np.ndarray:
    """Predictive probability where non-negative counts are taken for the truth, with the same uniform priors."""
    rich = float(np.clip(released["income"][0, 0], 0, n_rows))
    log_odds = np.full(len(rows), np.log1p(rich) - np.log1p(n_rows - rich))
    for column in COLUMNS:
        counts = np.maximum(released[column], 0) + 1
        logp = np.log(counts / counts.sum(axis=1, keepdims=True))
        log_odds += (logp[1] - logp[0])[rows[column].to_numpy()]
    return 1 / (1 + np.exp(-log_odds))


def main() -> bool:
    train, test = tables()
    model, income = naive_bayes(train), test["income"].to_numpy()
    report = Report(f"Adult, test file: accuracy and mean log p(income | row); not private {NOT_PRIVATE}")
    exact = {
        column: pd.crosstab(train["income"], train[column])
        .reindex(columns=range(LEVELS[column]), fill_value=0)
        .to_numpy()
        for column in COLUMNS
    }
    exact["income"] = np.array([[train["income"].sum()]])
    accuracy, log_p = score(plugin_prediction(exact, len(train), test), income)
    report.add("not private", f"{accuracy:.4f} {log_p:.4f}", "{} {}".format(*NOT_PRIVATE))
    for epsilon, (least_accuracy, least_log_p) in TARGETS.items():
        for name, share in (("equal shares", None), ("shares by levels", SHARE)):
            aware, plugin, seconds = [], [], []
            for seed in range(N_SEEDS if share is None else 1):
                statistics = dp.Statistics(share=share)
                private = dp.privatize(model, epsilon=epsilon, statistics=statistics, ledger=dp.Ledger(epsilon=epsilon))
                _, released = record_of(private)
                start = time.perf_counter()
                posterior = fit(private, seed).posterior.to_dataset()
                seconds.append(time.perf_counter() - start)
                aware.append(score(predict(posterior, test), income))
                plugin.append(score(plugin_prediction(released, len(train), test), income))
            for what, scores in ((f"noise-aware, {name}", aware), (f"plug-in, {name}", plugin)):
                accuracy, log_p = np.mean(scores, axis=0)
                met = bool(accuracy >= least_accuracy and log_p >= least_log_p)
                judged = share is None and scores is aware
                report.add(
                    f"ε = {epsilon:g}, {what}",
                    f"{accuracy:.4f} {log_p:.4f}",
                    f">= {least_accuracy} {least_log_p}",
                    met=met if judged else None,
                )
            report.add(f"ε = {epsilon:g}, {name}: seconds a fit, compiling included", f"{np.mean(seconds):.0f}")
    return report.finish()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(not main())
