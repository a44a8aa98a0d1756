"""The likelihood of a published noisy table is that of all counts that the noise may have met."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dp as dp

LOG_RATES, COUNTS = np.linspace(np.log(0.5), np.log(40.0), 12), np.arange(400)
VALUES, SCALES = np.array([3, -4, 19]), {"laplace": 5.0, "gaussian": 4.0}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", SCALES)
def test_each_area_has_the_density_of_its_count_and_noise(kind):
    scale = SCALES[kind]
    stated = {"noise": f"discrete {kind}", "made_by": "a simulation", "guarantee": "none"}
    release = dp.Release.of_counts({"count": VALUES}, scale, dims="area", **stated)
    with pm.Model(coords={"area": range(3)}) as model:
        log_rate = pm.Normal("log_rate", 0, 10, dims="area")
        pm.Poisson("count", pm.math.exp(log_rate), dims="area", observed=np.zeros(3, dtype=int))
    private = dp.condition(model, release)
    logp = private.compile_fn(private.logp(vars=private.observed_RVs, sum=False))
    found = np.array([np.ravel(logp({"log_rate": np.full(3, at)})) for at in LOG_RATES])
    away = VALUES[:, None] - COUNTS
    noise = -np.abs(away) / scale if kind == "laplace" else -0.5 * (away / scale) ** 2
    exact = np.array([logsumexp(stats.poisson.logpmf(COUNTS, np.exp(at)) + noise, axis=1) for at in LOG_RATES])
    np.testing.assert_allclose(found - found[0], exact - exact[0], atol=1e-5)
