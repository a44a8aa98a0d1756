"""Adult with 109 features and the incomes of tax units, and regressions from their noised sums of products."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from _logistic import Table
from pymc.step_methods.hmc.quadpotential import QuadPotentialFull
from scipy import special

from pymc_dp.accounting import rho_budget
from pymc_dp.datasets._sources import FOLDER_VARIABLE, local_copy
from pymc_dp.datasets.adult import adult_categories, encode_adult, load_adult
from pymc_dp.families.gram import GramSums, Source
from pymc_dp.families.polynomial import Response
from pymc_dp.transforms.regression_wide import WideRegression

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
    "age_head": (0, 85),
    "married": (0, 1),
    "nu18": (0, 12),
    "n21": (0, 6),
    "elderly": (0, 1),
}
"""Public bounds of the predictors of earnings, and of earnings in dollars."""
EARNINGS = (0.0, 200_000.0)
LOGIT = Response(likelihood="bernoulli", mean=pt.sigmoid)
NORMAL = Response(likelihood="normal")


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
    path = local_copy("income/cps_taxunits_2012_2014.parquet")
    if path is None:
        raise FileNotFoundError(f"income/cps_taxunits_2012_2014.parquet is in no folder that {FOLDER_VARIABLE} names.")
    found = pd.read_parquet(path)
    found = found.assign(married=found["MARS"] == 2, elderly=found["age_head"] >= 65)
    columns = [(found[name].astype(float), bounds) for name, bounds in INCOME.items()]
    columns.append((found["e00200"], EARNINGS))
    scaled = [
        np.clip(2 * (column - low) / (high - low) - 1, -1, 1)
        for column, (low, high) in [*columns, (found["e00200"], EARNINGS)]
    ]
    return np.column_stack(scaled[:-1]), scaled[-1].to_numpy()


@dataclass(frozen=True)
class Sums:
    """A noised release of sums of products, in pure numbers; `scale` of its Gaussian noise."""

    statistic: GramSums
    value: np.ndarray
    n_rows: int
    scale: float


def unit_rows(width: int) -> GramSums:
    """Products of rows of norm 1, and with an answer of -1 or 1."""
    return GramSums(
        sources=(Source(name="x", centres=(0.0,) * width, halves=(1.0,) * width, ball=True),),
        response=Source(name="y", centres=(0.5,), halves=(0.5,)),
        constant=False,
        square=False,
    )


def bounded_rows(width: int) -> GramSums:
    """Products of (1, t, u), all in [-1, 1]."""
    return GramSums(
        sources=(Source(name="x", centres=(0.0,) * width, halves=(1.0,) * width),),
        response=Source(name="y", centres=(0.0,), halves=(1.0,)),
    )


UNIT_SENSITIVITY = float(np.sqrt(4.5))
"""Δ2 under replace of products of a row of norm 1 and of them with an answer: √2 (1 + 1/2)."""


def bounded_sensitivity(width: int) -> float:
    """Δ2 under replace of sums of `bounded_rows`: the largest over pairs of rows of -1, 0 and 1.

    Sums do not change in size where a column changes its sign, so that four pairs of numbers are enough for a column.
    """
    found = []
    for pairs in combinations_with_replacement([(1, 1), (1, -1), (0, 1), (1, 0)], width + 1):
        one, other = (np.array([1, *row]) for row in zip(*pairs, strict=True))
        found.append((np.triu(np.outer(one, one) - np.outer(other, other)) ** 2).sum())
    return float(np.sqrt(max(found)))


def released(rng: np.random.Generator, statistic: GramSums, t: np.ndarray, u: np.ndarray, scale: float) -> Sums:
    """Sums of a table, with noise; until `dp.privatize` releases regressions, this stands for it."""
    first = np.append(t.sum(axis=0), u.sum()) if statistic.constant else []
    square = [u @ u] if statistic.square else []
    exact = np.concatenate([first, (t.T @ t)[np.triu_indices(t.shape[1])], t.T @ u, square])
    return Sums(statistic, (exact + rng.normal(0, scale, len(exact)))[None], len(t), scale)


def noise_scale(epsilon: float, sensitivity: float) -> float:
    """Of the Gaussian noise on one vector."""
    return float(sensitivity / np.sqrt(2 * rho_budget(epsilon, DELTA)))


def logistic_draws(sums: Sums, seed: int, *, draws: int = 400, tune: int = 200) -> np.ndarray:
    """Noise-aware posterior of the coefficients, with a hierarchical prior: (draws, d) array.

    NUTS takes its metric from the release, from the covariance of the linear predictions that fit it, so that
    trajectories have fifteen steps rather than two hundred.
    """
    d = sums.statistic.width
    density = WideRegression.of(
        sums.statistic, LOGIT, sums.value, np.array([sums.n_rows]), scale=sums.scale, noise="gaussian"
    )
    # A typical slope of the link and residual variance, and a typical spread.
    metric = np.zeros((d + 1, d + 1))
    metric[0, 0], metric[1:, 1:] = 0.01, slope_covariance(density, slope=0.22 * 4, residual=0.5)
    with pm.Model():
        spread = pm.HalfNormal("spread", 1.0)
        pure = pm.Normal("pure", 0, 1, shape=d)
        w = pm.Deterministic("w", spread * pure)
        density.observe("release", sums.value, pt.zeros(1), w)
        step = pm.NUTS(potential=QuadPotentialFull(metric))
        trace = pm.sample(
            tune=tune,
            draws=draws,
            step=step,
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    return trace.posterior["w"].values[0]


def slope_covariance(density: WideRegression, slope: float, residual: float) -> np.ndarray:
    """Covariance of coefficients with a standard normal prior, the response's mean changing by `slope` times them."""
    (block,) = density.blocks
    gram, d = block.estimate.gram, block.count
    covariance = residual * gram + block.noise * np.eye(d) + block.errors
    found = np.linalg.inv(slope**2 * gram @ np.linalg.solve(covariance, gram) + np.eye(d))
    return (found + found.T) / 2


def linear_draws(sums: Sums, seed: int, draws: int = 500, tune: int = 500) -> np.ndarray:
    """Noise-aware posterior of intercept and slopes: (draws, 1 + d) array."""
    density = WideRegression.of(
        sums.statistic, NORMAL, sums.value, np.array([sums.n_rows]), scale=sums.scale, noise="gaussian"
    )
    count = sums.statistic.width + 2
    metric = np.zeros((count, count))
    metric[-1, -1], metric[:-1, :-1] = 1e-4, slope_covariance(density, slope=1.0, residual=0.1)
    with pm.Model():
        a = pm.Normal("a", 0, 1, shape=1)
        w = pm.Normal("w", 0, 1, shape=sums.statistic.width)
        density.observe("release", sums.value, a, w, pm.HalfNormal("sd", 1.0))
        trace = pm.sample(
            tune=tune,
            draws=draws,
            step=pm.NUTS(potential=QuadPotentialFull(metric)),
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
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


def simulated_answers(rng: np.random.Generator, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Answers 0 or 1 of rows, for known coefficients."""
    return (rng.random(len(x)) < special.expit(x @ w)).astype(int)


def timed(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    found = call(*args, **kwargs)
    return found, time.perf_counter() - start
