"""Normal sums with Gaussian noise against the densities of SciPy."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.noise_aware import moments_logp
from pymc_dp.transforms.sum_noises import normal_logp


def function(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE")


def covariances(rng, count, n_cells):
    """Full, nearly singular, and of very different sizes."""
    root = rng.normal(size=(n_cells, count, count)) * 10.0 ** rng.uniform(-3, 2, size=(n_cells, count, 1))
    root[:, -1] = root[:, 0] + 1e-5 * root[:, -1]
    return root @ root.transpose(0, 2, 1)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_normal_sums_have_a_normal_density(count, rng):
    z, v = pt.matrix("z", shape=(None, count)), pt.tensor3("v", shape=(None, count, count))
    logp = normal_logp([z[:, i] for i in range(count)], [[v[:, i, j] for j in range(count)] for i in range(count)])
    evaluate = function([z, v], [logp, *pt.grad(logp.sum(), [z, v])])
    matrices = covariances(rng, count, 20) + 1e-4 * np.eye(count)
    points = np.array([rng.multivariate_normal(np.zeros(count), item) for item in matrices])
    exact = [stats.multivariate_normal(cov=item).logpdf(x) for x, item in zip(points, matrices, strict=True)]
    found, slope, _ = evaluate(points, matrices)
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    solved = -np.linalg.solve(matrices, points[..., None])[..., 0]
    np.testing.assert_allclose(slope, solved, rtol=1e-5, atol=1e-5 * np.abs(solved).max())


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sums_of_public_size_add_the_variance_of_the_noise(count, rng):
    sizes = Sizes(public=True, bound=np.array([7, 100, 10_000]), n_private=1, kind="gaussian")
    scales = rng.uniform(0.5, 30, count)
    value, mean = pt.matrix("value", shape=(3, count)), pt.vector("mean", shape=(count,))
    v = pt.matrix("v", shape=(count, count))
    logp = moments_logp(
        value, [mean[i : i + 1] for i in range(count)],
        [[v[i, j][None] for j in range(count)] for i in range(count)], scales, sizes,
    )  # fmt: skip
    evaluate = function([value, mean, v], logp)
    covariance, middle = covariances(rng, count, 1)[0], rng.normal(size=count)
    released = sizes.bound[:, None] * middle + rng.normal(size=(3, count)) * scales
    exact = [
        stats.multivariate_normal(n * middle, n * covariance + np.diag(scales**2 + 1e-10)).logpdf(row)
        for n, row in zip(sizes.bound, released, strict=True)
    ]
    np.testing.assert_allclose(evaluate(released, middle, covariance), exact, rtol=1e-7, atol=1e-7)
