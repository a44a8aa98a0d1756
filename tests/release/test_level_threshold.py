"""Which levels are released: the failure probability by exact calculation, and all outcomes of the worst neighbours."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.kernel.accounting.budget import decimal
from pymc_dp.kernel.noise import LAPLACE, tail
from pymc_dp.release.level_threshold import LevelThreshold, largest

REACH = 24
MISSED = 2e-5
"""Probability of noise beyond the reach."""
BUDGET = dp.Budget(1.0, 0.04)


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0, 1e6, 2.0 / 0.3])
@pytest.mark.parametrize("least", [1, 2, 17, 300])
def test_the_tail_is_exact_and_never_too_small(scale, least):
    mp.dps = 80
    ratio = mp.exp(-1 / mpf(scale))
    exact = ratio**least / (1 + ratio)
    found = tail(scale, least)
    error = (mpf(found.numerator) / found.denominator - exact) / exact
    assert 0 < error < mpf(10) ** -40


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (3.0, 0.3), (20.0, 1e-3), (1.0, 5e-324), (1e-3, 0.4)]
)
def test_a_level_of_one_row_is_released_with_probability_delta_at_most(neighbours, epsilon, delta):
    threshold = LevelThreshold.calibrated(dp.Budget(epsilon, delta), neighbours)
    assert tail(threshold.scale, threshold.least - 1) <= decimal(delta)
    assert threshold.least == 2 or tail(threshold.scale, threshold.least - 2) > decimal(delta)
    rows = 2 if neighbours == "replace" else 1
    assert Fraction(rows) / Fraction(threshold.scale) <= Fraction(epsilon)
    assert total_epsilon(threshold.event, delta).epsilon <= epsilon


def outcomes(threshold, counts, monkeypatch, most=10):
    """Every outcome with its probability, noise beyond a reach left out: by the code that releases."""
    ratio = math.exp(-1 / threshold.scale)
    chance = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-REACH, REACH + 1)}
    found = {}
    for noise in itertools.product(chance, repeat=len(counts)):
        monkeypatch.setattr(type(LAPLACE), "add", lambda self, sums, scale, noise=noise: sums + np.array(noise))
        out = frozenset(threshold.released(counts, most).items())
        found[out] = found.get(out, 0.0) + math.prod(chance[k] for k in noise)
    return found


def divergence(here, there, epsilon):
    """Integral of (P - e^epsilon Q)+ over the outcomes."""
    return sum(max(0.0, p - math.exp(epsilon) * there.get(out, 0.0)) for out, p in here.items())


def moved(*counts):
    return {label: count for label, count in zip("uv", counts, strict=False) if count}


PAIRS = {
    "replace": [(moved(a, b), moved(a - 1, b + 1)) for a in (1, 2, 9) for b in (0, 1, 9)],
    "add_remove": [(moved(a), moved(a - 1)) for a in (1, 2, 9)],
}


def worst(threshold, neighbours, monkeypatch):
    found = 0.0
    for one, other in PAIRS[neighbours]:
        here, there = (outcomes(threshold, counts, monkeypatch) for counts in (one, other))
        both = divergence(here, there, threshold.budget.epsilon), divergence(there, here, threshold.budget.epsilon)
        found = max(found, *both)
    return found


@pytest.mark.parametrize("neighbours", PAIRS)
def test_all_outcomes_of_neighbours_are_within_the_budget(neighbours, monkeypatch):
    threshold = LevelThreshold.calibrated(BUDGET, neighbours)
    found = worst(threshold, neighbours, monkeypatch)
    exact = float(tail(threshold.scale, threshold.least - 1))
    assert found <= BUDGET.delta + MISSED and found == pytest.approx(exact, abs=MISSED)


@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize(
    "mutate", [lambda it: replace(it, least=it.least - 1), lambda it: replace(it, scale=it.scale / 2)]
)
def test_a_lower_threshold_and_less_noise_are_seen(neighbours, mutate, monkeypatch):
    mutant = mutate(LevelThreshold.calibrated(BUDGET, neighbours))
    assert worst(mutant, neighbours, monkeypatch) > BUDGET.delta + MISSED


def test_the_largest_are_kept_by_their_noised_counts_alone():
    seen = {"b": 5, "a": 5, "c": 9, "d": 1}
    assert largest(seen, 2) == {"c": 9, "a": 5}
    assert largest(dict(reversed(seen.items())), 2) == {"c": 9, "a": 5}
    with dp.testing.without_noise():
        threshold = LevelThreshold.calibrated(dp.Budget(1.0, 1e-6), "replace")
        assert threshold.released({"x": threshold.least, "y": threshold.least - 1}, 5) == {"x": threshold.least}
        assert threshold.released({}, 5) == {}
