"""Price, noise and refusals of Fisher scoring, what its trace shows, and moments of what it samples."""

import math

import pytest

from pymc_dp.accounting import total_epsilon
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import SGFS, walk

from .conftest import BATCH, N_ROWS
from .scoring import CLIP, funded, regression, rows

PAIRS = [("replace", "poisson"), ("replace", "without_replacement"), ("add_remove", "poisson")]


@pytest.fixture(scope="module")
def regressed():
    return regression(*rows())


@pytest.fixture(scope="module")
def graphs(regressed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SGFS, "_compile", lambda self: None)
        return funded(regressed).gradients


@pytest.fixture(autouse=True)
def _graphs(monkeypatch, graphs):
    """Graphs are made once, no loop is compiled, and what chains have spent so far is not followed."""
    monkeypatch.setattr(SGFS, "_compile", lambda self: None)
    monkeypatch.setattr(walk, "BatchGradients", lambda inspection, prior_model: graphs)
    monkeypatch.setattr(cost, "some_of", lambda steps: [])


@pytest.fixture
def begin(regressed):
    return lambda *arguments, **settings: funded(settings.pop("model", regressed), *arguments, **settings)


# --- price ------------------------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(("neighbours", "sampling"), PAIRS)
def test_one_event_pays_for_gradients_and_products(begin, neighbours, sampling):
    share = 0.02 if neighbours == "replace" else 0.5
    step = begin(neighbours, sampling=sampling, fisher_share=share)
    event, course = step.event.event, step.course
    gradients, products = course.sigma / step.batches.scale / CLIP, course.products
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
    assert step.course.sigma / N_ROWS == pytest.approx(math.sqrt(variance) * CLIP)
    assert step.course.sizes[0] == pytest.approx(1 / (N_ROWS**2 * variance))
    assert step.course.products / BATCH == pytest.approx(7 * math.sqrt(variance)) and step.course.centred
    assert step.weight == N_ROWS * (1 + N_ROWS / BATCH)
    assert step.batches.sampling == "without_replacement"
    # The worst pair of rows moves a mean by 2 C / b and a covariance by 4 C² / b.
    mean = step.course.sigma / N_ROWS * BATCH / CLIP / 2
    covariance = step.course.products / 4
    assert step.event.event.over_sensitivity == pytest.approx((mean**-2 + covariance**-2) ** -0.5)
    assert total_epsilon(step.event, 1e-5).epsilon < 0.5, "far less than the 3 that the papers say"
    assert "algorithm 4" in dict(step.describe().facts)["form"]
