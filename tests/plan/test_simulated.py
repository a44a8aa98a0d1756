"""What is planned is what would be released: truths from the prior, sums, noise, and the fitted density."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.plan.truths import draw_truths, exact_sums, noised
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from tests.plan.conftest import coin

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
REPEATS = 600


def simulated(model, domain=None, total=None, noise="laplace", epsilon=1.0):
    inspection = inspect(model, domain).sums
    plan = plan_release(inspection, Statistics(noise), epsilon, 1e-6 if noise == "gaussian" else 0.0)
    names = [rv.name for rv in model.free_RVs]
    truths = draw_truths(inspection, plan.tables, names, REPEATS, np.random.default_rng(3))
    return plan.tables, truths, exact_sums(plan.tables, truths, total, 5)


def test_counts_are_binomial_given_parameters_from_the_prior():
    _, truths, sums = simulated(coin(50))
    p, (counts, sizes) = truths.values["p"], sums["y"]
    assert stats.kstest(p, "uniform").pvalue > 1e-4
    assert counts.shape == (REPEATS, 1, 1) and (sizes == 50).all()
    below = stats.binom.cdf(counts[:, 0, 0] - 1, 50, p)
    at = stats.binom.pmf(counts[:, 0, 0], 50, p)
    randomised = below + at * np.random.default_rng(0).random(REPEATS)
    assert stats.kstest(randomised, "uniform").pvalue > 1e-4
    np.testing.assert_allclose(1 / (1 + np.exp(-truths.points[:REPEATS, 0])), p)


def test_groups_of_an_observed_column_are_as_large_as_its_counts():
    with pm.Model(coords={"label": [0, 1]}) as model:
        label = pm.Bernoulli("sick", pm.Beta("share", 1, 1), observed=pm.Data("held", np.zeros(60, dtype=int)))
        pm.Poisson("visits", pm.Gamma("rate", 2, 1, dims="label")[label], observed=np.zeros(60, dtype=int))
    _, _, sums = simulated(model, dp.Domain(bounds={"visits": (0, 20)}))
    counts, sizes = sums["sick"][0].sum(axis=(1, 2)), sums["visits"][1]
    np.testing.assert_array_equal(sizes, np.stack([60 - counts, counts], axis=1))
    np.testing.assert_array_equal(sums["visits"][0][..., 0], sizes)


def test_noise_has_its_scale_and_the_same_shape_at_every_budget():
    found = {}
    for noise in ("laplace", "gaussian"):
        for epsilon in (0.05, 0.1):
            tables, _, sums = simulated(coin(50), noise=noise, epsilon=epsilon)
            found[noise, epsilon] = noised(tables, sums, 9)["y"][:, 0, 0] - sums["y"][0][:, 0, 0]
            (scale,) = (block.scale for block in tables[0].blocks)
            assert abs(found[noise, epsilon].std() / tables[0].blocks[0].noise.deviation(scale) - 1) < 0.2
        assert np.corrcoef(found[noise, 0.05], found[noise, 0.1])[0, 1] > 0.99


def test_what_cannot_be_drawn_is_refused():
    with pm.Model() as flat:
        pm.Bernoulli("y", logit_p=pm.Flat("a"), observed=np.zeros(5, dtype=int))
    with pytest.raises(UnsupportedModelError, match="proper distribution"):
        simulated(flat)
    with pm.Model() as weighted:
        p = pm.Beta("p", 1, 1)
        pm.Potential("more", -p)
        pm.Bernoulli("y", p, observed=np.zeros(5, dtype=int))
    with pytest.raises(UnsupportedModelError, match="ignore a Potential"):
        simulated(weighted)
    with pm.Model() as discrete:
        k = pm.Poisson("k", 3)
        pm.Bernoulli("y", pm.math.sigmoid(k), observed=np.zeros(5, dtype=int))
    with pytest.raises(UnsupportedModelError, match="continuous free variables"):
        simulated(discrete)
