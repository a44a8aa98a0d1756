"""Quadrature from a log-density alone: means, masses and what is beyond bounds."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.gradients.density_nodes import count_of, nodes_of

CASES = {
    "wide bounds": (stats.norm(3.3, 0.001), (-10, 10), ()),
    "narrow bounds": (stats.norm(0.5, 2), (-1, 1), (-1, 1)),
    "far from the bounds": (stats.norm(900, 1), (-1, 1), ()),
    "no bounds": (stats.norm(500, 1), None, ()),
    "skewed": (stats.gamma(3, scale=2), (0, 20), (0,)),
    "long tail": (stats.lognorm(0.8), (0, 50), (0,)),
    "kink": (stats.laplace(0.71, 1), (-9, 9), ()),
    "jump": (stats.truncnorm(0.5, np.inf), (0, 9), (0.5,)),
}


def nodes(logpdf, bounds, breaks=(), *, atoms=0, valleys=0, n_rows=3):
    table = np.broadcast_to(np.array(breaks, dtype=float), (n_rows, len(breaks)))
    with np.errstate(all="ignore"):
        found = nodes_of(logpdf, bounds, table, atoms, valleys)
    assert found[0].shape == found[1].shape == (n_rows, count_of(len(breaks), atoms, valleys))
    return found


@pytest.mark.few(1, cases=4)
@pytest.mark.parametrize("name", CASES)
def test_mean_spread_and_mass_are_those_of_the_distribution(name):
    dist, bounds, breaks = CASES[name]
    values, weights, mass = nodes(dist.logpdf, bounds, breaks)
    mean = (weights * values).sum(axis=1)
    spread = np.sqrt((weights * (values - mean[:, None]) ** 2).sum(axis=1))
    np.testing.assert_allclose(mean, dist.mean(), atol=1e-3 * dist.std())
    np.testing.assert_allclose(spread, dist.std(), rtol=5e-3)
    np.testing.assert_allclose(mass, 0, atol=1e-3)
    if name == "narrow bounds":
        assert weights[0, values[0] > 1].sum() == pytest.approx(dist.sf(1), abs=1e-4)


def test_two_peaks_and_nothing_between_them():
    low, high = stats.norm(-2, 0.1), stats.norm(3, 0.5)
    values, weights, mass = nodes(lambda x: np.log(0.3 * low.pdf(x) + 0.7 * high.pdf(x)), (-10, 10), valleys=2)
    assert weights[0, values[0] < 0].sum() == pytest.approx(0.3, abs=1e-3)
    assert mass[0] == pytest.approx(0, abs=1e-3)


def test_a_value_of_positive_probability_has_it():
    def logpdf(x):
        return np.where(x == 1, np.log(0.25), np.log(0.75) + stats.norm(4, 0.5).logpdf(x))

    values, weights, _ = nodes(logpdf, (0, 10), (1.0, 0.0), atoms=1)
    assert weights[0, values[0] == 1].sum() == pytest.approx(0.25, abs=1e-4)


def test_the_mass_of_a_density_that_is_not_normalised_is_found():
    assert nodes(lambda x: 2 - x**2 / 2, (-8, 8))[2] == pytest.approx(2 + np.log(2 * np.pi) / 2, abs=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_density_that_is_no_number_changes_no_other_row(bad):
    def logpdf(x):
        found = -(x**2) / 2
        found[1] = bad
        return found

    plain, hostile = nodes(lambda x: -(x**2) / 2, (-8, 8)), nodes(logpdf, (-8, 8))
    for one, other in zip(plain, hostile, strict=True):
        np.testing.assert_array_equal(one[[0, 2]], other[[0, 2]])


def test_a_density_by_hand_that_grows_beyond_a_bound_ends_there():
    """-rate * x without x > 0: exponential from the lower bound on; one that has its peak within is as it was."""
    rate = np.array([[0.5], [3.0]])
    values, weights, mass = nodes_of(
        lambda x: np.log(rate) - rate * x, (0.0, 4.0), np.tile((0.0, 4.0), (2, 1)), 0, 0, by_hand=True
    )
    assert values[weights > 0].min() >= 0 and mass == pytest.approx(0, abs=0.02)
    assert (weights * values).sum(axis=1) == pytest.approx(1 / rate[:, 0], rel=0.02)
    peaks = [nodes_of(lambda x: -(x**2), (0.0, 4.0), np.zeros((1, 1)), 0, 0, by_hand=one) for one in (True, False)]
    assert all(np.array_equal(first, second) for first, second in zip(*peaks, strict=True))
