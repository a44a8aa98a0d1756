"""A private model of released draws: its density, its record, and that it reads no row."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.from_draws.private_model import LATENT, NAME
from tests.from_draws.conftest import logistic
from tests.reachable import reachable_arrays

CANARY = 8_765_432.25


@pytest.fixture(scope="module")
def private(made):
    return dp.condition(made[0], made[1])


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_the_graph_is_the_density_of_the_mechanism(made, private, rng):
    _, _, mechanism = made
    function = private.compile_fn(private.logp(vars=[private[NAME]], sum=True), inputs=private.value_vars)
    points = mechanism.points[np.argsort(-mechanism.posterior)[:5]]
    latent = rng.normal(size=(5, 2))
    flat = mechanism.model.coordinates.own(points)[0]
    weights = mechanism.rows.weights(mechanism.model.density, flat)
    expected = mechanism.log_likelihood(weights, latent[:, None])[:, 0]
    names = [value.name for value in private.value_vars]
    found = [function(dict(zip(names, [*point, z], strict=True))) for point, z in zip(points, latent, strict=True)]
    assert np.allclose(np.diff(found), np.diff(expected), atol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_it_says_what_it_is(made, private):
    _, tree, _ = made
    assert [rv.name for rv in private.free_RVs] == ["a", "b", LATENT]
    assert [rv.name for rv in private.observed_RVs] == [NAME]
    with private:
        prior = pm.sample_prior_predictive(4, random_seed=1)
    assert prior["prior_predictive"][NAME].shape == (1, 4, 2, 2)
    raw = prior.copy()
    raw["posterior"] = prior["prior"].copy()
    raw["observed_data"] = prior["observed_data"].copy()
    trace = dp.scrub(raw, private)
    assert (trace.dp.epsilon, trace.dp.guarantee) == (tree.dp.epsilon, tree.dp.guarantee)
    assert "normal given the parameters" in trace.dp.approximations[0]
    assert trace.dp.report().publishable and "draws of OPS at T = " in str(trace.dp.report())
    assert np.array_equal(trace.dp.release[NAME].values, made[2].given.flat)
    assert len(trace.dp.history) == 1


def test_no_row_is_read(made, private, monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))
    other = dp.condition(logistic(7, x=CANARY), made[1])
    for var in reachable_arrays(other):
        held = np.asarray(var.data if hasattr(var, "data") else var.get_value(), dtype=object)
        assert not any(isinstance(item, float) and abs(item - CANARY) < 1 for item in held.ravel())
    point = private.initial_point(0)
    assert {name: value.tolist() for name, value in other.initial_point(0).items()} == {
        name: value.tolist() for name, value in point.items()
    }
    frames = [dp.from_draws.draw_intervals(made[1], model) for model in (made[0], logistic(7, x=CANARY))]
    assert frames[0].equals(frames[1])


def test_arguments_of_the_other_kind_are_refused(made):
    model, tree, _ = made
    with pytest.raises(dp.errors.ArgumentError, match="noise_aware"):
        dp.condition(model, tree, noise_aware=False)
    rows = pm.Model()
    with rows:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1]))
    release = dp.Release.of(dp.privatize(rows, epsilon=1.0, ledger=dp.Ledger(1.0)))
    with pytest.raises(dp.errors.ArgumentError, match="covariates and n_rows are for draws"):
        dp.condition(rows, release, n_rows=3)


@pytest.mark.slow
def test_nuts_draws_from_the_posterior_that_the_points_sum_up(made, private):
    raw = pm.sample(1000, tune=500, chains=2, cores=1, model=private, random_seed=4, progressbar=False)
    assert int(raw["sample_stats"]["diverging"].sum()) < 20
    _, _, mechanism = made
    weights = mechanism.posterior
    mean = weights @ mechanism.flat
    sd = np.sqrt(weights @ (mechanism.flat - mean) ** 2)
    for place, name in enumerate(("a", "b")):
        drawn = raw["posterior"][name]
        found, spread, error = float(drawn.mean()), float(drawn.std()), float(az.mcse(raw, var_names=[name])[name])
        assert abs(found - mean[place]) < 5 * error + 0.1 * sd[place]
        assert spread == pytest.approx(sd[place], rel=0.12)
