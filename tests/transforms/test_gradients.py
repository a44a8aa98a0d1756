"""The gradient that NUTS follows is finite, and that of the density, for every likelihood and wrapper."""

import numpy as np
import pytensor
import pytest
from pymc.blocking import DictToArrayBijection

import pymc_dp as dp
from pymc_dp.simulation.prior import prior_points
from pymc_dp.transforms.privatize import make_private
from pymc_dp.transforms.trial import INTERPRETED
from tests.transforms.likelihoods import MODELS, model_of

QUICK = (
    "Normal",
    "Exponential",
    "TruncatedNormal",
    "Censored above Weibull",
    "HurdleGamma",
    "Mixture with Weibull",
    "ZeroInflatedPoisson",
)
STEP = 1e-5
SETTINGS = {
    "laplace": ({"delta": 0.0, "statistics": dp.Statistics("laplace")}, {}),
    "gaussian": ({"delta": 1e-6, "statistics": dp.Statistics("gaussian")}, {"neighbours": "add_remove", "n_max": 300}),
}


def check(name, noise, rng, count):
    arguments, neighbours = SETTINGS[noise]
    model, bounds = model_of(name, rng)
    levels = {"g": (0, 2)} if "by group" in name else {}
    domain = dp.Domain(bounds=bounds | levels, **neighbours)
    ledger = dp.Ledger(1.0, 1e-6, neighbours=domain.neighbours)
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):  # points far out depend on what was released
        private = make_private(model, domain, epsilon=1.0, ledger=ledger, **arguments)
    with pytensor.config.change_flags(cxx=""):
        function = private.logp_dlogp_function(ravel_inputs=True, mode=INTERPRETED)
    function.set_extra_values({})
    for point in [private.initial_point(0), *prior_points(private, count, rng)]:
        flat = DictToArrayBijection.map(point)
        with np.errstate(all="ignore"):
            value, slopes = (np.array(item) for item in function(flat))
            moved = np.array(
                [
                    [function(flat._replace(data=flat.data + times * move))[0] for times in range(-2, 3)]
                    for move in STEP * np.eye(len(flat.data))
                ]
            )
        assert np.isfinite(value) and np.isfinite(slopes).all(), (name, point)
        expected = (moved[:, 3] - moved[:, 1]) / (2 * STEP)
        rough = np.abs(np.diff(moved, 2, axis=1)).max(axis=1)  # what floats make of a line, far out
        allowed = 1e-3 * (1 + 1e-3 * abs(value) + np.abs(expected)) + 2 * rough / STEP
        assert (np.abs(slopes - expected) <= allowed).all(), (name, point, slopes, expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", QUICK)
def test_the_gradient_of_a_private_model_is_that_of_its_density(name, rng):
    check(name, "laplace", rng, 3)


LINKS = ("logistic regression", "Poisson regression")
"""Of their sums gradients are released where there is a δ."""


@pytest.mark.slow(cases=5)
@pytest.mark.parametrize(
    ("name", "noise"),
    [(name, noise) for name in MODELS for noise in SETTINGS if noise == "laplace" or name not in LINKS],
)
def test_every_gradient_is_that_of_its_density(name, noise, rng):
    check(name, noise, rng, 25)


def test_the_wrappers_are_counted_in_bins_that_start_where_values_pile_up():
    """A bin at 0 holds the atom: there the branch that PyMC does not take has no derivative."""
    model, bounds = model_of("HurdleGamma", np.random.default_rng(1))
    private = make_private(
        model, dp.Domain(bounds=bounds), epsilon=1.0, delta=0.0, statistics=None, ledger=dp.Ledger(1.0)
    )
    assert private.coords["y_statistic"][0] == "count of (-inf, 0]"
