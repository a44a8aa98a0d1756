import math

import numpy as np
import pytest
from scipy import stats

from pymc_dp.step_methods.gibbs.grid import slice_draw

LAWS = [stats.norm(3, 0.2), stats.norm(-1, 40), stats.gamma(0.7, scale=2), stats.uniform(5, 1), stats.skewnorm(6)]


@pytest.mark.few(4)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.dist.name)
def test_slices_leave_the_law_as_it_is(law, rng):
    """Started from the law itself, one update of each draw must follow it."""
    with np.errstate(divide="ignore"):
        drawn = [
            slice_draw(rng, lambda x: float(law.logpdf(x[0])), np.array([start]))[0]
            for start in law.rvs(400, random_state=rng)
        ]
    assert stats.kstest(drawn, law.cdf).pvalue > 0.001


def test_coordinates_are_updated_one_after_the_other(rng):
    point = np.zeros(2)
    found = []
    for _ in range(4000):
        point = slice_draw(rng, lambda x: -(x[0] ** 2 + x[1] ** 2 - 1.2 * x[0] * x[1]) / 2 / 0.64, point)
        found.append(point)
    correlation = np.corrcoef(np.array(found).T)[0, 1]
    assert abs(correlation - 0.6) < 0.08
    assert abs(np.std(found) - 1) < 0.1


def test_places_outside_of_the_support_are_never_returned(rng):
    for _ in range(100):
        (x,) = slice_draw(rng, lambda x: 0.0 if 0 < x[0] < 1 else math.nan, np.array([0.5]))
        assert 0 < x < 1
