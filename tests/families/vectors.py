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


def normal_model(rows, group=None, *, known=False):
    """Mean and covariance of MvNormal rows; a mean per level of a private column."""
    d = rows.shape[1]
    with pm.Model(coords={"entry": range(d), "level": range(2)}) as model:
        mu = pm.Normal("mu", 0, 3, dims=("entry",) if group is None else ("level", "entry"))
        sd = 1.3 if known else pm.HalfNormal("sd", 2, dims="entry")
        r = 0.2 if known else pm.Uniform("r", -0.4, 0.9)
        covariance = pt.outer(*[sd * pt.ones(d)] * 2) * (pt.eye(d) + r * (1 - pt.eye(d)))
        mu = mu if group is None else mu[pm.Data("group", group)]
        pm.MvNormal("y", mu, covariance, observed=pm.Data("rows", rows))
    return model


def dirichlet_model(rows, group=None):
    """Concentrations of Dirichlet rows, for each level of a private column."""
    with pm.Model(coords={"entry": range(rows.shape[1]), "level": range(2)}) as model:
        a = pm.HalfNormal("a", 5, dims=("entry",) if group is None else ("level", "entry"))
        pm.Dirichlet("y", a if group is None else a[pm.Data("group", group)], observed=pm.Data("rows", rows))
    return model


def statistic_of(model, domain, *, known=True):
    (observed,) = inspect(model, domain).sums.observed
    return FAMILIES[observed.distribution].statistic(observed, sizes_known=known)


def moment_function(model, domain):
    """Compiled moments of a clamped row, as a function of parameters of one cell each."""
    (observed,) = inspect(model, domain).sums.observed
    family, statistic = FAMILIES[observed.distribution], statistic_of(model, domain)
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
