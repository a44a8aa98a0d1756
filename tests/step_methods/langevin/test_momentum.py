"""Samplers with momentum through the step: what is priced, what is remembered, what is said."""

import math

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.accounting.calibrate import noise_multiplier
from pymc_dp.step_methods.langevin import SGHMC, SGLD, SGNHT, AlphaPhase, PolynomialDecay, base
from pymc_dp.step_methods.langevin.batches import algorithm_two

from .conftest import BATCH, BUDGET, CLIP, N_ROWS, flat, funded, start


def noised(step):
    """σ of the noise on estimated gradients, from the event that pays for it."""
    return step.event.event.noise_multiplier * CLIP * step.population / BATCH


@pytest.mark.parametrize("method", [SGHMC, SGNHT])
@pytest.mark.parametrize("rule", [None, 1e-6, PolynomialDecay(), AlphaPhase(0.3)])
def test_the_event_has_the_noise_that_every_gradient_gets(begin, method, rule):
    step = begin(method=method, step_size=rule, steps=1)
    assert step._loop.sigma == pytest.approx(noised(step), rel=1e-9) and step._loop.sigma >= noised(step)
    assert total_epsilon(step.event, BUDGET["delta"]).epsilon <= BUDGET["epsilon"]


def test_falling_steps_cost_the_whole_budget_and_tell_how_hot_they_are(begin):
    step = begin(step_size=AlphaPhase(0.5), epsilon=0.1, steps=100)
    assert 0.099 < total_epsilon(step.event, BUDGET["delta"]).epsilon <= 0.1
    temperature = step.course.temperature
    assert (temperature[:49] > 1).all() and (temperature[50:] < 1).all() and temperature[49] == pytest.approx(1)
    facts = dict(step.describe().facts)
    hottest = f"up to {temperature.max():.3g}, above that of the target until step 49 of 100"
    assert facts["temperature of the noise"] == hottest
    assert "falling to" in facts["step size"]
    assert "temperature of the noise" not in dict(begin().describe().facts)


@pytest.mark.parametrize("friction", [0.01, 0.1, 1.0])
def test_friction_decides_the_largest_step(begin, friction):
    settings = {"clip_norm": 200.0, "epsilon": 0.1, "friction": friction}
    hamiltonian, thermostat = (begin(method=method, **settings) for method in (SGHMC, SGNHT))
    assert hamiltonian.step_size == pytest.approx(4 * math.sinh(friction / 2) / hamiltonian.course.sigma**2)
    assert thermostat.step_size == pytest.approx(4 * math.sinh(friction / 2) / thermostat.course.sigma**2)


def test_a_thermostat_starts_with_the_friction_that_is_known_to_be_needed(begin):
    step = begin(method=SGNHT, step_size=PolynomialDecay(first=1e-3, least=1e-9), clip_norm=1.0, friction=1e-4)
    assert step.memory.tolist()[:-1] == [0.0] * 5
    assert 4 * math.sinh(step.memory[-1] / 2) == pytest.approx(step.course.sizes[0] * step.course.sigma**2)
    assert step.memory[-1] > 1e-4


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("n", "batch", "steps", "epsilon", "sampling", "ratio"),
    [
        (32561, 180, 32561, 1.0, "poisson", 25.0),
        (32561, 180, 32561, 1.0, "without_replacement", 11.6),
        (32561, 180, 32561, 5.0, "poisson", 21.0),
        (32561, 180, 32561, 5.0, "without_replacement", 9.2),
    ],
)
def test_noise_is_below_that_of_algorithm_two(n, batch, steps, epsilon, sampling, ratio):
    drawn = {"sample_rate": batch / n} if sampling == "poisson" else {"population": n, "batch_size": batch}
    needed = noise_multiplier(epsilon, 1e-5, steps, sampling=sampling, neighbours="replace", **drawn)
    found = algorithm_two(1.0, steps, epsilon, 1e-5) * batch / n / needed
    assert found == pytest.approx(ratio, rel=0.03)


@pytest.mark.slow
def test_a_state_holds_what_the_dynamics_remembers(shared, model):
    step = funded(model, method=SGNHT, steps=3)
    point = start(step)
    point, _ = step.step(point)
    saved, memory = step.sampling_state, step.memory.copy()
    first, _ = step.step(point)
    assert not np.array_equal(step.memory, memory), "a chain remembers its velocity"
    step.sampling_state = saved
    np.testing.assert_array_equal(step.memory, memory)
    again, _ = step.step(point)
    np.testing.assert_array_equal(flat(step, first), flat(step, again))


def test_specifications_show_what_was_asked_for():
    assert repr(dp.SGHMC(friction=0.3, step_size=dp.schedules.AlphaPhase(0.2))) == (
        "SGHMC(step_size=AlphaPhase(alpha=0.2), friction=0.3)"
    )
    with pytest.raises(dp.errors.ArgumentError, match="friction must lie"):
        dp.SGNHT(friction=0.0)
    with pytest.raises(dp.errors.ArgumentError, match="precondition must be"):
        dp.SGLD(precondition="adam")


# Long runs.


def skewed():
    y = np.array([0.2, 0.9, 1.7, 0.4, 2.3, 0.1])
    with pm.Model() as model:
        pm.Exponential("y", pm.Gamma("rate", 2.0, 1.0), observed=y)
    return model, stats.gamma(2 + y.size, scale=1 / (1 + y.sum()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [(SGHMC, {}), (SGNHT, {}), (SGLD, {"precondition": "rmsprop", "tune": 500}), (SGLD, {"dtype": "float32"})],
)
def test_a_skewed_posterior_is_met(method, options):
    model, truth = skewed()
    settings = {"batch_size": 6, "clip_norm": 60.0, "step_size": 0.002, "steps_per_draw": 50, **options}
    step = funded(model, method=method, steps=30_000, epsilon=1e10, **settings)
    point, draws = start(step), []
    for _ in range(30_000):
        point, _ = step.step(point)
        draws.append(point["rate_log__"])
    rate = np.exp(draws[1000:])
    assert rate.mean() == pytest.approx(truth.mean(), rel=0.02)
    assert rate.std() == pytest.approx(truth.std(), rel=0.04)
    assert stats.skew(rate) == pytest.approx(truth.stats("s"), rel=0.2)
    assert stats.kstest(rate[::40], truth.cdf).pvalue > 0.001


@pytest.mark.slow
def test_noise_on_gradients_heats_langevin_and_not_the_thermostat():
    """Half of the rows in every batch, far apart: their noise is half as large again as what the dynamics asks for."""
    y = np.tile([-5.0, 5.0], 20)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("theta"), 1.0, observed=y)
    sd = 1 / math.sqrt(1 + y.size)
    found = {}
    for method in (SGLD, SGNHT):
        settings = {"batch_size": 4, "clip_norm": 20.0, "step_size": 1e-4, "steps_per_draw": 25}
        step = funded(model, method=method, steps=20_000, epsilon=1e10, **settings)
        point, draws = start(step), []
        for _ in range(20_000):
            point, _ = step.step(point)
            draws.append(float(point["theta"]))
        found[method] = np.std(draws[500:]) / sd
    assert found[SGLD] > 1.2
    assert found[SGNHT] == pytest.approx(1.0, abs=0.05)


def test_memory_of_rows_is_halved_by_float32(model, monkeypatch):
    """Nothing is compiled here; the gradient itself is that of the slow test above."""
    monkeypatch.setattr(base.StochasticGradient, "_compile", lambda self: None)
    with model:
        step = SGLD(dtype="float32", domain=dp.Domain(), batch_size=BATCH, **BUDGET)
    assert {row.dtype for row in step._rows if row.dtype.kind == "f"} == {np.dtype("float32")}
    assert len(step._rows[0]) == N_ROWS
    huge = step._held(np.array([1e300, -1e300, np.nan]))
    assert huge.dtype == np.float32 and np.isinf(huge[:2]).all()
