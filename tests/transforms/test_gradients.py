"""The gradient that NUTS follows is finite, and that of the density, for every likelihood."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from pymc.blocking import DictToArrayBijection

import pymc_dp as dp
from pymc_dp.simulation.prior import prior_points
from pymc_dp.transforms.trial import INTERPRETED
from tests.families.laws import LAWS
from tests.golden.models import FAMILIES

STEP, LINKS = 1e-5, ("regression, Bernoulli", "regression, Poisson")
"""Of sums of links gradients are released where there is a δ."""
BINS = dp.Histogram((-1.0, 0.0, 0.25, 2.0))
CASES = [
    (name, noise) for name in (*FAMILIES, *LAWS) for noise in ("laplace", "gaussian") if (name, noise[0]) not in
    [(link, "g") for link in LINKS]
]  # fmt: skip


def private_of(name, noise):
    hidden = "add_remove" if noise == "gaussian" else "replace"
    if name in FAMILIES:
        model, domain, mechanism = FAMILIES[name].model(), FAMILIES[name].domain(hidden), None
    else:
        with pm.Model() as model:
            LAWS[name][0]("y", pm.Uniform("a", 0.2, 0.9))
        domain = dp.Domain(neighbours=hidden, n_max=100 if noise == "gaussian" else None)
        mechanism = BINS
    delta = 1e-6 if noise == "gaussian" else 0.0
    statistics = dp.Statistics(noise, mechanism=mechanism)
    with dp.testing.insecure_randomness(7):  # points far out depend on what was released
        return dp.privatize(model, epsilon=1.0, delta=delta, domain=domain, statistics=statistics)


@pytest.mark.few(8, cases=12)
@pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize(("name", "noise"), CASES)
def test_every_gradient_is_that_of_its_density(name, noise, rng):
    private = private_of(name, noise)
    with pytensor.config.change_flags(cxx=""):
        function = private.logp_dlogp_function(ravel_inputs=True, mode=INTERPRETED)
    function.set_extra_values({})
    for point in [private.initial_point(0), *prior_points(private, 5, rng)]:
        flat = DictToArrayBijection.map(point)
        with np.errstate(all="ignore"):
            value, slopes = (np.array(item) for item in function(flat))
            moved = np.array(
                [
                    [function(flat._replace(data=flat.data + times * move))[0] for times in range(-2, 3)]
                    for move in STEP * np.eye(len(flat.data))
                ]
            )
        assert np.isfinite(value) and np.isfinite(slopes).all(), point
        expected = (moved[:, 3] - moved[:, 1]) / (2 * STEP)
        rough = np.abs(np.diff(moved, 2, axis=1)).max(axis=1)  # what floats make of a line, far out
        allowed = 1e-3 * (1 + 1e-3 * abs(value) + np.abs(expected)) + 2 * rough / STEP
        assert (np.abs(slopes - expected) <= allowed).all(), (point, slopes, expected)
