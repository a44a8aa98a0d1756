"""What is planned is what would be released: truths from the prior, sums, noise, and the fitted density."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.plan.fits import Fit, open_model, outputs_of
from pymc_dp.plan.truths import draw_truths, exact_sums, noised
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from tests.plan.conftest import coin, grouped

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


MODE = {"mode": NUMPY["mode"]}


def opened(model, release, epsilon=0.5, names=("p",), **options):
    inspection = inspect(model).sums
    plan = plan_release(inspection, Statistics(**options), epsilon)
    truths = draw_truths(inspection, plan.tables, names, 2, np.random.default_rng(0))
    return open_model(inspection, plan, release), truths


@pytest.mark.parametrize("noise_aware", [True, False])
def test_density_is_that_of_the_private_model(noise_aware):
    with dp.testing.insecure_randomness(3):
        private = dp.privatize(coin(), epsilon=0.5, statistics=Statistics(noise_aware=noise_aware))
        released = dp.Release.of(private).tables["y"]
    model, _ = opened(coin(), {"y": np.zeros((1, 1))}, noise_aware=noise_aware)
    model.hold({"y": released})
    values = [{"p_logodds__": np.array(at)} for at in (-1.0, 0.5)]
    ours, theirs = model.model.compile_logp(**MODE), private.compile_logp(**MODE)
    # That of the private model is tabulated, where it accounts for the noise.
    error = 1e-6 if noise_aware else 0.0
    for value in values:
        assert float(ours(value)) == pytest.approx(float(theirs(value)), rel=0, abs=error)


def test_groups_are_fitted_on_grids_and_their_differences_with_them():
    release = {"y": np.array([[30.0, 30.0], [10.0, 50.0], [60.0, 20.0]])}
    model, truths = opened(grouped(), release, epsilon=20.0, names=("p", "gap"))
    fit = Fit(model, truths)
    assert fit.how == "on a grid"
    p, gap = outputs_of(model, ["p", "gap"], truths.shapes)(fit.draws(release, 0))
    np.testing.assert_allclose(p.mean(axis=0), [31 / 62, 51 / 62, 21 / 82], atol=0.01)
    np.testing.assert_allclose(gap, p[:, 1] - p[:, 0])
    again = Fit(model, truths).draws(release, 1)
    np.testing.assert_array_equal(again, fit.draws(release, 0))
