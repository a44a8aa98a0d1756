"""Models and steps that take turns on them, for several files of tests."""

import numpy as np
import pymc as pm

import pymc_dp as dp

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
BOUNDS = {"y": (-3.0, 3.0)}
ROWS = np.array([0.3, -1.2, 2.0, 0.8, -0.4, 1.1])
LOSS = {"epsilon": 2.0, "delta": 1e-6}


def normal(rows=ROWS):
    """Normal rows, and a hyper-parameter that no row tells anything about given the mean."""
    with pm.Model() as model:
        centre = pm.Normal("centre", 0, 1)
        mean = pm.TruncatedNormal("mean", centre, 1, lower=-2, upper=2)
        sd = pm.Uniform("sd", 0.5, 2.0)
        pm.Normal("y", mean, sd, observed=pm.Data("rows", np.asarray(rows, dtype=float)))
    return model


def mixture(rows=ROWS):
    with pm.Model() as model:
        w = pm.Uniform("w", 0.1, 0.9)
        low = pm.Uniform("low", -2.0, 2.0)
        parts = [pm.Normal.dist(low, 1.0), pm.Normal.dist(1.5, 0.5)]
        pm.Mixture("y", w=pm.math.stack([w, 1 - w]), comp_dists=parts, observed=pm.Data("rows", np.asarray(rows)))
    return model


def steps(share=1.0, **options):
    return [dp.TemperedGibbs(["sd"]), dp.BarkerMetropolis(["mean"], share=share, **options)]
