"""Dirichlet rows: moments of clamped logarithms against draws, densities, refusals, and what a release shows."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from tests.families.vectors import WILD, dirichlet_model, moment_function, plug_in_gaps, told_of

DOMAIN = dp.Domain(bounds={"y": (0.01, 0.98)})
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


@pytest.mark.parametrize("size", [2, 3])
def test_plug_in_is_the_density_of_the_rows_up_to_a_constant(size, rng):
    rows = rng.dirichlet(np.arange(3, 3 + size), 40)
    domain = dp.Domain(bounds={"y": (rows.min() / 2, 0.999)})
    points = [{"a_log__": rng.normal(size=size)} for _ in range(4)]
    assert np.abs(plug_in_gaps(dirichlet_model(rows), domain, points)).max() < 1e-6


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("shape", "bounds"),
    [
        ((3, 2, 4), (0.02, 0.95)),
        ((0.5, 0.3, 1), (0.02, 0.95)),
        ((30, 2, 4), (0.05, 0.9)),
        ((300, 200, 400), (0.2, 0.5)),
        ((0.01, 1, 2), (0.01, 0.9)),
        ((0.3, 0.2), (0.05, 0.9)),
        ((1, 1, 1, 1, 1), (0.05, 0.6)),
        ((1, 2, 3), (1e-12, 1 - 1e-12)),
    ],
)
def test_moments_are_those_of_clamped_rows(shape, bounds, rng):
    """Errors in standard deviations of the statistics; these are 300 000 draws."""
    model = dirichlet_model(np.full((5, len(shape)), 1 / len(shape)))
    evaluate, statistic = moment_function(model, dp.Domain(bounds={"y": bounds}))
    found = np.log(rng.dirichlet(shape, 300_000).clip(*bounds)) / np.array(statistic.scales)
    means, covariances = evaluate(np.array([shape], dtype=float))
    spread = found.std(axis=0)
    assert (np.abs(means[0] - found.mean(axis=0)) < 0.01 * spread).all()
    assert (np.abs(covariances[0] - np.cov(found.T)) < 0.015 * np.outer(spread, spread)).all()


@pytest.mark.parametrize("bounds", [None, (0.0, 0.9), (0.1, 1.0), (-1.0, 0.5)])
def test_bounds_lie_strictly_within_0_and_1(bounds):
    with pytest.raises(UnsupportedModelError, match=r"strictly within \(0, 1\)"):
        domain = dp.Domain(bounds={} if bounds is None else {"y": bounds})
        dp.privatize(dirichlet_model(np.full((5, 2), 0.5)), epsilon=1.0, domain=domain)


@pytest.mark.parametrize("wild", [WILD[:3], (1.0, 1.0, 1.0)])
def test_no_row_shows_in_anything_but_its_noised_sums(wild, rng):
    """Nor does a row that is no point of the simplex."""
    rows = rng.dirichlet((3, 2, 4), 30)
    other = rows.copy()
    other[4] = wild
    one, two = (told_of(dirichlet_model, given, DOMAIN) for given in (rows, other))
    assert one[1] == two[1]
    assert (np.abs(one[0] - two[0]) <= np.log(98) + 1e-6).all()
