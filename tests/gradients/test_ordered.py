"""Cutpoints under PyMC's ordered transform, its own way to write an ordinal regression."""

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import ordered

import pymc_dp as dp

N, CUTS = 1_500, 6
START = np.linspace(-2, 2, CUTS)
DOMAIN = dp.Domain(bounds={"x": (-3, 3)})


def alike():
    return pm.Normal("cut", 0, 3, shape=CUTS, transform=ordered, initval=START)


def by_a_common_scale():
    return pm.Normal("cut", 0, pm.HalfNormal("scale", 3), shape=CUTS, transform=ordered, initval=START)


def spread():
    return pm.Normal("cut", START, 1, shape=CUTS, transform=ordered, initval=START)


def rows():
    """Ratings of seven levels, most of them in the middle and few at the end, and a skewed predictor."""
    rng = np.random.default_rng(5)
    x = (rng.exponential(size=N) - 1).clip(-3, 3)
    return x, np.digitize(0.7 * x + rng.logistic(size=N), [-3.2, -1.8, -0.4, 0.7, 1.9, 3.5])


def ratings(prior):
    x, y = rows()
    with pm.Model() as model:
        cut, slope = prior(), pm.Normal("slope", 0, 1)
        pm.OrderedLogistic("y", eta=slope * pm.Data("x", x), cutpoints=cut, observed=y, compute_p=False)
    return model


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("prior", [alike, by_a_common_scale, spread])
def test_intervals_of_ordered_cutpoints_are_those_of_the_rows(prior, seed):
    model = ratings(prior)
    assert dp.explain(model, DOMAIN, delta=1e-5).gradients.fits
    chains = {"chains": 2, "cores": 1, "random_seed": seed, "progressbar": False, "quiet": True}
    expected = pm.sample(600, tune=600, model=model, **chains).posterior
    with pytest.warns(dp.errors.WeakGuaranteeWarning):
        found = dp.sample(
            600,
            tune=600,
            epsilon=100.0,
            delta=1e-5,
            statistics=dp.Gradients(),
            domain=DOMAIN,
            model=model,
            ledger=dp.Ledger(epsilon=100.0, delta=1e-5),
            **chains,
        ).posterior
    for name in ("slope", "cut"):
        theirs = np.quantile(expected[name], [0.05, 0.5, 0.95], axis=(0, 1))
        ours = np.quantile(found[name], [0.05, 0.5, 0.95], axis=(0, 1))
        assert (np.abs(ours - theirs) < 0.5 * np.asarray(expected[name].std(("chain", "draw")))).all(), name
