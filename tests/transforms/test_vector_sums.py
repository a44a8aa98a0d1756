"""Many noised sums at once: normal densities, and Laplace noise as normal noise of free variances."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dp as dp
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.vector_sums import mixed, vector_sums_logp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def sizes_of(kind, *bound, **options):
    return Sizes(**{"public": True, "bound": np.array(bound), "n_private": 1, "kind": kind} | options)


def density(count, n_cells, scales, sizes):
    """Compiled log density of (n_cells, ...) releases, with its gradients where parameters are free."""
    first = 0 if sizes.public else 1
    value = pt.tensor("value", shape=(n_cells, count + first), dtype="float64")
    mean = pt.tensor("mean", shape=(1, count), dtype="float64")
    covariance = pt.tensor("covariance", shape=(1, count, count), dtype="float64")
    inputs = [value, mean, covariance]
    if mixed(sizes.kind, count, n_cells):
        inputs.append(pt.tensor("variances", shape=(n_cells, count), dtype="float64"))
    logp = vector_sums_logp(value, mean, covariance, scales, sizes, *inputs[3:])
    return pytensor.function(inputs, [logp, *pt.grad(logp.sum(), inputs[1:])], mode="FAST_COMPILE")


def covariance_of(rng, count):
    root = rng.normal(size=(count, count))
    return (root @ root.T / count + 0.1 * np.eye(count))[None]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_gaussian_noise_adds_its_variance(count, rng):
    bound, scales = np.array([7, 300]), rng.uniform(0.5, 30, count)
    mean, covariance = rng.normal(size=(1, count)), covariance_of(rng, count)
    value = bound[:, None] * mean + rng.normal(size=(2, count)) * 20
    found, *slopes = density(count, 2, scales, sizes_of("gaussian", *bound))(value, mean, covariance)
    exact = [
        stats.multivariate_normal(n * mean[0], n * covariance[0] + np.diag(scales**2)).logpdf(row)
        for n, row in zip(bound, value, strict=True)
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    assert all(np.isfinite(item).all() for item in slopes)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_private_size_is_a_sum_over_sizes(kind, rng):
    count, bound, scales = 3, 200, np.array([4.0, 3.0, 5.0, 8.0])
    mean, covariance = rng.normal(size=(1, count)) / 2, covariance_of(rng, count) / 4
    variances = rng.exponential(size=(1, count))
    value = np.concatenate([[[90.0]], 88 * mean + 5 * rng.normal(size=(1, count))], axis=1)
    sizes = sizes_of(kind, bound, public=False)
    extra = [variances] if kind == "laplace" else []
    found, *slopes = density(count, 1, scales, sizes)(value, mean, covariance, *extra)
    noise = np.diag(scales[1:] ** 2 * (2 * variances[0] if extra else 1.0))
    law = stats.laplace(scale=4.0) if extra else stats.norm(scale=4.0)
    terms = [
        stats.multivariate_normal(n * mean[0], n * covariance[0] + noise).logpdf(value[0, 1:])
        + law.logpdf(value[0, 0] - n)
        for n in range(1, bound + 1)
    ]
    assert found[0] == pytest.approx(logsumexp(terms) - np.log(bound), abs=0.02)
    assert all(np.isfinite(item).all() for item in slopes)


@pytest.mark.slow
def test_free_variances_make_laplace_noise(rng):
    """The average over exponential variances is the density of normal sums with Laplace noise on each."""
    count, n, scales, draws = 3, 50, np.array([3.0, 6.0, 9.0]), 4000
    mean, covariance = rng.normal(size=(1, count)), covariance_of(rng, count)
    nodes = -np.log((np.argsort(rng.random((count, draws))).T + 0.5) / draws)  # a Latin hypercube
    evaluate = density(count, draws, scales, sizes_of("laplace", *[n] * draws))
    exact_sums = n * mean + rng.normal(size=(400_000, count)) @ np.linalg.cholesky(n * covariance[0]).T
    for _ in range(3):
        value = n * mean + rng.laplace(size=count) * scales + rng.normal(size=count) * 5
        found = logsumexp(evaluate(np.tile(value, (draws, 1)), mean, covariance, nodes)[0]) - np.log(draws)
        terms = stats.laplace.logpdf(value - exact_sums, scale=scales).sum(axis=1)
        assert found == pytest.approx(logsumexp(terms) - np.log(len(terms)), abs=0.05)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_densities_are_finite_at_extreme_parameters_and_releases(kind):
    for public in (True, False):
        count, sizes = 3, sizes_of(kind, 1000, public=public)
        evaluate = density(count, 1, np.full(count + (not public), 5.0), sizes)
        for level in (-1e6, 0.0, 1e6):
            for spread in (0.0, 1e-12, 1.0):
                for e in (1e-6, 1.0, 50.0):
                    given = [np.full((1, count + (not public)), level), np.full((1, count), 0.5)]
                    given.append(np.full((1, count, count), spread))
                    extra = [np.full((1, count), e)] if kind == "laplace" else []
                    assert all(np.isfinite(item).all() for item in evaluate(*given, *extra))


def test_a_name_that_a_release_needs_is_refused():
    with pm.Model() as model:
        noise = pm.HalfNormal("y_noise_variance")
        pm.MvNormal("y", pt.zeros(2), noise * pt.eye(2), observed=np.zeros((4, 2)))
    with pytest.raises(dp.errors.UnsupportedModelError, match="y_noise_variance"):
        dp.privatize(model, epsilon=1.0, domain=dp.Domain(bounds={"y": (-1, 1)}))
