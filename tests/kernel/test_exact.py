"""Draws from exact sums: the range that is charged is the largest over a box of what neighbours differ by."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import OneParameter, Probabilities
from tests.kernel.pairs import PAIRS, RELATIONS, Lookup, kernel, nasty, pair, table

FAMILIES = [
    OneParameter(kind="beta", low=0.05, high=0.7, prior=(1.0, 2.0), trials=3),
    OneParameter(kind="beta", low=0.2, high=0.9, prior=(1.0, 2.0), first=(0, 2), second=(1, 4), units=(0.5, 2.0)),
    OneParameter(kind="gamma", low=0.3, high=5.0, prior=(2.0, 1.0), first=(0, 7), second=(1, 1)),
    OneParameter(kind="gamma", low=0.3, high=5.0, prior=(2.0, 1.0), first=(1, 1), second=(0, 40), units=(0.5, 0.1)),
    OneParameter(kind="normal", low=-2.0, high=1.0, prior=(0.0, 0.1), first=(-9, 9), second=(2, 2), units=(0.3, 0.5)),
    OneParameter(kind="normal", low=-2.0, high=1.0, prior=(0.0, 0.1), first=(-9, 9), second=(0, 6), units=(0.3, 0.5)),
    Probabilities(prior=(1.0, 1.0, 2.0), least=(0.1, 0.02, 0.3)),
    Probabilities(prior=(1.0, 1.0), least=(0.1, 0.2), most=4),
]


def grid(family):
    """(φ, ψ) at many points of a box, or log p."""
    if isinstance(family, Probabilities):
        rng, least = np.random.default_rng(0), np.array(family.least)
        inner = rng.dirichlet(np.full(len(least), 0.3), 2000)
        corners = np.concatenate([np.eye(len(least)), inner]) * (1 - least.sum()) + least
        return np.log(corners)
    t = np.linspace(family.low, family.high, 20_001)
    if family.kind == "normal":
        return np.column_stack([t, -(t**2) / 2]) * family.units
    return np.column_stack([np.log(t), np.log1p(-t) if family.kind == "beta" else -t]) * family.units


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_neighbours_differ_by_the_range_that_is_charged_at_most(family, relation, monkeypatch, same_keys):
    caught, rng, worst, points = [], np.random.default_rng(1), 0.0, grid(family)
    for kind in (OneParameter, Probabilities):
        monkeypatch.setattr(kind, "_draw", lambda self, rng, sums, beta: caught.append(sums.copy()) or sums)
    for trial in range(PAIRS):
        inputs = family.shape.facts.inputs
        numbers = nasty(rng, 400, inputs) if trial % 2 else rng.choice([-50.0, 50.0], (400, inputs))
        for made in pair(rng, relation):
            k = kernel(made)
            k.draw(Lookup(numbers), [], family, beta=0.25)
        used = 0.25 * np.ptp(points @ (caught[-1] - caught[-2]))
        charged = k.made[-1][1].eta
        assert used <= charged
        worst = max(worst, used / charged)
    assert worst > (0.6 if relation == "persons" else 0.999)


SMALL = [(5694649.840407964, math.nextafter(5694649.840407964, math.inf))]
SMALL += [(1e6, 1e6 + floats * math.ulp(1e6)) for floats in (4, 8590)]


@pytest.mark.parametrize(("low", "high"), SMALL)
def test_a_range_over_a_few_floats_is_one_of_exact_numbers(low, high):
    """Terms of 1e19 that cancel to what a box of some floats leaves: in floats they would leave anything."""
    b, worst = 533433, 0
    for off in (0.0, 1e-15, -1e-15, 1e-12, 1e-9):
        units = (low / 2 * 1e3 * (1 + off), 1e3)
        family = OneParameter(
            kind="normal", low=low, high=high, prior=(0.0, 1.0), first=(b, b), second=(b, b), units=units
        )
        one, two, ends = b * Fraction(units[0]), b * Fraction(units[1]), (Fraction(low), Fraction(high))
        values = [one * point - two * point**2 / 2 for point in ends]
        used = abs(values[0] - values[1])
        charged = Fraction(family.range("add_remove"))
        assert used <= charged <= used * (1 + Fraction(1, 10**12))
        worst = max(worst, used)
    assert worst > 1


def test_ranges_of_logarithms_over_a_few_floats_are_no_less_than_exact_ones():
    rng, tight = np.random.default_rng(0), 0
    for trial in range(150):
        kind = "gamma" if trial % 2 else "beta"
        low = float(10 ** rng.uniform(-8, 8)) if trial % 2 else float(rng.choice([1e-12, 0.3, 0.999, 1 - 1e-14]))
        high = low + int(rng.integers(1, 50)) * math.ulp(low)
        a, b = int(rng.integers(1, 1000)), int(rng.integers(1, 1000))
        slope = low / (1 - low) if kind == "beta" else low
        units = (1e6 * b * slope / a * (1 + 1e-3 * rng.normal()), 1e6)
        family = OneParameter(kind=kind, low=low, high=high, prior=(1.0, 1.0), first=(a, a), second=(b, b), units=units)
        with mpmath.workdps(100):
            one, two = a * mpmath.mpf(units[0]), b * mpmath.mpf(units[1])
            points = [mpmath.mpf(low), mpmath.mpf(high)]
            still = one / (one + two) if kind == "beta" else one / two
            points += [still] * (points[0] < still < points[1])
            values = [one * mpmath.log(p) + two * (mpmath.log(1 - p) if kind == "beta" else -p) for p in points]
            used, charged = max(values) - min(values), family.range("add_remove")
            charged = mpmath.mpf(charged.numerator) / charged.denominator
            assert used <= charged
            tight += charged < used * (1 + mpmath.mpf(10) ** -9)
    assert tight == 150


def test_a_range_of_probabilities_that_have_little_room_is_exact():
    least = (0.3, 0.7 - 2e-9)
    room = 1 - sum(map(Fraction, least))
    found = Probabilities(prior=(1.0, 1.0), least=least).range("add_remove")
    wide = float(room / Fraction(least[0]))
    assert math.log1p(wide) * (1 - 1e-15) <= found <= math.log1p(wide) * (1 + 1e-15)


def test_a_draw_has_the_stated_distribution():
    from scipy import stats

    k = kernel(table([0, 0, 0, 1], "replace"))
    rowmap = Lookup([[1.0], [0.0]])
    family = OneParameter(kind="beta", low=0.2, high=0.8, prior=(1.0, 1.0), trials=1)
    found = [float(k.draw(rowmap, [], family)) for _ in range(800)]
    low, high = stats.beta.cdf([0.2, 0.8], 4, 2)
    uniform = (stats.beta.cdf(found, 4, 2) - low) / (high - low)
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4
    gamma = OneParameter(kind="gamma", low=0.1, high=9.0, prior=(3.0, 1.0), first=(0, 5), second=(1, 1))
    found = [float(k.draw(rowmap, [], gamma)) for _ in range(400)]  # Gamma(3 + 3 * 1, 1 + 4)
    assert abs(np.mean(found) - 6 / 5) < 0.12
    normal = OneParameter(kind="normal", low=-5.0, high=5.0, prior=(0.0, 1.0), first=(-2, 2), second=(1, 1))
    found = [float(k.draw(rowmap, [], normal)) for _ in range(400)]
    assert abs(np.mean(found) - 3 / 5) < 0.1 and abs(np.std(found) - 5**-0.5) < 0.08
    shares = Probabilities(prior=(1.0, 1.0, 1.0), least=(0.01, 0.01, 0.01))
    found = np.array([k.draw(Lookup([[0.0, 1.0, 0.0]] * 2), [], shares) for _ in range(300)])
    assert np.allclose(found.sum(axis=1), 1) and found[:, 1].mean() > 0.5


def test_ranges_are_those_of_the_vertices():
    logit = math.log(0.7 / 0.3) - math.log(0.05 / 0.95)
    assert FAMILIES[0].range("replace") == pytest.approx(3 * logit)
    assert FAMILIES[0].range("add_remove") == pytest.approx(3 * math.log(0.7 / 0.05))
    assert FAMILIES[6].range("replace") == pytest.approx(math.log(0.68 / 0.1) + math.log(0.6 / 0.02))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "beta", "low": 0.0, "high": 0.5},
        {"kind": "gamma", "low": -1.0, "high": 0.5},
        {"kind": "normal", "low": 1.0, "high": 0.5},
        {"kind": "gamma", "low": 1.0, "high": 2.0, "first": (-1, 2)},
        {"kind": "normal", "low": 1.0, "high": 2.0, "second": (-1, 2)},
        {"kind": "gamma", "low": 1.0, "high": 2.0, "trials": 2},
        {"kind": "normal", "low": 1.0, "high": 2.0, "prior": (0.0, 0.0)},
    ],
)
def test_boxes_and_sets_without_a_finite_range_are_refused(given):
    with pytest.raises(ArgumentError):
        OneParameter(**{"prior": (1.0, 1.0), **given})
    with pytest.raises(ArgumentError):
        Probabilities(prior=(1.0, 1.0), least=(0.0, 0.1))
    k = kernel(table([0], "replace", weights=[1.0]))
    with pytest.raises(ArgumentError, match="count once"):
        k.draw(Lookup([[0.0]]), [], FAMILIES[0])


def test_sums_that_floats_do_not_hold_are_refused_before_the_charge():
    one = {
        "kind": "normal",
        "low": -1e-307,
        "high": 1e-307,
        "prior": (0.0, 1.0),
        "first": (0, 1),
        "units": (1e307, 1.0),
    }
    k = kernel(table([0, 1], "replace"))
    with pytest.raises(ArgumentError, match="too large for floats"):
        k.draw(Lookup([[0.0, 0.0], [1.0, 0.0]]), [], OneParameter(**one), beta=0.1)
    assert not k.made
