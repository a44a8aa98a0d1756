import math
from itertools import combinations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.audit import fuzz_sensitivity
from tests.audit import pipeline

KINDS = (
    *(pipeline.bernoulli, pipeline.grouped_bernoulli, pipeline.categorical, pipeline.poisson, pipeline.grouped_poisson),
    *(pipeline.normal, pipeline.normal_mean, pipeline.normal_sd, pipeline.grouped_normal, pipeline.two_variables),
    *(pipeline.huge_range, pipeline.tiny_range, pipeline.large_counts, pipeline.weighted, pipeline.weighted_counts),
    *(pipeline.regression, pipeline.computed, pipeline.network),
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


def test_climbs_to_corners_that_no_row_combines():
    """The corners hold each extreme value, but never both in one row; ascent combines them."""
    corners = [(k, 0, 0) for k in range(3)] + [(0, k, 0) for k in range(3)] + [(0, 0, k) for k in range(3)]
    worst = fuzz_sensitivity(lambda rows: sum(a + b + c for a, b, c in rows), corners, claimed=5, tries=10)
    assert worst.sensitivity == 6


def test_numbers_that_are_none_and_new_shapes_move_infinitely_far():
    for statistic in (lambda rows: [math.nan], lambda rows: [math.inf], lambda rows: np.zeros(len(rows))):
        worst = fuzz_sensitivity(statistic, [(0,)], claimed=1e300, relation="add_remove")
        assert not worst.passed and worst.sensitivity == math.inf


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
        assert worst.sensitivity >= block.sensitivity.l1 * line.reach, (kind.__name__, block.sensitivity)


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
        assert worst >= block.sensitivity.l2_squared * line.reach**2, (kind.__name__, block.sensitivity)
        assert block.event.l2_squared == block.sensitivity.l2_squared


def test_one_row_of_ten_million_moves_the_sum_by_exactly_its_distance():
    """A float64 sum of this table moves by 1.0027; the integer sum of grid steps by 1 unit, neither more nor less."""
    values, sums = np.resize(np.array([1.0, 3 * 2.0**-52, 0.7], dtype=np.float32), 10_000_000), []
    for corner in (0.0, 1.0):
        values[len(values) // 2] = corner
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("m"), 1.0, observed=values)
        with dp.testing.without_noise():
            private = dp.privatize(model, epsilon=1.0, domain=dp.Domain(bounds={"y": (0, 1)}), ledger=dp.Ledger(1.0))
        sums.append(dp.Release.of(private).tables["y"].ravel())
    moved = np.abs(sums[1] - sums[0])
    assert moved.sum() == 1.0
