"""What is recognised equals what it replaces, at extreme points too, by arithmetic with many digits."""

import gc
import weakref

import mpmath as mp
import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.intervals.expression import Symbol, Tape, in_order, leaf
from pymc_dp.proofs import recognised_functions
from pymc_dp.proofs.lowering import lowered
from pymc_dp.proofs.row_likelihood import signed_sum

ANY = (0.0, 1e-300, 1e-9, 0.3, 1.0, 5.0, 37.0, 40.0, 700.0, -1e-300, -1e-9, -0.3, -1.0, -5.0, -37.0, -40.0, -745.0)
POSITIVE = tuple(value for value in ANY if value > 0)
NEGATIVE = tuple(value for value in ANY if value < 0)
UNIT = (1e-300, 1e-9, 0.3, 0.5, 0.9, 1 - 2**-53)
FAR = (0.0, 1e-300, 0.3, 5.0, 40.0, 1e8, 1e150, -0.3, -5.0, -40.0, -1e8, -1e150)


def log_ndtr(x):
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def share(t, c):
    root = mp.sqrt(c + t * t)
    return mp.log(c / (root * (root - t))) if t < 0 else mp.log1p(t / root)


# Name, what PyTensor is given, the function, values tried of each argument, the name that must be in the expression.
REWRITES = {
    "log sigmoid": (lambda x: pt.log(pt.sigmoid(x)), lambda x: -mp.log1p(mp.exp(-x)), [ANY], "LogSigmoid"),
    "log of the rest of a sigmoid": (
        lambda x: pt.log1p(-pt.sigmoid(x)),
        lambda x: -mp.log1p(mp.exp(x)),
        [ANY],
        "LogSigmoid",
    ),
    "log of one less a sigmoid": (
        lambda x: pt.log(1 - pt.sigmoid(x)),
        lambda x: -mp.log1p(mp.exp(x)),
        [ANY],
        "LogSigmoid",
    ),
    "softplus": (lambda x: pt.log1p(pt.exp(x)), lambda x: mp.log1p(mp.exp(x)), [ANY], "Softplus"),
    "log of one and exp": (lambda x: pt.log(1 + pt.exp(x)), lambda x: mp.log1p(mp.exp(x)), [ANY], "Softplus"),
    "log exp": (lambda x: pt.log(pt.exp(x)), lambda x: x, [ANY], None),
    "log1mexp": (lambda x: pt.log1p(-pt.exp(x)), lambda x: mp.log(-mp.expm1(x)), [NEGATIVE], "Log1mexp"),
    "log of one less exp": (lambda x: pt.log(1 - pt.exp(x)), lambda x: mp.log(-mp.expm1(x)), [NEGATIVE], "Log1mexp"),
    "log Φ by erfc": (
        lambda x: pt.log(0.5 * pt.erfc(-x * np.sqrt(0.5))),
        log_ndtr,
        [tuple(x for x in ANY if abs(x) < 100)],
        "LogNdtr",
    ),
    "log Φ by log1p": (
        lambda x: pt.log1p(-0.5 * pt.erfc(x * np.sqrt(0.5))),
        log_ndtr,
        [tuple(x for x in ANY if abs(x) < 100)],
        "LogNdtr",
    ),
    "log of one and erf": (
        lambda x: pt.log(1 + pt.erf(x)),
        lambda x: mp.log(mp.erfc(-x)),
        [tuple(x for x in ANY if abs(x) < 100)],
        "LogNdtr",
    ),
    "log of one less erf": (
        lambda x: pt.log(1 - pt.erf(x)),
        lambda x: mp.log(mp.erfc(x)),
        [tuple(x for x in ANY if abs(x) < 100)],
        "LogNdtr",
    ),
    "log of a product": (lambda x, y: pt.log(x * y), lambda x, y: mp.log(x) + mp.log(y), [POSITIVE] * 2, "Add"),
    "log of a quotient": (lambda x, y: pt.log(x / y), lambda x, y: mp.log(x) - mp.log(y), [POSITIVE] * 2, "Sub"),
    "log of a reciprocal": (lambda x: pt.log(pt.reciprocal(x)), lambda x: -mp.log(x), [POSITIVE], "Neg"),
    "log of a root": (lambda x: pt.log(pt.sqrt(x)), lambda x: mp.log(x) / 2, [POSITIVE], "Mul"),
    "log of a square": (lambda x: pt.log(pt.sqr(x)), lambda x: 2 * mp.log(x), [POSITIVE], "Mul"),
    "square": (lambda x: x**2, lambda x: x * x, [ANY], "Sqr"),
    "a product with itself": (lambda x: x * x, lambda x: x * x, [ANY], "Sqr"),
    "reciprocal": (lambda x: x**-1, lambda x: 1 / x, [POSITIVE[1:]], "Reciprocal"),
    "a precision times a square": (
        lambda x, y: x**-2 * pt.sqr(y),
        lambda x, y: (y / x) ** 2,
        [(1e-9, 0.3, 5.0, 40.0), ANY],
        "Sqr",
    ),
    "a share": (lambda t, c: pt.log(1 + t / pt.sqrt(c + pt.sqr(t))), share, [FAR, (1e-9, 0.3, 5.0, 1e8)], "LogShare"),
    "the other share": (
        lambda t, c: pt.log(1 - t / pt.sqrt(c + pt.sqr(t))),
        lambda t, c: share(-t, c),
        [FAR, (1e-9, 0.3, 5.0, 1e8)],
        "LogShare",
    ),
    "beta distribution with a shape of 1": (
        lambda a, x: pt.log(pt.betainc(a, 1, x)),
        lambda a, x: a * mp.log(x),
        [(1e-9, 0.3, 5.0, 40.0), UNIT],
        None,
    ),
    "a difference of logistic functions": (
        lambda x, y: pt.log(pt.sigmoid(x + y) - pt.sigmoid(x)),
        lambda x, y: mp.log(1 / (1 + mp.exp(-x - y)) - 1 / (1 + mp.exp(-x))),
        [(0.0, 0.3, 5.0, 40.0, -0.3, -40.0, -745.0), (1e-3, 0.3, 5.0, 37.0)],
        "LogSigmoid",
    ),
    "a difference of error functions": (
        lambda x, y: pt.log(pt.erf(x + y) - pt.erf(x)),
        lambda x, y: mp.log(mp.erf(x + y) - mp.erf(x)) if x < 0 else mp.log(mp.erfc(x) - mp.erfc(x + y)),
        [(0.0, 0.3, 5.0, 20.0, -0.3, -5.0, -20.0), (1e-3, 0.3, 5.0)],
        "LogErfWindow",
    ),
}


def expression_of(build, pools):
    variables = [pt.scalar(f"x{place}", dtype="float64") for place in range(len(pools))]
    known = {
        var: leaf(Symbol(name=var.name, low=np.asarray(min(pool)), high=np.asarray(max(pool))))
        for var, pool in zip(variables, pools, strict=True)
    }
    return lowered(build(*variables), known)


def points_of(pools):
    return np.stack([axis.ravel() for axis in np.meshgrid(*pools)], axis=1)


@pytest.mark.few(19)
@pytest.mark.parametrize("name", REWRITES)
def test_what_is_recognised_holds_the_function_it_replaces(name):
    build, function, pools, expected = REWRITES[name]
    expression = expression_of(build, pools)
    tape, points = Tape([expression]), points_of(pools)
    order = [int(symbol.name[1:]) for symbol in tape.symbols]
    (found,) = tape(points[:, order], points[:, order])
    with mp.workdps(800):
        values = [function(*map(mp.mpf, point)) for point in points]
        for low, high, value, point in zip(found.low, found.high, values, points, strict=True):
            assert low <= value <= high, (point, low, high, mp.nstr(value, 20))
    assert expected is None or expected in {node.name for node in in_order([expression])}
    fine = np.isfinite(found.low) & np.isfinite(found.high)
    assert fine.mean() > 0.7 and np.all((found.high - found.low)[fine] <= 1e-7 * (1 + np.abs(found.high[fine])))


NOT = {
    "a factor other than a half": lambda x: pt.log(0.25 * pt.erfc(-x)),
    "two and erf": lambda x: pt.log(2 + pt.erf(x)),
    "half an erf": lambda x: pt.log(1 + 0.5 * pt.erf(x)),
    "a share of another root": lambda x: pt.log(1 + x / pt.sqrt(2 + pt.sqr(x + 1))),
    "an exponent near 2": lambda x: (2 + x) ** 2.000001,
    "two less exp": lambda x: pt.log(2 - pt.exp(x)),
}


@pytest.mark.parametrize("name", NOT)
def test_what_only_looks_alike_is_left_as_it_is(name):
    expression = expression_of(NOT[name], [(-0.5, 0.3)])
    recognised = {"LogNdtr", "LogShare", "Sqr", "Log1mexp", "Softplus", "LogSigmoid"}
    names = {node.name for node in in_order([expression])} - ({"Sqr"} if "root" in name else set())
    assert not recognised & names


def test_logarithms_of_what_may_be_negative_are_not_split():
    expression = expression_of(lambda x, y: pt.log(x * y), [(-1.0, 1.0), (0.5, 2.0)])
    assert [node.name for node in in_order([expression]) if node.inputs] == ["Mul", "Log"]


def test_a_beta_distribution_is_a_power_only_within_the_unit_interval():
    expression = expression_of(lambda x: pt.betainc(0.5, 1, x), [(0.5, 1.5)])
    assert "BetaInc" in {node.name for node in in_order([expression])}


def test_steps_that_are_never_taken_are_constants():
    for build in (pt.sign, pt.floor, lambda x: x > 0.01, lambda x: pt.eq(x, 2)):
        assert not expression_of(lambda x, build=build: build(x) + 0.0, [(0.2, 0.8)]).symbols
    assert expression_of(lambda x: pt.sign(x - 0.5), [(0.2, 0.8)]).symbols


def test_a_number_is_one_number_without_rounding():
    def number(graph):
        return recognised_functions.number(lowered(graph, {}))

    assert number(pt.constant(0.5) * 4) == 2.0
    assert number(pt.constant(np.array([1.0, 1.0]))) is None
    assert number(pt.sqrt(pt.constant(2.0, dtype="float32"))) == pytest.approx(np.sqrt(2), abs=1e-15)
    assert recognised_functions.number(expression_of(lambda x: x, [(0.3, 0.3)])) is None


def test_nothing_outlives_the_expressions_of_a_model():
    v = pt.vector("v", shape=(3,), dtype="float64")
    symbol = Symbol(name="v", low=np.zeros(3), high=np.ones(3))
    expression = lowered(pt.special.softmax(v)[0], {v: leaf(symbol)})
    watch = weakref.ref(symbol)
    del expression, symbol
    gc.collect()
    assert watch() is None


def test_copies_of_a_softmax_still_have_their_logarithm(rng):
    v = pt.vector("v", shape=(3,), dtype="float64")
    symbol = Symbol(name="v", low=np.zeros(3), high=np.ones(3))
    expression = lowered(pt.log(pt.special.softmax(v))[0], {v: leaf(symbol)})
    names = {node.name for node in in_order([signed_sum([(1, expression)])])}
    assert "LogSoftmax" in names and "Log" not in names
    points = rng.random((20, 3))
    (found,) = Tape([expression])(points, points)
    values = points[:, 0] - np.log(np.exp(points).sum(axis=1))
    assert np.all((found.low <= values + 1e-12) & (values - 1e-12 <= found.high))
