"""Releases with Gaussian noise from the model to the published file, and the posteriors they give."""

import numpy as np
import pymc as pm
from scipy import stats

from pymc_dp.release.statistics import Statistics
from pymc_dp.transforms.privatize import record_of
from tests.transforms.zoo import privatize

DELTA = 1e-6
GAUSSIAN = Statistics("gaussian")


def test_the_posterior_of_a_count_is_that_of_its_noise():
    """Against a grid over p with the exact convolution."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("p", 0, 1, default_transform=None), observed=np.resize([0, 1, 1], 60))
    private = privatize(model, 0.5, delta=DELTA, statistics=GAUSSIAN)
    (record, tables), grid = record_of(private), np.linspace(0.01, 0.99, 99)
    released, scale = tables["y"].item(), record.tables[0].scales[0]
    evaluate = private.compile_logp(vars=private["y"], mode="FAST_COMPILE")
    found = np.array([evaluate({"p": np.array(p)}) for p in grid])
    s = np.arange(61)[:, None]
    exact = np.log((stats.binom.pmf(s, 60, grid) * np.exp(-0.5 * ((released - s) / scale) ** 2)).sum(axis=0))
    difference = found - exact
    assert np.ptp(difference) < 1e-4
