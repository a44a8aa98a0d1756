"""On a private model the sampler holds no row, no update costs anything, and draws are of the model's own density."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import special

import pymc_dp as dp

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1}


def private(noise_aware):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(50) % 3 == 0)
    return dp.privatize(model, epsilon=1.0, statistics=dp.Statistics(noise_aware=noise_aware))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("noise_aware", [False, True])
def test_a_release_is_sampled_from_its_own_density_at_no_cost(noise_aware):
    model = private(noise_aware)
    safe = dp.scrub(
        pm.sample(600, tune=20, chains=1, step=dp.TemperedGibbs(model=model), model=model, random_seed=1, **QUIET),
        model,
    )
    assert safe.dp.epsilon == 1.0 and safe["sample_stats"]["epsilon_spent"].values.max() == 0
    logp, grid = model.compile_logp(), np.linspace(-6, 6, 601)
    mass = np.exp([float(logp({"p_logodds__": np.asarray(x)})) for x in grid])
    p = safe["posterior"]["p"]
    assert float(az.ess(p.values)) > 150
    assert abs(float(p.mean()) - (special.expit(grid) * mass).sum() / mass.sum()) < 5 * float(az.mcse(p.values))


def test_a_private_model_needs_no_budget():
    with private(True), pytest.raises(dp.errors.ArgumentError, match="Leave epsilon out"):
        dp.TemperedGibbs(epsilon=1.0)
