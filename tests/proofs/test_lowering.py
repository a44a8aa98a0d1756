"""What is lowered has the values of PyTensor's own graph, operation by operation."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions import dist_math

from pymc_dp.intervals.expression import Symbol, Tape, UnknownOperation, leaf
from pymc_dp.proofs.lowering import lowered

POINTS = 40
X, Y, V, M, K, B = "x", "y", "v", "m", "k", "b"
SHAPES = {X: (), Y: (), V: (3,), M: (2, 3), K: (), B: (2, 1)}
LOW, HIGH = 0.05, 0.95
SINGLE, MEANT = 1e-5, 1e-7
"""How wide values are where PyMC holds constants in single precision, and how far from those of the function meant."""

# Of scalars x and y in (0, 1), vectors v and b, a matrix m and a whole number k.
GRAPHS = {
    "arithmetic": lambda x, y, **_: x + 2 * y - x * y / (1 + x) - (-y),
    "powers": lambda x, y, **_: x**2 + y**-1 + x**y + x**0.5 + (x - 0.5) ** 3 + pt.sqr(y) ** -2,
    "a scale as a precision": lambda x, y, **_: x**-2 * pt.sqr(y - 3),
    "logarithms": lambda x, y, **_: pt.log(x) + pt.log1p(y) + pt.log2(x) + pt.log10(y) + pt.log(x * y) + pt.log(x / y),
    "exponentials": lambda x, y, **_: pt.exp(-x) + pt.expm1(y) + pt.sigmoid(x) + pt.softplus(y) + pt.log1mexp(-x),
    "roots": lambda x, y, **_: pt.sqrt(x) + pt.log(pt.sqrt(y)) + pt.reciprocal(x),
    "trigonometry": lambda x, y, **_: pt.sin(5 * x) + pt.cos(9 * y) + pt.tan(x) + pt.arctan(y) + pt.arcsin(x),
    "hyperbolic": lambda x, y, **_: pt.sinh(x) + pt.cosh(y) + pt.tanh(x) + pt.arcsinh(y) + pt.arctanh(x),
    "gamma": lambda x, y, **_: pt.gammaln(x) + pt.digamma(y) + pt.gamma(x + 1) + pt.tri_gamma(y),
    "error functions": lambda x, y, **_: pt.erf(x) + pt.erfc(y) + pt.erfcx(x) + pt.log(0.5 * pt.erfc(-y)),
    "Bessel": lambda x, y, **_: pt.log(pt.i0(4 * x)) + pt.i1(y) + pt.log(pt.ive(0, x)),
    "integrals": lambda x, y, **_: pt.gammainc(1 + x, y) + pt.gammaincc(2.0, x) + pt.betainc(x, y, 0.3),
    "a beta's second shape is 1": lambda x, y, **_: pt.betainc(1 + x, 1, y) + pt.log(pt.betainc(x, 1, y)),
    "comparisons": lambda x, y, **_: pt.switch(x > y, x, y) + pt.switch(pt.le(x, 0.5), 1.0, x) + pt.eq(x, y),
    "logic": lambda x, y, **_: pt.switch(pt.and_(x > 0.2, y < 0.7), x, pt.switch(pt.or_(x > 0.9, y > 0.9), y, 0)),
    "steps": lambda x, y, k, **_: pt.floor(3 * x) + pt.ceil(2 * y) + pt.sign(x - 0.5) + pt.abs(y - 0.5) + pt.round(x),
    "whole numbers": lambda x, k, **_: k * pt.log(x) - pt.gammaln(k + 1) + pt.switch(pt.eq(k, 2), x, 0.0),
    "casts": lambda x, k, **_: pt.cast(k, "float32") * x + pt.cast(x, "float32"),
    "casts to whole numbers": lambda x, y, **_: pt.cast(9 * x - 4, "int64") * y + pt.cast(pt.cast(x, "bool"), "int8"),
    "axes joined and split": lambda m, v, **_: (pt.join_dims(m) * pt.split_dims(v, shape=(3, 1)).sum(axis=1)[0])[4],
    "extremes": lambda x, y, v, **_: pt.maximum(x, y) + pt.minimum(x, y) + pt.clip(x, 0.2, 0.4) + v.max() - v.min(),
    "reductions": lambda v, m, **_: v.sum() + v.prod() + m.sum(axis=0)[1] + m.mean() + m.sum(axis=1).prod(),
    "shapes": lambda v, m, **_: m.T[0, 1] + m.reshape((3, 2))[2, 0] + v[::-1][0] + m[:, 1:].sum() + v[None].sum(),
    "broadcasting": lambda x, v, m, b, **_: (m + v + x + b * m).sum() + (b + v).prod(),
    "joins": lambda x, y, v, **_: pt.concatenate([v, pt.stack([x, y])])[3] + pt.stack([v, v * x], axis=1).sum(),
    "allocation": lambda x, v, **_: pt.full((2,), x).sum() + pt.alloc(v, 2, 3)[1, 2] + pt.ones_like(v).sum() * x,
    "fixed indices": lambda v, m, **_: v[np.array([2, 0])].sum() + m[np.array([0, 1]), np.array([1, 2])].prod(),
    "products": lambda v, m, **_: pt.dot(m, v)[0] + pt.dot(v, v) + (m @ m.T)[0, 1],
    "softmax": lambda v, m, **_: pt.special.softmax(v)[0] + pt.log(pt.special.softmax(m, axis=1))[1, 2],
    "log softmax": lambda v, m, **_: pt.special.log_softmax(v)[1] + pt.logsumexp(m) + pt.logsumexp(m, axis=0)[2],
    "sums of exponentials": lambda x, y, **_: pt.logaddexp(x, y) + pt.log(pt.exp(x) + pt.exp(y)),
    "the normal's distribution function": lambda x, y, **_: dist_math.normal_lcdf(x, 0.5, 8 * y - 4),
    "its tail": lambda x, y, **_: dist_math.normal_lccdf(0.1, x, 6 * y - 3),
    "between two ends": lambda x, y, **_: dist_math.log_diff_normal_cdf(0, x, 1 + y, y - 1),
    "between two ends above": lambda x, y, **_: dist_math.log_diff_normal_cdf(0, x + 0.5, 2 + y, y + 1),
    "between two ends below": lambda x, y, **_: dist_math.log_diff_normal_cdf(0, x + 0.5, -1 - y / 2, -2.5 + x),
    "one and an error function": lambda x, y, **_: pt.log(1 + pt.erf(3 * (x - y))) + pt.log(1 - pt.erf(x)),
    "a share": lambda x, y, **_: pt.log(1 + (y - 0.5) / pt.sqrt(x + pt.sqr(y - 0.5))),
    "logarithms of differences": lambda x, y, **_: pt.log(pt.sigmoid(x + 1) - pt.sigmoid(x)) + pt.log(1 - pt.exp(-y)),
}


def inputs():
    dtypes = {K: "int64"}
    return {name: pt.tensor(name, dtype=dtypes.get(name, "float64"), shape=shape) for name, shape in SHAPES.items()}


def symbols(variables):
    return {
        var: leaf(
            Symbol(
                name=name,
                low=np.full(SHAPES[name], 0.0 if name == K else LOW),
                high=np.full(SHAPES[name], 6.0 if name == K else HIGH),
                integer=name == K,
            )
        )
        for name, var in variables.items()
    }


def drawn(rng):
    """Points of every input; corners among them."""
    points = {name: rng.uniform(LOW, HIGH, (POINTS, *shape)) for name, shape in SHAPES.items()}
    for name, values in points.items():
        ends = rng.choice([LOW, HIGH], values.shape)
        points[name] = np.where(rng.random(values.shape) < 0.3, ends, values)
    points[K] = rng.integers(0, 7, POINTS)
    return points


def evaluated(graph, variables, points):
    with pytensor.config.change_flags(cxx=""):
        function = pytensor.function(
            list(variables.values()), graph, mode="FAST_COMPILE", on_unused_input="ignore", allow_input_downcast=True
        )
    return np.array([float(function(*(points[name][at] for name in variables))) for at in range(POINTS)])


def enclosed(expression, variables, points, ends=None):
    """Lower and upper ends of an expression at points, or on boxes from them to others."""
    tape = Tape([expression])

    def flat(given):
        parts = [np.asarray(given[symbol.name], dtype=float).reshape(POINTS, -1) for symbol in tape.symbols]
        return np.concatenate([np.zeros((POINTS, 0)), *parts], axis=1)

    (found,) = tape(flat(points), flat(points if ends is None else ends))
    return found


@pytest.mark.few(29)
@pytest.mark.parametrize("name", GRAPHS)
def test_values_are_those_of_the_compiled_graph(name, rng):
    variables, points = inputs(), drawn(rng)
    graph = GRAPHS[name](**variables)
    expected = evaluated(graph, variables, points)
    found = enclosed(lowered(graph, symbols(variables)), variables, points)
    assert np.isfinite(expected).all()
    size = 1 + np.abs(expected)
    assert np.all(found.low <= expected + MEANT * size) and np.all(expected - MEANT * size <= found.high)
    assert np.all(found.high - found.low <= SINGLE * size)


@pytest.mark.few(29)
@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_hold_the_values_of_all_their_points(name, rng):
    variables, first, second = inputs(), drawn(rng), drawn(rng)
    graph = GRAPHS[name](**variables)
    low, high = ({key: pick(first[key], second[key]) for key in first} for pick in (np.minimum, np.maximum))
    between = {key: low[key] + (high[key] - low[key]) * rng.random(low[key].shape) for key in low}
    between[K] = np.clip(np.rint(between[K]), low[K], high[K]).astype(int)
    expected = evaluated(graph, variables, between)
    found = enclosed(lowered(graph, symbols(variables)), variables, low, high)
    room = MEANT * (1 + np.abs(expected))
    assert np.all(found.low <= expected + room) and np.all(expected - room <= found.high)


def test_equal_operations_on_equal_inputs_are_one_node():
    variables = inputs()
    x = variables[X]
    expression = lowered(pt.exp(x) - pt.exp(x), symbols(variables))
    assert expression.inputs[0] is expression.inputs[1]


REFUSED = {
    "J0": lambda x, **_: pt.j0(x),
    "half precision": lambda x, **_: pt.cast(x, "float16") * 1.0,
    "Cholesky": lambda m, **_: pt.linalg.cholesky(m @ m.T)[0, 0],
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_without_a_rule_is_named(name):
    variables = inputs()
    with pytest.raises(UnknownOperation, match=name):
        lowered(REFUSED[name](**variables), symbols(variables))


def test_what_single_precision_rounds_is_within_the_ends(rng):
    variables, points = inputs(), drawn(rng)
    expression = lowered(pt.cast(variables[X] * 1e3, "float32"), symbols(variables))
    found = enclosed(expression, variables, points)
    expected = (points[X] * 1e3).astype(np.float32).astype(float)
    assert np.all((found.low <= expected) & (expected <= found.high)) and np.all(found.high > found.low)


def of_whole_numbers(build, dtype, high):
    """The enclosure of an expression of a vector of two whole numbers, and its values at the ends."""
    q = pt.tensor("q", dtype=dtype, shape=(2,))
    graph = build(q)
    symbol = Symbol(name="q", low=np.zeros(2), high=np.full(2, float(high)), integer=True, role="row")
    tape = Tape([lowered(graph, {q: leaf(symbol)})])
    at = np.array([[0, 0], [high, 0], [0, high], [high, high]])
    (found,) = tape(tape.low[None], tape.high[None])
    return found, np.array([graph.eval({q: one.astype(dtype)}, mode="FAST_COMPILE") for one in at], dtype=float)


@pytest.mark.parametrize(
    ("build", "dtype", "high"),
    [
        (lambda q: q.sum(dtype="int8"), "int8", 100),
        (lambda q: q.prod(dtype="int8", acc_dtype="int8"), "int8", 15),
        (lambda q: pt.dot(q, q), "int32", 100_000),
    ],
)
def test_sums_and_products_that_wrap_around_are_not_taken_for_their_true_values(build, dtype, high):
    found, values = of_whole_numbers(build, dtype, high)
    assert values.min() < 0  # although all terms are 0 or above
    assert found.flags[0] or (found.low[0] <= values.min() and values.max() <= found.high[0])


def test_sums_that_fit_keep_their_bounds():
    found, values = of_whole_numbers(lambda q: q.sum(dtype="int8"), "int8", 60)
    assert (found.low[0], found.high[0], found.flags[0]) == (0, 120, 0) == (values.min(), values.max(), 0)


def test_one_and_one_is_one_of_booleans():
    """(p + q) - p is 0 where both are true: taken for 1, it would not seem to change with p."""
    p, q = (pt.scalar(name, dtype="bool") for name in "pq")
    graph = (p + q) - pt.cast(p, "float64")
    assert graph.eval({p: True, q: True}, mode="FAST_COMPILE") == 0
    known = {var: leaf(Symbol(name=var.name, low=np.zeros(()), high=np.ones(()), integer=True)) for var in (p, q)}
    with pytest.raises(UnknownOperation, match="a sum of booleans"):
        lowered(graph, known)
