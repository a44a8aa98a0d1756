"""Row maps are untrusted: whatever they compute, a row's numbers are a function of that row; nothing else is read."""

import itertools
from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import scalar
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.graph.basic import Apply
from pytensor.raise_op import Assert
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor import extra_ops
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import Column, Columns, Interval, OneHot, RowMap, Table, rowmap
from pymc_dp.testing import without_noise
from tests.kernel.pairs import exp_down, kernel, spread_of_ratios

X, T, G = pt.scalar("x"), pt.vector("t"), pt.scalar("g", dtype="int64")


@pytest.fixture(scope="module")
def hostile():
    """A check that raises, a logarithm of what is below 0, products, and an index that is read at an index."""
    x, t, q = pt.vector("x", shape=(2,)), pt.matrix("t", shape=(None, 2)), pt.vector("q")
    places, g = pt.vector("places", shape=(3,), dtype="int64"), pt.scalar("g", dtype="int64")
    return RowMap({"x": x, "g": g}, [t, places, q], Assert("no")(pt.log(x[0]), x[1] >= 0.1) * (t @ x) + q[places[g]])


@pytest.fixture
def blocks(monkeypatch):
    monkeypatch.setattr(rowmap, "ENOUGH", 0)


POINTS = np.arange(1.0, 5.0).reshape(2, 2)
PLACES = np.array([0, 1, 10**9])


def test_an_index_beyond_its_axis_reads_nothing_else(hostile):
    """Compiled code need not check: it would read what lies beside, which may be other rows."""
    g = np.array([0, 1, 2, 3, 10**6, -1, -(10**9)])
    out = hostile.on({"x": np.ones((7, 2)), "g": g}, [POINTS, PLACES, [10.0, 20.0]], 2)
    assert out[:, 0].tolist() == [10, 20, 20, 20, 20, 20, 10]


def test_every_index_is_held_also_one_that_two_axes_share():
    g, m, q = pt.scalar("g", dtype="int64"), pt.matrix("m", shape=(3, 5)), pt.vector("q")
    inner = OpFromGraph([q, g], [q[g] * 2 - q[g]])(q, g)
    output = rowmap.prepared(m[g, g] + inner + q[pt.stack([g, g + 10**9])].sum() + m[:, g].sum())
    for at, held in [(0, (0, 0)), (3, (2, 3)), (9, (2, 4)), (-1, (2, 4)), (-9, (0, 0))]:
        found = output.eval({g: at, m: np.arange(15.0).reshape(3, 5), q: [1.0, 2.0]}, mode="FAST_COMPILE")
        place = min(max(at + 2 * (at < 0), 0), 1)
        assert found == 5 * held[0] + held[1] + 2 * (1 + place) + 2 + 3 * held[1] + 15

    with pytest.raises(AssertionError, match="empty"):
        output.eval({g: 0, m: np.zeros((3, 5)), q: []}, mode="FAST_COMPILE")


def test_numbers_are_added_in_order_without_fast_arithmetic():
    """Reassociated, a sum would have other last bits on another machine; and NaN would be undefined."""
    a, rng = pt.vector("a", shape=(64,)), np.random.default_rng(0)
    rows = rng.normal(size=(2, 64)) * 10.0 ** rng.integers(-8, 8, 64)
    made = RowMap({"a": a}, [], pt.stack([a.sum(), pt.isnan(pt.log(a)).sum()]))
    ordered = [list(itertools.accumulate(row.tolist()))[-1] for row in rows]
    assert made.on({"a": rows}, [], 2).tolist() == [
        [total, (row < 0).sum()] for total, row in zip(ordered, rows, strict=True)
    ]


def test_an_axis_that_is_empty_gives_nan(hostile):
    out = hostile.on({"x": np.ones((2, 2)), "g": [0, 1]}, [POINTS, PLACES, np.zeros(0)], 2)
    assert np.isnan(out).all()


def test_a_row_that_raises_is_nan_and_no_other_row_is(hostile):
    rows = np.array([[1.0, 0.0], [1.0, 0.5], [-1.0, 0.5], [0.0, 0.5]])
    out = hostile.on({"x": rows, "g": np.zeros(4, dtype=int)}, [POINTS, PLACES, [1.0]], 2)
    assert np.isnan(out[[0, 2]]).all() and np.isfinite(out[1]).all() and (out[3] == -np.inf).all()


def test_a_row_has_the_same_bits_wherever_it_stands(hostile, blocks):
    """Row by row everywhere; in blocks, whoever stands beside it, also where another one raises or is NaN."""
    rng = np.random.default_rng(0)
    rows, g = rng.random((256, 2)), rng.integers(0, 3, 256)
    given = [POINTS, PLACES, np.ones(2)]
    alone = hostile.on({"x": rows, "g": g}, given, 2)
    for start in (1, 3, 50):
        assert np.array_equal(hostile.on({"x": rows[start:], "g": g[start:]}, given, 2), alone[start:], equal_nan=True)
    one, two, three = np.empty((3, 250, 2))
    hostile([rows[:250], g[:250]], given, one, by_blocks=True)
    assert hostile._blocks is not None
    other = rows[:250].copy()
    other[70] = [-1.0, np.inf]
    hostile([other, g[:250]], given, two, by_blocks=True)
    rest = np.arange(250) != 70
    assert np.array_equal(one[rest], two[rest], equal_nan=True) and np.isnan(two[70]).all()
    assert np.allclose(one, alone[:250], equal_nan=True)
    assert (np.isnan(one[:, 0]) == (rows[:250, 1] < 0.1)).all()
    hostile([rows[:250], g[:250]], [POINTS, PLACES, np.zeros(0)], three, by_blocks=True)
    assert np.isnan(three).all()  # each block raises, and so does each of its rows
    hostile([rows[:250], g[:250]], [POINTS[:1], PLACES, np.ones(2)], three, by_blocks=True)
    assert np.isnan(three).all()  # of another length than was asked for


def stated(like, shape):
    """The same operation, made by hand: of another shape than it has."""
    node = like.owner
    return Apply(node.op, list(node.inputs), [pt.TensorType(like.type.dtype, shape)()]).outputs[0]


V, I2 = pt.tensor("v", dtype="float64", shape=(4,)), pt.stack([G, G + 4])
FAR = (100_000,)
FORGED = {
    "slice": lambda: stated(V[1:], FAR)[I2],
    "single": lambda: pt.stack([stated(V[1:], FAR)[G], stated(V[1:], FAR)[G + 4]]),
    "copy": lambda: stated(-V, FAR)[I2],
    "axes": lambda: stated(V.dimshuffle("x", 0), (1, *FAR))[:, I2].sum(axis=0),
    "inner": lambda: OpFromGraph([V, G], [stated(V[1:], FAR)[I2]])(V, G),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_shape_that_a_graph_states_is_not_believed(name):
    """An index held within a length that is not true would read the rows beside."""
    made, found = RowMap({"v": V, "g": G}, [], FORGED[name]()), []
    for other in (0.0, 50.0):
        out = np.empty((3, 2))
        made([np.array([[1.0] * 4, [other] * 4, [2.0] * 4]), np.zeros(3, dtype=int)], [], out, by_blocks=False)
        found.append(out[[0, 2]].tolist())
    assert found[0] == found[1] and np.abs(found[0]).tolist() == [[1, 1], [2, 2]]


def test_inputs_of_another_class_of_types_are_refused():
    class Stated(pt.TensorType):
        pass

    for row, parameters in (({"v": Stated("float64", (4,))()}, []), ({"x": X}, [Stated("float64", (4,))()])):
        with pytest.raises(ArgumentError, match="tensors of PyTensor"):
            RowMap(row, parameters, pt.stack([X]))


class Two(dict):
    """A mapping that shows other variables when it is asked again."""

    def items(self):
        return {"x": pt.vector(shape=(1,))}.items()


def test_what_is_read_is_what_was_compiled(blocks):
    """A shape, a node or a constant that is changed after the check would be trusted in compiled code."""
    x, p, at = pt.vector("x", shape=(3,)), pt.vector("p", shape=(4,)), pt.constant(np.array([0, 2]))
    output = pt.exp(x)[at] + p[G]
    made = RowMap(Two(x=x, g=G), [p], output)
    assert made.types == {"x": ("float64", (3,)), "g": ("int64", ())}
    with pytest.raises(AttributeError):
        made.types = {}
    made.types["x"] = ("float64", (1,))  # of a copy
    found = made.on({"x": np.zeros((64, 3)), "g": np.ones(64, dtype=int)}, [np.ones(4)], 2)
    p.type, x.type = (pt.TensorType("float64", (1,)) for _ in range(2))
    at.data[:] = 10**9
    for node in pytensor.graph.traversal.toposort([output]):
        node.op = Elemwise(scalar.exp)
    with pytest.raises(ArgumentError, match="shape"):
        made.arguments([np.ones(1)])
    with pytest.raises(ArgumentError, match="shape"):
        made.check_columns({"x": Column(np.zeros((2, 1)), 0.0, 1.0), "g": Column(np.zeros(2, dtype=int), 0, 1)})
    out = np.empty((64, 2))
    made([np.zeros((64, 3)), np.ones(64, dtype=int)], [np.ones(4)], out, by_blocks=True)
    assert made._blocks is not None and np.array_equal(out, found) and (out == 2).all()


def test_the_vectorised_graph_is_checked_too(blocks, monkeypatch):
    made = RowMap({"x": X}, [], pt.stack([X, X]))
    monkeypatch.setattr(rowmap, "vectorize_graph", lambda *_: pt.empty((rowmap.BLOCK, 2)))
    out = np.empty((64, 2))
    made([np.zeros(64)], [], out, by_blocks=True)
    assert made._blocks is None and (out == 0).all()


def test_axes_that_a_vectorised_operation_states_are_not_believed():
    """Which axes are alike decides what PyTensor takes for their lengths."""
    made = Blockwise(extra_ops.CumOp(axis=0), signature="(a)->(b)")(pt.stack([V, V]))
    assert rowmap.rebuilt(made, {}).owner.op.signature == "(i00)->(o00)"


def test_a_shape_that_a_graph_states_is_not_written_beyond():
    forged = pt.set_subtensor(stated(-V, FAR)[G], 5.0)
    made = RowMap({"v": V, "g": G}, [], forged[:4])
    assert made.on({"v": np.ones((2, 4)), "g": [1, 90]}, [], 4).tolist() == [[-1, 5, -1, -1], [-1, -1, -1, 5]]
    short = stated(pt.concatenate([V, V]), (2,))
    with pytest.raises(ArgumentError):  # eight numbers that are said to be two, at the place of two
        RowMap({"v": V, "g": G}, [], pt.set_subtensor(V[:2], short))
    with pytest.raises(ArgumentError, match="states"):
        RowMap({"v": V, "g": G}, [], Apply((-V).owner.op, [V], [pt.TensorType("int64", (4,))()]).outputs[0])


def test_gradients_write_within_the_place_of_an_index():
    g, level, x = pt.scalar("g", dtype="int64"), pt.vector("level", shape=(4,)), pt.scalar("x")
    made = RowMap({"g": g, "x": x}, [level], pt.grad((level[g] * x) ** 2, level))
    out = made.on({"g": [1, 7, -9], "x": [1.0, 2.0, 3.0]}, [np.ones(4)], 4)
    assert out.tolist() == [[0, 2, 0, 0], [0, 0, 0, 8], [18, 0, 0, 0]]


def test_sums_of_products_are_computed_without_blas():
    x, y, m = pt.vector("x", shape=(3,)), pt.matrix("y", shape=(3, 4)), pt.matrix("m", shape=(2, 3))
    for output in (x @ y, m @ x, (m @ y)[0], pt.dot(x, x)[None], (m[None] @ y[None])[0, 0]):
        prepared = rowmap.prepared(output)
        names = {type(rowmap._core(node.op)).__name__ for node in pytensor.graph.traversal.toposort([prepared])}
        assert not {"Dot", "BatchedDot", "Dot22", "Gemv"} & names
        given = {x: np.arange(3.0), y: np.arange(12.0).reshape(3, 4), m: np.arange(6.0).reshape(2, 3)}
        given = {var: value for var, value in given.items() if var in set(pytensor.graph.traversal.ancestors([output]))}
        mode = "FAST_COMPILE"
        assert np.allclose(prepared.eval(given, mode=mode), output.eval(given, mode=mode))


def memory():
    @wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
    def op(value):
        return value

    return op(X)


def loop():
    """A graph within a scalar operation."""
    state = scalar.float64("state")
    return ScalarLoop(init=[state], update=[state * 2.0], constant=[])


REFUSED = {
    "shared variable 'table'": lambda: T * X + pytensor.shared(1.0, name="table"),
    "constant of 100": lambda: T * X + pt.constant(np.zeros(100)).sum(),
    "variable 'other'": lambda: T * X + pt.scalar("other"),
    "NormalRV": lambda: T * pm.Normal.dist(X, 1.0),
    "AllocEmpty": lambda: T * X + pt.empty(3).sum(),
    "FromFunctionOp": lambda: T * memory(),
    "Print": lambda: T * pytensor.printing.Print("row")(X),
    "runs as Python": lambda: T * pt.repeat(pt.ones((2, 2)) * X, pt.stack([G, G]), axis=0).sum(),
    "overwrite": lambda: Elemwise(scalar.add, inplace_pattern={0: 0})(T, X),
    "mask": lambda: T[T > X],
    "known shape": lambda: pt.set_subtensor(T[G], X),
    "slice that is computed": lambda: pt.set_subtensor(pt.zeros(4)[:G], 0.0),
    "place 7": lambda: T * pt.zeros(3)[7],
    "Cholesky": lambda: T * pt.linalg.cholesky(pt.eye(2) * X)[0, 0],
    "vector": lambda: X,
    "ScalarLoop": lambda: T * Elemwise(loop())(3, X),
    "inside of a graph 100": None,
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_function_of_a_row_is_refused(text):
    make = REFUSED[text]
    if make is None:
        text, output = "constant of 100", OpFromGraph([X], [X + pt.constant(np.zeros(100)).sum()])(X) * T
    else:
        output = make()
    with pytest.raises(ArgumentError, match=text):
        RowMap({"x": X, "g": G}, [T], output)


def test_constants_that_are_named_are_public():
    known = pt.constant(np.arange(100.0))
    made = RowMap({"x": X}, [T], T * X + known[99], public=[known])
    assert made.on({"x": [2.0]}, [np.ones(2)], 2).tolist() == [[101, 101]]
    assert len(made.arguments([np.ones(5)])) == 1


def test_inputs_of_other_shapes_than_compiled_are_refused(hostile):
    """Compiled code trusts shapes: what is shorter would be read beyond its end."""
    for given, text in [
        ([np.zeros((1, 3)), PLACES, [1.0]], "shape"),
        ([POINTS, PLACES[:2], [1.0]], "shape"),
        ([POINTS, PLACES], "takes 3"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            hostile.arguments(given)
    columns = {"x": Column(np.zeros((2, 3)), 0.0, 1.0), "g": Column(np.zeros(2, dtype=int), 0, 1)}
    with pytest.raises(ArgumentError, match="shape"):
        hostile.check_columns(columns)
    with pytest.raises(ArgumentError, match="no column"):
        hostile.check_columns({})


def test_nan_is_seen_behind_fast_arithmetic(hostile):
    """PyTensor compiles so that NaN is undefined; row maps are compiled without, and limits look at memory."""
    from pymc_dp.kernel import limits

    out = hostile.on({"x": [[-1.0, 1.0], [1.0, 1.0]], "g": [0, 0]}, [POINTS, PLACES, [1.0]], 2)
    total = np.zeros((1, 2), dtype=np.int64)
    limits.add_spans(out, np.arange(3), np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), 1.0, 100, total)
    alone = np.zeros((1, 2), dtype=np.int64)
    limits.add_spans(out[1:], np.arange(2), np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1.0, 100, alone)
    assert (total == alone).all()


def test_hostile_rows_through_a_compiled_graph_use_no_more_than_charged(weights):
    """Logarithms of 0, overflow, cancellation, division by 0: choices of neighbours as exact fractions."""
    x, t = pt.vector("x", shape=(3,)), pt.vector("t")
    output = pt.log(x[0] - x[1]) * t + pt.exp(800 * x[2] * t) - pt.exp(800 * x[2] * t + 1e-13) + x[0] / (x[1] - x[2])
    made, rng = RowMap({"x": x}, [t], output), np.random.default_rng(3)
    for trial in range(60):
        data = np.round(rng.uniform(-1, 1, (50, 3)), 1)
        other, eta = data.copy(), float(rng.uniform(0.01, 5))
        other[7] = np.round(rng.uniform(-1, 1, 3), 1)
        neighbours = "replace" if trial % 2 else "add_remove"
        for held in (data, other if neighbours == "replace" else np.delete(data, 7, 0)):
            k = kernel(Table({"x": Column(held, -1.0, 1.0)}, neighbours=neighbours))
            k.choose(made, [np.linspace(-1, 1, 9)], 9, width=2.0, eta=eta)
        (one,), (two,) = weights[-2:]
        assert spread_of_ratios(one, two) <= exp_down(Fraction(repr(k.made[-1][1].eta)))


def test_columns_as_they_are_need_no_graph():
    rng = np.random.default_rng(0)
    columns = {"x": Column(rng.normal(size=(5, 2)), -1.0, 1.0), "y": Column(np.arange(5), 0, 4)}
    k, given = kernel(Table(columns)), {"y": (2.0, 0.5), "x": (0.0, 1.0)}
    with without_noise():
        found = k.sums(Columns(given), [], Interval((-4, -1, -1), (4, 1, 1)), noise="laplace", scale=1.0)
    held = k._table.columns["x"].values
    assert found.tolist() == [0, *np.rint(held).sum(axis=0).astype(int)]
    out = np.empty((5, 2))
    Columns(given)([columns["y"].values, columns["x"].values], [], out, by_blocks=True)
    assert np.isnan(out).all()  # of another width than was asked for
    for bad, text in [({"z": (0.0, 1.0)}, "no columns"), ({"y": (0.0, 0.0)}, "unit"), ({}, "unit")]:
        with pytest.raises(ArgumentError, match=text):
            k.sums(Columns(bad), [], OneHot(5), noise="laplace", scale=1.0)
    with pytest.raises(ArgumentError, match="takes 0"):
        k.sums(Columns(given), [1.0], OneHot(5), noise="laplace", scale=1.0)


def test_densities_of_pymc_and_their_slopes_are_row_maps():
    a, b, g = pt.scalar("a"), pt.scalar("b"), pt.scalar("g", dtype="int64")
    many = pt.vector("many", shape=(3,))
    made = [
        pm.Bernoulli.dist(logit_p=many[g]),
        pm.Binomial.dist(n=9, p=pt.sigmoid(a)),
        pm.Poisson.dist(pt.exp(a)),
        pm.NegativeBinomial.dist(mu=pt.exp(a), alpha=pt.exp(b)),
        pm.Normal.dist(pt.dot(many, many), pt.exp(b)),
        pm.StudentT.dist(nu=4, mu=a, sigma=pt.exp(b)),
        pm.Gamma.dist(pt.exp(a), pt.exp(b)),
        pm.Beta.dist(pt.exp(a), pt.exp(b)),
        pm.Weibull.dist(pt.exp(a), pt.exp(b)),
        pm.Categorical.dist(logit_p=many),
        pm.OrderedLogistic.dist(eta=a, cutpoints=many),
        pm.NormalMixture.dist(w=pt.special.softmax(many), mu=many, sigma=1.0),
        pm.ZeroInflatedPoisson.dist(0.3, pt.exp(a)),
        pm.Truncated.dist(pm.Normal.dist(a, pt.exp(b)), 0, 3),
        pm.Censored.dist(pm.Normal.dist(a, pt.exp(b)), 0, 3),
        pm.DiscreteUniform.dist(0, 9),
        pm.Dirichlet.dist(pt.exp(many)),
    ]
    for variable in made:
        density = pm.logp(variable, variable.type("y"), warn_rvs=False)
        for output in (density, *pytensor.grad(density, [a, b, many], disconnected_inputs="ignore")):
            prepared = rowmap.prepared(output)
            assert prepared.type.dtype == output.type.dtype and prepared.type.ndim == output.type.ndim
