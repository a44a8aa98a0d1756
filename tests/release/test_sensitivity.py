"""One row never moves an integer sum by more than is claimed, and the claim is no larger than the worst row needs."""

import numpy as np
import pytest

from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.release.noise import counts_sensitivity, sums_sensitivity
from pymc_dp.rows.sums import make_cells, sum_rows

pytestmark = pytest.mark.usefixtures("paid")


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
