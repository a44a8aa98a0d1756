"""Which kind of release is chosen where nobody says so, and why; nothing of a row decides."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import Budget
from pymc_dp.advice.gradients import default_release, with_gradients
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.release.statistics import Statistics
from tests.gradients.models import bernoulli, negative_binomial, poisson, student_t, two

WITH_DELTA = Budget(1.0, 1e-6)


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1, 0, 1]))
    return model, None


def linear(predictors, rows=50, sigma=None):
    names = [f"x{i}" for i in range(predictors)]
    with pm.Model() as model:
        b, sigma = pm.Normal("b", shape=predictors), pm.HalfNormal("sigma") if sigma is None else sigma
        mu = sum(b[i] * pm.Data(name, np.zeros(rows)) for i, name in enumerate(names))
        pm.Normal("y", mu, sigma, observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5), **dict.fromkeys(names, (-1, 1))})


@pytest.mark.parametrize("build", [coin, lambda: linear(4)], ids=["coin", "linear"])
def test_exact_sums_stay_where_they_are_best(build):
    found = default_release(*build(), WITH_DELTA)
    assert isinstance(found.statistics, Statistics) and "sufficient statistics" in found.why
    assert (found.delta > 0) == (found.statistics.noise == "gaussian")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("build", "why"),
    [
        (bernoulli, "polynomial in place of the likelihood of y"),
        (poisson, "polynomial in place of the likelihood of y"),
        (two, "polynomial in place of the likelihood of y1"),
        (lambda: linear(21), "21 private predictors"),
        (student_t, "no exact sums to release (y: "),
        (negative_binomial, "no exact sums to release (y: "),
    ],
)
def test_gradients_are_taken_elsewhere_given_a_delta(build, why):
    found = default_release(*build(), WITH_DELTA)
    assert found.statistics == Gradients() and found.delta == WITH_DELTA.delta and why in found.why


def groups(rows, *, levels, mean=1.0, sigma=1.0):
    with pm.Model() as model:
        means = pm.Normal("mean", 0, mean, shape=levels)[pm.Data("group", np.arange(rows) % levels)]
        pm.Normal("y", means, pm.HalfNormal("sigma", sigma), observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5)})


@pytest.mark.parametrize(
    ("build", "epsilon"),
    [
        (lambda: linear(2, 500), 100.0),
        (lambda: linear(2, 5000), 1.0),
        (lambda: groups(5000, levels=10), 3.0),
        (lambda: groups(5000, levels=10, sigma=30.0), 3.0),  # a walk starts within bounds
    ],
)
def test_gradients_are_taken_where_the_noise_on_squares_would_hide_residuals(build, epsilon):
    found = default_release(*build(), Budget(epsilon, 1e-5))
    assert found.statistics == Gradients() and "intervals by noised sums of squares would be about" in found.why


@pytest.mark.parametrize(
    ("build", "epsilon"),
    [
        (lambda: linear(2, 100), 1.0),  # gradients would be wide too, and less sure to be right
        (lambda: linear(2, 500, sigma=1.0), 100.0),  # no squares are needed
        (lambda: groups(200, levels=70), 100.0),  # so many means that a quadratic is off
        (lambda: groups(800, levels=60, mean=50.0), 30.0),  # and a walk may not arrive
        (lambda: groups(800, levels=60), 30.0),  # so many means, and noise on gradients is much too
        (lambda: groups(5000, levels=1), 30.0),  # the noise is small even beside residuals
    ],
)
def test_sums_of_squares_stay_elsewhere(build, epsilon):
    assert isinstance(default_release(*build(), Budget(epsilon, 1e-5)).statistics, Statistics)


def test_how_many_rows_there_are_decides_nothing_where_that_is_private():
    reasons = set()
    for rows in (100, 500, 5000):
        model, domain = linear(2, rows)
        domain = dp.Domain(bounds=dict(domain.bounds), neighbours="add_remove", n_max=5000)
        reasons.add(default_release(model, domain, WITH_DELTA).why)
    assert len(reasons) == 1


@pytest.mark.parametrize("build", [coin, bernoulli, student_t, lambda: linear(21)])
def test_without_a_delta_it_is_exact_sums(build):
    found = default_release(*build(), Budget(1.0))
    assert found.statistics == Statistics() and found.delta == 0


def test_privatize_and_sample_choose_alike(monkeypatch):
    """The kind that is chosen is asked for with the same budget, and noted in the record."""
    asked, (model, domain) = [], bernoulli()

    def noted(self, model, domain, budget, **more):
        asked.append((self, budget))
        raise KeyError

    monkeypatch.setattr(Gradients, "make_private", noted)
    for call in (dp.privatize, dp.sample):
        with pytest.raises(KeyError):
            call(model=model, domain=domain, epsilon=1.0, delta=1e-6)
    assert asked == [(Gradients(), WITH_DELTA)] * 2
    private = dp.privatize(coin()[0], epsilon=1.0, delta=1e-6, ledger=dp.Ledger(1.0, 1e-6))
    record = dp.Release.of(private).record
    assert record.delta == 0 and record.chosen == default_release(*coin(), WITH_DELTA).why


def test_no_row_is_read(monkeypatch):
    def touched(*_):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    found = [default_release(*bernoulli(y=np.full(40, value)), WITH_DELTA) for value in (0, 1)]
    assert found[0] == found[1]


def test_an_error_at_delta_zero_names_gradients_only_where_they_fit():
    error = UnsupportedModelError([])
    (problem,) = with_gradients(error, *student_t()).problems
    assert "Pass delta=1e-06" in problem.remedy
    assert with_gradients(error, student_t()[0], dp.Domain()) is error
