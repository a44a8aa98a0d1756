"""Not private: maximum a posteriori, with the normal approximation of the posterior for intervals."""

from __future__ import annotations

import numpy as np
from _job import Job, Peer, with_constant
from _logistic import Table, minimum
from scipy import special, stats

RIDGE, N_DRAWS = 0.1, 500


def logistic(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    w = minimum(Table(x, y), RIDGE)
    p = special.expit(x @ w)
    return _normal(w, (x.T * (p * (1 - p))) @ x + RIDGE * np.eye(len(w)), seed)


def linear(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    full = with_constant(job, x)
    gram = full.T @ full + RIDGE * np.eye(full.shape[1])
    w = np.linalg.solve(gram, full.T @ y)
    return _normal(w, gram / np.mean((y - full @ w) ** 2), seed)


def naive_bayes(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Columns are normal given the answer."""
    log_p = [stats.norm.logpdf(job.x_test, x[y == k].mean(axis=0), x[y == k].std(axis=0)).sum(axis=1) for k in (0, 1)]
    return special.expit(special.logit(y.mean()) + log_p[1] - log_p[0])[None]


def _normal(centre: np.ndarray, precision: np.ndarray, seed: int) -> np.ndarray:
    """Draws whose mean is `centre` itself."""
    draws = np.random.default_rng(seed).multivariate_normal(np.zeros(len(centre)), np.linalg.inv(precision), N_DRAWS)
    return centre + draws - draws.mean(axis=0)


FITS = {"logistic": logistic, "linear": linear, "naive_bayes": naive_bayes}
PEERS = (Peer(name="not private", neighbours="none", fits=FITS, delta=False, intervals=True),)
