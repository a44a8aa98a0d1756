"""The range of one step is never below what a row can do, found by going through the rows, and hardly above it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Column
from pymc_dp.proofs.closed_form_ranges import RowTable, StepRange, row_groups
from pymc_dp.rows.sums import make_cells


def moments(low=-1.0, high=3.0, powers=(1, 2), centre=None):
    centre = (low + high) / 2 if centre is None else centre
    half_width = max(high - centre, centre - low)
    unit = half_width / GRID if 2 in powers else 1.0
    return BoundedMoments(low=low, high=high, centre=centre, unit=unit, half_width=half_width, powers=powers)


STATISTICS = {
    "bernoulli": LevelCounts(labels=("0", "1")),
    "categorical": LevelCounts(labels=("a", "b", "c", "d")),
    "poisson": moments(2, 9, (1,), centre=0.0),
    "normal": moments(),
    "normal_off_centre": moments(5.0, 100.0, (2,), centre=1.0),
}


def rows(statistic, slope=0.0, bend=0.0):
    """What a row may add to the coefficients of its cell: all of it, or a fine grid, the vertex and roundings."""
    if isinstance(statistic, LevelCounts):
        return np.eye(statistic.n_levels)
    low, high = statistic.reach
    near = [] if bend == 0 else [-slope / (2 * bend) / statistic.unit]
    steps = np.unique(np.rint(np.clip([*np.linspace(low, high, 60), *near], low, high)))
    t = steps * statistic.unit
    squares = np.rint(steps**2 / GRID) * statistic.half_width**2 / GRID if 2 in statistic.powers else 0 * t
    return np.column_stack([np.ones(len(t)), t, squares])


def reaches(table, change):
    """Pairs (group, least and largest g) of one table, row by row."""
    per_cell = change.reshape(len(table.groups), table.width)
    found = {}
    for group, coefficients in zip(table.groups, per_cell, strict=True):
        g = rows(table.statistic, *coefficients[1:3]) @ coefficients
        least, most = found.get(group, (np.inf, -np.inf))
        found[group] = min(least, g.min()), max(most, g.max())
    return found


def brute_force(tables, change, neighbours):
    total, least, most, begin = 0.0, 0.0, 0.0, 0
    for table in tables:
        found = reaches(table, change[begin : begin + table.size])
        begin += table.size
        total += max(high - low for low, high in found.values())
        least += min(low for low, _ in found.values())
        most += max(high for _, high in found.values())
    return total if neighbours == "replace" else max(most, -least)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    kinds=some.lists(some.sampled_from(sorted(STATISTICS)), min_size=1, max_size=3),
    grouping=some.sampled_from(["private", "public", "mixed"]),
    neighbours=some.sampled_from(["replace", "add_remove"]),
    seed=some.integers(0, 2**32 - 1),
    size=some.sampled_from([1e-6, 1e-2, 1.0, 50.0]),
)
def test_closed_form_is_what_rows_can_do(kinds, grouping, neighbours, seed, size):
    rng = np.random.default_rng(seed)
    groups = {"private": np.zeros(4, int), "public": np.arange(4), "mixed": np.array([0, 1, 0, 1])}[grouping]
    if neighbours == "add_remove":
        groups = np.zeros(4, int)
    tables = [RowTable(statistic=STATISTICS[kind], groups=groups) for kind in kinds]
    change = size * rng.normal(size=sum(table.size for table in tables)) * rng.integers(0, 2)
    change += size * rng.normal()  # all of one sign, too
    for table, begin in zip(tables, np.cumsum([0, *(table.size for table in tables)]), strict=False):
        if isinstance(table.statistic, BoundedMoments) and 2 not in table.statistic.powers:
            change[begin + 2 : begin + table.size : 3] = 0.0
    claimed, true = StepRange(tables, neighbours)(change), brute_force(tables, change, neighbours)
    assert true <= claimed
    scale = sum(np.abs(table.statistic.reach).max() * table.statistic.unit if hasattr(table.statistic, "reach") else 1
                for table in tables)  # fmt: skip
    assert claimed <= true * (1 + 1e-9) + 1e-8 * size * (1 + scale) ** 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["bernoulli", "poisson", "normal"])
def test_what_nothing_bounds_is_infinite(kind, bad):
    table = RowTable(statistic=STATISTICS[kind], groups=np.zeros(2, int))
    change = np.zeros(table.size)
    change[-table.width] = bad
    assert StepRange([table], "replace")(change) == np.inf


def test_range_is_the_same_both_ways(rng):
    tables = [RowTable(statistic=statistic, groups=np.array([0, 0, 1])) for statistic in STATISTICS.values()]
    for neighbours in ("replace", "add_remove"):
        step = StepRange(tables, neighbours)
        change = rng.normal(size=step.size)
        assert step(change) == step(-change)


def test_clamp_bounds_the_range():
    table = RowTable(statistic=STATISTICS["bernoulli"], groups=np.zeros(1, int))
    change = np.array([-0.3, 0.5])
    assert StepRange([table], "replace")(change, 0.1) == 0.2
    assert StepRange([table], "add_remove")(change, 0.1) == 0.1
    assert StepRange([table], "replace")(change, 5.0) == pytest.approx(0.8)


def test_a_row_stays_in_its_public_group():
    """g is 1 in one public group and -1 in the other, for every row: no row can move anything."""
    table = RowTable(statistic=STATISTICS["bernoulli"], groups=np.array([0, 1]))
    change = np.array([1.0, 1.0, -1.0, -1.0])
    assert StepRange([table], "replace")(change) < 1e-12
    private = replace(table, groups=np.zeros(2, int))
    assert StepRange([private], "replace")(change) == pytest.approx(2.0)
    assert StepRange([private], "add_remove")(change) == pytest.approx(1.0)


def test_groups_are_the_public_levels():
    def column(name, n_levels, public):
        import pytensor

        leaf = pytensor.shared(np.arange(6) % n_levels)
        return Column(name=name, leaf=leaf, stand_ins=(leaf,), levels=np.arange(n_levels), outside="first",
                      public=public, dim=None)  # fmt: skip

    a, b, c = column("a", 2, True), column("b", 3, False), column("c", 3, True)
    cells = make_cells([a, b, c], 6, None)
    groups = row_groups(cells)
    public = list(zip(cells.levels[0].tolist(), cells.levels[2].tolist(), strict=True))
    assert all((groups[i] == groups[j]) == (public[i] == public[j]) for i in range(len(groups)) for j in range(i))
    assert row_groups(make_cells([b], 6, None)).tolist() == [0, 0, 0]
    assert row_groups(make_cells([], 6, None)).tolist() == [0]
