"""Laws of the compiled updates: linear ones exactly, from their stationary covariance; the thermostat by long runs."""

import math

import numba
import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import solve_discrete_lyapunov

from pymc_dp.step_methods.langevin import dynamics, kernels
from pymc_dp.step_methods.langevin.information import learn, nothing_known, views
from pymc_dp.step_methods.row_functions.limits import clip_to

from .test_products import Units


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
        dynamics.scoring.py_func(position, memory, eta, sigma, constants, slope, False, Units(place))
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


def test_steps_of_the_same_length_without_the_information_are_hot():
    """Langevin steps η = 2 / σ² have noise 2 η as they should, and still twice the variance where η bends = 1."""
    sigma = math.sqrt(2.0)
    exact = scored(np.eye(2), sigma, 1e9)
    without = scored(np.eye(2), sigma, 1e9, known=np.zeros((2, 2)))
    np.testing.assert_allclose(exact, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(without, 2 * np.eye(2), rtol=1e-9)


@pytest.mark.parametrize("bend", [0.5, 1.0, 1.9, 2.5])
def test_wrong_information_shows_less_the_more_noise_there_is(bend):
    """Q / (Q + A - a): the noise is known even where the bends are not."""
    for sigma in (1.3, 10.0):
        found = scored(np.eye(1) * bend, sigma, 1e9, known=np.eye(1))[0, 0]
        assert found == pytest.approx(sigma**2 / (sigma**2 + 1 - bend) / bend)


def test_mutant_that_forgets_nine_tenths_of_the_noise_is_hot():
    sigma = 3.0
    hot = scored(BENT, sigma, 1e9, known=BENT - 0.9 * sigma**2 * np.eye(3))
    assert np.trace(hot) > 2 * np.trace(np.linalg.inv(BENT))


def test_the_papers_form_has_a_quarter_of_the_variance_where_its_ridge_is_most_of_it():
    """Its noise is C² / η beside a ridge of 4 C² / η."""
    for eta in (1e-4, 1e-6):
        found = scored(np.eye(1), 1 / math.sqrt(eta), eta, constants=(1.0, 4.0))[0, 0]
        assert found == pytest.approx(0.25, rel=1e-3)


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


@pytest.mark.slow
def test_small_steps_meet_a_skewed_posterior(rng):
    """Six waiting times with a Gamma prior of their rate, whose logarithm is sampled."""

    @numba.njit
    def of_row(position, y):
        return 1 - np.exp(position[0]) * y, np.ones((y.size, 1))

    @numba.njit
    def of_prior(position):
        return (2 - np.exp(position),)

    y = np.array([0.2, 0.9, 1.7, 0.4, 2.3, 0.1])
    n, thin, eta = y.size, 50, 0.004
    clip = clip_to(60.0, size=1, n_rows=3, products=True)
    plan = kernels.Plan(
        scale=2.0, sigma=1.0, products=0.01, centred=False, constants=(4.0, 0.0), clip=clip, poisson=False,
        batch_size=3, waiting=0.0, chunk=32,
    )  # fmt: skip
    table, shared, starts = kernels.make_table((y,), plan), kernels.make_shared(2), np.zeros(1, dtype=np.int64)
    memory, position, draws = nothing_known(np.eye(1)), np.zeros(1), np.empty(60_000)
    known, sizes = views(memory, 1), np.full(thin, eta)
    functions = of_row, of_prior, dynamics.nothing_before, dynamics.scoring
    for i in range(draws.size):
        kernels.walk(*functions, position, memory, sizes, False, rng, plan, starts, table, shared)
        if i < 1000:
            learn(known, weight=n * (1 + 6 / 3 * 0.5 * 6 / 5), ahead=2.0, each_positive=False)
        draws[i] = position[0]
    import arviz as az

    rate = np.exp(draws[200:])
    shape, beta = 2 + n, 1 + y.sum()
    ess = float(az.ess(rate[None]))
    assert ess > 2000
    assert abs(rate.mean() - shape / beta) < 5 * rate.std() / math.sqrt(ess)
    assert stats.skew(rate) == pytest.approx(2 / math.sqrt(shape), rel=0.15)
    assert stats.kstest(rate[::30], stats.gamma(shape, scale=1 / beta).cdf).pvalue > 0.001
