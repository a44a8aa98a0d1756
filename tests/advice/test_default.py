"""Which kind of release is chosen where nobody says so, and why; nothing of a row decides."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import Budget
from pymc_dp.advice import gradients
from pymc_dp.advice.gradients import default_release, with_gradients
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release import plan
from pymc_dp.release.plan import lay_out_table
from pymc_dp.release.statistics import Statistics
from pymc_dp.transforms import privatize
from tests.gradients.models import bernoulli, negative_binomial, poisson, student_t, two

WITH_DELTA = Budget(1.0, 1e-6)


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1, 0, 1]))
    return model, None


def linear(predictors):
    names = [f"x{i}" for i in range(predictors)]
    with pm.Model() as model:
        b, sigma = pm.Normal("b", shape=predictors), pm.HalfNormal("sigma")
        mu = sum(b[i] * pm.Data(name, np.zeros(50)) for i, name in enumerate(names))
        pm.Normal("y", mu, sigma, observed=np.zeros(50))
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


def cells(count, *, rate_each):
    """Poisson counts of few parameters, or of one in each cell."""
    with pm.Model() as model:
        group, kinds = pm.Data("group", np.arange(2000) % count), np.arange(count)
        level = pm.Normal("level", 0, 1, shape=count) if rate_each else pm.Normal("slope", 0, 0.01) * kinds
        pm.Poisson("y", pm.math.exp(level[group]), observed=np.ones(2000, dtype=int))
    return model, dp.Domain(bounds={"y": (0, 10)})


def test_gradients_are_taken_where_many_cells_have_few_parameters():
    found = default_release(*cells(500, rate_each=False), WITH_DELTA)
    assert found.statistics == Gradients() and "intervals by exact sums would be about" in found.why
    for build in (cells(4, rate_each=False), cells(500, rate_each=True)):
        assert isinstance(default_release(*build, WITH_DELTA).statistics, Statistics)


@pytest.mark.parametrize("build", [coin, bernoulli, student_t, lambda: linear(21)])
def test_without_a_delta_it_is_exact_sums(build):
    found = default_release(*build(), Budget(1.0))
    assert found.statistics == Statistics() and found.delta == 0


def test_the_smaller_noise_is_taken():
    """Laplace noise of one count is the smaller one; that of many sums is not."""
    assert default_release(*coin(), WITH_DELTA).statistics.noise == "laplace"
    assert default_release(*linear(12), Budget(1.0, 1e-3)).statistics == Statistics("gaussian")


def test_sums_of_a_link_are_released_without_a_delta_where_gradients_do_not_fit():
    with pm.Model() as model:
        x = pm.Data("x", np.zeros((40, 2)))
        kept = pm.Bernoulli("kept", 0.5, shape=2)  # which has no gradient
        pm.Bernoulli("y", logit_p=x @ (kept * pm.Normal("b", 0, 1, shape=2)), observed=np.arange(40) % 2)
    found = default_release(model, dp.Domain(bounds={"x": (-1, 1)}), WITH_DELTA)
    assert found.statistics == Statistics() and found.delta == 0 and "gradients do not fit" in found.why


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


def test_a_model_is_read_once_and_laid_out_once_for_each_noise(monkeypatch):
    read, laid_out = [], []
    reading, laying = gradients.inspect, plan._table
    for module in (gradients, privatize):
        monkeypatch.setattr(module, "inspect", lambda *given, **more: read.append(0) or reading(*given, **more))
    monkeypatch.setattr(plan, "_table", lambda *given: laid_out.append(given[2].noise) or laying(*given))
    model, domain = linear(2)
    dp.privatize(model, epsilon=1.0, delta=1e-6, domain=domain, ledger=dp.Ledger(1.0, 1e-6))
    assert len(read) == 1 and sorted(laid_out) == ["gaussian", "laplace"]


def test_what_was_found_of_a_model_is_not_that_of_another():
    """Each inspection keeps its own, and one with other problems or other rows begins anew."""
    found = inspect(*linear(2), per_person=True, weighted=True).sums
    assert lay_out_table(found.observed[0], found, Statistics()) is lay_out_table(
        found.observed[0], found, Statistics(noise_aware=False)
    )
    other = replace(found, n_rows=found.n_rows + 1)
    tables = [lay_out_table(one.observed[0], one, Statistics()) for one in (found, other)]
    assert tables[0].cells.groups.sum() + 1 == tables[1].cells.groups.sum()


def test_no_row_is_read(monkeypatch):
    def touched(*_):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    found = [default_release(*bernoulli(y=np.full(40, value)), WITH_DELTA) for value in (0, 1)]
    assert found[0] == found[1]


def test_where_neither_fits_what_asks_for_less_is_named():
    """A histogram would need bounds and bins, gradients bounds alone."""
    model, _ = student_t()
    with pytest.raises(UnsupportedModelError) as caught:
        default_release(model, dp.Domain(), WITH_DELTA)
    (problem,) = caught.value.problems
    assert "dp.Gradients simulates rows" in problem.what and "Bound it" in problem.remedy


def test_an_error_at_delta_zero_names_gradients_only_where_they_fit():
    error = UnsupportedModelError([])
    (problem,) = with_gradients(error, *student_t()).problems
    assert "Give a delta > 0" in problem.remedy
    assert with_gradients(error, student_t()[0], dp.Domain()) is error
