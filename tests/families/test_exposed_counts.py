"""Poisson counts over an exposure: what is recognised and released, and what the posterior is."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import gammaln, logsumexp

import pymc_dp as dp
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.exposed_counts import exposed_densities, exposed_logp

pytestmark = [
    pytest.mark.usefixtures("paid"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
TRUTH = np.array([0.3, 1.0, 2.0])
BOUNDS = {"exposure": (0.5, 4.0), "y": (0, 30)}
DOMAIN = dp.Domain(bounds=BOUNDS)


def table(rng, rows=400):
    exposure, group = rng.uniform(0.5, 4.0, rows), rng.integers(0, 3, rows)
    return exposure, group, rng.poisson(TRUTH[group] * exposure)


def product(a, e, g):
    return e * pt.exp(a[g])


RATES = {
    "product": product,
    "log offset": lambda a, e, g: pt.exp(a[g] + pt.log(e)),
    "pm.math": lambda a, e, g: pm.math.exp(pm.math.log(e) + a[g]),
    "within": lambda a, e, g: pt.exp(2.0 + (a[g] - 2.0 + pt.log(e))),
    "numbers beside": lambda a, e, g: 1000 * (pt.exp(a[g]) * (e / 1000)),
    "quotient": lambda a, e, g: e / pt.exp(-a[g]),
    "in logarithms": lambda a, e, g: pt.exp(a[g] - -pt.log(e)),
}


def counts(exposure, group, y, *, rate=product):
    with pm.Model(coords={"group": range(3)}) as model:
        mu = rate(pm.Normal("a", 0, 2, dims="group"), pm.Data("exposure", exposure), pm.Data("g", group))
        pm.Poisson("y", mu, observed=y)
    return model


def sums(exposure, group, y, count=3):
    return np.array([[exposure[group == k].sum(), y[group == k].sum()] for k in range(count)])


def released(model, domain=DOMAIN, **arguments):
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain, **arguments)
    return private.rvs_to_values[private["y"]].get_value()


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_every_way_to_write_it_releases_the_same_sums(rate, rng):
    data = table(rng)
    np.testing.assert_allclose(released(counts(*data, rate=rate)), sums(*data), rtol=1e-7)


@pytest.mark.parametrize(
    "domain",
    [
        dp.Domain(bounds=BOUNDS, public=["g"]),
        dp.Domain(bounds={"y": (0, 30)}, public=["exposure"]),
        dp.Domain(bounds=BOUNDS, neighbours="add_remove", n_max=1000),
    ],
)
def test_sums_are_the_same_whatever_is_public(domain, rng):
    data = table(rng)
    np.testing.assert_allclose(released(counts(*data), domain), sums(*data), rtol=1e-7)


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ({"y": (0, 30)}, r"Give a range above 0: Domain\(bounds=\{'exposure': \(low, high\)\}\)"),
        ({"y": (0, 30), "exposure": (-1, 4)}, r"may be anything in \(-1, 4\), and an exposure is > 0"),
        ({"exposure": (0.5, 4)}, r"Domain\(bounds=\{'y': \(0, high\)\}\)"),
        ({"y": (0, 30), "exposure": (0, 1e200)}, "Measure the exposure in another unit"),
    ],
)
@pytest.mark.parametrize("rate", ["product", "log offset"])
def test_bounds_that_are_missing_or_wrong_are_asked_for(bounds, text, rate, rng):
    with pytest.raises(dp.errors.UnsupportedModelError, match=text):
        dp.privatize(counts(*table(rng), rate=RATES[rate]), epsilon=1.0, domain=dp.Domain(bounds=bounds))


def _by_sums(seen, count, rate, scales, bound, of_prior):
    """Log density by brute force, of Laplace noise: a fine grid of exposures, and every count."""
    e, k = np.linspace(0, bound, 2001), np.arange(400)
    with np.errstate(divide="ignore"):
        mean = np.log(rate * e)[:, None]
    poisson = np.where(k == 0, 0.0, k * np.where(np.isinf(mean), -1e4, mean)) - rate * e[:, None] - gammaln(k + 1)
    noise = -np.abs(count - k) / scales[1] + np.log(np.tanh(1 / (2 * scales[1])))
    given = logsumexp(poisson + noise, axis=1)
    prior = np.log1p(of_prior * bound) - 2 * np.log1p(of_prior * e) - np.log(bound)
    inner = given + prior - np.abs(seen - e) / scales[0] - np.log(2 * scales[0])
    inner[[0, -1]] -= np.log(2)
    return logsumexp(inner) + np.log(e[1])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("seen", "count"), [(40.0, 25.0), (3.0, -4.0), (-6.0, 12.0), (80.0, 0.0)])
def test_both_noises_are_integrated_out(seen, count):
    rates, scales = np.geomspace(0.02, 20, 5) * max(count, 1) / max(seen, 5), np.array([4.0, 6.0])
    sizes = Sizes(public=False, bound=np.full(5, 100.0), n_private=4, rate=0.1)
    release = np.tile([[seen, count]], (5, 1))
    found = exposed_densities(release, rates, scales, sizes)
    expected = np.array([_by_sums(seen, count, rate, scales, 100.0, 0.1) for rate in rates])
    np.testing.assert_allclose(found, expected, atol=2e-3)
    graph = exposed_logp(pt.constant(release), pt.constant(rates), scales, sizes)
    np.testing.assert_allclose(graph.eval(), found, atol=1e-8)


def test_a_release_does_not_fit_another_exposure_with_the_same_bounds(rng):
    domain = dp.Domain(bounds={"exposure": (0.5, 2.0), "y": (0, 30)})
    private = dp.privatize(counts(*table(rng)), epsilon=1.0, domain=domain)
    other = counts(np.ones(3), np.arange(3), np.zeros(3, dtype=int), rate=lambda a, e, g: pt.exp(a[g]) / e)
    with pytest.raises(dp.errors.UnsupportedModelError, match="its exposure is .*, that of the release exposure"):
        dp.condition(other, dp.Release.of(private))
