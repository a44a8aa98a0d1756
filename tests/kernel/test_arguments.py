"""Numbers become Python's own before anything is computed of them: NumPy's whole numbers would wrap."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp import Ledger
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import (
    Ball,
    Column,
    Columns,
    Curve,
    Interval,
    Kernel,
    LedgerAccount,
    MHot,
    NormalInBall,
    OneHot,
    Products,
    Regression,
    Table,
    choice_event,
)
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.choices import Bit, Ends
from tests.kernel.pairs import Lookup, kernel, table

TWO, ONE = Lookup([[0.0, -1.0], [1.0, 0.5]]), Lookup([[0.5], [1.0]])
THREE = Lookup([[0.5, 0.1, 0.2], [1.0, 0.0, 0.0]])
REGRESSION = NormalInBall(width=2, radius=1.0, longest=1.0, farthest=1.0, precision=1.0)
NUMBERS = {
    "choose": (lambda k, **o: k.choose(TWO, [], o.pop("K"), **o), {"K": 2, "width": 1, "eta": 1}),
    "barker": (lambda k, **o: k.barker(ONE, [], **o), {"low": 0, "high": 1, "beta": 1, "public": 0}),
    "accept": (lambda k, **o: k.accept(ONE, [], **o), {"low": 0, "high": 1, "beta": 1, "public": 0}),
    "penalty": (lambda k, **o: k.penalty(ONE, [], **o), {"low": 0, "high": 1, "beta": 1, "public": 0, "noise": 9}),
    "sum": (
        lambda k, **o: k.sum(TWO, [], o.pop("K"), noise="laplace", **o),
        {"K": 2, "bound": 1, "scale": 9, "units": 99},
    ),
    "soft_max": (
        lambda k, **o: k.soft_max(TWO, [], o.pop("K"), noise="laplace", **o),
        {"K": 2, "low": 0, "high": 1, "scale": 9},
    ),
    "sums": (lambda k, **o: k.sums(ONE, [], OneHot(2), noise="laplace", cell="i", **o), {"cells": 2, "scale": 9}),
    "draw": (lambda k, **o: k.draw(THREE, [], REGRESSION, **o), {"beta": 1}),
    "grant": (lambda k, **o: k.grant(choice_event(0.1, 2), **o), {"count": 3}),
    "rho": (lambda k, **o: k.pool(**o), {"rho": 1}),
    "epsilon": (lambda k, **o: k.pool(**o), {"epsilon": 1}),
}
CASES = [(name, given) for name, (_, numbers) in NUMBERS.items() for given in numbers]


class Liar(float):
    """A number that compares as another one than it is."""

    def __gt__(self, other):
        return True

    def __lt__(self, other):
        return True

    def __le__(self, other):
        return True


@pytest.mark.parametrize(("name", "given"), CASES)
def test_every_number_becomes_one_of_python_before_it_counts(name, given):
    """What is charged and done for NumPy's numbers is what is charged for Python's; what is no number is refused."""
    call, numbers = NUMBERS[name]
    charged = []
    for kind in (int, np.int8, np.int32, np.uint8, np.int64):
        k = kernel(table([0, 1], "replace"))
        call(k, **{**numbers, given: kind(numbers[given])})
        charged.append([event for _, event in k.account.events])
    assert all(one == charged[0] for one in charged)
    for refused in (math.nan, math.inf, "1", None, True, np.bool_(True), np.array([1]), 1j, Fraction(1), Liar(-5)):
        if refused is None and given in ("rate", "rows", "rho", "epsilon"):
            continue  # says that there is none
        if isinstance(refused, Liar) and given in ("low", "public"):
            continue
        k = kernel(table([0, 1], "replace"))
        with pytest.raises(ArgumentError):
            call(k, **{**numbers, given: refused})
        assert not k.account.events and not k.made


def test_an_accept_bit_costs_the_same_for_any_kind_of_number():
    ends = Ends(-0.03125, 2.0**20 - 0.03125)
    with pytest.raises(ArgumentError, match="smaller step"):
        Bit(ends, np.int64(1), 0.0, 2, 1).event  # noqa: B018
    one, two = (Bit(Ends(0.0, 1.0), beta, 0.0, 2, 1) for beta in (np.int64(1), 1.0))
    assert type(one.rate) is int and type(one.public) is int and one.event == two.event


def test_bounds_and_limits_of_tables_are_numbers_of_python():
    column = Column(np.array([1.0, 9.0]), np.int8(-100), np.int8(100))
    assert type(column.low) is float and type(column.high) is float
    made = Table({"x": column}, neighbours="add_remove", person=[1, 2], max_rows=np.int32(2**16))
    assert type(made.max_rows) is int
    k = Kernel(made, Rehearsal(made.relation))
    k.sums(ONE_OF_X, [], MHot(1, 2**20), noise="laplace", scale=1.0)
    assert k.made[-1][1].sensitivity == 2**36
    for bad in ({"low": True}, {"high": math.nan}, {"high": "9"}, {"public": 1}):
        with pytest.raises(ArgumentError):
            Column(np.array([1.0]), **{"low": 0.0, "high": 1.0, **bad})
    for bad in ({"max_rows": 1.5}, {"max_rows": True}, {"max_rows": 0}):
        with pytest.raises(ArgumentError, match="max_rows"):
            Table({"x": column}, **bad)
    with pytest.raises(ArgumentError, match="nodes"):
        kernel(Table({"x": column})).by_kind(2.5)
    with pytest.raises(ArgumentError, match="centre"):
        Columns({"x": (math.nan, 1.0)})


ONE_OF_X = Columns({"x": (0.0, 1.0)})


class Derived(int):
    pass


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, float, np.float64, bool, str, Derived, lambda n: (n,)])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: OneHot(n),
        lambda n: MHot(n, 2),
        lambda n: MHot(2, n),
        lambda n: Interval((0, 0), (1, n)),
        lambda n: Interval((n, 0), (9, 1)),
        lambda n: Curve(n),
        lambda n: Ball(n),
        lambda n: Ball(3, n),
        lambda n: Products(n),
        lambda n: Products(2, n),
        lambda n: Regression(boxes=n),
        lambda n: Regression(balls=(2, n)),
        lambda n: Regression(boxes=1, cells=n),
        lambda n: Regression(boxes=1, bits=n),
        lambda n: NormalInBall(width=n, radius=1.0, longest=1.0, farthest=1.0, precision=1.0),
    ],
)
def test_fields_of_shapes_are_ints_and_nothing_like_them(make, kind):
    """Of 32 bits, squares wrap: MHot(2, 65537) would move by 262,146 instead of 8.6e9."""
    make(2)
    with pytest.raises(ArgumentError):
        make(kind(2))


@pytest.mark.parametrize("balls", [[30], np.array([30]), range(3), type("T", (tuple,), {})((30,))])
def test_sizes_that_could_change_later_are_refused(balls):
    with pytest.raises(ArgumentError, match="balls"):
        Regression(balls=balls, boxes=1)


@pytest.mark.parametrize("value", [1, 0, -1, None, np.True_, 0.5, "yes"])
@pytest.mark.parametrize("name", ["sizes", "known", "constant", "square", "apart"])
def test_flags_of_a_regression_are_true_or_false(name, value):
    with pytest.raises(ArgumentError, match=name):
        Regression(boxes=2, cells=2, **{name: value})
    with pytest.raises(ArgumentError, match="centred"):
        Curve(8, value)


def test_flags_and_words_of_operations_are_exact():
    class Word(str):
        __slots__ = ()

    k = Kernel(table([0], "replace"), LedgerAccount(Ledger(1.0)))
    for call in (
        lambda: k.soft_max(TWO, [], 2, low=0.0, high=1.0, noise=Word("laplace"), scale=9.0),
        lambda: k.sums(ONE, [], OneHot(2), noise="laplace", scale=9.0, cell=Word("i")),
        lambda: choice_event(0.5, 2, cells=1),
        lambda: Table({"x": Column([1.0], 0.0, 1.0)}, neighbours=Word("replace")),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert not k.made


def test_an_error_shows_no_array_that_was_given_for_a_number():
    k = kernel(table([0], "replace"))
    for wrong in (np.array([4711.0]), [4711.0], (4711,)):
        with pytest.raises(ArgumentError, match=f"got a {type(wrong).__name__}") as error:
            k.soft_max(TWO, [], 2, low=0.0, high=1.0, noise="laplace", scale=wrong)
        assert "4711" not in str(error.value)
