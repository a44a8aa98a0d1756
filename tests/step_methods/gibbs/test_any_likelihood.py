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


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_models_of_separate_rows_and_bounded_parameters_are_taken(relation, rng):
    model, public, step = taken("logistic", rng, relation)
    found = step.preview(model, public, Budget(1.0, 1e-6))
    assert found.fits and found.guarantee == "stepwise"
    assert "proved from the graph of y" in dict(found.facts)["update of b"]


def test_every_pass_over_the_rows_makes_several_cells(rng):
    model, public, _ = taken("location", rng)
    for settings, passes in (({}, 256), ({"grid": 64}, 64)):
        step, _ = bound(model, public, read=False, **settings)
        (update,) = step.scan.updates
        assert len(update.points) == 16 * passes and len(update.knots) == passes + 1
        assert (update.knots[0], update.knots[-1]) == (-3, 3)


@pytest.mark.few(1)
@pytest.mark.parametrize("cores", [1, 2])
def test_chains_of_rows_held_one_by_one(cores, rng):
    model, public, step = taken("groups", rng, grid=32)
    with model:
        idata = sample(4, epsilon=1.0, delta=1e-6, step=step, domain=public, chains=2, cores=cores, **QUIET)
    assert idata.posterior["mu"].shape == (2, 4, 3) and len(np.unique(idata.posterior["mu"])) == 24
    assert idata.dp.guarantee == "stepwise" and idata.sample_stats.epsilon_spent.values.max() <= 1.0


def test_a_clamped_likelihood_is_taken_and_told(rng):
    model, public, step = taken("clamped", rng, grid=32)
    with model:
        idata = sample(3, epsilon=1.0, step=step, domain=public, **QUIET)
    report = str(idata.dp.report())
    assert "target of y" in report and "clipped to (-3, -1)" in report


@pytest.mark.slow
def test_nothing_but_the_states_leaves(rng, caplog, recwarn):
    model, public, step = taken("regression", rng, grid=32)
    column = plant(model["d"].get_value(), low=-3, high=4)
    model["d"].set_value(column.values)
    assert contains_canary(model, column.canaries)
    with model, caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        idata = sample(3, epsilon=1.0, domain=public, step=step, **QUIET)
    assert contains_canary([idata, idata.dp.report(), caplog.records, list(recwarn)], column.canaries) == []
    assert set(idata.children) <= {"posterior", "sample_stats", "privacy"}


@pytest.mark.slow
def test_neighbours_share_everything_but_the_states(rng):
    """Same randomness, another row, or one more of a private number of rows: nothing but the states tells."""
    for relation, places in (("replace", [0, 1]), ("add_remove", [0])):
        trees = []
        for one in ([5.0, 0.0], [-4.0] if places == [0, 1] else []):
            model, public, step = taken("location", np.random.default_rng(1), relation, grid=32)
            data = np.linspace(-1, 1, N)
            model["d"].set_value(np.concatenate([data, one[:1]]))
            with insecure_randomness(7), model:
                ledger = Ledger(epsilon=50.0, neighbours=relation)
                trees.append(sample(4, epsilon=50.0, step=step, domain=public, ledger=ledger, **QUIET))
        one, other = trees
        assert not np.array_equal(one.posterior["mu"].values, other.posterior["mu"].values)
        assert np.array_equal(one.sample_stats.epsilon_spent.values, other.sample_stats.epsilon_spent.values)
        assert str(one.dp.report()) == str(other.dp.report())
        assert one.posterior.sizes == other.posterior.sizes


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


def test_parameters_that_reach_the_ends_of_their_support_are_refused_by_name():
    def build(zeros):
        pm.StudentT("y", nu=4, mu=0.0, sigma=pm.Uniform("sd", 0, 2), observed=zeros)

    text = refused(build, Domain(bounds={"y": (-1, 1)}))
    assert "of 'sd' has no bound within" in text and "dp.truncate(model, {'sd': (0.02, 1.98)})" in text


def test_operations_without_a_rule_are_refused_by_name():
    def build(zeros):
        a = pm.Uniform("a", 0.1, 0.2, shape=2)
        pm.StudentT("y", nu=4, mu=pt.cumsum(a)[1], sigma=1.0, observed=zeros)

    text = refused(build, Domain(bounds={"y": (-1, 1)}))
    assert "its density contains CumOp" in text and "dp.clamp" in text


@pytest.mark.slow
def test_joint_and_countless_parameters_of_such_likelihoods_are_refused():
    def counted(zeros):
        k = pm.Poisson("k", 3.0)
        pm.StudentT("y", nu=4, mu=k, sigma=1.0, observed=zeros)

    def weighted(zeros):
        w, mu = pm.Dirichlet("w", np.ones(2)), pm.Uniform("mu", -1, 1, shape=2)
        pm.NormalMixture("y", w=w, mu=mu, sigma=1.0, observed=zeros)

    public = Domain(bounds={"y": (-1, 1)})
    assert "'k' is discrete without a known finite set of levels" in refused(counted, public)
    assert "is a dirichlet that is not itself the parameter" in refused(weighted, public)


def test_vectors_with_a_joint_prior_are_refused_as_such_with_what_moves_them():
    """A mean of w[g] is made of elements of w themselves: what is in the way is their prior."""

    def build(zeros, w):
        pm.Normal("y", w[pm.Data("g", np.arange(len(zeros)) % 2)], 1.0, observed=zeros)

    def normal(zeros):
        build(zeros, pm.MvNormal("w", np.zeros(2), np.eye(2)))

    def probabilities(zeros):
        build(zeros, pm.Dirichlet("w", np.ones(2)))

    public = Domain(bounds={"y": (-1, 1)}, public=["g"])
    text = refused(normal, public)
    assert "the elements of 'w' have a joint prior (multivariate_normal)" in text and "itself the parameter" not in text
    assert "dp.BarkerMetropolis()" in text
    assert "of categorical or multinomial variables" in refused(probabilities, public)


def test_rows_that_do_not_separate_are_refused():
    def build(zeros):
        a = pm.Uniform("a", -1, 1)
        pm.StudentT("y", nu=4, mu=a * pm.Data("x", zeros).mean(), sigma=1.0, observed=zeros)

    assert "(x - 50) / 10 for" in refused(build, Domain(bounds={"y": (-1, 1), "x": (-1, 1)}))


def test_families_that_only_lack_bounds_are_told_so():
    def build(zeros):
        pm.Normal("y", pm.Uniform("mu", -1, 1), 1.0, observed=zeros)

    assert "Domain(bounds={'y'" in refused(build)


def test_a_shape_with_one_level_only_is_no_known_number():
    with pm.Model() as model:
        shape, rate = pm.DiscreteUniform("shape", 2, 2), pm.Uniform("rate", 0.5, 2.0)
        pm.Gamma("y", shape, rate, observed=pm.Data("d", np.array([0.5, 1.0])))
    step, _ = bound(model, Domain(bounds={"y": (0.1, 3.0)}))
    assert sum(step.scan.ranges) == pytest.approx(2.9 * 1.5, rel=0.01)
