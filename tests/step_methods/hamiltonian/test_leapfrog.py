"""A trajectory keeps volumes and goes back the way it came, whatever noise its slopes have."""

import numpy as np
import pytest

from pymc_dp.step_methods.hamiltonian.gradient import Phase, leapfrog

UNITS = np.array([0.5, 2.0])


def slopes(position):
    """Of a density that is no normal one."""
    return UNITS * np.array([-(position[0] ** 3) - position[1], np.sin(position[1]) - position[0]])


def along(position, momentum, noise):
    """A trajectory whose slopes have the given noise, in order."""
    held = iter(noise)
    start = Phase(position, momentum, slopes(position) + next(held))
    return leapfrog(start, lambda at: slopes(at) + next(held), step_size=0.3, n_leapfrog=len(noise) - 1, units=UNITS)


def test_the_same_noise_in_reversed_order_leads_back(rng):
    for length in (1, 2, 5):
        position, momentum = rng.normal(size=(2, 2))
        noise = 3 * rng.normal(size=(length + 1, 2))
        end = along(position, momentum, noise)
        back = along(end.position, -end.momentum, noise[::-1])
        np.testing.assert_allclose(back.position, position, atol=1e-12)
        np.testing.assert_allclose(-back.momentum, momentum, atol=1e-12)
        np.testing.assert_allclose(back.slope, slopes(position) + noise[0], atol=1e-12)


def test_without_reversal_it_does_not(rng):
    noise = 3 * rng.normal(size=(3, 2))
    position, momentum = rng.normal(size=(2, 2))
    end = along(position, momentum, noise)
    assert np.abs(along(end.position, -end.momentum, noise).position - position).max() > 0.1


def test_volumes_are_kept(rng):
    noise, at, step = 3 * rng.normal(size=(4, 2)), rng.normal(size=4), 1e-6
    ends = []
    for moved in np.vstack([np.eye(4), -np.eye(4)]) * step:
        end = along(*np.split(at + moved, 2), noise)
        ends.append(np.concatenate([end.position, end.momentum]))
    jacobian = (np.array(ends[:4]) - np.array(ends[4:])).T / (2 * step)
    assert np.linalg.det(jacobian) == pytest.approx(1.0, abs=1e-7)


def test_without_noise_the_energy_is_nearly_kept(rng):
    def energy(position, momentum):
        q, r = position
        return q**4 / 4 + q * r + np.cos(r) + momentum @ momentum / 2

    position, momentum = rng.normal(size=(2, 2))
    errors = []
    for length in (8, 16):
        start = Phase(position, momentum, slopes(position))
        end = leapfrog(start, slopes, step_size=0.4 / length, n_leapfrog=length, units=UNITS)
        errors.append(abs(energy(end.position, end.momentum) - energy(position, momentum)))
    assert errors[0] < 0.01 and errors[1] < 0.3 * errors[0]


def test_what_leaves_the_numbers_ends_and_slopes_are_asked_for_once_per_step():
    seen = []

    def slope(at):
        seen.append(at)
        return np.array([np.nan, 0.0]) if len(seen) == 2 else slopes(at)

    start = Phase(np.zeros(2), np.ones(2), np.zeros(2))
    assert leapfrog(start, slope, step_size=0.1, n_leapfrog=5, units=UNITS) is None
    assert len(seen) == 2
    far = Phase(np.full(2, 1e308), np.full(2, 1e308), np.zeros(2))
    with np.errstate(all="ignore"):
        assert leapfrog(far, slope, step_size=1e3, n_leapfrog=1, units=UNITS) is None
    assert len(seen) == 2
    leapfrog(start, slope, step_size=0.1, n_leapfrog=4, units=UNITS)
    assert len(seen) == 6
