"""Shared by the tests of likelihoods whose rows are vectors."""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp
from pymc_dp.families import FAMILIES
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_function

WILD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -7.0, 1e-320)


def normal_model(rows, *, known=False):
    """Mean and covariance of MvNormal rows."""
    d = rows.shape[1]
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3, shape=d)
        sd = 1.3 if known else pm.HalfNormal("sd", 2, shape=d)
        r = 0.2 if known else pm.Uniform("r", -0.4, 0.9)
        covariance = pt.outer(*[sd * pt.ones(d)] * 2) * (pt.eye(d) + r * (1 - pt.eye(d)))
        pm.MvNormal("y", mu, covariance, observed=pm.Data("rows", rows))
    return model


def dirichlet_model(rows):
    """Concentrations of Dirichlet rows."""
    with pm.Model() as model:
        pm.Dirichlet("y", pm.HalfNormal("a", 5, shape=rows.shape[1]), observed=pm.Data("rows", rows))
    return model


def moment_function(model, domain):
    """Compiled moments of a clamped row, as a function of parameters of one cell each."""
    (observed,) = inspect(model, domain).sums.observed
    family = FAMILIES[observed.distribution]
    statistic = family.statistic(observed, sizes_known=True)
    shapes = [(None, *[statistic.width] * ndim) for ndim in family.event_ndims]
    inputs = [pt.tensor(f"p{i}", shape=shape, dtype="float64") for i, shape in enumerate(shapes)]
    mean, covariance = family.moments(inputs, statistic)
    return plain_function(inputs, [mean, covariance]), statistic


def plug_in_gaps(model, domain, points):
    """Log density of the rows less that of their exact sums, at several points: one number if all is well."""
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain, statistics=dp.Statistics(noise_aware=False))
    whole, sums = (item.compile_logp(mode="FAST_COMPILE") for item in (model, private))
    found = [float(whole(point)) - float(sums(point)) for point in points]
    return np.array([b - a for a, b in pairwise(found)])
