"""Private models under nutpie, NumPyro and BlackJAX have the posterior that they have under PyMC's own NUTS."""

from functools import cache

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.transforms.released_logp import ReleasedLogp

SAMPLERS = ("nutpie", "numpyro", "blackjax")
GAUSSIAN = dp.Statistics(noise="gaussian")


def shares(rng):
    group = np.arange(600) % 4
    with pm.Model(coords={"group": range(4)}) as model:
        mean = pm.Beta("mean", 2, 2)
        p = pm.Beta("p", mean * 20, (1 - mean) * 20, dims="group")
        answers = rng.random(600) < np.array([0.2, 0.4, 0.5, 0.7])[group]
        pm.Bernoulli("y", p[pm.Data("g", group)], observed=answers)
    return model, {}


def line(rng):
    x = rng.uniform(-1, 1, 800)
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 2) + pm.Normal("b", 0, 2) * pm.Data("x", x)
        pm.Normal("y", mean, pm.HalfNormal("sd", 2), observed=1 + x + rng.normal(0, 0.5, 800))
    return model, {"domain": dp.Domain(bounds={"x": (-1, 1), "y": (-3, 5)}), "delta": 1e-6, "statistics": GAUSSIAN}


def robust(rng):
    """Counts in bins, whose distribution function has branches."""
    with pm.Model() as model:
        values = rng.standard_t(4, 500) + 1
        pm.StudentT("y", nu=4, mu=pm.Normal("mu", 0, 2), sigma=pm.HalfNormal("sd", 2), observed=values)
    return model, {"domain": dp.Domain(bounds={"y": (-5, 7)})}


def logistic(rng):
    """Noised gradients."""
    x = rng.normal(size=(1000, 2))
    with pm.Model() as model:
        slopes = pm.Normal("b", 0, 1, shape=2)
        answers = rng.random(1000) < 1 / (1 + np.exp(-x @ [1, -0.5]))
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ slopes, observed=answers)
    return model, {"domain": dp.Domain(bounds={"x": (-3, 3)}), "delta": 1e-6}


MODELS = (shares, line, robust, logistic)


@cache
def private(make):
    model, given = make(np.random.default_rng(1))
    return dp.privatize(model, epsilon=2.0, ledger=dp.Ledger(2.0, 1e-5), **given)


@cache
def summary(make, sampler):
    with private(make):
        trace = pm.sample(
            500, tune=500, chains=2, cores=1, nuts_sampler=sampler, random_seed=1, progressbar=False, quiet=True
        )
    names = [var.name for var in private(make).free_RVs]
    return az.summary(trace, var_names=names, round_to="none")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of these packages, about each other
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_the_posterior_is_that_of_pymcs_own_nuts(make, sampler):
    if sampler != "nutpie":
        pytest.importorskip("pymc.sampling.jax", exc_type=ImportError)  # before JAX counts devices, one for each chain
    pytest.importorskip(sampler)
    own, other = summary(make, "pymc"), summary(make, sampler)
    assert (other["ess_bulk"] > 100).all() and (own["ess_bulk"] > 100).all()
    apart = (own["mean"] - other["mean"]).abs() / np.hypot(own["mcse_mean"], other["mcse_mean"])
    assert apart.max() < 5
    assert (np.log(own["sd"] / other["sd"]).abs() < 0.35).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "given",
    [
        {"nuts_sampler": "numpyro"},
        {"nuts_sampler": "pymc", "backend": "jax"},
        {"nuts_sampler": "pymc", "compile_kwargs": {"mode": "JAX"}},
    ],
    ids=str,
)
def test_what_jax_cannot_evaluate_costs_nothing(given):
    pytest.importorskip("numpyro")

    def no_form(op, **_):
        raise NotImplementedError(f"No JAX conversion for the given `Op`: {op}")

    from pytensor.link.jax.dispatch import jax_funcify

    import pymc_dp.transforms.released_logp_jax  # noqa: F401 -- else it would be imported after the patch

    original = jax_funcify.registry[ReleasedLogp]
    jax_funcify.register(ReleasedLogp)(no_form)
    ledger = dp.Ledger(1.0)
    try:
        with pytest.raises(dp.errors.ArgumentError, match="JAX cannot evaluate its density .*NotImplementedError"):
            dp.sample(5, epsilon=1.0, tune=5, model=shares(np.random.default_rng(1))[0], ledger=ledger, **given)
    finally:
        jax_funcify.register(ReleasedLogp)(original)
    assert ledger.history == []
