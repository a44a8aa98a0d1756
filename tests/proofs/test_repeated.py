"""What is repeated, chosen or moved on the way to the likelihood counts as often as it occurs."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.priors import priors_of
from pymc_dp.proofs.certificates import log_concave, precisions

X = np.full((7, 10), 0.1)
Y = np.zeros(7, dtype=int)


def certificates(model, **domain):
    return dp.sensitivity(model, dp.Domain(**domain)).certificates


def test_a_coefficient_repeated_for_every_covariate_is_not_one_of_them():
    with pm.Model() as model:
        covariates, b = pm.Data("X", X), pm.Normal("b")
        pm.Bernoulli("y", logit_p=covariates @ pt.alloc(b, 10), observed=Y)
    with pytest.raises(UnsupportedModelError, match="X·b"):
        dp.sensitivity(model, dp.Domain(norms={"X": 1.0}))


def test_entries_in_another_order_are_still_one_each():
    with pm.Model() as model:
        covariates, b = pm.Data("X", X[:, :3]), pm.Normal("b", shape=3)
        pm.Bernoulli("y", logit_p=covariates @ b[::-1], observed=Y)
    assert certificates(model, norms={"X": 1.0}).lipschitz.value == pytest.approx(1.0, rel=1e-5)


def test_an_index_that_hangs_on_a_parameter_is_refused():
    with pm.Model() as model:
        table, b = pm.Data("table", np.array([0.0, 10.0])), pm.Uniform("b", 0, 0.1)
        chosen = pm.Data("g", Y) + (pm.Uniform("c", -1, 1) > 0)
        pm.Normal("y", table[chosen] + b, 1.0, observed=np.zeros(7))
    with pytest.raises(dp.errors.PrivacyError, match="index"):
        dp.sensitivity(model, dp.Domain(bounds={"y": (-1, 1), "g": (0, 1)}, public=["table"]))


def test_axes_that_an_index_leaves_do_not_take_each_others_bounds():
    with pm.Model() as model:
        low, high = np.repeat([[-5.0], [0.0]], 4, axis=1), np.repeat([[-4.0], [1.0]], 4, axis=1)
        w, g = pm.Uniform("w", low, high, shape=(2, 4)), pm.Data("g", np.zeros((7, 2), dtype=int))
        chosen = w[:, g].dimshuffle(1, 0, 2)
        pm.Bernoulli("y", logit_p=chosen[:, 0, 1], observed=Y)
    found = dp.sensitivity(model, dp.Domain(bounds={"g": (0, 3)}))
    assert found.range.value >= 1.85 and found.log_likelihood.value >= 5.0


def test_integers_that_wrap_around_are_refused():
    with pm.Model() as model:
        x, b = pm.Data("x", np.zeros(7, dtype=int)), pm.Uniform("b", 0, 1)
        pm.Poisson("y", pt.exp(-pt.cast(x, "int8") * b / 20), observed=Y)
    with pytest.raises(dp.errors.PrivacyError, match="int8"):
        dp.sensitivity(model, dp.Domain(bounds={"x": (0, 200), "y": (0, 1)}))


def test_a_prior_whose_ends_move_is_not_log_concave():
    with pm.Model() as model:
        z = pm.Normal("z", 0, 10)
        pm.TruncatedNormal("x", 0, 1, lower=0, upper=pt.exp(z))
        pm.Truncated("t", pm.HalfNormal.dist(1), upper=pt.exp(z))
    _, x, t = priors_of(model)
    assert not log_concave(x) and not log_concave(t)
    assert (precisions(x) == 0).all() and (precisions(t) == 0).all()
