"""Every rule of the table against its function with many digits, on boxes and points around what is special of it."""

import math

import mpmath as mp
import numpy as np
import pytest

from pymc_dp.intervals import rules
from pymc_dp.intervals.rules import INFINITE, NAN, RULES, Interval
from tests.intervals.references import ATOMS, REFERENCES

INF = math.inf

CASES = {op.__name__: (RULES.get(op), reference) for op, reference in REFERENCES.items()}
CASES |= {name: (getattr(rules, name), reference) for name, reference in ATOMS.items()}


def drawn_end(pool, rng):
    value = float(rng.choice(pool))
    return value * (1 + rng.uniform(-0.5, 0.5)) if rng.uniform() < 0.3 else value


def drawn_boxes(reference, rng):
    """Boxes with ends from the pools or near them, a third of them points, as two arrays per argument."""
    sides = []
    for pool in reference.pools:
        whole = set(pool) <= {0, 1}
        first = [float(rng.choice(pool)) if whole else drawn_end(pool, rng) for _ in range(reference.boxes)]
        second = [float(rng.choice(pool)) if whole else drawn_end(pool, rng) for _ in range(reference.boxes)]
        same = rng.uniform(size=reference.boxes) < 0.33
        low, high = np.minimum(first, second), np.maximum(first, np.where(same, first, second))
        low = np.where(same, first, low)
        # A box of real numbers holds at least one.
        low = np.where(low == INF, 1e308, low)
        sides.append((low, np.where(high == -INF, -1e308, high)))
    return sides


def drawn_point(low, high, pool, rng):
    """A real number between two ends: an end, something special, or anything."""
    low, high = max(low, -1.7e308), min(high, 1.7e308)
    inside = [value for value in pool if low <= value <= high]
    kind = rng.integers(4)
    if kind == 0 and inside:
        return float(rng.choice(inside))
    if kind == 1:
        return low if rng.uniform() < 0.5 else high
    if kind == 2 and low < 0 < high:
        return float(np.clip(rng.normal(), low, high))
    share = rng.uniform()
    return float(np.clip(low * (1 - share) + high * share, low, high))


def drawn_points(sides, pools, rng):
    whole = [set(pool) <= {0, 1} for pool in pools]
    points = [drawn_point(*side, pool, rng) for side, pool in zip(sides, pools, strict=True)]
    return [mp.mpf(round(point)) if flat else mp.mpf(point) for point, flat in zip(points, whole, strict=True)]


def assert_holds(interval, index, value, where):
    low, high, flags = interval.low[index], interval.high[index], interval.flags[index]
    if mp.isnan(value):
        assert flags & NAN, f"NaN at {where}, but [{low}, {high}] has flags {flags}"
        return
    assert mp.mpf(low) <= value <= mp.mpf(high), f"{mp.nstr(value, 25)} at {where} is not in [{low}, {high}]"
    if mp.isinf(value):
        assert flags & (INFINITE | NAN), f"{value} at {where} is not flagged"


def test_every_rule_has_a_reference():
    assert set(RULES) == set(REFERENCES)


@pytest.mark.few(13)
@pytest.mark.parametrize("name", CASES)
def test_values_hold_the_function_at_every_point_of_the_box(name, rng):
    rule, reference = CASES[name]
    mp.mp.dps = reference.digits
    sides = drawn_boxes(reference, rng)
    inputs = tuple(Interval.of(low, high) for low, high in sides)
    output = rule.value(*inputs)
    assert output.low.shape == output.high.shape == output.flags.shape == (reference.boxes,)
    assert output.low.dtype == output.high.dtype == np.float64
    assert output.flags.dtype == np.uint8
    assert np.all(output.low <= output.high)
    for index in range(reference.boxes):
        box = [(low[index], high[index]) for low, high in sides]
        for _ in range(4):
            point = drawn_points(box, reference.pools, rng)
            assert_holds(output, index, reference.function(*point), [mp.nstr(x, 20) for x in point])


def product(slopes, step):
    """Ends of an interval times a number, where 0 times infinity is 0."""
    if step == 0:
        return mp.mpf(0), mp.mpf(0)
    ends = [mp.mpf(end) * step if end else mp.mpf(0) for end in slopes]
    return min(ends), max(ends)


@pytest.mark.few(10)
@pytest.mark.parametrize("name", CASES)
def test_partials_bound_every_difference_over_the_box(name, rng):
    rule, reference = CASES[name]
    mp.mp.dps = reference.digits
    sides = drawn_boxes(reference, rng)
    inputs = tuple(Interval.of(low, high) for low, high in sides)
    output = rule.value(*inputs)
    partials = rule.partials(inputs, output)
    assert len(partials) == len(inputs)
    assert all(np.shape(part) == (reference.boxes,) for p in partials for part in (p.low, p.high, p.flags))
    known = ~np.any([partial.flags & NAN != 0 for partial in partials], axis=0)
    assert not np.any([(partial.low > partial.high)[known] for partial in partials])
    checked = 0
    for index in np.flatnonzero(known):
        box = [(low[index], high[index]) for low, high in sides]
        for _ in range(3):
            first, second = (drawn_points(box, reference.pools, rng) for _ in range(2))
            values = [reference.function(*point) for point in (first, second)]
            if not all(map(mp.isfinite, values)):
                continue
            bounds = [
                product((partial.low[index], partial.high[index]), x - y)
                for partial, x, y in zip(partials, first, second, strict=True)
            ]
            least, most = (mp.fsum(bound[side] for bound in bounds) for side in (0, 1))
            room = mp.mpf(10) ** (10 - reference.digits) * (abs(values[0]) + abs(values[1]))
            assert least - room <= values[0] - values[1] <= most + room, (box, first, second, bounds)
            checked += 1
    assert checked > reference.boxes // 8


def test_no_rule_warns_at_extremes(recwarn):
    ends = np.array([-INF, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, INF])
    low, high = (grid.ravel() for grid in np.meshgrid(ends, ends))
    keep = low <= high
    x = Interval.of(low[keep], high[keep], np.where(np.isinf(low) | np.isinf(high), INFINITE, 0)[keep])
    for name, (rule, reference) in CASES.items():
        inputs = (x,) * len(reference.pools)
        output = rule.value(*inputs)
        assert not np.isnan(output.low).any() and not np.isnan(output.high).any(), name
        for partial in rule.partials(inputs, output):
            assert not np.isnan(partial.low).any() and not np.isnan(partial.high).any(), name
    assert not recwarn.list
