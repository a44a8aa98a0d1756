"""What feeds an entry is followed through every kind of node."""

import numpy as np
import pytest
from pytensor.scalar.basic import Mul

from pymc_dp.intervals.expression import Symbol, Tape, checked, constant, elementwise, leaf, moved
from pymc_dp.intervals.feeds import MANY, NONE, feeds_of, joined
from pymc_dp.intervals.reductions import reduction_of
from pymc_dp.intervals.rules import RULES

X = Symbol(name="x", low=np.zeros((2, 3)), high=np.ones((2, 3)))


def fed(expression, symbol=X):
    tape = Tape([expression])
    return feeds_of(tape, tape.values(tape.low[None], tape.high[None]))[expression][symbol].tolist()


def test_entries_of_a_symbol_feed_themselves():
    assert fed(leaf(X)) == [[0, 1, 2], [3, 4, 5]]


def test_entries_are_followed_where_they_are_moved():
    assert fed(moved("Turned", lambda array: array.swapaxes(1, 2), [leaf(X)])) == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min"])
def test_what_is_added_up_depends_on_all_of_it(name):
    assert fed(reduction_of(name, (1,), leaf(X))) == [MANY, MANY]
    zeros = elementwise("Mul", RULES[Mul], [leaf(X), constant(np.eye(3)[[1, 2]])])
    assert fed(zeros) == [[NONE, 1, NONE], [NONE, NONE, 5]]
    assert fed(reduction_of(name, (1,), zeros)) == [1, 5]


def test_a_condition_feeds_every_entry():
    other = Symbol(name="other", low=np.zeros(2), high=np.ones(2))
    expression = checked(leaf(X), [leaf(other)])
    assert fed(expression, other) == [[MANY] * 3] * 2 and fed(expression) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("places", "expected"),
    [([], NONE), ([NONE, NONE], NONE), ([NONE, 4, 4], 4), ([3, 4], MANY), ([MANY, MANY], MANY), ([MANY, NONE], MANY)],
)
def test_several_name_one_entry_or_none(places, expected):
    assert joined(np.array(places, dtype=int), 0) == expected
