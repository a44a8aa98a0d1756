"""Pricing, pairing of sampler, relation and accountant, noise, and what a trace of SGLD shows."""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_dp.accounting import SelfComposedEvent, rdp, total_epsilon
from pymc_dp.accounting.events import SubsampledGaussianEvent
from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.langevin.batches import LARGEST_STABLE

from .conftest import BATCH, BUDGET, CLIP, N_ROWS, flat, funded, logistic, start, table

PAIRS = [
    ("replace", "poisson"),
    ("replace", "without_replacement"),
    ("add_remove", "poisson"),
    ("add_remove", "without_replacement"),
]


def noise_of(step, n_steps=4000, full=False):
    """Standardised noise of single steps from one point: what the walk adds beyond the drift."""
    point = start(step)
    position = flat(step, point)
    _, prior = step._functions
    (slope,) = prior(position)
    total = step.clipped_sum(position, np.arange(N_ROWS))
    drift = step.step_size * (slope + step._loop.scale * total)
    moves = np.array([flat(step, step.step(point)[0]) - position - drift for _ in range(n_steps)])
    return moves / math.sqrt(2 * step.step_size)


# --- pairing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("neighbours", "sampling"), PAIRS)
def test_every_pair_is_accounted_by_its_own_curve_or_refused(begin, neighbours, sampling):
    if (neighbours, sampling) == ("add_remove", "without_replacement"):
        with pytest.raises(ArgumentError, match="cannot be used with neighbours='add_remove'"):
            begin(neighbours, sampling=sampling)
        return
    step = begin(neighbours, sampling=sampling)
    event = step.event.event
    population = 250 if neighbours == "add_remove" else N_ROWS
    assert isinstance(event, SubsampledGaussianEvent) and step.event.count == 50
    assert (event.sampling, event.neighbours) == (sampling, neighbours)
    assert event.rate == BATCH / population
    assert total_epsilon(step.event, BUDGET["delta"]).epsilon <= BUDGET["epsilon"]
    noise_on_sum = math.sqrt(2 * step.step_size) * BATCH / (step.step_size * population)
    assert event.noise_multiplier == pytest.approx(noise_on_sum / CLIP, rel=1e-9)
    assert event.noise_multiplier <= noise_on_sum / CLIP
    assert step._loop.poisson == (sampling == "poisson")
    assert step._loop.scale == population / BATCH
    assert ("accountant" in dict(step.describe().facts)) and str(population) in dict(step.describe().facts)["batch"]


def test_fixed_batches_under_replace_pay_for_a_sensitivity_of_two_norms(begin):
    """The pairing of d3p: fixed batches under replace, priced by a curve for one norm, about half of the ε."""
    step = begin(sampling="without_replacement")
    wrong = SubsampledGaussianEvent(
        noise_multiplier=step.event.event.noise_multiplier,
        sampling="poisson",
        sample_rate=BATCH / N_ROWS,
        neighbours="add_remove",
    )
    right = rdp.epsilon_at(step.event, 1e-5)
    assert right > 1.6 * total_epsilon(SelfComposedEvent(event=wrong, count=50), 1e-5).epsilon


def test_budget_decides_the_largest_step(begin):
    steps = [begin(clip_norm=20.0, epsilon=epsilon).step_size for epsilon in (0.1, 0.2, 0.4)]
    assert steps[0] < steps[1] < steps[2]
    step = begin(clip_norm=20.0, epsilon=0.1)
    assert total_epsilon(step.event, 1e-5).epsilon == pytest.approx(0.1, rel=1e-2)
    assert total_epsilon(step.event, 1e-5).epsilon <= 0.1
    stable = begin(epsilon=1000.0)
    assert stable.step_size == pytest.approx(LARGEST_STABLE / (N_ROWS * CLIP**2))


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_noise_has_the_variance_that_was_priced(begin, neighbours):
    # The sum of all rows enters every step exactly where the batch is the table.
    batch = 250 if neighbours == "add_remove" else N_ROWS
    step = begin(neighbours, batch_size=batch, steps=4001)
    noise = noise_of(step)
    priced = step.event.event.noise_multiplier * CLIP * step.step_size * step.population / batch
    assert math.sqrt(2 * step.step_size) == pytest.approx(priced, rel=1e-9)
    assert abs(noise.mean()) < 5 / math.sqrt(noise.size)
    assert abs(noise.var() - 1) < 5 * math.sqrt(2 / noise.size)
    assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.1


def test_the_papers_form_has_half_of_the_variance_and_pays_for_it(begin):
    step = begin(batch_size=N_ROWS, steps=4001, papers=True)
    assert noise_of(step).var() == pytest.approx(0.5, rel=0.05)
    rows = 4001 * math.log(2.5 * 4001 / 1e-5) * math.log(2 / 1e-5)
    assert step.multiplier == pytest.approx(math.sqrt(128 * rows) / 3.0)
    assert total_epsilon(step.event, 1e-5).epsilon < 0.5, "far less than the 3 that the papers say"
    assert "papers" in step.describe().noise


def test_under_add_remove_batches_are_divided_by_the_public_number(begin):
    """A realised batch size in the drift would show the number of rows."""
    whole, fewer = begin("add_remove"), begin("add_remove", model=logistic(*table(50)))
    assert whole._loop == fewer._loop and whole.event == fewer.event
    assert whole.describe() == fewer.describe()


# --- right answers ----------------------------------------------------------------------------------------------------


def gaussian(n_rows=20):
    """Posterior N(0, 1), all of it from the rows but a thousandth."""
    y = np.linspace(-1, 1, n_rows)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("theta", 0, np.sqrt(1000)), np.sqrt(n_rows * 1000 / 999), observed=y)
    return model


def mean_and_error(draws):
    import arviz as az

    ess = float(az.ess(draws))
    return draws.mean(), draws.std() / math.sqrt(ess), ess


@pytest.mark.slow
@pytest.mark.parametrize(("papers", "variance", "margin"), [(False, 1.0, 0.03), (True, 0.5, 0.015)])
def test_variance_on_a_standard_normal(papers, variance, margin, monkeypatch):
    monkeypatch.undo()
    settings = {"batch_size": 20, "clip_norm": 0.4, "step_size": 0.02, "papers": papers, "steps_per_draw": 20}
    budget = 2e4 if papers else 1e5  # at which algorithm 2 has enough noise, and not more than the dynamics
    step = funded(gaussian(), steps=100_000, epsilon=budget, **settings)
    point, draws = start(step), np.empty(100_000)
    for i in range(draws.size):
        point, _ = step.step(point)
        draws[i] = point["theta"]
    mean, error, ess = mean_and_error(draws[None, 100:])
    assert ess > 5000 and abs(mean) < 5 * error
    assert abs(draws.var() - variance) < margin
