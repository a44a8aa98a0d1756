"""A private model that cannot be sampled is refused before it is paid for; one that can is compiled once."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.transforms import trial as trials
from tests.transforms.zoo import no_reading


@pytest.fixture(autouse=True)
def trials_by_numpy(monkeypatch):
    """In place of that of all other tests: models are tried, each anew."""
    monkeypatch.setattr(trials, "_PASSED", trials._PASSED.copy())
    trials._PASSED.clear()


ROWS = np.array([0, 1, 1, 0, 1, 1, 0, 1])


def bent(mean=0.0, limit=np.inf, rows=ROWS, **prior):
    """A Bernoulli model; where a is below -limit, the branch that is not taken spoils the gradient."""
    with pm.Model() as model:
        a = pm.Normal("a", mean, 1.0, **prior)
        hidden = pt.sqrt(-1 - a**2) if limit == 0 else pt.sqrt(a + limit)
        logit = a if limit == np.inf else pt.switch(a > -1e9, a, hidden)
        pm.Bernoulli("y", logit_p=logit, observed=rows)
    return model


def test_a_gradient_that_is_no_number_is_refused_and_nothing_is_spent(monkeypatch):
    ledger = dp.Ledger(1.0)
    with no_reading(monkeypatch), pytest.raises(dp.errors.UnsupportedModelError, match="gradient") as caught:
        dp.privatize(bent(limit=0), epsilon=1.0, ledger=ledger)
    assert not ledger.history
    problem, other = caught.value.problems
    assert "noised gradients fit it" in other.what and "delta" in other.remedy
    assert problem.where == "a" and "at the start point" in problem.what and "initval=" in problem.remedy


def test_more_than_half_of_the_prior_without_a_gradient_is_refused():
    with pytest.raises(dp.errors.UnsupportedModelError, match="at 4[0-9] of 50 points of the prior"):
        dp.privatize(bent(mean=-2.0, limit=0.8, initval=0.0), epsilon=1.0, ledger=dp.Ledger(1.0))


def test_some_of_the_prior_without_a_gradient_is_one_line():
    with pytest.warns(
        dp.errors.PosteriorWarning, match="a: the gradient of .* is not finite at [0-9]+ of 53 points"
    ) as caught:
        dp.privatize(bent(limit=0.8), epsilon=1.0, ledger=dp.Ledger(1.0))
    assert len(caught) == 1 and "\n" not in str(caught[0].message)


def test_a_density_that_is_no_number_names_what_makes_it_so():
    model = bent()
    with model:
        pm.Potential("bad", pt.log(model["a"] - 100))
    with pytest.raises(dp.errors.UnsupportedModelError, match="bad: .* the log density .* at the start point"):
        dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))


def test_what_was_paid_for_already_is_warned_of_at_most():
    release = dp.Release.of(dp.privatize(bent(), epsilon=1.0, ledger=dp.Ledger(1.0)))
    with pytest.warns(dp.errors.PosteriorWarning, match="a: the gradient"):
        dp.condition(bent(limit=0), release)
