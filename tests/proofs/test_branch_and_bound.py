"""Branch and bound meets closed forms from above, whenever it stops."""

import itertools

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.errors import PrivacyError
from pymc_dp.intervals.derivative import halves
from pymc_dp.intervals.expression import Symbol, Tape, leaf
from pymc_dp.proofs import branch_and_bound
from pymc_dp.proofs.branch_and_bound import maximise, reached
from pymc_dp.proofs.differences import Corners
from pymc_dp.proofs.enclosures import Enclosures, with_decisions
from pymc_dp.proofs.lowering import lowered

INF = np.inf
GRID = np.linspace(-4, 4, 100_001)


def expression(build, *ranges, integer=(), roles=()):
    """An expression of scalars within ranges."""
    variables = [pt.scalar(f"x{place}", dtype="float64") for place in range(len(ranges))]
    known = {
        var: leaf(
            Symbol(
                name=var.name,
                low=np.asarray(float(low)),
                high=np.asarray(float(high)),
                integer=place in integer,
                role=roles[place] if roles else "parameter",
            )
        )
        for place, (var, (low, high)) in enumerate(zip(variables, ranges, strict=True))
    }
    return lowered(build(*variables), known)


def largest(build, *ranges, **options):
    return maximise(Tape([with_decisions(expression(build, *ranges, **options))]))


# Function, ranges, largest value.
KNOWN = {
    "a parabola": (lambda x: x * (1 - x), [(-3, 2)], 0.25),
    "a monotone function": (lambda x: pt.exp(x) + x**3, [(-1, 2)], np.exp(2) + 8),
    "a constant": (lambda x: 0 * x + 3, [(0, 1)], 3.0),
    "a point": (lambda x: pt.log(x), [(2, 2)], np.log(2)),
    "a saddle": (lambda x, y: x * y, [(-2, 3), (-5, 1)], 10.0),
    "the crest of a wave": (
        lambda x: pt.sin(3 * x) + 2 * pt.cos(x),
        [(-4, 4)],
        float((np.sin(3 * GRID) + 2 * np.cos(GRID)).max()),
    ),
    "six humps": (
        lambda x, y: -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2),
        [(-3, 3), (-2, 2)],
        1.0316284535,
    ),
    "a valley": (lambda x, y: -100 * (y - x**2) ** 2 - (1 - x) ** 2, [(-2, 2), (-1, 3)], 0.0),
    "a kink": (lambda x: -pt.abs(x - 0.3), [(-1, 1)], 0.0),
    "a jump": (lambda x: pt.switch(x > 0.5, 1 - x, x), [(0, 1)], 0.5),
    "unbounded to the left": (lambda x: x - pt.exp(x), [(-INF, 5)], -1.0),
    "unbounded on both sides": (lambda x: -pt.softplus(x) - pt.softplus(-x), [(-INF, INF)], -2 * np.log(2)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_closed_forms_are_met_from_above(name):
    build, ranges, value = KNOWN[name]
    found = largest(build, *ranges)
    assert value - 2e-4 <= found.upper <= value + branch_and_bound.TOLERANCE * abs(value) * 1.5 + 2e-4
    assert found.lower <= found.upper and found.gap == found.upper - found.lower
    assert found.lower >= value - 1e-3 * (1 + abs(value))


@pytest.mark.parametrize(("low", "high"), [(0, 7), (0, 60), (-3, 2)])
def test_whole_numbers_are_all_that_counts(low, high):
    """The largest value between whole numbers is not attained; at one it is."""

    def build(k):
        return -((k - 1.4) ** 2)

    assert largest(build, (low, high), integer=(0,)).upper == pytest.approx(-0.16, abs=1e-6)


def test_ends_of_whole_numbers_are_rounded_inward():
    assert largest(lambda k: k, (0.2, 7.9), integer=(0,)).upper == pytest.approx(7.0, rel=1e-12)


def test_what_grows_without_bound_is_infinite():
    for build, ranges in ((lambda x: x, [(0, INF)]), (lambda x: 1 / x, [(0, 1)]), (lambda x: -pt.log(x), [(0, 1)])):
        assert largest(build, *ranges).upper == INF


def test_an_undefined_value_is_never_bounded():
    assert largest(lambda x: pt.sqrt(x), (-1, 1)).upper == INF


def test_a_box_limit_leaves_an_upper_bound():
    build, ranges, value = KNOWN["six humps"]
    tape = Tape([expression(build, *ranges)])
    uppers = [maximise(tape, most=most).upper for most in (1, 10, 100, 1000, 100_000)]
    assert all(upper >= value for upper in uppers)
    assert uppers == sorted(uppers, reverse=True) and uppers[0] > uppers[-1]


def test_a_looser_tolerance_looks_at_fewer_boxes_and_still_bounds():
    build, ranges, value = KNOWN["six humps"]
    tape = Tape([expression(build, *ranges)])
    fine, rough = maximise(tape), maximise(tape, tolerance=0.5)
    assert rough.boxes < fine.boxes and rough.upper >= fine.upper - 1e-9 >= value - 1e-9


def test_what_is_enough_ends_the_search_early():
    build, ranges, value = KNOWN["six humps"]
    tape = Tape([expression(build, *ranges)])
    found = maximise(tape, enough=50.0)
    assert value <= found.upper and found.boxes < maximise(tape).boxes


def test_the_same_boxes_are_searched_in_every_run():
    tape = Tape([expression(*KNOWN["six humps"][:1], *KNOWN["six humps"][1])])
    first, second = maximise(tape), maximise(tape)
    assert (first.upper, first.lower, first.boxes) == (second.upper, second.lower, second.boxes)
    assert np.array_equal(first.point, second.point)


def test_the_best_point_attains_the_lower_bound():
    for name, (build, ranges, _) in KNOWN.items():
        tape = Tape([expression(build, *ranges)])
        found = maximise(tape)
        (at,) = tape(found.point[None], found.point[None])
        assert at.low[0] <= found.upper and at.high[0] >= found.lower - 1e-9 * (1 + abs(found.lower)), name
        assert np.all((tape.low <= found.point) & (found.point <= tape.high)), name


def test_what_is_reached_at_corners_is_below_the_bound():
    for build, ranges, _ in KNOWN.values():
        tape = Tape([expression(build, *ranges)])
        assert reached(tape) <= maximise(tape).upper


def test_a_value_above_a_proved_bound_stops_everything(monkeypatch):
    tape = Enclosures(expression(lambda x: x, (0, 1)))
    real = Enclosures.at

    def wrong(self, low, high, *, settled):
        found = real(self, low, high, settled=settled)
        return found if settled else type(found)(found.low + 9, found.high + 9, found.flags)

    monkeypatch.setattr(Enclosures, "at", wrong)
    with pytest.raises(PrivacyError, match="exceeds a proved bound"):
        maximise(tape)


def test_a_search_ends_sooner_where_less_is_allowed_by_the_square_of_the_scalars():
    def build(x, y):
        return pt.cos(3 * x) * pt.cos(4 * y) + 0.1 * x * y

    whole, found = largest(build, (-4, 4), (-4, 4)), {}
    for allowed in (16.0, 400.0):
        before = branch_and_bound.ALLOWED.set(allowed)
        try:
            found[allowed] = largest(build, (-4, 4), (-4, 4))
        finally:
            branch_and_bound.ALLOWED.reset(before)
    assert found[16.0].boxes < found[400.0].boxes < whole.boxes
    assert found[16.0].upper >= found[400.0].upper >= whole.upper >= whole.lower


# --- random polynomials -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_no_point_of_a_random_function_exceeds_its_bound(count, rng):
    for _ in range(count):
        size = int(rng.integers(1, 4))
        powers = rng.integers(0, 3, (4, size))
        factors = rng.normal(size=4)
        ranges = np.sort(rng.uniform(-2, 2, (size, 2)), axis=1)
        whole = tuple(np.flatnonzero(rng.random(size) < 0.2))

        def build(*x, powers=powers, factors=factors):
            terms = (
                factor * pt.prod(pt.stack([pt.abs(one) ** int(p) * pt.cos(one) for one, p in zip(x, row, strict=True)]))
                for factor, row in zip(factors, powers, strict=True)
            )
            return sum(terms)

        if any(np.ceil(low) > np.floor(high) for low, high in ranges[list(whole)]):
            continue
        found = largest(build, *ranges, integer=whole)
        share = rng.choice([0.0, 1.0, 0.5, 1e-6], size=(4000, size)) * (rng.random((4000, size)) < 0.5)
        points = ranges[:, 0] + (ranges[:, 1] - ranges[:, 0]) * np.where(share, share, rng.random((4000, size)))
        for place in whole:
            points[:, place] = np.clip(np.rint(points[:, place]), np.ceil(ranges[place, 0]), np.floor(ranges[place, 1]))
        products = np.prod(np.abs(points[:, None]) ** powers * np.cos(points[:, None]), axis=2)
        assert (products @ factors).max() <= found.upper
        assert found.gap <= 1e-3 * abs(found.lower) + 1e-8 or found.boxes >= branch_and_bound.MOST_BOXES


# --- rows and places that can be exchanged ----------------------------------------------------------------------------

RANGE = [(1, 0, 0), (-1, 1, 0), (-1, 0, 1), (1, 1, 1)]
SIDES = {
    "reals": (lambda y, a, b: -((y - a) ** 2) * b + pt.sin(y * b), [(-1, 2), (-1, 1), (0.5, 2)], ()),
    "many whole numbers": (lambda k, a: k * pt.log(a) - a, [(0, 20), (0.5, 5)], (0,)),
    "few whole numbers": (lambda k, a: pt.switch(pt.eq(k, 1), pt.log(a), pt.log1p(-a)), [(0, 1), (0.3, 0.6)], (0,)),
    "a joint number": (lambda y, eta: y * eta - pt.exp(eta), [(0, 3), (-1, 2)], ()),
    "no row alone": (lambda eta, a: pt.sin(eta) * a, [(-2, 1), (0, 3)], ()),
}
ROLES = {"a joint number": ("row", "joint"), "no row alone": ("joint", "parameter")}


@pytest.mark.parametrize("name", SIDES)
def test_half_of_the_exchangeable_boxes_bound_the_whole(name, monkeypatch):
    build, ranges, integer = SIDES[name]
    roles = ROLES.get(name, ("row", *("parameter",) * (len(ranges) - 1)))
    whole = with_decisions(expression(build, *ranges, integer=integer, roles=roles))
    total = Corners(whole, RANGE)
    assert total.mirror is not None
    halved = maximise(total)
    monkeypatch.setattr(total, "mirror", None)
    full = maximise(total)
    assert halved.upper == pytest.approx(full.upper, rel=2 * branch_and_bound.TOLERANCE)
    assert halved.lower == pytest.approx(full.lower, rel=2 * branch_and_bound.TOLERANCE)
    assert min(halved.upper, full.upper) >= max(halved.lower, full.lower)


@pytest.mark.parametrize("name", SIDES)
def test_every_point_or_its_image_is_in_a_box_that_is_looked_at(name, rng):
    build, ranges, integer = SIDES[name]
    roles = ROLES.get(name, ("row", *("parameter",) * (len(ranges) - 1)))
    total = Corners(expression(build, *ranges, integer=integer, roles=roles), RANGE)
    low, high = branch_and_bound._Search(total).roots()
    points = total.low + (total.high - total.low) * rng.choice([0, 0.5, 1, 0.25, 1 / 3], (500, len(total.low)))
    points = np.where(total.integer, np.rint(points), points)
    exchanged = np.empty(len(total.low), dtype=int)
    for one, two in itertools.pairwise((total._places[0], total._places[3])):
        exchanged[one], exchanged[two] = two, one
    for one, two in itertools.pairwise((total._places[1], total._places[2])):
        exchanged[one], exchanged[two] = two, one

    def held(at):
        return ((low[None] <= at[:, None]) & (at[:, None] <= high[None])).all(axis=2).any(axis=1)

    assert np.all(held(points) | held(points[:, exchanged]))
    both = np.array([total.at(one, one, settled=False).low for one in (points, points[:, exchanged])])
    assert np.allclose(*both, rtol=1e-9, atol=1e-9)


def test_sums_that_change_when_rows_are_exchanged_have_no_mirror():
    whole = expression(lambda y, a: y * a, (0, 1), (0, 1), roles=("row", "parameter"))
    for corners in ([(1, 0, 0)], [(1, 0, 0), (-1, 1, 0)], [(1, 0, 0), (-1, 0, 1)]):
        assert Corners(whole, corners).mirror is None


# --- halves -----------------------------------------------------------------------------------------------------------


def test_halves_cover_their_box(rng):
    low = rng.uniform(-10, 0, (50, 3))
    high = low + rng.choice([0, 1e-300, 1, 50], (50, 3))
    integer = np.array([False, True, False])
    low[:, 1], high[:, 1] = np.floor(low[:, 1]), np.ceil(high[:, 1])
    effect = rng.random((50, 3)) * (high > low)
    lows, highs, stuck = halves(low, high, effect, integer)
    assert len(lows) == 2 * (~stuck).sum()
    first, second = (slice(start, None, 2) for start in (0, 1))
    assert np.array_equal(lows[first], low[~stuck]) and np.array_equal(highs[second], high[~stuck])
    gap = lows[second] - highs[first]
    cut = highs[first] < high[~stuck]
    assert np.all(cut.sum(axis=1) == 1) and set(np.unique(gap[:, 1][cut[:, 1]])) <= {1.0}
    assert np.all((gap[:, [0, 2]])[cut[:, [0, 2]]] == 0)


def test_infinite_boxes_are_cut_at_finite_places():
    low, high = np.array([[-INF], [0.0], [-INF], [100.0]]), np.array([[INF], [INF], [-5.0], [INF]])
    lows, highs, stuck = halves(low, high, np.ones((4, 1)), np.zeros(1, dtype=bool))
    assert not stuck.any() and np.isfinite(highs[0::2]).all() and np.array_equal(highs[0::2], lows[1::2])
