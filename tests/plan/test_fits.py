"""What is fitted is the private model that a user would sample."""

import sys

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.plan import posteriors
from pymc_dp.plan.fits import Fit, open_model, outputs_of
from pymc_dp.plan.truths import draw_truths
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from tests.plan.conftest import coin, grouped

MODE = {"mode": NUMPY["mode"]}
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def opened(model, release, epsilon=0.5, names=("p",), **options):
    inspection = inspect(model).sums
    plan = plan_release(inspection, Statistics(**options), epsilon)
    truths = draw_truths(inspection, plan.tables, names, 2, np.random.default_rng(0))
    return open_model(inspection, plan, release), truths


@pytest.mark.slow
def test_private_sizes_have_the_prior_of_the_private_model(rng):
    with pm.Model() as model:
        group = pm.Data("g", np.repeat(np.arange(12), 5))
        pm.Poisson("y", pm.Gamma("rate", 2, 1, shape=12)[group], observed=np.ones(60, dtype=int))
    domain = dp.Domain(bounds={"y": (0, 6)}, levels={"g": range(12)})
    with dp.testing.insecure_randomness(3):
        private = dp.privatize(model, epsilon=0.5, domain=domain)
        released = dp.Release.of(private).tables["y"]
    inspection = inspect(model, domain).sums
    plan = plan_release(inspection, Statistics(), 0.5)
    fitted = open_model(inspection, plan, {"y": np.zeros_like(released)})
    fitted.hold({"y": released})
    places = [{"rate_log__": rng.normal(size=12)} for _ in range(3)]
    ours, theirs = fitted.model.compile_logp(**MODE), private.compile_logp(**MODE)
    differences = [ours(at) - theirs(at) for at in places]
    np.testing.assert_allclose(differences, differences[0], atol=1e-3)


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


def test_sizes_seen_change_with_the_release():
    with pm.Model(coords={"label": [0, 1]}) as model:
        label = pm.Bernoulli("sick", pm.Beta("share", 1, 1), observed=pm.Data("held", np.zeros(60, dtype=int)))
        pm.Bernoulli("seen", pm.Beta("q", 1, 1, dims="label")[label], observed=np.zeros(60, dtype=int))
    first = {"sick": np.array([[20.0]]), "seen": np.array([[15.0, 25.0], [11.0, 9.0]])}
    second = {"sick": np.array([[40.0]]), "seen": np.array([[5.0, 15.0], [21.0, 19.0]])}
    held, _ = opened(model, first, names=("share", "q"))
    made, _ = opened(model, second, names=("share", "q"))
    at = {"share_logodds__": np.array(0.2), "q_logodds__": np.array([0.1, -0.3])}
    density = held.model.compile_logp(**MODE)
    before = float(density(at))
    held.hold(second)
    assert float(density(at)) == float(made.model.compile_logp(**MODE)(at)) != before


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


def test_models_that_hang_together_are_fitted_by_chains(monkeypatch):
    monkeypatch.setattr(posteriors, "TUNE", 4)
    monkeypatch.setattr(posteriors, "DRAWS_OF_CHAIN", 3)
    with pm.Model(coords={"g": range(2)}) as model:
        z = pm.Normal("z", pm.Normal("centre", 0, 1), 1, dims="g")
        pm.Bernoulli("y", logit_p=z[pm.Data("g_index", np.zeros(60, dtype=int))], observed=np.zeros(60, dtype=int))
    release = {"y": np.array([[10.0, 20.0], [20.0, 10.0]])}
    held, truths = opened(model, release, names=("z",), noise_aware=False)
    with pytensor.config.change_flags(**NUMPY):
        fit = Fit(held, truths)
    assert fit.how == "by NUTS"
    assert fit.draws(release, 0).shape == (3, 3) and np.isfinite(fit.draws(release, 0)).all()


def test_variances_of_noise_are_sampled_and_left_out(monkeypatch):
    class Still:
        def __init__(self, model, start, shapes):
            assert len(shapes) == len(model.value_vars) and len(start) == sum(map(np.prod, shapes))
            self.start = start

        def draws(self, seed):
            return np.tile(self.start, (2, 1))

    monkeypatch.setattr(sys.modules[Fit.__module__], "Chain", Still)
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=3)
        pm.MvNormal("y", mu, cov=pm.Data("covariance", np.eye(3)), observed=np.zeros((20, 3)))
    inspection = inspect(model, dp.Domain(bounds={"y": (-4, 4)}, public=["covariance"])).sums
    plan = plan_release(inspection, Statistics(), 1.0)
    truths = draw_truths(inspection, plan.tables, ("mu",), 2, np.random.default_rng(0))
    release = {"y": np.zeros((1, len(plan.tables[0].labels)))}
    found = open_model(inspection, plan, release)
    assert [var.name for var in found.model.free_RVs] == ["mu", "y_noise_variance"]
    assert Fit(found, truths).draws(release, 0).shape == (2, 3)
