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


def test_volumes_are_kept(rng):
    noise, at, step = 3 * rng.normal(size=(4, 2)), rng.normal(size=4), 1e-6
    ends = []
    for moved in np.vstack([np.eye(4), -np.eye(4)]) * step:
        end = along(*np.split(at + moved, 2), noise)
        ends.append(np.concatenate([end.position, end.momentum]))
    jacobian = (np.array(ends[:4]) - np.array(ends[4:])).T / (2 * step)
    assert np.linalg.det(jacobian) == pytest.approx(1.0, abs=1e-7)
