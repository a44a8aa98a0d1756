"""Degrees against kilometres: what is Lipschitz in degrees is so in great-circle distance, with this constant."""

import math

import numpy as np
import pytest

import pymc_dp as dp

REGIONS = {
    "a country": ((46.0, 49.0), (9.5, 17.0)),
    "the tropics": ((-23.0, 23.0), (-60.0, 60.0)),
    "the north": ((60.0, 85.0), (-170.0, 170.0)),
    "nearly all": ((-80.0, 80.0), (-179.0, 179.0)),
    "a street": ((48.0, 48.001), (16.0, 16.001)),
}
every_region = pytest.mark.parametrize("name", REGIONS)


def extents_of(name):
    return {
        column: dp.metrics.Extent(low=low, high=high)
        for column, (low, high) in zip(("lat", "lon"), REGIONS[name], strict=True)
    }


def pairs(name, rng, count=20_000):
    """Places far apart, near each other, along edges, and along one axis."""
    one, two = {}, {}
    near = 10.0 ** rng.uniform(-6, 0, count)
    for axis, (column, (low, high)) in enumerate(zip(("lat", "lon"), REGIONS[name], strict=True)):
        first = rng.uniform(low, high, count)
        first = np.where(rng.random(count) < 0.3, rng.choice([low, high], count), first)
        second = np.clip(first + near * (high - low) * rng.uniform(-1, 1, count), low, high)
        second = np.where(rng.random(count) < 0.1, low + high - first, second)
        one[column], two[column] = first, np.where(np.arange(count) % 5 == axis, first, second)
    return one, two


@every_region
@pytest.mark.parametrize("slopes", [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.3, 5.0)])
def test_changes_in_degrees_are_bounded_by_kilometres(name, slopes, rng):
    metric = dp.metrics.Geographic("lat", "lon")
    one, two = pairs(name, rng)
    distance = metric.distance(one, two)
    change = slopes[0] * abs(one["lat"] - two["lat"]) + slopes[1] * abs(one["lon"] - two["lon"])
    told = distance > 1e-6  # nearer, the distance itself is rounding
    constant = metric.steepest(*slopes, extents_of(name))
    worst = (change[told] / distance[told]).max()
    assert worst <= constant * (1 + 1e-6)
    if name in ("a country", "a street"):  # elsewhere the bound is loose: it takes the worst of several worst cases
        assert worst >= 0.9 * constant


def test_a_degree_of_latitude_is_111_km():
    constant = dp.metrics.Geographic("lat", "lon").steepest(1.0, 0.0, extents_of("a street"))
    assert 1 / constant == pytest.approx(math.pi / 180 * dp.metrics.EARTH, rel=1e-6)
    assert round(1 / constant, 1) == 111.2


def test_where_longitudes_go_around_nothing_bounds_what_changes_with_them():
    around = {"lat": dp.metrics.Extent(low=-10.0, high=10.0), "lon": dp.metrics.Extent(low=-180.0, high=180.0)}
    metric = dp.metrics.Geographic("lat", "lon")
    assert math.isinf(metric.steepest(0.0, 1.0, around))
    assert math.isfinite(metric.steepest(1.0, 0.0, around))
    pole = {"lat": dp.metrics.Extent(low=0.0, high=90.0), "lon": dp.metrics.Extent(low=0.0, high=10.0)}
    assert math.isinf(metric.steepest(0.0, 1.0, pole))


@pytest.mark.parametrize("lat", [(-math.inf, math.inf), (0.0, 91.0), (-100.0, 10.0)])
def test_latitudes_without_bounds_are_refused(lat):
    given = {"lat": dp.metrics.Extent(low=lat[0], high=lat[1]), "lon": dp.metrics.Extent(low=0.0, high=10.0)}
    with pytest.raises(dp.errors.DomainError, match="public bounds in degrees"):
        dp.metrics.Geographic("lat", "lon").diameter(given)
    with pytest.raises(dp.errors.DomainError, match="public bounds in degrees"):
        dp.metrics.Geographic("lat", "lon").steepest(1.0, 1.0, given)
