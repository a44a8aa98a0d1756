"""Models without exact sums from end to end: what is taken, what is said, what is refused and why."""

import logging

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.accounting import Budget, Ledger
from pymc_dp.audit import contains_canary, plant
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.sampling import sample
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.testing import insecure_randomness
from tests.step_methods.gibbs.conftest import bound
from tests.step_methods.gibbs.row_models import ROW_MODELS
from tests.step_methods.gibbs.test_tempered import QUIET

N = 8


def taken(name, rng, relation="replace", **settings):
    case = ROW_MODELS[name]
    return case.model(rng, N), case.domain(relation), TemperedGibbs(**settings)














# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(build, public=None):
    with pm.Model() as model:
        build(np.zeros(N))
    with pytest.raises(UnsupportedModelError) as caught:
        bound(model, public, read=False)
    return str(caught.value)


def test_unbounded_parameters_are_refused_with_the_truncation():
    def build(zeros):
        mu, scale = pm.Normal("mu"), pm.HalfNormal("scale")
        pm.StudentT("y", nu=4, mu=mu, sigma=scale, observed=zeros)

    text = refused(build, Domain(bounds={"y": (-1, 1)}))
    assert "dp.truncate(model, {'mu': (-10.0, 10.0)})" in text
    assert "dp.truncate(model, {'scale': (0.1, 10.0)})" in text


def test_unbounded_values_are_refused_with_bounds_or_clamp():
    def build(zeros):
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=pm.Uniform("sd", 1, 2), observed=zeros)

    assert "Domain(bounds={'y': (low, high)})" in refused(build)




def test_operations_without_a_rule_are_refused_by_name():
    def build(zeros):
        a = pm.Uniform("a", 0.1, 0.2, shape=2)
        pm.StudentT("y", nu=4, mu=pt.cumsum(a)[1], sigma=1.0, observed=zeros)

    text = refused(build, Domain(bounds={"y": (-1, 1)}))
    assert "its density contains CumOp" in text and "dp.clamp" in text






def test_rows_that_do_not_separate_are_refused():
    def build(zeros):
        a = pm.Uniform("a", -1, 1)
        pm.StudentT("y", nu=4, mu=a * pm.Data("x", zeros).mean(), sigma=1.0, observed=zeros)

    assert "(x - 50) / 10 for" in refused(build, Domain(bounds={"y": (-1, 1), "x": (-1, 1)}))




