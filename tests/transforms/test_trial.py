"""A private model that cannot be sampled is refused before it is paid for; one that can is compiled once."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.model.core import ValueGradFunction

import pymc_dp as dp
from pymc_dp.errors import PosteriorWarning, UnsupportedModelError
from pymc_dp.released import Release
from pymc_dp.simulation.prior import prior_points
from pymc_dp.testing import without_noise
from pymc_dp.transforms.privatize import plan_for
from pymc_dp.transforms.simulated_release import simulated_release
from tests.tied import tied
from tests.transforms.zoo import BOUNDS, indexed_model, no_reading, table

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
    with no_reading(monkeypatch), pytest.raises(UnsupportedModelError, match="gradient") as caught:
        dp.privatize(bent(limit=0), epsilon=1.0, ledger=ledger)
    assert not ledger.history
    problem, other = caught.value.problems
    assert "noised gradients fit it" in other.what and "delta" in other.remedy
    assert problem.where == "a" and "at the start point" in problem.what and "initval=" in problem.remedy


def test_more_than_half_of_the_prior_without_a_gradient_is_refused():
    with pytest.raises(UnsupportedModelError, match="at 4[0-9] of 50 points of the prior"):
        dp.privatize(bent(mean=-2.0, limit=0.8, initval=0.0), epsilon=1.0, ledger=dp.Ledger(1.0))


def test_some_of_the_prior_without_a_gradient_is_one_line():
    with pytest.warns(PosteriorWarning, match="a: the gradient of .* is not finite at [0-9]+ of 53 points") as caught:
        dp.privatize(bent(limit=0.8), epsilon=1.0, ledger=dp.Ledger(1.0))
    assert len(caught) == 1 and "\n" not in str(caught[0].message)


def test_a_density_that_is_no_number_names_what_makes_it_so():
    model = bent()
    with model:
        pm.Potential("bad", pt.log(model["a"] - 100))
    with pytest.raises(UnsupportedModelError, match="bad: .* the log density .* at the start point"):
        dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))


def test_what_was_paid_for_already_is_warned_of_at_most():
    release = Release.of(dp.privatize(bent(), epsilon=1.0, ledger=dp.Ledger(1.0)))
    with pytest.warns(PosteriorWarning, match="a: the gradient"):
        dp.condition(bent(limit=0), release)


def test_dp_sample_compiles_its_density_once_and_follows_the_release(interpreted, monkeypatch):
    made, own = [], ValueGradFunction.__init__
    monkeypatch.setattr(ValueGradFunction, "__init__", lambda self, *a, **k: made.append(self) or own(self, *a, **k))
    rows = np.repeat([0, 1], [10, 990])
    with bent(rows=rows), without_noise(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        idata = dp.sample(
            epsilon=1.0, ledger=dp.Ledger(1.0), draws=100, tune=200, chains=1, progressbar=False, random_seed=1
        )
    assert len(made) == 1
    # a simulated release of 1000 rows would be elsewhere
    assert 3.5 < float(idata.posterior["a"].mean()) < 5.5


def test_discrete_variables_are_set_and_not_differentiated():
    with pm.Model() as model:
        z, p = pm.Bernoulli("z", 0.5), pm.Beta("p", 1, 1)
        pm.Bernoulli("y", 0.1 + 0.5 * z + 0.3 * p, observed=ROWS)
    dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))
    with pm.Model() as model:
        pm.Bernoulli("y", 0.1 + 0.5 * pm.Bernoulli("z", 0.5), observed=ROWS)
    dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))


def test_points_lie_in_the_middle_of_the_prior_and_around_the_start_without_one(rng):
    with pm.Model() as model:
        pm.Normal("a", 5, 2)
        b = pm.Flat("b", initval=3.0)
        pm.Normal("c", b, 1e-3)
        pm.Poisson("k", 4.0)
        pm.Exponential("d", 1.0)
    points = prior_points(model, 50, rng)
    a, b, c = (np.array([point[name] for point in points]) for name in "abc")
    assert 5 - 3.6 < a.min() < 3 and 7 < a.max() < 5 + 3.6  # 1.645 standard deviations, estimated
    assert 2 <= b.min() < b.max() <= 4 and c.std() > 0.2
    assert all(point["k"].dtype.kind == "i" and 0 <= point["k"] <= 9 for point in points)
    assert np.array([point["d_log__"] for point in points]).std() > 0.5


@pytest.mark.parametrize("neighbours", [{}, {"neighbours": "add_remove", "n_max": 100}])
def test_simulated_releases_are_laid_out_as_real_ones_and_read_nothing(rng, monkeypatch, neighbours):
    model = tied(indexed_model(table(rng)))
    public = {} if neighbours else {"public": ["region"]}
    _, plan = plan_for(
        model, epsilon=30.0, delta=0.0, domain=dp.Domain(bounds=BOUNDS, **public, **neighbours), statistics=None
    )
    with no_reading(monkeypatch):
        found = simulated_release(plan, rng)
    for item in plan.tables:
        released = found[item.name]
        assert released.shape == (len(item.cell_labels), len(item.labels)) and np.isfinite(released).all()
    with without_noise():
        for item, values in zip(plan.tables, simulated_release(plan, rng).values(), strict=True):
            if item.sizes_known:
                assert (np.abs(values) <= item.cells.sizes[:, None] * 81).all()
