"""Errors in variables: the density without latents of a regression on many private predictors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import optimize, stats

from pymc_dp.families.gram import GramSums, Source
from pymc_dp.families.polynomial import Response
from pymc_dp.inspection.plain import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.gram_estimate import adaptive_shrinkage, gram_of_cells, gram_of_predictors
from pymc_dp.transforms.regression_wide import WideRegression, errors_of

NORMAL = Response(likelihood="normal")
LOGIT = Response(likelihood="bernoulli", mean=pt.sigmoid)


def statistic(d: int, *, square: bool, constant: bool, cells: int = 1, apart: bool = False) -> GramSums:
    return GramSums(
        sources=(Source(name="x", centres=(0.0,) * d, halves=(1.0,) * d, ball=True),),
        response=Source(name="y", centres=(0.0,), halves=(1.0,)),
        cells=tuple(f"cell {c}" for c in range(cells)),
        constant=constant,
        square=square,
        apart=apart,
    )


def sums(x: Array, u: Array, cell: Array, what: GramSums) -> Array:
    """The exact sums, in the order of the statistic."""
    cells = range(len(what.cells))
    parts = [np.append(x[cell == c].sum(axis=0), u[cell == c].sum()) for c in cells] if what.constant else []
    for chosen in [cell == c for c in cells] if what.apart else [cell >= 0]:
        t, v = x[chosen], u[chosen]
        parts += [(t.T @ t)[np.triu_indices(t.shape[1])], t.T @ v, *([[v @ v]] if what.square else [])]
    return np.concatenate(parts)


def table(rng: np.random.Generator, n: int, d: int, cells: int = 1) -> tuple[Array, Array, Array]:
    x = rng.normal(0.3, 0.5, size=(n, d)) / np.sqrt(d)
    cell = rng.integers(cells, size=n)
    return x, 0.1 * cell + x @ np.linspace(-0.5, 0.5, d) + rng.normal(0, 0.1, n), cell


def log_density(density: WideRegression, value: Array, a: Array, w: Array, sd: float) -> float:
    given = [pt.as_tensor(np.asarray(item, dtype=float)) for item in (value, a, w, sd)]
    return float(plain_function([], density.logp(*given))()[0])


def test_errors_are_the_covariance_of_a_noised_symmetric_matrix_times_a_vector() -> None:
    rng = np.random.default_rng(1)
    line, variances = np.array([1.0, -2.0, 0.5]), np.array([[1.0, 2.0, 0.5], [2.0, 3.0, 1.0], [0.5, 1.0, 0.2]])
    upper = np.triu(rng.normal(size=(200_000, 3, 3)) * np.sqrt(variances))
    symmetric = upper + np.triu(upper, 1).transpose(0, 2, 1)
    np.testing.assert_allclose(errors_of(variances, np.outer(line, line)), np.cov((symmetric @ line).T), atol=0.15)


def test_without_noise_the_density_is_that_of_least_squares_given_the_predictors() -> None:
    rng = np.random.default_rng(2)
    d, n, a, sd = 3, 4000, np.array([0.05, 0.1]), 0.1
    x, u, cell = table(rng, n, d, cells=2)
    what = statistic(d, square=False, constant=True, cells=2)
    value = sums(x, u, cell, what)[None]
    sizes = np.bincount(cell)
    density = WideRegression.of(what, NORMAL, value, sizes, scale=1e-3, noise="gaussian")
    z = np.column_stack([np.eye(2)[cell], x])
    seen = z.T @ u

    def reference(w: Array) -> float:
        gram = z.T @ z
        covariance = sd**2 * gram + 1e-6 * np.eye(5)
        return float(stats.multivariate_normal(gram @ np.append(a, w), covariance).logpdf(seen))

    one, other = np.array([-0.5, 0.0, 0.5]), np.array([-0.48, 0.03, 0.46])
    found = log_density(density, value, a, one, sd) - log_density(density, value, a, other, sd)
    assert found == pytest.approx(reference(one) - reference(other), rel=2e-2)


def test_at_the_mean_of_its_errors_the_density_is_the_dense_normal_density() -> None:
    rng = np.random.default_rng(3)
    d, n, scale, sd = 3, 3000, 8.0, 0.1
    x, u, cell = table(rng, n, d)
    what = statistic(d, square=False, constant=False)
    value = sums(x, u, cell, what)[None]
    value = value + rng.normal(0, scale, value.shape)
    density = WideRegression.of(what, NORMAL, value, np.array([n]), scale=scale, noise="gaussian")
    (block,), w = density.blocks, np.array([-0.4, 0.1, 0.3])
    # A column that is 1 in all rows is estimated, so that a linear predictor without an intercept has none here either.
    gram, errors = block.estimate.gram, errors_of(block.estimate.variances, np.outer(w, w))
    noise = scale**2 * np.eye(d)
    ratio = np.trace(np.linalg.solve(noise + block.errors, noise + errors)) / d
    # Predictors that do not share the density's closure keep the residual variance sd²: the response is linear.
    covariance = sd**2 * gram + ratio * (noise + block.errors)
    expected = stats.multivariate_normal(gram @ w, covariance).logpdf(value[0, block.places])
    assert log_density(density, value, np.zeros(1), w, sd) == pytest.approx(expected, rel=1e-3)


def test_laplace_noise_is_normal_noise_of_its_variance() -> None:
    rng = np.random.default_rng(4)
    x, u, cell = table(rng, 1000, 3)
    what = statistic(3, square=True, constant=True)
    value = sums(x, u, cell, what)[None]
    laplace, gaussian = (
        WideRegression.of(what, NORMAL, value, np.array([1000]), scale=scale, noise=noise)
        for scale, noise in ((2.0, "laplace"), (2.0 * np.sqrt(2), "gaussian"))
    )
    w = np.array([0.1, 0.2, -0.3])
    one, other = (log_density(item, value, np.zeros(1), w, 0.2) for item in (laplace, gaussian))
    assert one == pytest.approx(other)


def test_slopes_apart_add_up_over_cells() -> None:
    rng = np.random.default_rng(5)
    x, u, cell = table(rng, 2000, 2, cells=2)
    apart = statistic(2, square=True, constant=True, cells=2, apart=True)
    alone = statistic(2, square=True, constant=True)
    sizes, a, w = np.bincount(cell), np.array([0.0, 0.2]), np.array([[0.1, 0.2], [-0.1, 0.3]])
    value = sums(x, u, cell, apart)[None]
    whole = WideRegression.of(apart, NORMAL, value, sizes, scale=3.0, noise="gaussian")
    total = 0.0
    for c in range(2):
        part = sums(x[cell == c], u[cell == c], np.zeros(sizes[c], dtype=int), alone)[None]
        density = WideRegression.of(alone, NORMAL, part, sizes[c : c + 1], scale=3.0, noise="gaussian")
        total += log_density(density, part, a[c : c + 1], w[c], 0.1)
    assert log_density(whole, value, a, w, 0.1) == pytest.approx(total)


def test_shrinkage_keeps_what_is_large_and_drops_what_noise_explains() -> None:
    rng = np.random.default_rng(6)
    truth = np.concatenate([np.zeros(900), np.full(100, 0.8)])
    noised = truth + rng.normal(0, 0.05, 1000)
    found, variances = adaptive_shrinkage(noised, np.full(1000, 0.05**2))
    assert np.abs(found[:900]).mean() < 0.1 * np.abs(noised[:900]).mean()
    np.testing.assert_allclose(found[900:], noised[900:], rtol=0.05)
    assert variances[:900].mean() < 0.1 * 0.05**2
    np.testing.assert_allclose(variances[900:], 0.05**2, rtol=0.05)


def test_an_estimated_gram_matrix_is_nearer_than_the_release_and_knows_how_near() -> None:
    rng = np.random.default_rng(7)
    levels = np.eye(30)[rng.choice(30, size=5000, p=np.arange(1, 31) / 465)]
    x = np.column_stack([np.ones(5000), levels]) / np.sqrt(2)
    noise = np.triu(rng.normal(0, 30.0, (31, 31)))
    noise += np.triu(noise, 1).T
    found = gram_of_predictors(x.T @ x + noise, 900.0, 5000.0)
    error = found.gram - x.T @ x
    assert np.linalg.norm(error) < 0.5 * np.linalg.norm(noise)
    assert np.linalg.norm(error) == pytest.approx(np.sqrt(found.variances.sum()), rel=0.5)
    assert np.linalg.eigvalsh(found.gram).min() > 0
    # The constant is found without sums of first order.
    np.testing.assert_allclose(found.means[0], x.mean(axis=0), atol=0.05)


def test_a_constant_times_the_gram_matrix_is_the_sum_over_the_rows_of_its_cell() -> None:
    rng = np.random.default_rng(8)
    x, _, cell = table(rng, 1000, 4, cells=3)
    first, sizes = np.array([x[cell == c].sum(axis=0) for c in range(3)]), np.bincount(cell).astype(float)
    found = gram_of_cells(x.T @ x, 1.0, first, sizes)
    np.testing.assert_allclose(found.constant @ found.gram, np.column_stack([np.diag(sizes), first]), atol=1e-9)


def test_public_predictors_are_refused() -> None:
    what = GramSums(sources=statistic(2, square=False, constant=True).sources, response=NORMAL_SOURCE, known=True)
    with pytest.raises(ValueError, match="RegressionDensity"):
        WideRegression.of(what, NORMAL, np.zeros((1, what.count)), np.array([10]), scale=1.0, noise="gaussian")


NORMAL_SOURCE = Source(name="y", centres=(0.0,), halves=(1.0,))
N_TABLES, WIDTH, ROWS, SCALE, TUNE, DRAWS, STEP = 100, 24, 5000, 10.0, 60, 200, 0.3


@pytest.mark.slow
def test_intervals_of_a_logistic_regression_hold_the_truth_as_often_as_they_claim() -> None:
    held = np.array([_held(seed) for seed in range(N_TABLES)])
    for one in held.T:
        assert stats.binomtest(int(one.sum()), N_TABLES, 0.9).pvalue > 1e-4


def _held(seed: int) -> Array:
    """Whether 90% intervals of three coefficients hold the true ones, drawn from the prior."""
    rng = np.random.default_rng([9, seed])
    x = rng.normal(size=(ROWS, WIDTH)) @ (np.eye(WIDTH) + 0.1 * rng.normal(size=(WIDTH, WIDTH)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = rng.normal(size=WIDTH)
    u = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-x @ w)), 1.0, -1.0)
    what = GramSums(
        sources=statistic(WIDTH, square=False, constant=False).sources,
        response=Source(name="y", centres=(0.5,), halves=(0.5,)),
        constant=False,
        square=False,
    )
    value = sums(x, u, np.zeros(ROWS, dtype=int), what)[None]
    value += rng.normal(0, SCALE, value.shape)
    density = WideRegression.of(what, LOGIT, value, np.array([ROWS]), scale=SCALE, noise="gaussian")
    slopes = pt.vector("w")
    logp = density.logp(pt.as_tensor(value), pt.zeros(1), slopes)[0] - 0.5 * (slopes**2).sum()
    return _within(plain_function([slopes], [-logp, -pt.grad(logp, slopes)]), w, rng)[:3]


def _within(energy: Callable[[Array], tuple[Array, Array]], w: Array, rng: np.random.Generator) -> Array:
    """Whether 90% intervals hold `w`: Hamiltonian Monte Carlo, in coordinates of the curvature at the mode."""
    mode = optimize.minimize(lambda at: tuple(map(np.asarray, energy(at))), 0 * w, jac=True, method="BFGS").x
    steps = 1e-4 * np.eye(WIDTH)
    curvature = np.array([(energy(mode + e)[1] - energy(mode - e)[1]) / 2e-4 for e in steps])
    root = np.linalg.cholesky(np.linalg.inv((curvature + curvature.T) / 2))

    def at(z: Array) -> tuple[float, Array]:
        value, slope = energy(mode + root @ z)
        return float(value), root.T @ slope

    z, drawn = np.zeros(WIDTH), []
    value, slope = at(z)
    for _ in range(TUNE + DRAWS):
        momentum = rng.normal(size=WIDTH)
        place, push, now = z, slope, (value, slope)
        total = value + 0.5 * momentum @ momentum
        for _ in range(rng.integers(4, 9)):
            momentum = momentum - 0.5 * STEP * push
            place = place + STEP * momentum
            now = at(place)
            push = now[1]
            momentum = momentum - 0.5 * STEP * push
        if np.log(rng.random()) < total - now[0] - 0.5 * momentum @ momentum:
            z, (value, slope) = place, now
        drawn.append(mode + root @ z)
    rank = (np.array(drawn[TUNE:]) < w).mean(axis=0)
    return (rank > 0.05) & (rank < 0.95)
