"""The compiled pass over the rows against plain Python: clamping, exact integers, any dtype."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Column
from pymc_dp.kernel.shapes import GRID
from pymc_dp.kernel.tallies import CHUNK
from pymc_dp.rows.sums import make_cells, sum_rows

pytestmark = pytest.mark.usefixtures("paid")

LEVELS = LevelCounts(labels=("0", "1", "2"))


def column(rows, levels, *, outside="first", public=False, name="c"):
    leaf = pytensor.shared(np.asarray(rows)) if isinstance(rows, np.ndarray) else pt.constant(rows)
    return Column(
        name=name, leaf=leaf, stand_ins=(leaf,), levels=np.asarray(levels), outside=outside, public=public, dim=None
    )


def moments(low, high, powers=(1, 2), centre=None, offset=0):
    centre = (low + high) / 2 if centre is None else centre
    half_width = max(high - centre, centre - low)
    unit = half_width / GRID
    return BoundedMoments(
        low=low, high=high, centre=centre, unit=unit, half_width=half_width, powers=powers, offset=offset
    )


def expected_moments(statistic, values):
    """Sums of one cell in Python integers."""
    first = second = 0
    for value in values:
        x = (statistic.low + statistic.high) / 2 if np.isnan(value) else min(max(value, statistic.low), statistic.high)
        k = round((x - statistic.centre) * (1 / statistic.unit))
        first += k
        second += round(k * k / GRID) - statistic.offset
    return [len(values), *[(first, second)[power - 1] for power in statistic.powers]]


def test_index_codes_outside_go_to_level_0_and_bounded_codes_to_the_nearest():
    int64 = np.iinfo(np.int64)
    rows = np.array([int64.min, -1, 0, 1, 2, 3, int64.max])
    y = np.zeros(7, dtype=np.int64)
    first, nearest = (
        make_cells([column(rows, [0, 1, 2], outside=outside)], 7, None) for outside in ("first", "nearest")
    )
    assert sum_rows(first, LEVELS, y, with_sizes=False)[:, 0].tolist() == [5, 1, 1]
    assert sum_rows(nearest, LEVELS, y, with_sizes=False)[:, 0].tolist() == [3, 1, 3]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "statistic",
    [
        moments(0.0, 100.0),
        moments(5.0, 100.0, offset=GRID // 2),
        moments(-1.0, 2.0, (2,), centre=0.3),
        moments(0.0, 7.0, (1,)),
    ],
)
def test_sums_are_exact_integers(statistic, grouped, rng):
    values = np.concatenate([rng.normal(3, 60, 500), [np.nan, np.inf, -np.inf, 1e308, statistic.low, statistic.high]])
    groups = rng.integers(0, 3, len(values))
    cells = make_cells([column(groups, [0, 1, 2])] if grouped else [], len(values), None)
    result = sum_rows(cells, statistic, values, with_sizes=True)
    parts = [values[groups == level] for level in range(3)] if grouped else [values]
    assert result.dtype == np.int64
    assert result.tolist() == [expected_moments(statistic, part) for part in parts]
    assert sum_rows(cells, statistic, values, with_sizes=False).tolist() == result[:, 1:].tolist()


def test_chunks_and_threads_change_nothing(rng):
    """More rows than a chunk and than one thread takes; order of addition must not matter."""
    n = 600_000 + CHUNK // 3
    values, groups = rng.integers(-1, 4, n), rng.integers(0, 2, n).astype(np.int8)
    statistic, cells = moments(0.0, 3.0), make_cells([column(groups, [0, 1])], n, None)
    counted = sum_rows(cells, LEVELS, values, with_sizes=False)
    clean = np.where((values < 0) | (values > 2), 0, values)
    assert counted.tolist() == [np.bincount(clean[groups == g], minlength=3).tolist() for g in (0, 1)]
    k = np.rint((np.clip(values, 0, 3) - 1.5) / statistic.unit).astype(np.int64)
    sums = sum_rows(cells, statistic, values.astype(np.float32), with_sizes=True)
    assert sums[:, 0].tolist() == np.bincount(groups).tolist()
    assert sums[:, 1].tolist() == [int(k[groups == g].sum()) for g in (0, 1)]
    whole = sum_rows(make_cells([], n, None), statistic, values, with_sizes=True)
    assert whole.tolist() == sums.sum(axis=0, keepdims=True).tolist()


def test_reach_is_that_of_the_compiled_pass(rng):
    """A bound that lies half a step off the grid must round alike where it is claimed and where it is summed."""
    cells = make_cells([], 1, None)
    # With this half width, low / unit and low * (1 / unit) round to neighbouring integers.
    half_step = moments(-0.5862510819564352, 1.8691333659165825, (1,), centre=0.0)
    others = [np.sort(rng.normal(size=3)) for _ in range(100)]
    for statistic in [half_step, *(moments(float(a), float(c), (1,), centre=float(b)) for a, b, c in others)]:
        ends = [np.array([end]) for end in (statistic.low, statistic.high)]
        sums = [int(sum_rows(cells, statistic, end, with_sizes=False)[0, 0]) for end in ends]
        assert tuple(sums) == statistic.reach
