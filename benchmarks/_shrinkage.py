"""Estimates of a noised Gram matrix, compared by the fits that they lead to on simulated tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from _logistic import Table, score
from _regression import DELTA, adult_like
from scipy import optimize

from pymc_dp.accounting import rho_budget
from pymc_dp.transforms.gram_estimate import GramEstimate, gram_of_predictors
from pymc_dp.transforms.regression_wide import errors_of

LEAST, ROUNDS = 0.5, 60


def clipped(gram: np.ndarray) -> np.ndarray:
    """No shrinkage: eigenvalues are raised to a half."""
    values, vectors = np.linalg.eigh(gram)
    return (vectors * np.maximum(values, LEAST)) @ vectors.T


def rotation_invariant(gram: np.ndarray, scale: float) -> np.ndarray:
    """Eigenvalues are moved by the Hilbert transform of the spectrum, as semicircular noise asks for, and ordered.

    Bun, Bouchaud, Potters (2017), section 6.
    """
    values, vectors = np.linalg.eigh(gram)
    apart = values[:, None] - values
    moved = values - 2 * scale**2 * (apart / (apart**2 + scale**2)).sum(axis=1)
    return (vectors * np.maximum(optimize.isotonic_regression(moved).x, LEAST)) @ vectors.T


def fitted(estimate: GramEstimate, seen: np.ndarray, variance: float) -> np.ndarray:
    """Coefficients of answers -1 and 1 with a normal prior whose variance is fitted, given errors in variables."""
    gram, count = estimate.gram, len(seen)
    line, products, prior = np.zeros(count), np.zeros((count, count)), 1.0
    for _ in range(ROUNDS):
        residual = max(1 - line @ gram @ line / estimate.sizes.sum(), 0.01)
        spread = residual * gram + errors_of(estimate.variances, products) + variance * np.eye(count)
        solved = np.linalg.solve(spread, gram)
        covariance = np.linalg.inv(gram @ solved + np.eye(count) / prior)
        line = (line + covariance @ (solved.T @ seen)) / 2
        products = np.outer(line, line) + covariance
        prior = (prior + (np.trace(products) + 2) / (count + 2)) / 2
    return line


def estimates(gram: np.ndarray, noised: np.ndarray, scale: float, n_rows: int) -> dict[str, GramEstimate]:
    """Of a Gram matrix and its noised form: the package's, others, and the exact one."""
    ours = gram_of_predictors(noised, scale**2, float(n_rows))
    everywhere, nowhere = np.full_like(noised, scale**2), np.zeros_like(noised)
    turned = rotation_invariant(noised, scale)
    return {
        "of the package": ours,
        "clipped eigenvalues": replace(ours, gram=clipped(noised), variances=everywhere),
        "rotation invariant": replace(ours, gram=turned, variances=everywhere),
        "rotation invariant, taken for exact": replace(ours, gram=turned, variances=nowhere),
        "without noise": replace(ours, gram=gram, variances=nowhere),
    }


def shrinkage_scores(epsilon: float, sensitivity: float, n_tables: int) -> dict[str, np.ndarray]:
    """Mean accuracy and log loss on rows that were not learnt from."""
    found: dict[str, list[tuple[float, float]]] = {}
    scale = sensitivity / np.sqrt(2 * rho_budget(epsilon, DELTA))
    for seed in range(n_tables):
        learnt, other = adult_like(seed)
        for name, line in _lines(np.random.default_rng(seed), learnt, scale).items():
            found.setdefault(name, []).append(score(2 * line, other))
    return {name: np.mean(scores, axis=0) for name, scores in found.items()}


def _lines(rng: np.random.Generator, table: Table, scale: float) -> dict[str, np.ndarray]:
    x, count = table.x, table.x.shape[1]
    noise = np.triu(rng.normal(0, scale, (count, count)))
    gram, seen = x.T @ x, x.T @ (2.0 * table.y - 1) + rng.normal(0, scale, count)
    noised = gram + noise + np.triu(noise, 1).T
    found = estimates(gram, noised, scale, len(x))
    return {name: fitted(estimate, seen, scale**2) for name, estimate in found.items()}
