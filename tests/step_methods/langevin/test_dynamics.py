"""Laws of the compiled updates: linear ones exactly, from their stationary covariance; the thermostat by long runs."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from pymc_dp.samplers.sgfs import Scoring, nothing_known, scoring, views
from pymc_dp.samplers.sghmc import Hamiltonian
from pymc_dp.samplers.sgld import Langevin
from pymc_dp.samplers.sgnht import Thermostat


class Units:
    """Randomness that is one unit vector: shows what noise is made of."""

    def __init__(self, place):
        self.place, self.drawn = place, 0

    def standard_normal(self):
        self.drawn += 1
        return float(self.drawn - 1 == self.place)


class Fixed:
    """Randomness that is chosen."""

    def __init__(self, value):
        self.value = value

    def standard_normal(self):
        return self.value


def moved(name, state, eta, sigma, constants, gradient, noise, unknown=0.0):
    """One step of a single parameter in plain Python; noise: that on the gradient, and the fresh one."""
    followed = Hamiltonian(friction=1.0) if name == "hamiltonian" else Langevin(papers=False, preconditioned=False)
    before, after = followed.update
    position, memory = np.array(state[:1]), np.array(state[1:])
    before.py_func(position, memory, eta, constants)
    slope = gradient(position) + sigma * noise[0] + unknown * noise[2]
    after.py_func(position, memory, eta, sigma, constants, slope, False, Fixed(noise[1]))
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


def test_too_much_noise_is_never_taken_away():
    for name, constants in (("langevin", (2.0,)), ("hamiltonian", (0.1,))):
        hot = stationary(name, 0.01, 100.0, constants, 1.0)[0, 0]
        asked = 2.0 if name == "langevin" else 4 * np.sinh(0.05)
        assert hot == pytest.approx(0.01 * 100.0**2 / asked, rel=0.01)


# Fisher scoring: linear as well.


def scored(stiffness, sigma, eta, batch_noise=0.0, known=None, constants=(4.0, 0.0)):
    """Covariance of θ where the log-density is -θᵀ stiffness θ / 2; `known` is what the chain believes of it.

    Batches add noise of covariance batch_noise * stiffness, which G knows.
    """
    size = len(stiffness)
    memory = nothing_known(np.zeros((size, size)))
    learnt = views(memory, size)
    learnt.bends[:], learnt.axes[:] = np.linalg.eigh((1 + batch_noise) * (stiffness if known is None else known))
    root = (
        np.linalg.cholesky(batch_noise * stiffness + 1e-300 * np.eye(size)) if batch_noise else np.zeros((size, size))
    )

    def moved(position, slope, place):
        position = position.copy()
        slope = np.append(slope, np.zeros(size**2))
        scoring.py_func(position, memory, eta, sigma, constants, slope, False, Units(place))
        return position

    still, units = np.zeros(size), np.eye(size)
    carried = np.transpose([moved(unit, -stiffness @ unit, -1) for unit in units])
    kicks = [moved(still, sigma * unit, -1) for unit in units]
    kicks += [moved(still, column, -1) for column in root.T]
    kicks += [moved(still, np.zeros(size), place) for place in range(size)]
    return solve_discrete_lyapunov(carried, np.transpose(kicks) @ kicks)


BENT = np.array([[5.0, 2.0, 0.3], [2.0, 4.0, -1.0], [0.3, -1.0, 0.8]])


@pytest.mark.parametrize("sigma", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("batch_noise", [0.0, 9.0])
@pytest.mark.parametrize("eta", [1e9, 0.1])
def test_a_normal_target_is_met_exactly_at_any_noise(sigma, batch_noise, eta):
    """Variances and covariances, whatever part of the noise protects rows, is injected, or comes from batches."""
    np.testing.assert_allclose(scored(BENT, sigma, eta, batch_noise), np.linalg.inv(BENT), rtol=1e-9, atol=1e-12)


def test_a_thermostat_keeps_positions_and_momenta_at_temperature_1_under_noise_that_it_does_not_know():
    """A long run, in plain Python: noise of twice the variance that its friction asks for."""
    rng, eta = np.random.default_rng(3), 0.01
    followed = Thermostat(friction=0.3, papers=False)
    before, after = followed.update
    sigma = np.sqrt(2 * followed.variance(eta)) / eta
    position, memory, seen = np.zeros(4), followed.remembered(4, eta, 0.0), []
    for _ in range(40_000):
        before(position, memory, eta, followed.constants)
        slope = -position + sigma * rng.normal(size=4)
        after(position, memory, eta, sigma, followed.constants, slope, False, rng)
        seen.append([(position**2).mean(), (memory[:-1] ** 2).mean() / eta])
    assert np.abs(np.mean(seen[2000:], axis=0) - [1.0, 1.0]).max() < 0.15
    assert memory[-1] > 0.45, "it found more friction"


def test_noise_that_is_asked_for_is_proportional_to_the_step_size():
    every = [Langevin(papers=False, preconditioned=False), Hamiltonian(friction=0.2), Scoring(asked=4.0, papers=False)]
    for followed in [*every, Thermostat(friction=0.2, papers=True)]:
        assert followed.variance(0.5) == pytest.approx(5 * followed.variance(0.1))
    assert Langevin(papers=True, preconditioned=True).variance(1.0) == 1.0
