"""One row never moves an integer sum by more than is claimed, and the claim is no larger than the worst row needs."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.noise import counts_sensitivity, sizes_sensitivity, sums_sensitivity
from pymc_dp.release.plan import draw_release, plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows.sums import make_cells, sum_rows
from pymc_dp.testing import without_noise
from tests.tied import tied

pytestmark = pytest.mark.usefixtures("paid")

N_ROWS = 9
GROUPS = {"none": (), "private": ("a",), "public": ("r",), "mixed": ("a", "r")}
# name: (what is unknown, bounds)
NORMALS = {
    "mean_0_100": ("mean", (0, 100)),
    "mean_5_100": ("mean", (5, 100)),
    "mean_extreme": ("mean", (-1e100, 3e99)),
    "scale_inside": ("scale", (-1, 5)),
    "scale_outside": ("scale", (5, 100)),
    "both_5_100": ("both", (5, 100)),
    "both_tiny": ("both", (1e-30, 3e-30)),
}
COUNTS = {"count_0_100": (0, 100), "count_5_100": (5, 100), "count_large": (0, 2**29)}
BOUNDS = {**{name: bounds for name, (_, bounds) in NORMALS.items()}, **COUNTS}
INDICES = (0, 1, 2, -1, 3, 2**31 - 1, -(2**31))


def build(grouping: str) -> pm.Model:
    """Every family on its own column, grouped alike, everything settable."""
    with pm.Model(coords={"three": range(3), "two": range(2), "four": range(4)}) as model:
        columns = {"a": pm.Data("a", np.arange(N_ROWS) % 3), "r": pm.Data("r", np.arange(N_ROWS) % 2)}
        index = tuple(columns[name] for name in GROUPS[grouping])
        dims = tuple({"a": "three", "r": "two"}[name] for name in GROUPS[grouping])

        def at(parameter):
            return parameter[index] if index else parameter

        def column(name, dtype):
            return pm.Data(f"{name}_held", np.zeros(N_ROWS, dtype=dtype))

        p, q = pm.Beta("p", 1, 1, dims=dims), pm.Dirichlet("q", np.ones(4), dims=(*dims, "four"))
        rate, mu, sigma = pm.Gamma("rate", 2, 1, dims=dims), pm.Normal("mu", dims=dims), pm.HalfNormal("s", dims=dims)
        pm.Bernoulli("binary", at(p), observed=column("binary", int))
        pm.Categorical("level", at(q), observed=column("level", int))
        for name in COUNTS:
            pm.Poisson(name, at(rate), observed=column(name, int))
        for name, (unknown, _) in NORMALS.items():
            parameters = {"mean": (at(mu), 2.0), "scale": (0.7, at(sigma)), "both": (at(mu), at(sigma))}[unknown]
            pm.Normal(name, *parameters, observed=column(name, float))
    return tied(model)


def corners(name: str) -> list[float]:
    """Values of one row that are known to be worst, and values that must not be worse."""
    if name in ("binary", "level"):
        return list(INDICES)
    low, high = map(float, BOUNDS[name])
    if name in COUNTS:
        return [low, high, (low + high) // 2, low + 1, high - 1, low - 1, high + 1, *INDICES]
    quarters = [low + (high - low) * part for part in (0, 0.25, 0.5, 0.75, 1)]
    return [
        *quarters,
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        0.7,
        -1e300,
        1e300,
        np.nextafter(low, -np.inf),
        np.nextafter(high, np.inf),
    ]


def released(plan, table) -> list[np.ndarray]:
    """Integer vector of each block, as it is before the noise."""
    with without_noise():
        values = draw_release(replace(plan, tables=(table,))).values[table.name]
    return [np.rint(values[:, list(block.columns)] / np.array(block.steps)).astype(object) for block in table.blocks]


def states(model, plan, table, group_choices, relation):
    """Integer vectors for every choice of the row that may differ, and without it under add_remove."""
    name = table.name
    held = model[f"{name}_held"]
    rows = np.resize([v for v in corners(name) if np.isfinite(v)], N_ROWS).astype(held.type.dtype)
    base = {"a": np.arange(N_ROWS) % 3, "r": np.arange(N_ROWS) % 2}
    last = slice(0, N_ROWS - 1)
    if relation == "add_remove":
        held.set_value(rows[last])
        for column in base:
            model[column].set_value(base[column][last].astype(np.int32))
        yield released(plan, table)
    for value, group in product(corners(name), group_choices):
        rows[-1], base["a"][-1] = value, group
        held.set_value(rows.copy())
        for column in base:
            model[column].set_value(base[column].astype(np.int32))
        yield released(plan, table)


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("grouping", GROUPS)
def test_no_row_moves_a_sum_by_more_than_claimed_and_some_row_by_as_much(grouping, relation):
    model = build(grouping)
    public = ["r"] if relation == "replace" and "r" in GROUPS[grouping] else []
    limit = {"n_max": 100} if relation == "add_remove" else {}
    plan = plan_release(
        inspect(model, dp.Domain(bounds=BOUNDS, public=public, neighbours=relation, **limit)).sums, Statistics(), 1.0
    )
    group_choices = INDICES if "a" in GROUPS[grouping] else (0,)
    for table in plan.tables:
        found = list(states(model, plan, table, group_choices, relation))
        for place, block in enumerate(table.blocks):
            vectors = np.array([state[place].ravel() for state in found])
            from_all = vectors if relation == "replace" else vectors[:1]
            worst = max(int(np.abs(vectors - start).sum(axis=1).max()) for start in from_all)
            assert worst <= block.sensitivity.l1, (table.name, block)
            assert worst >= block.sensitivity.l1 - 2, (table.name, block)


def moments(low, high, powers, *, centre=None, offset=0):
    centre = (low + high) / 2 if centre is None else centre
    half_width = max(high - centre, centre - low)
    return BoundedMoments(
        low=low, high=high, centre=centre, unit=half_width / GRID, half_width=half_width, powers=powers, offset=offset
    )


def in_data_units(statistic, relation, sizes_known):
    return sums_sensitivity(statistic, relation, sizes_known=sizes_known).l1 * statistic.unit / statistic.half_width


@pytest.mark.parametrize(
    ("levels", "relation", "sizes_known", "expected", "shifts"),
    [
        (2, "replace", True, 1, (1,)),
        (2, "replace", False, 2, (1, 1)),
        (5, "replace", True, 2, (1, 1)),
        (5, "replace", False, 2, (1, 1)),
        (2, "add_remove", False, 1, (1,)),
        (5, "add_remove", False, 1, (1,)),
    ],
)
def test_least_sensitivity_of_counts(levels, relation, sizes_known, expected, shifts):
    sensitivity = counts_sensitivity(LevelCounts(labels=tuple("01234"[:levels])), relation, sizes_known=sizes_known)
    assert (sensitivity.l1, sensitivity.shifts) == (expected, shifts)


@pytest.mark.parametrize(
    ("powers", "relation", "sizes_known", "expected"),
    [
        # In half widths; a private group with the value centred: u - l = 2, not 2 max(|l|, |u|).
        ((1,), "replace", True, 2),
        ((1,), "replace", False, 2),
        ((1,), "add_remove", False, 1),
        ((1, 2), "replace", True, 2.25),
        ((1, 2), "replace", False, 3),
        ((1, 2), "add_remove", False, 1.5),
        ((2,), "replace", True, 1),
        ((2,), "replace", False, 1),
        ((2,), "add_remove", False, 0.5),
    ],
)
@pytest.mark.parametrize("bounds", [(0.0, 100.0), (5.0, 100.0), (-0.3, 0.1)])
def test_least_sensitivity_of_moments_in_half_widths(powers, relation, sizes_known, expected, bounds):
    offset = 0 if sizes_known else GRID // 2
    statistic = moments(*bounds, powers, offset=offset if 2 in powers else 0)
    assert in_data_units(statistic, relation, sizes_known) == pytest.approx(expected, abs=2 / GRID)
    assert in_data_units(statistic, relation, sizes_known) >= expected


def test_least_sensitivity_of_sizes():
    assert [sizes_sensitivity(relation).l1 for relation in ("replace", "add_remove")] == [2, 1]


def test_exact_shifts_are_given_only_where_they_are_the_whole_truth():
    """Accountants compose (l1,) more tightly than an unknown split of l1: claiming it wrongly would understate cost."""
    one, two = moments(0.0, 1.0, (1,)), moments(0.0, 1.0, (1, 2))
    assert sums_sensitivity(one, "replace", sizes_known=True).shifts == (one.spread,)
    assert sums_sensitivity(one, "add_remove", sizes_known=False).shifts == (one.magnitude,)
    assert sums_sensitivity(one, "replace", sizes_known=False).shifts is None
    for relation, known in (("replace", True), ("replace", False), ("add_remove", False)):
        assert sums_sensitivity(two, relation, sizes_known=known).shifts is None


def test_random_rows_stay_within_the_claim(rng):
    """Rows of every size and sign against random bounds: no pair is further apart than the claim."""
    for _ in range(200):
        low, high = np.sort(rng.normal(scale=10.0 ** rng.integers(-3, 4), size=2))
        centre = rng.choice([None, float(rng.normal()), float(low), float(high)])
        powers = ((2,), (1,), (1, 2))[rng.integers(3)] if centre is None else (2,)
        statistic = moments(float(low), float(high), powers, centre=centre)
        cells = make_cells([], 1, None)
        rows = np.concatenate(
            [
                [low, high, (low + high) / 2, low + 0.75 * (high - low)],
                rng.uniform(low, high, 20),
                rng.standard_cauchy(8),
            ]
        )
        sums = np.array([sum_rows(cells, statistic, row, with_sizes=False)[0] for row in rows[:, None]])
        distances = np.abs(sums[:, None] - sums[None]).sum(axis=-1)
        assert distances.max() <= statistic.spread
        assert np.abs(sums).sum(axis=-1).max() <= statistic.magnitude


def test_one_row_of_ten_million_moves_the_sum_by_exactly_its_distance():
    """A float64 sum of this table moves by 1.0027; the integer sum of grid steps by 1 unit, neither more nor less."""
    n = 10_000_000
    values = np.resize(np.array([1.0, 3 * 2.0**-52, 0.7], dtype=np.float32), n)
    statistic, cells = moments(0.0, 1.0, (1, 2)), make_cells([], n, None)
    sums = []
    for corner in (0.0, 1.0, 0.75):
        values[n // 2] = corner
        sums.append(sum_rows(cells, statistic, values, with_sizes=False)[0])
    zero, one, worst = sums
    assert (one - zero).tolist() == [2 * GRID, 0]
    assert np.abs(worst - zero).sum() == 9 * GRID // 4
    assert zero.dtype == np.int64


def test_nothing_is_warned_about_wild_values():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308])
        sums = sum_rows(make_cells([], 5, None), moments(0.0, 1.0, (1, 2)), values, with_sizes=False)
    assert sums.tolist() == [[0, 4 * GRID]]
