"""The regressions that PyMC fits, with privacy and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from _job import Job, rows_of

WIDE = 20
"""More columns than this get a narrower prior."""
QUIET = {"chains": 1, "cores": 1, "progressbar": False}


def model_of(job: Job, x: np.ndarray, y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        if job.kind == "persons":
            x, y, person = rows_of(x, y)
            pm.Data("person", person)
        rows, d = pm.Data("x", x), x.shape[1]
        if job.kind == "linear":
            base, w, sd = pm.Normal("base", 0, 1), pm.Normal("w", 0, 1, shape=d), pm.HalfNormal("sd", 1.0)
            pm.Normal("y", base + rows @ w, sd, observed=y.astype(float))
        else:
            w = pm.Normal("w", 0, 1.0 if d > WIDE else 2.0, shape=d)
            pm.Bernoulli("y", logit_p=rows @ w, observed=y.astype(int))
    return model


def coefficients(kind: str, posterior: Any) -> np.ndarray:
    """Draws of all chains, (draws, d); the constant of a linear regression is first."""
    w = posterior["w"].values
    w = w.reshape(-1, w.shape[-1])
    return np.column_stack([posterior["base"].values.ravel(), w]) if kind == "linear" else w
