"""Barker's chain beside bare numba loops over the same rows, doing the same arithmetic without any privacy."""

from __future__ import annotations

import sys
import warnings

import numba
import numpy as np
import pymc as pm
from _measure import Report, in_turn

import pymc_dp as dp
from pymc_dp.step_methods.metropolis import BarkerMetropolis

N = 1_000_000
CALLS = {"rows": 20, "sums": 2000}
HUGE = {"epsilon": 1e9, "delta": 1e-6}


@numba.njit(fastmath=True)
def bare_bernoulli(rows, logit, proposed):
    """Sum of log-likelihood ratios, row by row."""
    down, up = (
        np.log1p(np.exp(logit)) - np.log1p(np.exp(proposed)),
        np.log1p(np.exp(-logit)) - np.log1p(np.exp(-proposed)),
    )
    total = 0.0
    for x in rows:
        total += up if x else down
    return total


@numba.njit(fastmath=True)
def bare_normal(rows, mu, log_sigma, new_mu, new_log_sigma, limit):
    """Sum of log-likelihood ratios, each clamped."""
    one, other, total = 0.5 * np.exp(-2 * log_sigma), 0.5 * np.exp(-2 * new_log_sigma), 0.0
    for x in rows:
        ratio = log_sigma - new_log_sigma + one * (x - mu) ** 2 - other * (x - new_mu) ** 2
        total += min(max(ratio, -limit), limit)
    return total


@numba.njit(fastmath=True)
def bare_logistic(table, y, here, there, limit):
    """Sum of log-likelihood ratios of a logistic regression, each clamped."""
    total = 0.0
    for i in range(len(y)):
        a, b = here[0], there[0]
        for j in range(table.shape[1]):
            a += table[i, j] * here[1 + j]
            b += table[i, j] * there[1 + j]
        a, b = (a, b) if y[i] else (-a, -b)
        ratio = np.log1p(np.exp(-abs(a))) + max(-a, 0.0) - np.log1p(np.exp(-abs(b))) - max(-b, 0.0)
        total += min(max(ratio, -limit), limit)
    return total


@numba.njit
def accepts(rng, odds):
    return rng.random() < 1 / (1 + np.exp(-odds))


def started(model: pm.Model, domain: dp.Domain | None = None, **options: object) -> BarkerMetropolis:
    with model:
        step = BarkerMetropolis(**HUGE, domain=domain, **options)
    step.setup_chain(np.random.default_rng(0), 0, 10**7)
    return step


def walked(step: BarkerMetropolis):
    """One step after another, as PyMC calls them."""
    held = [step.prior_model.initial_point()]

    def move() -> None:
        held[0], _ = step.step(held[0])

    return move


def bench_sums(report: Report, rng: np.random.Generator) -> None:
    rows = (rng.random(N) < 0.3).astype(np.int64)
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=rows)
    size = 2.38 / np.sqrt(0.21 * N)
    at = [np.log(0.3 / 0.7)]

    def bare() -> None:
        new = at[0] + size * rng.standard_normal()
        if accepts(rng, bare_bernoulli(rows, at[0], new)):
            at[0] = new

    times = in_turn({"ours": walked(started(model, scale=size)), "bare": bare}, repeats=9, calls=100)
    median, least = times.ratio("ours", "bare")
    report.add(
        f"Bernoulli, exact sums: {1e6 * times.median('ours'):.0f} µs a step, bare loop over rows "
        f"{1e6 * times.median('bare'):.0f} µs",
        f"{median:.3f} (least {least:.3f})",
        "<= 1.3",
        met=min(median, least) <= 1.3,
    )


def bench_clamped(report: Report, rng: np.random.Generator) -> None:
    values = rng.normal(0.3, 1.2, N)
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=values)
    at = [np.array([0.3, 0.2])]

    def bare() -> None:
        here = at[0]
        new = here + 1e-3 * rng.standard_normal(2)
        if accepts(rng, bare_normal(values, *here, *new, 2.0 * np.linalg.norm(new - here))):
            at[0] = new

    ours = walked(started(model, scale=1e-3, clamp=2.0))
    times = in_turn({"ours": ours, "bare": bare}, repeats=7, calls=CALLS["rows"])
    median, least = times.ratio("ours", "bare")
    report.add(
        f"normal, clamped rows: {1e3 * times.median('ours'):.2f} ms a step, bare {1e3 * times.median('bare'):.2f} ms",
        f"{median:.2f} (least {least:.2f})",
        "<= 1.3",
        met=min(median, least) <= 1.3,
    )


def bench_regression(report: Report, rng: np.random.Generator) -> None:
    table, y = rng.normal(size=(N, 5)), rng.integers(0, 2, N)
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=5)
        pm.Bernoulli("y", logit_p=a + pm.Data("x", table) @ b, observed=y)
    at = [np.zeros(6)]

    def bare() -> None:
        here = at[0]
        new = here + 1e-3 * rng.standard_normal(6)
        if accepts(rng, bare_logistic(table, y, here, new, 2.0 * np.linalg.norm(new - here))):
            at[0] = new

    ours = walked(started(model, scale=1e-3, clamp=2.0))
    times = in_turn({"ours": ours, "bare": bare}, repeats=5, calls=10)
    median, least = times.ratio("ours", "bare")
    report.add(
        f"logistic regression on 5 columns, clamped rows: {1e3 * times.median('ours'):.1f} ms a step, bare "
        f"{1e3 * times.median('bare'):.1f} ms",
        f"{median:.2f} (least {least:.2f})",
        "<= 1.3",
        met=min(median, least) <= 1.3,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    report = Report(f"Barker's Metropolis, n = {N:.0e}, over a bare numba loop")
    generator = np.random.default_rng(1)
    bench_sums(report, generator)
    bench_clamped(report, generator)
    bench_regression(report, generator)
    sys.exit(not report.finish())
