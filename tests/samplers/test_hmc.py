"""Hamiltonian Monte Carlo: clip norms that are found, what noise costs, and what pays for a chain."""

import math
import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget, gaussian_multiplier, total_epsilon
from pymc_dp.samplers.hmc import Specification

X = np.linspace(-1, 1, 40).reshape(10, 4)
YES = np.arange(10) % 2
ROWS = np.linspace(-1, 1, 10)


def logistic(scale=1.0, **domain):
    x = pm.Data("x", scale * X)
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 1, shape=4), observed=YES)
    return domain or {"bounds": {"x": (-scale, scale)}}


def robust(sigma):
    sigma = pm.HalfNormal("sigma") if sigma is None else sigma
    pm.StudentT("y", nu=4, mu=pm.Normal("mu"), sigma=sigma, observed=ROWS)
    return {"bounds": {"y": (-3, 3)}}


def share():
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=YES)
    return {}


def normal():
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=ROWS)
    return {"bounds": {"y": (-3, 3)}}


def counts():
    x = pm.Data("x", ROWS)
    pm.Poisson("y", pt.exp(pm.Normal("a") + x * pm.Normal("b")), observed=YES)
    return {"bounds": {"x": (-1, 1), "y": (0, 9)}}


FOUND = {
    "corners of four predictors": (logistic, {}, 2.0),
    "predictors of a thousandth": (lambda: logistic(1e-3), {}, 2e-3),
    "units of a half": (logistic, {"scale": 0.5}, 1.0),
    "within a norm": (lambda: logistic(norms={"x": 1.5}), {}, 1.5),
    "public predictors": (lambda: logistic(public=["x"]), {}, float(np.linalg.norm(X, axis=1).max())),
    "between the ends of a row": (lambda: robust(0.5), {}, 2.5),  # at y - mu = 2 sigma: 5 / (4 sigma)
    "a share": (share, {}, 1.0),
}


def previewed(build, **settings):
    with pm.Model() as model:
        domain = dp.Domain(**build())
    return dp.PrivateHMC(**settings).preview(model, domain, Budget(1.0, 1e-6))


@pytest.mark.few(3, cases="all")
@pytest.mark.parametrize("name", FOUND)
def test_the_largest_gradient_of_a_row_is_found(name):
    build, settings, norm = FOUND[name]
    assert previewed(build, **settings).bound.specification.clip_norm == pytest.approx(norm, rel=1e-4)


@pytest.mark.few(2, cases="all")
@pytest.mark.parametrize("build", [normal, counts, lambda: robust(None)])
def test_a_gradient_that_grows_with_the_distance_is_refused(build):
    assert "it grows with the distance of states from the start. Give clip_norm" in previewed(build).problem
    assert previewed(build, clip_norm=1.0).bound is not None


@pytest.mark.parametrize("size", [1, 60])
@pytest.mark.parametrize(("epsilon", "steps", "chains"), [(0.1, 40, 1), (1.0, 400, 4), (8.0, 2000, 2)])
def test_noise_is_less_than_that_of_gaussian_mechanisms(size, epsilon, steps, chains):
    like = Specification(clip_norm=0.3, clamp=0.5, size=size, sense=2, n_leapfrog=3, gradient_share=0.3)
    priced, alone = like.priced(Budget(epsilon, 1e-6), chains=chains, steps=steps), gaussian_multiplier(epsilon, 1e-6)
    assert 0.85 < priced.gradient / (alone * math.sqrt(chains * (3 * steps + 1) / 0.3)) < 0.99
    assert 0.85 < priced.ratio / (alone * math.sqrt(chains * steps / 0.7)) < 0.99
    assert 0.999 * epsilon < total_epsilon(priced.event(steps, chains), 1e-6).epsilon <= epsilon


@pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
def test_a_chain_that_is_taken_up_again_has_what_was_left_of_its_payment():
    with pm.Model() as model:
        domain = dp.Domain(**normal())
        step = dp.PrivateHMC(clip_norm=1.0, n_leapfrog=2, epsilon=1.0, delta=1e-6, chains=2, domain=domain)
    other = pickle.loads(cloudpickle.dumps(step))
    step.setup_chain(None, 2, 4)
    point = model.initial_point()
    for _ in range(4):
        point, _ = step.step(point)
    other.setup_chain(None, 2, 4)
    other.sampling_state = step.sampling_state
    assert other.chain.used == step.chain.used and other.chain.used["gradients"] == 1 + 4 * 2
    for _ in range(2):
        point, _ = other.step(point)
    made = other.chain._kernel.made
    assert [one.name for one in made].count("sum") == 4 and {one.arithmetic for one in made} <= {"hardened", "float64"}
    assert {one.event for one in made if one.name == "sum"} == {step.noise.slope_event}
    with pytest.raises(dp.errors.BudgetExceeded, match="No use of the grant"):
        other.chain.slope(np.zeros(1))
    with pytest.raises(dp.errors.PrivacyError, match="setup_chain first"):
        pickle.loads(cloudpickle.dumps(step)).step(point)
