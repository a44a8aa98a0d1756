"""On a private model the sampler holds no row, and no update costs anything."""

import math

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dp.errors import ArgumentError
from pymc_dp.privatize import privatize
from pymc_dp.release.statistics import Statistics
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.trace.scrub import scrub

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


def private(n=50, noise_aware=False, model=None):
    with pm.Model() as plain:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=np.arange(n) % 3 == 0)
    return privatize(model or plain, epsilon=1.0, statistics=Statistics(noise_aware=noise_aware))


@pytest.mark.slow
def test_plug_in_releases_are_sampled_from_their_beta():
    model = private()
    with model:
        idata = pm.sample(1200, tune=50, chains=1, cores=1, step=TemperedGibbs(), random_seed=1, **QUIET)
    safe = scrub(idata, model)
    assert safe.dp.epsilon == 1.0 and safe.sample_stats.epsilon_spent.values.max() == 0
    ones = model.rvs_to_values[model["y"]].get_value()
    counts = np.array([50 - ones.sum(), ones.sum()]) if ones.size == 1 else ones.ravel()
    p = safe.posterior["p"].values
    ess = float(az.ess(p))
    assert ess > 200
    truth = stats.beta(1 + counts[1], 1 + counts[0])
    assert abs(p.mean() - truth.mean()) < 5 * float(az.mcse(p))
    assert stats.kstest(p.ravel()[:: math.ceil(1200 / ess)], truth.cdf).pvalue > 0.001


def test_noise_aware_releases_are_sampled_from_their_own_density():
    model = private(noise_aware=True)
    step = TemperedGibbs(model=model)
    rng = np.random.default_rng(1)
    step.setup_chain(rng, 0, 600)
    point = {name: np.asarray(value) for name, value in model.initial_point().items()}
    found = []
    for _ in range(600):
        point, (stat,) = step.step(point)
        found.append(special.expit(point["p_logodds__"]))
        assert stat["epsilon_spent"] == 0
    logp = model.compile_logp()
    grid = np.linspace(-6, 6, 1501)
    mass = np.exp([float(logp({"p_logodds__": np.asarray(x)})) for x in grid])
    truth = (special.expit(grid) * mass).sum() / mass.sum()
    chain = np.array(found)[None]
    assert float(az.ess(chain)) > 150
    assert abs(chain.mean() - truth) < 5 * float(az.mcse(chain))


def test_a_private_model_needs_no_budget():
    with private(), pytest.raises(ArgumentError, match="Leave epsilon out"):
        TemperedGibbs(epsilon=1.0)
