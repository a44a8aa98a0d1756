"""Adult with 109 features, the earnings of tax units, and a linear regression of these from noised sums of products."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from _logistic import Table
from scipy import optimize, special

import pymc_dp as dp
from pymc_dp.datasets.adult import adult_categories, encode_adult, load_adult
from pymc_dp.datasets.tax_units import load_tax_units
from pymc_dp.families.gram import GramSums, Source
from pymc_dp.transforms.privatize import record_of

DELTA = 1e-5
NUMBERS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 99),
}
"""Public bounds of Adult's columns of numbers."""
INCOME = {
    "age": (0, 85),
    "married": (0, 1),
    "under_18": (0, 12),
    "aged_21_or_more": (0, 6),
    "elderly": (0, 1),
}
"""Public bounds of the predictors of earnings, and of earnings in dollars."""
EARNINGS = (-200_000.0, 200_000.0)


def adult() -> tuple[Table, Table]:
    """A constant, six numbers scaled by bounds and 102 levels; rows of norm 1."""
    train, test = (_adult(load_adult(split)) for split in ("train", "test"))
    return train, test


def _adult(table: pd.DataFrame) -> Table:
    codes, columns = encode_adult(table), [np.ones(len(table))]
    for name, (low, high) in NUMBERS.items():
        columns.append(np.clip((table[name].to_numpy() - low) / (high - low), 0, 1))
    for name, levels in adult_categories().items():
        if name != "income":
            columns += [(codes[name] == level).to_numpy() for level in range(len(levels))]
    x = np.column_stack(columns).astype(float)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return Table(x, (table["income"] == ">50K").to_numpy().astype(int))


def tax_units() -> tuple[np.ndarray, np.ndarray]:
    """Predictors and earnings of tax filing units, both scaled to [-1, 1] by public bounds and clamped."""
    found = load_tax_units()
    found = found.assign(married=found["status"] == "joint", elderly=found["age"] >= 65)
    columns = [(found[name].astype(float), bounds) for name, bounds in INCOME.items()]
    scaled = [
        np.clip(2 * (column - low) / (high - low) - 1, -1, 1)
        for column, (low, high) in [*columns, (found["wages"], EARNINGS)]
    ]
    return np.column_stack(scaled[:-1]), scaled[-1].to_numpy()


def adult_like(seed: int, n_rows: int = 32561, n_test: int = 8000) -> tuple[Table, Table]:
    """What public choices are made on: a table of Adult's published columns and levels, all else drawn at random.

    Rows belong to four classes that differ in their numbers and in the shares of their levels; two numbers are mostly
    zero. Effects on the log odds of columns, before rows are scaled, have a standard deviation between 0.3 and 1.5.
    """
    rng = np.random.default_rng([seed, 7])
    total = n_rows + n_test
    group = rng.choice(4, total, p=rng.dirichlet(np.full(4, 3.0)))
    columns = [np.ones(total)]
    for place in range(len(NUMBERS)):
        one, other = rng.uniform(1, 5, size=(2, 4))
        mostly_zero = place >= len(NUMBERS) - 2
        columns.append(rng.beta(one[group], other[group]) * (rng.random(total) < (0.1 if mostly_zero else 1.0)))
    for name, levels in adult_categories().items():
        if name != "income":
            count = len(levels)
            base = rng.dirichlet(np.full(count, 0.5))
            ends = np.array([rng.dirichlet(count * base + 0.05) for _ in range(4)]).cumsum(axis=1)
            drawn = np.minimum((rng.random(total)[:, None] > ends[group]).sum(axis=1), count - 1)
            columns += [drawn == level for level in range(count)]
    x = np.column_stack(columns).astype(float)
    eta = x @ rng.normal(size=x.shape[1]) * rng.uniform(0.3, 1.5)
    share = rng.uniform(0.15, 0.5)
    shift = optimize.brentq(lambda b: special.expit(eta + b).mean() - share, -50, 50)
    y = (rng.random(total) < special.expit(eta + shift)).astype(int)
    whole = Table(x / np.linalg.norm(x, axis=1, keepdims=True), y)
    return whole.part(np.arange(n_rows)), whole.part(np.arange(n_rows, total))


def private_linear(x: np.ndarray, u: np.ndarray, epsilon: float) -> pm.Model:
    """Released sums of a linear regression whose columns and response lie in [-1, 1]."""
    with pm.Model() as model:
        a, w, sd = pm.Normal("a", 0, 1), pm.Normal("w", 0, 1, shape=x.shape[1]), pm.HalfNormal("sd", 1.0)
        pm.Normal("y", a + pm.Data("x", x) @ w, sd, observed=u)
    return _private(model, epsilon, dp.Domain(bounds={"x": (-1, 1), "y": (-1, 1)}))


def _private(model: pm.Model, epsilon: float, domain: dp.Domain) -> pm.Model:
    return dp.privatize(
        model,
        epsilon=epsilon,
        delta=DELTA,
        domain=domain,
        statistics=dp.Statistics(noise="gaussian"),
        ledger=dp.Ledger(epsilon, DELTA),
    )


@dataclass(frozen=True)
class Sums:
    """What a private model holds of its rows: released sums in pure numbers, and `scale` of their Gaussian noise."""

    statistic: GramSums
    value: np.ndarray
    n_rows: int
    scale: float

    @classmethod
    def of(cls, private: pm.Model, statistic: GramSums, n_rows: int) -> Sums:
        record, tables = record_of(private)
        (event,) = record.event["events"]
        assert tables["y"].shape == (1, statistic.count)
        return cls(statistic, tables["y"], n_rows, event["scale"] * statistic.step)


def bounded_rows(width: int) -> GramSums:
    """Products of (1, t, u), all in [-1, 1]."""
    return GramSums(
        sources=(Source(name="x", centres=(0.0,) * width, halves=(1.0,) * width),),
        response=Source(name="y", centres=(0.0,), halves=(1.0,)),
    )


def _quiet(draws: int, tune: int, seed: int) -> dict[str, Any]:
    return {
        "draws": draws,
        "tune": tune,
        "random_seed": seed,
        "chains": 1,
        "cores": 1,
        "progressbar": False,
        "quiet": True,
        "compute_convergence_checks": False,
    }


def linear_draws(private: pm.Model, seed: int, draws: int = 300, tune: int = 300) -> np.ndarray:
    """Noise-aware posterior of intercept and slopes: (draws, 1 + d) array."""
    with private:
        trace = pm.sample(**_quiet(draws, tune, seed))
    return np.column_stack([trace.posterior["a"].values[0], trace.posterior["w"].values[0]])


def plugin_ridge(sums: Sums, strength: float = 0.5) -> np.ndarray:
    """Ridge regression on the release with eigenvalues clipped at 0, its ridge in units of the noise's √d sd."""
    gram, cross = dense(sums)
    values, vectors = np.linalg.eigh(gram)
    ridge = strength * sums.scale * np.sqrt(len(gram)) + 1e-9
    return vectors @ ((vectors.T @ cross) / (np.maximum(values, 0) + ridge))


def dense(sums: Sums) -> tuple[np.ndarray, np.ndarray]:
    """Released second moments of (1, t) or t, and with u."""
    what, value = sums.statistic, sums.value[0]
    d, second = what.width, value[what.parts["second"]]
    pairs = d * (d + 1) // 2
    gram = np.zeros((d, d))
    gram[np.triu_indices(d)] = second[:pairs]
    gram, cross = gram + np.triu(gram, 1).T, second[pairs : pairs + d]
    if not what.constant:
        return gram, cross
    first = value[what.parts["first"]]
    top = np.concatenate([[sums.n_rows], first[:d]])
    return np.block([[top[None]], [first[:d, None], gram]]), np.append(first[d], cross)


def least_squares(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Intercept and slopes."""
    return np.linalg.lstsq(np.column_stack([np.ones(len(u)), x]), u, rcond=None)[0]


def timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    found = call(*args, **kwargs)
    return found, time.perf_counter() - start
