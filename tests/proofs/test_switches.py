"""Switches are known to be continuous, or concave, only where their branches meet in every entry."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.intervals.expression import Symbol, Tape, in_order, leaf
from pymc_dp.proofs.lowering import lowered

INF = np.inf


def switches(build, shape=(), low=-4.0, high=4.0):
    """Names of the switches in an expression of one parameter, and the expression."""
    variable = pt.tensor("t", dtype="float64", shape=shape)
    symbol = Symbol(name="t", low=np.full(shape, low), high=np.full(shape, high))
    expression = lowered(build(variable), {variable: leaf(symbol)})
    return [node.name for node in in_order([expression]) if node.kind == "switch"], expression


def huber(t):
    return -pt.switch(pt.abs(t) < 1, t**2 / 2, pt.abs(t) - 0.5)


def huber_by_its_complement(t):
    return pt.switch(pt.abs(t) >= 1, 0.5 - pt.abs(t), -(t**2) / 2)


CONCAVE = {
    "Huber": lambda t: pt.switch(pt.abs(t) < 1, -(t**2) / 2, 0.5 - pt.abs(t)),
    "Huber, the number first": lambda t: pt.switch(pt.gt(1, pt.abs(t)), -(t**2) / 2, 0.5 - pt.abs(t)),
    "Huber by its complement": huber_by_its_complement,
    "least of two lines": lambda t: pt.switch(t > 0, -2 * t, t),
    "least of two lines, turned": lambda t: pt.switch(t <= 0, t, -2 * t),
    "beneath a change of shape": lambda t: pt.switch(t[None] > 1, (2 - t)[None], t[None])[0],
    "a line that stops": lambda t: pt.switch(t < 2, t, np.array([2.0]))[0],
}

CONTINUOUS = {
    "the convex branch inside": lambda t: pt.switch(pt.abs(t) < 1, t**2 / 2, pt.abs(t) - 0.5),
    "largest of two lines": lambda t: pt.switch(t > 0, 2 * t, t),
    "an equal number elsewhere": lambda t: pt.switch(t > 2, t, 2.0),
}

JUMPING = {
    "branches apart": lambda t: pt.switch(t > 0, t, t - 1),
    "branches apart by little": lambda t: pt.switch(t > 1, t, t - 1e-9),
    "only one side of |t| meets": lambda t: pt.switch(pt.abs(t) < 1, t, 1.0),
    "a number instead of 0": lambda t: pt.switch(t > 0, t, 5.0),
    "impossible below": lambda t: pt.switch(t > 0, -t, -INF),
    "infinite below": lambda t: pt.switch(t > 0, -t, INF),
    "different numbers": lambda t: pt.switch(t > 0, t, np.array([0.0, 5.0]))[1],
    "the second entry alone": lambda t: pt.switch(t > 0, t * np.array([1.0, 1.0]), t + np.array([0.0, 5.0]))[1],
    "a plain choice": lambda t: pt.switch(t > 0, 1.0, 0.0),
}


def test_concave_where_branches_meet_and_slopes_fall():
    assert {name: switches(build)[0] for name, build in CONCAVE.items()} == {name: ["Joined"] for name in CONCAVE}


def test_no_more_than_continuous_where_slopes_rise():
    found = {name: switches(build)[0] for name, build in CONTINUOUS.items()}
    assert found == {name: ["Continuous"] for name in CONTINUOUS}


def test_a_jump_is_never_taken_for_a_meeting():
    assert {name: switches(build)[0] for name, build in JUMPING.items()} == {name: ["Switch"] for name in JUMPING}


def test_entries_of_a_vector_are_not_told_by_their_neighbours():
    names, _ = switches(lambda t: pt.switch(t > 0, t[::-1], t)[0], shape=(2,))
    assert names == ["Switch"]
    names, _ = switches(lambda t: pt.switch(t > 0, t, t.sum())[0], shape=(2,))
    assert names == ["Switch"]


def test_another_parameter_in_a_branch_is_no_meeting():
    t, other = pt.scalars("t", "other")
    known = {var: leaf(Symbol(name=str(var), low=np.asarray(-1.0), high=np.asarray(1.0))) for var in (t, other)}
    expression = lowered(pt.switch(t > 0, t, t * other), known)
    assert [node.name for node in in_order([expression]) if node.kind == "switch"] == ["Switch"]


@pytest.mark.parametrize("name", [*CONCAVE, *CONTINUOUS])
def test_slopes_bound_differences_across_the_place_where_branches_meet(name, rng):
    _, expression = switches({**CONCAVE, **CONTINUOUS}[name])
    tape = Tape([expression])
    ends = np.sort(rng.uniform(-4, 4, (400, 2)), axis=1)
    _, (slopes,) = tape.with_slopes(ends[:, :1], ends[:, 1:])
    first, last = (tape(end, end)[0] for end in (ends[:, :1], ends[:, 1:]))
    width, room = ends[:, 1] - ends[:, 0], 1e-12
    assert np.all(last.high - first.low >= slopes[0].low * width - room)
    assert np.all(last.low - first.high <= slopes[0].high * width + room)


def test_values_are_those_of_the_graph(rng):
    points = rng.uniform(-4, 4, 200)
    for build in (huber, huber_by_its_complement, *JUMPING.values()):
        variable = pt.scalar("t")
        (found,) = Tape([switches(build)[1]])(points[:, None], points[:, None])
        graph = build(variable)
        expected = np.array([graph.eval({variable: point}, mode="FAST_COMPILE") for point in points[:20]])
        assert np.all((found.low[:20] <= expected) & (expected <= found.high[:20]))


def test_a_density_that_is_impossible_beyond_a_parameter_has_no_bound_and_is_not_concave():
    """A shifted exponential: its logarithm falls to minus infinity where the row is below the shift."""
    with pm.Model() as model:
        shift = pm.Uniform("shift", -1, 2)
        pm.CustomDist("y", shift, logp=lambda y, shift: pt.switch(y - shift > 0, shift - y, -INF), observed=np.zeros(7))
    with pytest.raises(dp.errors.PrivacyError, match="nothing bounds|has no bound"):
        dp.sensitivity(model, dp.Domain(bounds={"y": (0, 1)}))
