"""Where rows and parameters meet, ranges hold every row and every parameter, and no more than that by much."""

import itertools

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.intervals.expression import Symbol, Tape, UnknownOperation, in_order, leaf
from pymc_dp.proofs.lowering import lowered
from pymc_dp.proofs.meeting_points import Meeting, columns_behind, hull

SIZE = 4


def symbol(name, role, low, high, shape=(SIZE,), **options):
    return Symbol(name=name, low=np.full(shape, float(low)), high=np.full(shape, float(high)), role=role, **options)


def met(build, row, parameter):
    """The meeting in an expression of a row x and parameters b."""
    x, b = (pt.tensor(one.name, dtype="float64", shape=one.shape) for one in (row, parameter))
    expression = lowered(build(x, b), {x: leaf(row), b: leaf(parameter)})
    (meeting,) = {one for node in in_order([expression]) for one in node.symbols if isinstance(one, Meeting)}
    return meeting, expression


WAYS = {
    "a product": lambda x, b: pt.dot(x, b),
    "the other way round": lambda x, b: pt.dot(b, x),
    "a matrix of one row": lambda x, b: (x[None] @ b)[0],
    "a sum of products": lambda x, b: (x * b).sum(),
}
# Ends of the row, its norm, ends of the parameters.
BOXES = {
    "symmetric": (-1, 1, None, -2, 2),
    "lopsided": (0, 1, None, -2, 3),
    "apart from 0": (1, 2, None, 3, 5),
    "of opposite signs": (-2, -1, None, 0.5, 4),
    "a norm": (-np.inf, np.inf, 1.0, -2, 2),
    "a norm and ends": (-0.9, 0.9, 1.0, -1, 3),
    "tiny": (-1e-300, 1e-300, None, -1e-9, 1e-9),
    "huge": (-1e150, 1e150, None, -1e150, 1e150),
    "a point": (0.5, 0.5, None, 2, 2),
}


def rows_and_parameters(box, rng):
    """Random and extreme vectors within ends and norms: corners, and both pointing the same way."""
    low, high, norm, least, most = box
    low, high = max(low, -(norm or np.inf)), min(high, norm or np.inf)
    b = np.concatenate(
        [rng.uniform(least, most, (300, SIZE)), np.array(list(itertools.product((least, most), repeat=SIZE)))]
    )
    x = np.concatenate([rng.uniform(low, high, (len(b), SIZE)), b, -b, rng.choice([low, high], (len(b), SIZE))])
    b = np.tile(b, (4, 1))
    if norm is not None:
        x *= norm / np.maximum(np.linalg.norm(x, axis=1), norm * rng.choice([1.0, 1e-9], len(x)))[:, None]
        x *= np.minimum(1, norm / np.maximum(np.linalg.norm(x, axis=1), 1e-300))[:, None]
    return np.clip(x, low, high), b


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BOXES)
def test_no_row_and_no_parameters_leave_the_range_of_a_predictor(name, way, rng):
    box = BOXES[name]
    low, high, norm, least, most = box
    row = symbol("x", "row", max(low, -(norm or np.inf)), min(high, norm or np.inf), norm=norm)
    meeting, _ = met(WAYS[way], row, symbol("b", "parameter", least, most))
    x, b = rows_and_parameters(box, rng)
    values = (x * b).sum(axis=1)
    room = 1e-12 * np.abs(x * b).sum(axis=1)
    assert meeting.linear and meeting.role == "joint"
    assert np.all(meeting.low.min() <= values + room) and np.all(values - room <= meeting.high.max())
    assert meeting.high.max() <= values.max() + (0.5 if norm else 1e-9) * abs(values.max()) + 1e-290
    assert meeting.sides[0].radius >= np.linalg.norm(x, axis=1).max() * (1 - 1e-12)


def test_a_norm_bounds_what_ends_do_not():
    """|η| <= ‖x‖ ‖b‖: for parameters of any direction it is met."""
    row, parameter = symbol("x", "row", -1, 1, norm=1.0), symbol("b", "parameter", -3, 3)
    meeting, _ = met(WAYS["a product"], row, parameter)
    assert meeting.high.max() == pytest.approx(3 * np.sqrt(SIZE), rel=1e-9)
    plain, _ = met(WAYS["a product"], symbol("x", "row", -1, 1), parameter)
    assert plain.high.max() == pytest.approx(3 * SIZE, rel=1e-9)


def test_a_norm_of_the_whole_is_none_of_entries_repeated():
    row, parameter = symbol("x", "row", -1, 1, shape=(1,), norm=1.0), symbol("b", "parameter", -1, 1)
    meeting, _ = met(lambda x, b: pt.dot(pt.alloc(x[0], SIZE), b), row, parameter)
    assert meeting.high.max() >= SIZE * (1 - 1e-12)


def test_without_bounds_a_predictor_has_none():
    meeting, _ = met(WAYS["a product"], symbol("x", "row", -1, 1), symbol("b", "parameter", -np.inf, np.inf))
    assert meeting.low.min() == -np.inf and meeting.high.max() == np.inf
    norm, _ = met(
        WAYS["a product"],
        symbol("x", "row", -np.inf, np.inf, norm=1.0),
        symbol("b", "parameter", -1, 1),
    )
    assert norm.high.max() == pytest.approx(np.sqrt(SIZE), rel=1e-9)


def test_squares_that_vanish_do_not_make_a_predictor_vanish():
    """1e-200 squared is rounded to 0, but a predictor of that size may be multiplied by 1e200."""
    meeting, expression = met(
        lambda x, b: pt.dot(x, b) * np.array(1e200),
        symbol("x", "row", -1e-200, 1e-200),
        symbol("b", "parameter", -1, 1),
    )
    assert meeting.high.max() >= SIZE * 1e-200 and hull(expression)[1] >= SIZE * (1 - 1e-9)


@pytest.mark.parametrize(("role", "expected"), [("row", "joint"), ("public", "public joint")])
def test_a_meeting_is_private_where_the_row_is(role, expected):
    assert met(WAYS["a product"], symbol("x", role, 0, 1), symbol("b", "parameter", 0, 1))[0].role == expected


def test_elements_chosen_by_a_row_are_between_the_least_and_the_largest(rng):
    low, high = rng.normal(size=SIZE) - 1, rng.normal(size=SIZE) + 1
    b, g = pt.tensor("b", dtype="float64", shape=(SIZE,)), pt.tensor("g", dtype="int64", shape=(1,))
    parameter = Symbol(name="b", low=np.minimum(low, high), high=np.maximum(low, high))
    index = symbol("g", "row", 0, SIZE - 1, shape=(1,), integer=True)
    expression = lowered(b[g][0], {b: leaf(parameter), g: leaf(index)})
    found = hull(expression)
    assert found[0] == parameter.low.min() and found[1] == parameter.high.max()
    (meeting,) = expression.symbols
    assert isinstance(meeting, Meeting) and not meeting.linear and meeting.sides[0].disjoint


def test_public_predictors_and_intercepts_are_one_scalar():
    x, b, a = (pt.tensor(name, dtype="float64", shape=shape) for name, shape in (("x", (2,)), ("b", (2,)), ("a", ())))
    known = {
        x: leaf(symbol("x", "public", -1, 2, shape=(2,))),
        b: leaf(symbol("b", "parameter", -1, 1, shape=(2,))),
        a: leaf(symbol("a", "parameter", 0, 3, shape=())),
    }
    for build, low, high in ((lambda e: a + e, -4, 7), (lambda e: e - a, -7, 4)):
        (meeting,) = lowered(build(pt.dot(x, b)), known).symbols
        assert float(meeting.low) == pytest.approx(low, rel=1e-9) and float(meeting.high) == pytest.approx(
            high, rel=1e-9
        )
        assert len(meeting.sides) == 2 and meeting.linear
    private = {**known, x: leaf(symbol("x", "row", -1, 2, shape=(2,)))}
    assert len(lowered(a + pt.dot(x, b), private).symbols) == 2


def test_products_within_one_side_are_no_meetings(rng):
    x, y = (pt.tensor(name, dtype="float64", shape=(SIZE,)) for name in "xy")
    known = {x: leaf(symbol("x", "row", -1, 1)), y: leaf(symbol("y", "row", -1, 1))}
    expression = lowered(pt.dot(x, y), known)
    assert not any(isinstance(one, Meeting) for one in expression.symbols)
    tape, points = Tape([expression]), rng.uniform(-1, 1, (50, 2 * SIZE))
    (found,) = tape(points, points)
    values = (points[:, :SIZE] * points[:, SIZE:]).sum(axis=1)
    assert np.all((found.low <= values + 1e-12) & (values - 1e-12 <= found.high))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_slopes_of_reductions_bound_differences(name, rng):
    v = pt.tensor("v", dtype="float64", shape=(3,))
    expression = lowered(getattr(v, name)(), {v: leaf(symbol("v", "parameter", -1, 1, shape=(3,)))})
    tape = Tape([expression])
    low = rng.uniform(-1, 0.5, (200, 3))
    high = low + rng.uniform(0, 0.5, (200, 3))
    _, (slopes,) = tape.with_slopes(low, high)
    first, second = (low + (high - low) * rng.random((200, 3)) for _ in range(2))
    change = getattr(np, name)(second, axis=1) - getattr(np, name)(first, axis=1)
    with np.errstate(invalid="ignore"):
        ways = [np.nan_to_num(np.stack([one.low, one.high]), posinf=1e300, neginf=-1e300) for one in slopes.values()]
    steps = (second - first).T
    least = sum(np.minimum(way[0] * step, way[1] * step) for way, step in zip(ways, steps, strict=True))
    most = sum(np.maximum(way[0] * step, way[1] * step) for way, step in zip(ways, steps, strict=True))
    assert np.all(least - 1e-12 <= change) and np.all(change <= most + 1e-12)


@pytest.mark.parametrize(
    ("build", "ends"),
    [
        (lambda x, b, g: pt.tanh(pt.log(b)[g]), (1, 2)),
        (lambda x, b, g: pt.tanh(x @ pt.log(b)), (1, 2)),
        (lambda x, b, g: pt.tanh(pt.log(x) @ b), (-1, 1)),
        (lambda x, b, g: pt.tanh(pt.log(x)[g]), (-1, 1)),
    ],
)
def test_where_a_density_is_no_number_is_not_hidden_by_a_symbol_of_its_own(build, ends):
    """Some rows would say where the parameters may be: tanh is within ±1, but not where it is of no number."""
    known = {
        pt.vector("x", shape=(SIZE,)): symbol("x", "row", *ends),
        pt.vector("b", shape=(SIZE,)): symbol("b", "parameter", -1, 1),
        pt.lvector("g", shape=(1,)): symbol("g", "row", 0, SIZE - 1, shape=(1,), integer=True),
    }
    with pytest.raises(UnknownOperation, match="may be NaN within the ranges of '[xb]'"):
        lowered(build(*known), {var: leaf(one) for var, one in known.items()})


def test_a_row_is_found_behind_what_an_index_chooses_from():
    x, g = symbol("x", "row", -1, 1), symbol("g", "row", 0, SIZE - 1, shape=(1,), integer=True)
    known = {pt.vector("x", shape=(SIZE,)): x, pt.vector("b", shape=(SIZE,)): symbol("b", "parameter", -1, 1)}
    given = {**{var: leaf(one) for var, one in known.items()}, (index := pt.lvector("g", shape=(1,))): leaf(g)}
    (values, b) = known
    (meeting,) = lowered((values * b)[index], given).symbols
    assert columns_behind(meeting) == {x, g}
