"""Who can tell two data sets apart by posterior samples, against the best tests."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import pymc_dp as dp
from pymc_dp import theorems


def least_error(p, q):
    """Least δ such that some test is wrong with probability <= δ, whichever of two laws is the true one."""
    order = np.argsort(-(np.log(p) - np.log(q)))
    hit, false = np.append(0, np.cumsum(p[order])), np.append(0, np.cumsum(q[order]))
    # Randomised tests lie on the lines between.
    best = 1.0
    for i in range(len(order)):
        slope, rise = hit[i + 1] - hit[i], false[i + 1] - false[i]
        share = np.clip((1 - hit[i] - false[i]) / (slope + rise), 0, 1)
        best = min(best, max(1 - hit[i] - share * slope, false[i] + share * rise))
    return best


@pytest.mark.parametrize("samples", [1, 4, 25])
@pytest.mark.parametrize("distance", [0.05, 0.5, 2.0])
def test_no_test_between_posteriors_beats_the_bound(samples, distance):
    counts = np.arange(samples + 1)
    for prior, skew in itertools.product((0.5, 0.1, 0.01), (0.0, 0.5, 1.0)):
        # log p(x|0) - log p(y|0) and the same of parameter 1 lie in [-ρ, ρ]: L = 1
        up, down = distance * (1 - skew), -distance
        x, y = prior * math.exp(up), (1 - prior) * math.exp(down)
        p = x / (x + y)
        delta = least_error(*(binom.pmf(counts, samples, share) + 1e-300 for share in (p, prior)))
        if delta < 0.5:
            assert theorems.distinguishing_distance(1.0, samples=samples, delta=delta).value <= distance


def test_the_bound_is_attained_by_one_sample():
    for distance in (0.5, 2.0):
        p = 1 / (1 + math.exp(-distance))
        found = theorems.distinguishing_distance(1.0, samples=1, delta=1 - p)
        assert found.value == pytest.approx(distance)


def test_theorem_13_as_printed_fails_for_large_error_probabilities():
    """One sample tells data sets apart, wrong with probability 0.28, that are nearer than 3/4 log(1/0.28)."""
    distance = math.log(1 / 0.28 - 1)
    assert least_error(np.array([0.72, 0.28]), np.array([0.28, 0.72])) == pytest.approx(0.28)
    assert distance < 0.75 * math.log(1 / 0.28)
    with pytest.raises(dp.errors.ArgumentError, match=r"0\.27"):
        theorems.distinguishing_distance(1.0, samples=1, delta=0.28, papers=True)
