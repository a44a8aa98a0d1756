"""A private model that cannot be sampled is refused before it is paid for; one that can is compiled once."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.blocking import DictToArrayBijection
from pymc.model.core import ValueGradFunction
from pytensor.tensor.shape import SpecifyShape

import pymc_dp as dp
from pymc_dp.errors import PosteriorWarning, UnsupportedModelError
from pymc_dp.released import Release
from pymc_dp.simulation.prior import prior_points
from pymc_dp.testing import without_noise
from pymc_dp.transforms import trial as trials
from pymc_dp.transforms.privatize import make_private, plan_for
from pymc_dp.transforms.simulated_release import simulated_release
from pymc_dp.transforms.trial import INTERPRETED, Trial
from tests.tied import tied
from tests.transforms.zoo import BOUNDS, indexed_model, no_reading, table

ROWS = np.array([0, 1, 1, 0, 1, 1, 0, 1])


@pytest.fixture
def trials_by_numpy(monkeypatch):
    """In place of that of all other tests: models are tried, each anew."""
    monkeypatch.setattr(trials, "_PASSED", trials._PASSED.copy())
    trials._PASSED.clear()


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


def test_the_same_density_is_tried_once_whatever_its_release(monkeypatch):
    dp.privatize(bent(), epsilon=1.0, ledger=dp.Ledger(1.0))
    with monkeypatch.context() as patch:
        patch.setattr(Trial, "_outcomes", None)
        dp.privatize(bent(rows=1 - ROWS), epsilon=1.0, ledger=dp.Ledger(1.0))
    others = (bent(mean=1.0), bent(initval=0.5), bent(limit=30.0))
    for count, other in enumerate(others, start=2):
        dp.privatize(other, epsilon=1.0, ledger=dp.Ledger(1.0))
        assert len(trials._PASSED) == count


def test_other_releases_are_made_up_only_where_the_first_fails(monkeypatch):
    made, own = [], trials.simulated_release
    monkeypatch.setattr(trials, "simulated_release", lambda *a: made.append(a) or own(*a))
    dp.privatize(bent(), epsilon=1.0, ledger=dp.Ledger(1.0))
    assert len(made) == 1
    with pytest.warns(PosteriorWarning):
        dp.privatize(bent(limit=0.8), epsilon=1.0, ledger=dp.Ledger(1.0))
    assert len(made) == 1 + trials.RELEASES


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


def naive_bayes(rng):
    c, x = rng.integers(0, 3, 300), rng.integers(0, 4, 300)
    with pm.Model(coords={"class": range(3), "level": range(4)}) as model:
        held = pm.Categorical("c", pm.Dirichlet("p", np.ones(3), dims="class"), observed=pm.Data("label", c))
        q = pm.Dirichlet("q", np.ones(4), dims=("class", "level"))
        pm.Categorical("x", q[held], observed=x)
    return model, {}


def regression(rng):
    x = rng.uniform(-1, 1, (400, 2))
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Normal(
            "y", pm.Normal("a") + pm.Data("x", x) @ b, pm.HalfNormal("s"), observed=x[:, 0] + rng.normal(size=400)
        )
    return model, {"bounds": {"x": (-1, 1), "y": (-4, 4)}}


def counts(rng):
    with pm.Model() as model:
        pm.StudentT("y", 3.0, mu=pm.Normal("m"), sigma=pm.HalfNormal("s"), observed=rng.normal(size=200))
    return model, {"bounds": {"y": (-4, 4)}}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("build", [naive_bayes, regression, counts])
def test_what_is_lent_is_the_function_of_the_real_release(build, rng, monkeypatch):
    compile = pm.Model.logp_dlogp_function
    quickly = {"mode": INTERPRETED}
    monkeypatch.setattr(pm.Model, "logp_dlogp_function", lambda self, **given: compile(self, **{**quickly, **given}))
    model, public = build(rng)
    trial = Trial(compiled=True)
    private = make_private(
        model,
        dp.Domain(**public),
        epsilon=1.0,
        delta=0.0,
        statistics=None,
        ledger=dp.Ledger(1.0),
        trial=trial,
    )
    tried = trial._function
    with trial.lent(private):
        lent = private.logp_dlogp_function(ravel_inputs=True)
        assert lent is tried and "logp_dlogp_function" not in vars(private)
    own = private.logp_dlogp_function(ravel_inputs=True)
    assert own is not tried
    for point in [private.initial_point(0), *prior_points(private, 3, rng)]:
        flat = DictToArrayBijection.map(point)
        for one, two in zip(lent(flat), own(flat), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_the_function_is_of_known_shapes_where_dims_leave_them_open():
    # Else numba compiles the error message of a shape that was asserted, which takes longer than all the rest.
    with pm.Model(coords={"cell": range(3)}) as model:
        p = pm.Beta("p", 1, 1, dims="cell")
        pm.Bernoulli("y", p[np.arange(9) % 3], observed=np.arange(9) % 2)
    assert model["p"].type.shape == (None,)
    tried = Trial(compiled=True)
    tried._take(model)
    tried._points(np.random.default_rng(1))
    nodes = tried._function._pytensor_function.maker.fgraph.apply_nodes
    assert not any(isinstance(node.op, SpecifyShape) for node in nodes)
    (joined,) = tried._function._pytensor_function.maker.fgraph.inputs
    assert joined.type.shape == (3,)


def test_other_functions_than_those_of_pymc_are_not_compiled():
    options = ({"nuts_sampler": "blackjax"}, {"compile_kwargs": {"mode": "FAST_COMPILE"}}, {"backend": "jax"})
    assert [Trial.before_sampling(item)._compiled for item in options] == [False] * 3
    assert Trial.before_sampling({"nuts_sampler": "pymc"})._compiled


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


@pytest.mark.few(1)
@pytest.mark.parametrize("cuts", [3, 7])
def test_ordered_numbers_are_tried_where_they_are_ordered(cuts, rng):
    """Few draws of a prior without an order have one, and of seven cut points hardly any: they lie around the start."""
    with pm.Model() as model:
        start = np.linspace(-1, 1, cuts)
        cut = pm.Normal("cut", start, 2, transform=pm.distributions.transforms.ordered, initval=start, shape=cuts)
        pm.OrderedLogistic("y", pm.Normal("eta"), cut, observed=np.arange(cuts + 1), compute_p=False)
    assert all(np.isfinite(point["cut_ordered__"]).all() for point in prior_points(model, 50, rng))
    dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))


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
