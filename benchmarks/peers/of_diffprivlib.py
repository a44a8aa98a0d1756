"""diffprivlib: logistic and linear regression, Gaussian naive Bayes; bounds are given, so that it need not look."""

from __future__ import annotations

import numpy as np
from _job import Job, Peer
from diffprivlib.models import GaussianNB, LinearRegression, LogisticRegression

RIDGES = {0.1: 30.0, 1.0: 0.3}
"""Chosen on simulated tables for the same objective (`bench_logistic.py`)."""


def logistic(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    chosen = RIDGES[min(RIDGES, key=lambda one: abs(np.log(one / job.epsilon)))]
    ridge = chosen if job.ridge is None else job.ridge
    settings = {"data_norm": 1.0, "fit_intercept": False, "tol": 1e-9, "max_iter": 10_000, "C": 1 / ridge}
    return LogisticRegression(epsilon=job.epsilon, **settings).fit(x, y).coef_


def linear(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    fit = LinearRegression(epsilon=job.epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)).fit(x, y)
    return np.append(fit.intercept_, fit.coef_)[None]


def naive_bayes(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    fit = GaussianNB(epsilon=job.epsilon, bounds=(-1.0, 1.0)).fit(x, y)
    return fit.predict_proba(job.x_test)[:, 1][None]


FITS = {"logistic": logistic, "linear": linear, "naive_bayes": naive_bayes}
PEERS = (
    Peer(name="diffprivlib", neighbours="replace", fits=FITS, delta=False, packages=("diffprivlib", "scikit-learn")),
)
