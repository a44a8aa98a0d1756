"""Laws of the compiled updates: linear ones exactly, from their stationary covariance; the thermostat by long runs."""

import numba
import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import solve_discrete_lyapunov

from pymc_dp.step_methods.langevin import dynamics


class Fixed:
    """Randomness that is chosen."""

    def __init__(self, value):
        self.value = value

    def standard_normal(self):
        return self.value


def moved(name, state, eta, sigma, constants, gradient, noise, unknown=0.0):
    """One step of a single parameter in plain Python; noise: that on the gradient, and the fresh one."""
    before, after = {
        "langevin": ("nothing_before", "langevin"),
        "hamiltonian": ("half_drift", "hamiltonian"),
    }[name]
    position, memory = np.array(state[:1]), np.array(state[1:])
    getattr(dynamics, before).py_func(position, memory, eta, constants)
    slope = gradient(position) + sigma * noise[0] + unknown * noise[2]
    getattr(dynamics, after).py_func(position, memory, eta, sigma, constants, slope, False, Fixed(noise[1]))
    return np.concatenate([position, memory])


def stationary(name, eta, sigma, constants, stiffness, unknown=0.0):
    """Covariance of position and velocity where the log-density is -stiffness θ² / 2."""
    size = 1 if name == "langevin" else 2

    def step(state, noise):
        return moved(name, state, eta, sigma, constants, lambda at: -stiffness * at, noise, unknown)

    carried = np.array([step(unit, (0, 0, 0)) for unit in np.eye(size)]).T
    kicks = np.array([step(np.zeros(size), unit) for unit in np.eye(3)]).T
    return solve_discrete_lyapunov(carried, kicks @ kicks.T)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("friction", [0.05, 1.0, 3.0])
def test_positions_have_temperature_1_whatever_part_of_the_noise_protects_rows(friction, share):
    """And whatever the friction: with momenta of variance η in place of η / cosh(a / 2) it would be 2.35 at a = 3."""
    eta = 1e-4
    sigma = np.sqrt(share * 4 * np.sinh(friction / 2) / eta)
    found = stationary("hamiltonian", eta, sigma, (friction,), 1.0)
    assert found[1, 1] == pytest.approx(eta / np.cosh(friction / 2), rel=2e-4)
    assert found[0, 0] == pytest.approx(1, rel=2e-4)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_normal_target_is_met_up_to_the_order_of_the_splitting(share):
    """Errors are of first order in η for Langevin, and of second order in √η with momentum."""
    for eta, worst in ((0.04, 0.025), (0.004, 0.0025)):
        plain = stationary("langevin", eta, np.sqrt(share * 2 / eta), (2.0,), 1.0)
        assert plain[0, 0] == pytest.approx(1 / (1 - eta / 2))
        sigma = np.sqrt(share * 4 * np.sinh(0.05) / eta)
        assert stationary("hamiltonian", eta, sigma, (0.1,), 1.0)[0, 0] == pytest.approx(1, rel=worst)


def test_the_papers_form_squares_the_target():
    assert stationary("langevin", 1e-3, 0.0, (1.0,), 1.0)[0, 0] == pytest.approx(0.5, rel=1e-3)


def test_noise_that_nobody_knows_heats_all_but_the_thermostat():
    """Two samplers exactly; what the thermostat makes of it is in the slow test below."""
    assert stationary("langevin", 0.05, 0.0, (2.0,), 1.0, unknown=3.0)[0, 0] == pytest.approx(1.256, abs=0.001)
    assert stationary("hamiltonian", 0.05, 0.0, (0.1,), 1.0, unknown=3.0)[0, 0] == pytest.approx(3.26, abs=0.02)


def test_too_much_noise_is_never_taken_away():
    for name, constants in (("langevin", (2.0,)), ("hamiltonian", (0.1,))):
        hot = stationary(name, 0.01, 100.0, constants, 1.0)[0, 0]
        asked = 2.0 if name == "langevin" else 4 * np.sinh(0.05)
        assert hot == pytest.approx(0.01 * 100.0**2 / asked, rel=0.01)


def test_preconditioned_steps_are_fixed_after_tuning_and_never_longer_than_asked_for():
    memory = np.array([1.0, 100.0])
    before = memory.copy()
    ends = []
    for tuning in (False, True):
        position = np.zeros(2)
        slope = np.array([1.0, 1.0])
        dynamics.rmsprop.py_func(position, memory, 0.1, 0.0, (0.0, 0.9, 0.01), slope, tuning, Fixed(0.0))
        ends.append(position)
        assert (memory == before).all() == (not tuning)
    assert ends[0][0] == pytest.approx(0.1) and ends[0][1] == pytest.approx(0.1 * 1.1 / 10.1)


@pytest.mark.parametrize(("rate", "heat", "change"), [(0.01, 4.0, 0.03), (0.01, 1e6, 0.09), (0.0, 4.0, 3e-6)])
def test_friction_follows_kinetic_energy(rate, heat, change):
    """At a rate that the step size does not enter, but in the papers' form; half before the gradient, half after."""
    known = heat / (np.cosh(0.05) if rate else 1.0)
    eta, memory = 1e-6, np.append(np.full(3, np.sqrt(known * 1e-6)), 0.1)
    dynamics.half_thermostat.py_func(np.zeros(3), memory, eta, (0.1, rate))
    assert memory[-1] - 0.1 == pytest.approx(change / 2)
    position, slope = np.zeros(3), np.full(3, (np.exp(memory[-1]) - 1) * memory[0] / eta * np.exp(-memory[-1] / 2))
    dynamics.thermostat.py_func(position, memory, eta, 1e9, (0.1, rate), slope, False, Fixed(0.0))
    assert memory[-1] - 0.1 == pytest.approx(change, rel=2e-3), "the kick made up for the friction"


# Long runs.


@numba.njit
def _run(before, after, kind, position, memory, eta, sigma, unknown, constants, rng, steps, thin, kept, sd=1.0):
    slope = np.empty(position.size)
    for step in range(steps):
        before(position, memory, eta, constants)
        for j in range(position.size):
            force = -position[j] / sd**2 if kind == 0 else 3 - np.exp(position[j])
            slope[j] = force + sigma * rng.standard_normal() + unknown * rng.standard_normal()
        after(position, memory, eta, sigma, constants, slope, False, rng)
        if step % thin == 0:
            kept[step // thin] = position


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.0, 0.001])
@pytest.mark.parametrize(("sigma", "unknown"), [(0.0, 0.0), (1.5, 0.0), (0.0, 3.0), (2.0, 3.0)])
def test_a_thermostat_takes_up_noise_of_any_size(sigma, unknown, rate, rng):
    """A normal target, and the logarithm of a Gamma(3, 1) variable, which is skewed: mean, variance, skewness."""
    d, steps, thin = 5, 1_200_000, 20
    for kind in (0, 1):
        kept, memory = np.empty((steps // thin, d)), np.append(np.zeros(d), 0.1)
        update = dynamics.half_thermostat, dynamics.thermostat
        _run(*update, kind, np.zeros(d), memory, 0.01, sigma, unknown, (0.1, rate), rng, steps, thin, kept)
        draws = kept[len(kept) // 20 :]
        mean = 0.0 if kind == 0 else special.digamma(3)
        variance = 1.0 if kind == 0 else special.polygamma(1, 3)
        assert draws.mean() == pytest.approx(mean, abs=0.02)
        assert draws.var() == pytest.approx(variance, rel=0.03)
        skewed = 0.0 if kind == 0 else special.polygamma(2, 3) / special.polygamma(1, 3) ** 1.5
        assert stats.skew(draws.ravel()) == pytest.approx(skewed, abs=0.06)


@pytest.mark.slow
def test_a_thermostat_works_whatever_the_scale_of_the_target(rng):
    """A narrow posterior, as of many rows, far from the start: published, friction learns too slowly to be of use."""
    d, steps, sd, found = 2, 200_000, 0.02, {}
    for rate in (0.001, 0.0):
        kept, memory = np.empty((steps // 10, d)), np.append(np.zeros(d), 0.1)
        update = dynamics.half_thermostat, dynamics.thermostat
        settings = (0.005 * sd**2, 0.0, 6.3 / sd, (0.1, rate), rng, steps, 10, kept, sd)
        _run(*update, 0, np.full(d, 50 * sd), memory, *settings)
        found[rate] = [part.var() / sd**2 for part in (kept[250:2000], kept[2000:])]
    assert found[0.001] == pytest.approx([1, 1], abs=0.08)
    assert found[0.0][0] > 1.3, "SGHMC has 2"
