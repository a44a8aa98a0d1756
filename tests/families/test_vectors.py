"""Rows that are vectors, Dirichlet and normal: moments, densities, refusals, and what a release shows."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.families.vectors import (
    dirichlet_model,
    moment_function,
    normal_model,
    plug_in_gaps,
)

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
DOMAIN = dp.Domain(bounds={"y": (0.01, 0.98)})


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
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"strictly within \(0, 1\)"):
        domain = dp.Domain(bounds={} if bounds is None else {"y": bounds})
        dp.privatize(dirichlet_model(np.full((5, 2), 0.5)), epsilon=1.0, domain=domain)


NUMBERS = dp.Domain(bounds={"y": (-3, 4)})
CORRELATED = np.array([[1, 0.6, -0.3], [0.6, 1, 0.2], [-0.3, 0.2, 1]])


def rows_of(rng, count, d):
    return rng.multivariate_normal(np.zeros(d), np.eye(d) * 0.5 + 0.5, count).clip(-2.9, 3.9)


@pytest.mark.few(1)
@pytest.mark.parametrize(("d", "known"), [(1, False), (2, False), (3, False), (3, True)])
def test_plug_in_of_normal_rows_is_their_density_up_to_a_constant(d, known, rng):
    model = normal_model(rows_of(rng, 40, d), known=known)
    points = [
        {"mu": rng.normal(size=d)} | ({} if known else {"sd_log__": rng.normal(size=d) / 3, "r_interval__": 0.4 * i})
        for i in range(4)
    ]
    assert np.abs(plug_in_gaps(model, NUMBERS, points)).max() < 1e-6


POINTS = {
    "not clamped": ((0, 0.5, 1), (0.5, 0.5, 0.5), 0.015),
    "clamped": ((0, 2, -2), (1, 2, 3), 0.05),
    "on all scales": ((0, 0, 0), (20, 0.01, 3), 0.08),
    "beyond the bounds": ((5, -6, 0), (1, 2, 1), 0.08),
}


@pytest.fixture(scope="module")
def moments():
    return moment_function(normal_model(np.zeros((5, 3))), NUMBERS)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", POINTS)
def test_moments_are_those_of_clamped_normal_rows(name, moments, rng):
    """Errors in standard deviations of the statistics; means are exact, and these are 300 000 draws."""
    (mean, sd, error), (evaluate, statistic) = POINTS[name], moments
    covariance = np.outer(sd, sd) * CORRELATED
    drawn = rng.multivariate_normal(mean, covariance, 300_000).clip(-3, 4)
    t = (drawn - 0.5) / 3.5
    i, j = np.triu_indices(3)
    found = np.concatenate([drawn / 3.5, t[:, i] * t[:, j] * np.where(i == j, 2, 1)], axis=1)
    spread = found.std(axis=0) + 1e-9
    means, covariances = evaluate(np.array([mean], dtype=float), covariance[None])
    assert (np.abs(means[0] - found.mean(axis=0)) < 0.008 * spread).all()
    apart = np.abs(covariances[0] - np.cov(found.T)) / np.outer(spread, spread)
    assert apart.max() < error
    assert np.sqrt((apart**2).mean()) < error / 2
    assert statistic.labels[3] == "sum (x0^2 - 6.125)"


def test_what_has_no_sums_is_refused():
    def problem(bounds, size=2, covariance=None):
        with pm.Model() as model:
            sigma = pm.HalfNormal("sigma")
            pm.MvNormal("y", pt.zeros(size), sigma * pt.eye(size), observed=np.zeros((5, size)))
        with pytest.raises(dp.errors.UnsupportedModelError) as error:
            dp.privatize(model, epsilon=1.0, domain=dp.Domain(bounds=bounds))
        return str(error.value)

    assert "no bounds" in problem({})
    assert "or overflows" in problem({"y": (0, 1e200)})
    assert "too narrow for floats" in problem({"y": (1e9, 1e9 + 1e-3)})
    assert "unknown covariance of 7 entries" in problem({"y": (0, 1)}, 7)
