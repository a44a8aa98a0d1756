"""What is said of noised gradients before anything is compiled: whether they fit, parameters, widths by formula."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import Budget
from pymc_dp.accounting.gdp import mu_for
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients import choice
from pymc_dp.gradients.choice import Outlook, width_ratio
from pymc_dp.inspection.inspect import inspect
from tests.gradients.models import ALL, bernoulli, groups

BUDGET = Budget(1.0, 1e-5)


def test_the_formula_is_that_of_one_clipped_gradient():
    mu = mu_for(1.0, 1e-5)
    one, lost = choice.CLIPPING, choice.COORDINATES
    variance = (2 * choice.CLIPPED) ** 2 * 24 / (choice.LAST_SHARE * mu**2)
    assert width_ratio(24, 8000, BUDGET, "replace") == pytest.approx(np.sqrt(one + lost * variance / 8000))
    assert width_ratio(24, 8000, BUDGET, "add_remove") == pytest.approx(np.sqrt(one + lost * variance / 4 / 8000))
    assert width_ratio(24, 10**10, BUDGET, "replace") == pytest.approx(np.sqrt(one), abs=1e-4)


@pytest.mark.few(7)
@pytest.mark.parametrize("build", ALL, ids=lambda build: build.__name__)
def test_all_likelihoods_that_gradients_take_fit(build):
    model, domain = build()
    found = Outlook.of(inspect(model, domain), 40)
    assert found.fits and found.n_rows == 40 and found.width_ratio(BUDGET) > 1


def test_parameters_are_those_that_meet_the_rows():
    found = Outlook.of(inspect(*groups()), 40)
    assert dict(found.parts) == {"b": 3, "alpha": 4} and found.size == 7


def test_no_row_is_read_and_a_private_number_of_rows_is_its_bound(monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    model, _ = bernoulli()
    domain = dp.Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=700)
    assert Outlook.of(inspect(model, domain), 40).n_rows == 700


def _discrete():
    with pm.Model() as model:
        k = pm.Bernoulli("k", 0.5)
        pm.Normal("y", k, 1.0, observed=np.zeros(5))
    return model, dp.Domain(bounds={"y": (-5, 5)})


@pytest.mark.parametrize(
    ("build", "where", "remedy"),
    [
        (_discrete, "k", "Sum it out"),
        (lambda: (bernoulli()[0], dp.Domain()), "x", r"columns={'x': pm.Normal.dist(0, 1)}"),
    ],
)
def test_what_is_in_the_way_comes_with_its_remedy_and_is_what_a_release_would_say(build, where, remedy):
    model, domain = build()
    found = Outlook.of(inspect(model, domain), 40)
    assert not found.fits
    assert any(problem.where == where and remedy in problem.remedy for problem in found.problems)
    with pytest.raises(UnsupportedModelError) as caught:
        dp.privatize(model, epsilon=1.0, delta=1e-6, domain=domain, statistics=dp.Gradients())
    assert caught.value.problems == found.problems


def test_a_metric_is_not_for_them():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(5))
    domain = dp.Domain(bounds={"y": (-5, 5)}, metric=dp.metrics.L1("y"))
    (problem,) = Outlook.of(inspect(model, domain), 5).problems
    assert problem.where == "domain" and "metric" in problem.what
