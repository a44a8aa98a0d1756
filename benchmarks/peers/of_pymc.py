"""Not private: NUTS of PyMC on the same models, with as many draws as ours."""

from __future__ import annotations

import numpy as np
import pymc as pm
from _job import Job, Peer
from _models import QUIET, coefficients, model_of


def fit(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    with model_of(job, x, y):
        found = pm.sample(500, tune=500, compute_convergence_checks=False, random_seed=seed, **QUIET)
    return coefficients(job.kind, found["posterior"])


PEERS = (
    Peer(
        name="not private, NUTS of PyMC",
        neighbours="none",
        fits={"logistic": fit, "linear": fit},
        delta=False,
        intervals=True,
    ),
)
