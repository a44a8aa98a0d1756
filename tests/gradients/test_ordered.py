"""Cutpoints under PyMC's ordered transform, its own way to write an ordinal regression."""

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import Chain, Ordered, ordered

import pymc_dp as dp
from pymc_dp.simulation.prior import draw_prior

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
        assert (np.abs(ours - theirs) < 0.5 * np.asarray(expected[name].std(("chain", "draw")))).all(), (
            name,
            ours,
            theirs,
        )


@pytest.mark.parametrize(
    ("transform", "sign"), [(ordered, 1), (Ordered(ascending=False), -1), (Chain([ordered]), 1)], ids=str
)
def test_ordered_numbers_are_drawn_as_their_prior_has_them(transform, sign, rng):
    """Numbers alike and independent, under the condition of an order, are those of draws put in order."""
    with pm.Model() as model:
        cut = pm.Normal("cut", 1, 2, shape=8, transform=transform, initval=sign * np.arange(8.0))
        child = pm.Deterministic("least", cut.min())
    found = draw_prior(model, rng, 4_000, [child])
    values = found.values["cut"]
    assert (sign * np.diff(values, axis=1) > 0).all()
    assert np.array_equal(found.beside[0], values.min(axis=1))
    expected = np.sort(np.random.default_rng(3).normal(1, 2, (100_000, 8)))[:, ::sign].mean(axis=0)
    np.testing.assert_allclose(values.mean(axis=0), expected, atol=0.12)
