"""Price, noise and refusals of Fisher scoring, what its trace shows, and moments of what it samples."""

import math

import numpy as np
import pytest

from pymc_dp.accounting import total_epsilon
from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import SGFS, fisher, walk
from pymc_dp.step_methods.langevin.batches import algorithm_two
from pymc_dp.step_methods.langevin.information import views

from . import scoring
from .conftest import BATCH, N_ROWS, flat, start
from .scoring import CLIP, WIDTH, funded, regression, rows
from .test_sgld import PAIRS, mean_and_error


@pytest.fixture(scope="module")
def regressed():
    return regression(*rows())


@pytest.fixture(scope="module")
def graphs(regressed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SGFS, "_compile", scoring.by_hand)
        return funded(regressed).gradients


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch, graphs):
    """Graphs are made once, gradients are written by hand, and what chains have spent so far is not followed."""
    monkeypatch.setattr(SGFS, "_compile", scoring.by_hand)
    monkeypatch.setattr(walk, "row_gradients", lambda inspection, prior_model: graphs)
    monkeypatch.setattr(cost, "some_of", lambda steps: [])


@pytest.fixture
def begin(regressed):
    return lambda *arguments, **settings: funded(settings.pop("model", regressed), *arguments, **settings)


# --- price ------------------------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(("neighbours", "sampling"), PAIRS)
def test_one_event_pays_for_gradients_and_products(begin, neighbours, sampling):
    share = 0.02 if neighbours == "replace" else 0.5
    if (neighbours, sampling) == ("add_remove", "without_replacement"):
        with pytest.raises(ArgumentError, match="cannot be used with neighbours='add_remove'"):
            begin(neighbours, sampling=sampling)
        return
    step = begin(neighbours, sampling=sampling, fisher_share=share)
    event, plan = step.event.event, step._loop
    gradients = plan.sigma / plan.scale / CLIP
    products = plan.products * BATCH / CLIP**2
    assert step.event.count == 50 and (event.sampling, event.neighbours) == (sampling, neighbours)
    assert event.noise_multiplier == pytest.approx((gradients**-2 + products**-2) ** -0.5, rel=1e-9)
    assert event.noise_multiplier <= (gradients**-2 + products**-2) ** -0.5
    assert products**-2 == pytest.approx(share * event.noise_multiplier**-2)
    assert 0.99 * 3 < total_epsilon(step.event, 1e-5).epsilon <= 3
    population = 250 if neighbours == "add_remove" else N_ROWS
    known = population / BATCH - 1 if sampling == "poisson" else (population / BATCH - 1) * population / (N_ROWS - 1)
    assert step.weight == pytest.approx(population * (1 + known))


def test_algorithm_four_has_its_constants_and_pays_what_they_cost(begin):
    step = begin(papers=True)
    uses, epsilon, delta = 50, 3.0 / 2, 1e-5 / 2
    variance = 32 * uses * math.log(2.5 * uses / delta) * math.log(2 / delta) / (N_ROWS * epsilon) ** 2
    assert step._loop.sigma / N_ROWS == pytest.approx(math.sqrt(variance) * CLIP)
    assert step.course.sizes[0] == pytest.approx(1 / (N_ROWS**2 * variance))
    assert step._loop.products == pytest.approx(7 * CLIP**2 * math.sqrt(variance)) and step._loop.centred
    assert step.weight == N_ROWS * (1 + N_ROWS / BATCH)
    assert step.batches.sampling == "without_replacement"
    # The worst pair of rows moves a mean by 2 C / b and a covariance by 4 C² / b.
    mean = step._loop.sigma / N_ROWS * BATCH / CLIP / 2
    covariance = step._loop.products * BATCH / CLIP**2 / 4
    assert step.event.event.whole.noise_multiplier == pytest.approx((mean**-2 + covariance**-2) ** -0.5)
    assert total_epsilon(step.event, 1e-5).epsilon < 0.5, "far less than the 3 that the papers say"
    assert "algorithm 4" in dict(step.describe().facts)["form"]


def test_algorithm_four_is_refused_where_it_proves_nothing(begin, monkeypatch):
    monkeypatch.setattr(fisher, "algorithm_two", lambda *arguments: 1e-3 * algorithm_two(*arguments))
    with pytest.raises(ArgumentError, match="algorithm 4's noise, .* is too small"):
        begin(papers=True)
    alone = begin(papers=True, steps=1)
    assert 2.99 < total_epsilon(alone.event, 1e-5).epsilon <= 3, "one step gets the noise that it needs"


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_noise_through_the_step_has_the_variance_that_was_priced(begin, neighbours):
    """Rows without covariates have no gradient: what moves the chain, and what it learns, is noise."""
    step = begin(neighbours, step_size=1e9, model=regression(np.zeros((N_ROWS, WIDTH)), np.zeros(N_ROWS)))
    event = step.event.event
    population = 250 if neighbours == "add_remove" else N_ROWS
    point, moves, seen = start(step), [], []
    for _ in range(2000):
        known = views(step.memory, WIDTH)
        known.bends[:], known.axes[:], known.sum_of[:], known.steps[:] = 0.0, np.eye(WIDTH), 0.0, (1e6, 0)
        moves.append(flat(step, step.advance(point)))
        seen.append(views(step.memory, WIDTH).sum_of[np.tril_indices(WIDTH)].copy())
    ridge = step.course.sigma**2  # of G, which is nothing else here
    gradients = np.array(moves) * ridge / 2 * BATCH / population / CLIP
    weights = np.where(np.equal(*np.tril_indices(WIDTH)), 1.0, math.sqrt(2))
    products = np.array(seen) * weights * BATCH / CLIP**2
    for noise, share in ((gradients, 0.95), (products, 0.05)):
        priced = event.noise_multiplier / math.sqrt(share)
        assert abs((noise / priced).var() - 1) < 5 * math.sqrt(2 / noise.size)
        assert abs(noise.mean()) < 5 * priced / math.sqrt(noise.size)
        assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.12
    assert np.abs(np.corrcoef(np.hstack([gradients, products]).T)[:WIDTH, WIDTH:]).max() < 0.12


# --- right answers ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_the_posterior_of_a_regression_is_met_by_small_batches_and_much_noise(sampling):
    """Noise that protects rows as large as the bends, batches of a tenth: Langevin steps 2 / σ² had 11 times more."""
    x, y = rows(seed=11)
    draws = np.empty((30_000, WIDTH))
    settings = {"batch_size": 20, "clip_norm": 12.0, "sampling": sampling, "step_size": 1e9, "steps_per_draw": 10}
    step = funded(regression(x, y), steps=len(draws), epsilon=1e6, **settings)
    step._loop = step._loop._replace(sigma=20.0, products=1.0)
    point = start(step)
    for i in range(len(draws)):
        point, _ = step.step(point)
        draws[i] = point["coefficients"]
    draws = draws[300:]
    information = x.T @ x + 4 * np.eye(WIDTH)
    mean, covariance = np.linalg.solve(information, x.T @ y), np.linalg.inv(information)
    for j in range(WIDTH):
        found, error, ess = mean_and_error(draws[None, :, j])
        assert ess > 10_000 and abs(found - mean[j]) < 5 * error
    root = np.linalg.cholesky(information)
    np.testing.assert_allclose(root.T @ np.cov(draws.T) @ root, np.eye(WIDTH), atol=0.06)
    assert covariance.max() > 2 * covariance.diagonal().min(), "some directions are wider than others"
