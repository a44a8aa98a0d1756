"""Naive Bayes on the eight categorical columns of UCI Adult, as an ordinary PyMC model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from pymc_dp.datasets.adult import adult_categories, encode_adult, load_adult

COLUMNS = tuple(column for column in adult_categories() if column != "income")
TARGETS = {0.1: (0.786, -0.57), 0.3: (0.794, -0.485), 1.0: (0.798, -0.457)}
NOT_PRIVATE, MAJORITY = (0.801, -0.452), 0.764
SAMPLER: dict[str, Any] = {"tune": 400, "draws": 300, "chains": 1, "cores": 1, "progressbar": False, "quiet": True}
# Before the scales of 189 coordinates are learnt, long trajectories are wasted.
TREES = {"max_treedepth": 7, "early_max_treedepth": 5}


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from and rows to predict, as codes of public levels."""
    return encode_adult(load_adult("train")), encode_adult(load_adult("test"))


def naive_bayes(train: pd.DataFrame) -> pm.Model:
    """Income, and the distribution of every column given income; all priors uniform.

    A Dirichlet(1) vector is written as broken sticks, p_k = v_k (1 - v_0) ... (1 - v_{k-1}) with independent
    v_k ~ Beta(1, K - 1 - k). Given counts the sticks are nearly independent, so that NUTS needs some ten steps a draw;
    on PyMC's own simplex coordinates the uncertain levels make all others correlated, and it needs 270.
    """
    levels = adult_categories()
    with pm.Model() as model:
        rich = pm.Beta("rich", 1, 1)
        income = pm.Bernoulli("income", rich, observed=train["income"].to_numpy())
        for column in COLUMNS:
            count = len(levels[column])
            sticks = pm.Beta(f"stick_{column}", 1, np.arange(count - 1, 0, -1), shape=(2, count - 1))
            ones = pt.ones((2, 1))
            left = pt.concatenate([ones, pt.cumprod(1 - sticks, axis=1)], axis=1)
            parts = pm.Deterministic(
                f"p_{column}", pt.specify_shape(pt.concatenate([sticks, ones], axis=1) * left, (2, count))
            )
            pm.Categorical(column, parts[income], observed=train[column].to_numpy())
    return model


def predict(posterior: xr.Dataset, rows: pd.DataFrame, n_draws: int = 200) -> np.ndarray:
    """Posterior predictive probability of a high income, one per row."""
    flat = posterior.stack(sample=("chain", "draw"))
    held = np.linspace(0, flat.sizes["sample"] - 1, min(n_draws, flat.sizes["sample"])).astype(int)
    rich = flat["rich"].values[held]
    log_odds = (np.log(rich) - np.log1p(-rich))[:, None] + np.zeros(len(rows))
    for column in COLUMNS:
        logp = np.log(np.maximum(flat[f"p_{column}"].transpose("sample", ...).values[held], 1e-300))
        log_odds += (logp[:, 1] - logp[:, 0])[:, rows[column].to_numpy()]
    return (1 / (1 + np.exp(-log_odds))).mean(axis=0)


def score(probability: np.ndarray, income: np.ndarray) -> tuple[float, float]:
    """Accuracy, and mean log probability of what was so."""
    given = np.where(income == 1, probability, 1 - probability)
    return float(np.mean((probability > 0.5) == (income == 1))), float(np.mean(np.log(np.maximum(given, 1e-300))))


def fit(private: pm.Model, seed: int) -> xr.DataTree:
    return pm.sample(model=private, random_seed=seed, compute_convergence_checks=False, nuts=TREES, **SAMPLER)
