"""Tables that others noised: what is taken, and what is refused because values show that they were changed."""

import numpy as np
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.kernel.noise import NOISES

STATED = {"noise": "discrete gaussian", "made_by": "an office", "guarantee": "zCDP, rho = 0.02"}
LABELS = [f"A{place}" for place in range(100)]
REGION = np.array(list("NSEW"))[np.arange(100) % 4]


@pytest.fixture
def noised(rng):
    """100 small counts with noise of scale 5."""
    return rng.poisson(3, 100) + NOISES["gaussian"].simulated(rng, 5.0, (100,))


def made(values, scale=5.0, **given):
    return dp.Release.of_counts(values, scale, **{**STATED, "dims": "area", **given})


def labelled(values):
    return xr.DataArray(values, dims="area", coords={"area": LABELS, "region": ("area", REGION)}, name="count")


def test_negative_values_are_normal_and_the_record_says_who_states_what(noised):
    release = made({"count": noised}, budget=dp.Budget(0.5, 1e-6))
    assert (noised < 0).any() and np.array_equal(release.tables["count"][:, 0], noised)
    record = release.record
    assert (record.guarantee, record.arithmetic, record.neighbours) == ("stated",) * 3
    assert (release.epsilon, release.delta) == (0.5, 1e-6)
    assert record.maker["made_by"] == "an office" and record.maker["guarantee"] == "zCDP, rho = 0.02"
    assert "ε = 0.5" in repr(release)
    assert record.tables[0].approximations == ()


def test_a_coordinate_beside_a_dim_names_groups(noised):
    cells = labelled(noised)
    regions = cells.groupby("region").sum() + 1
    release = made({"count": cells, "regional": regions}, {"count": 5.0, "regional": 2.0}, dims=None)
    record = release.record.tables[1]
    assert record.cells == ("region=E", "region=N", "region=S", "region=W")
    assert [record.cells[place][-1] for place in record.plan["places"]] == REGION.tolist()


def test_sums_over_some_dims_are_margins():
    table = np.arange(24).reshape(2, 3, 4)
    release = made(
        {"count": table, "ac": table.sum(axis=1) + 1, "b": table.sum(axis=(0, 2)) - 1},
        dims={"count": ("a", "b", "c"), "ac": ("a", "c"), "b": "b"},
    )
    for record, values in zip(release.record.tables[1:], (table.sum(axis=1), table.sum(axis=(0, 2))), strict=True):
        assert np.array_equal(np.bincount(record.plan["places"], table.ravel()), values.ravel())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda x: np.maximum(x, 0), "cut off at 0"),
        (lambda x: 5 * np.rint(x / 5), "multiples of 5"),
        (lambda x: x + 0.5, "not all whole numbers"),
    ],
    ids=["cut off", "rounded", "halves"],
)
def test_changed_values_are_refused_unless_it_is_said(noised, change, match):
    with pytest.raises(dp.errors.ArgumentError, match=f"{match}.*postprocessed=True"):
        made({"count": change(noised)})
    release = made({"count": change(noised)}, postprocessed=True)
    assert "were changed after the noise" in release.record.tables[0].approximations[0]


def test_whole_numbers_are_refused_under_continuous_noise(noised, rng):
    with pytest.raises(dp.errors.ArgumentError, match="which continuous noise never leaves"):
        made({"count": noised}, noise="gaussian")
    assert made({"count": noised + rng.normal(size=100)}, noise="gaussian").record.noise == "Gaussian"


def test_raked_tables_are_refused(noised):
    table = noised.reshape(20, 5)
    dims = {"count": ("area", "age"), "by_area": "area"}
    with pytest.raises(dp.errors.ArgumentError, match="they were raked"):
        made({"count": table, "by_area": table.sum(axis=1)}, dims=dims)
    exact = {"count": 5.0, "by_area": 0.0}  # exact sums are sums of exact cells, and not of noised ones
    with pytest.raises(dp.errors.ArgumentError, match="they were raked"):
        made({"count": table, "by_area": table.sum(axis=1)}, exact, dims=dims)


def test_a_table_of_something_else_is_no_margin(noised):
    with pytest.raises(
        dp.errors.ArgumentError, match="does not hold sums of the cells of count, by far more than the noise"
    ):
        made({"count": noised, "deaths": 2000}, dims={"count": "area", "deaths": ()})
    with pytest.raises(dp.errors.ArgumentError, match="'region' is none of its dims.*release of their own"):
        made({"count": noised, "other": [1, 2]}, dims={"count": "area", "other": "region"})


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("mean", [0.0, 1.0, 40.0])
def test_tables_that_were_not_changed_are_taken(kind, scale, mean, rng):
    """A false refusal has a chance of about 1e-4 for each look at a table."""
    for _ in range(60):
        exact = rng.poisson(mean, (40, 4))
        noise = NOISES[kind].simulated
        tables = {"count": exact + noise(rng, scale, (40, 4)), "by_area": exact.sum(axis=1) + noise(rng, scale, (40,))}
        made(tables, scale, noise=f"discrete {kind}", dims={"count": ("area", "age"), "by_area": "area"})


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"made_by": "  "}, "made_by must be a text that is not empty"),
        ({"guarantee": ""}, "guarantee must be a text that is not empty"),
        ({"noise": "normal"}, "noise must be one of"),
        ({"scale": 0.0}, "scale is 0 for all of count"),
        ({"scale": -1.0}, "scale must be finite and >= 0"),
        ({"scale": [1.0, 2.0]}, "scale must be one number, or one for each cell"),
        ({"scale": {"other": 1.0}}, "scale says nothing about 'count'"),
        ({"scale": {"count": 1.0, "other": 1.0}}, "scale names 'other'"),
        ({"dims": None}, "dims must name the cells"),
        ({"dims": ("area", "age")}, "dims must name each axis"),
        ({"dims": ("area", "area")}, "dims names 'area' twice"),
        ({"budget": 1.0}, "budget must be a Budget"),
        ({"postprocessed": 1}, "postprocessed must be True or False"),
        ({"values": [1, 2]}, "values must map"),
        ({"values": {}}, "values must map"),
        ({"values": {"count": ["a"]}}, "must be an array"),
        ({"values": {"count": [1.0, np.nan]}}, "finite numbers"),
        ({"values": {"count": [1, 2], "total": 3}}, "dims must map each"),
        ({"values": {"count": [1, 2], "by": [1, 2, 3]}, "dims": {"count": "a", "by": "a"}}, "must have the cells of"),
    ],
)
def test_wrong_arguments_are_named(given, match):
    right = {"values": {"count": [1, -2, 7]}, "scale": 5.0, "dims": "area", **STATED}
    with pytest.raises(dp.errors.ArgumentError, match=match):
        dp.Release.of_counts(**{**right, **given})
