import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from pymc_dp.audit import fuzz_sensitivity
from pymc_dp.audit.sensitivity import distance
from pymc_dp.errors import ArgumentError
from pymc_dp.families.statistic import GRID, BoundedMoments
from pymc_dp.rows.sums import make_cells, sum_rows
from tests.audit import pipeline
from tests.audit.pipeline import NAN

KINDS = (
    *(pipeline.bernoulli, pipeline.grouped_bernoulli, pipeline.categorical, pipeline.poisson, pipeline.grouped_poisson),
    *(pipeline.normal, pipeline.normal_mean, pipeline.normal_sd, pipeline.grouped_normal, pipeline.two_variables),
)


def clamped_sum(rows):
    return sum(min(max(x, 5), 100) for (x,) in rows)


def test_finds_the_worst_pair_and_keeps_it():
    worst = fuzz_sensitivity(clamped_sum, [(0,), (5,), (7,), (1000,)], claimed=94)
    assert not worst.passed and worst.sensitivity == 95
    assert abs(clamped_sum(worst.table) - clamped_sum(worst.neighbour)) == 95
    assert len(worst.table) == len(worst.neighbour)
    assert sum(a != b for a, b in zip(worst.table, worst.neighbour, strict=True)) == 1
    assert worst.report().startswith("claim disproved")
    assert "not a proof" in fuzz_sensitivity(clamped_sum, [(0,), (1000,)], claimed=95).report()


def test_add_remove_takes_one_row_away():
    worst = fuzz_sensitivity(clamped_sum, [(0,), (1000,)], claimed=100, relation="add_remove")
    assert worst.passed and worst.sensitivity == 100
    assert len(worst.table) == len(worst.neighbour) + 1


def test_climbs_to_corners_that_no_row_combines():
    """The corners hold each extreme value, but never both in one row; ascent combines them."""
    corners = [(k, 0, 0) for k in range(3)] + [(0, k, 0) for k in range(3)] + [(0, 0, k) for k in range(3)]
    worst = fuzz_sensitivity(lambda rows: sum(a + b + c for a, b, c in rows), corners, claimed=5, tries=10)
    assert worst.sensitivity == 6


def test_random_rows_are_tried():
    def statistic(rows):
        return sum(5 * (0.4 < x < 0.6) for (x,) in rows)

    assert fuzz_sensitivity(statistic, [(0.0,), (1.0,)], claimed=1).passed
    worst = fuzz_sensitivity(statistic, [(0.0,), (1.0,)], lambda rng, n: [(x,) for x in rng.random(n)], claimed=1)
    assert worst.sensitivity == 5


def test_numbers_that_are_none_and_new_shapes_move_infinitely_far():
    for statistic in (lambda rows: [math.nan], lambda rows: [math.inf], lambda rows: np.zeros(len(rows))):
        worst = fuzz_sensitivity(statistic, [(0,)], claimed=1e300, relation="add_remove")
        assert not worst.passed and worst.sensitivity == math.inf


def test_distance_is_exact():
    assert distance([2**62], [-(2**62)]) == 2**63
    assert distance([1e300, 1e-300], [0.0, 0.0]) == Fraction(1e300) + Fraction(1e-300)
    assert distance([True], [False]) == 1


def test_corner_rows_are_checked():
    with pytest.raises(ArgumentError, match="corner_rows"):
        fuzz_sensitivity(clamped_sum, [], claimed=1)
    with pytest.raises(ArgumentError, match="corner_rows"):
        fuzz_sensitivity(clamped_sum, [(1,), (1, 2)], claimed=1)


@pytest.mark.few(14)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_row_moves_a_release_by_more_than_its_noise_is_made_for(kind, relation):
    """Real sums of the real pipeline, integers before noise: values out of range, NaN, infinities, wrong indices."""
    line = kind(relation)
    plan = line.plan()
    blocks = [block for table in plan.tables for block in table.blocks]
    for place, block in enumerate(blocks):
        worst = fuzz_sensitivity(
            line.block_sums(plan, place),
            line.corners,
            claimed=block.sensitivity.l1,
            relation=relation,
            sizes=(1, 3),
            tries=80,
        )
        assert worst.passed, worst.report()
        # Not a vacuous pass: the claim is reached, up to the rounding that it allows for.
        assert worst.sensitivity >= block.sensitivity.l1 * (1 - 1e-6), (kind.__name__, block.sensitivity)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_row_moves_a_release_further_than_gaussian_noise_is_made_for(kind, relation):
    """Exact squares of distances between the integers before noise, over all pairs of corner rows."""
    line = kind(relation).with_gaussian_noise(1e-6)
    plan = line.plan()
    blocks = [block for table in plan.tables for block in table.blocks]
    for place, block in enumerate(blocks):
        sums_of = line.block_sums(plan, place)
        others = line.corners[:1]
        seen = [sums_of((row, *others)).ravel().tolist() for row in line.corners]
        seen += [sums_of(others).ravel().tolist()] if relation == "add_remove" else []
        pairs = combinations(seen, 2) if relation == "replace" else ((one, seen[-1]) for one in seen)
        worst = max(sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) for pair in pairs)
        assert worst <= block.sensitivity.l2_squared, (kind.__name__, block.sensitivity)
        # Not a vacuous pass: the claim is reached, up to the rounding that it allows for.
        assert worst >= block.sensitivity.l2_squared * (1 - 1e-6), (kind.__name__, block.sensitivity)
        assert block.event.l2_squared == block.sensitivity.l2_squared


@pytest.mark.parametrize("offset", [0, GRID // 2])
def test_bounds_half_way_between_grid_steps(rng, offset):
    """Known mean beyond the bounds: the nearer bound is on no grid step, and both sides must round it alike."""
    cells = make_cells([], 1, None)
    for _ in range(300):
        half_width = float(rng.integers(1, 1000)) / 7
        low = (int(rng.integers(1, GRID - 1)) + 0.5) * (half_width / GRID)
        statistic = BoundedMoments(
            low=low,
            high=half_width,
            centre=0.0,
            unit=half_width / GRID,
            half_width=half_width,
            powers=(2,),
            offset=offset,
        )
        ends = [
            sum_rows(cells, statistic, np.array([x]), with_sizes=False).item() for x in (low, half_width, -1e9, NAN)
        ]
        assert max(ends) - min(ends) <= statistic.spread
        assert max(map(abs, ends)) <= statistic.magnitude
