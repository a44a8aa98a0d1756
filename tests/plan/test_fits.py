"""What is fitted is the private model that a user would sample."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import NUMPY
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
