"""Rows that count for public nodes: sums are Lipschitz in the rows, whatever numbers the nodes have."""

import numpy as np
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.inspection.rows import Column
from pymc_dp.step_methods.row_functions import NodeBound, Nodes

POINTS = np.arange(3.0)


def used(nodes, rows):
    """Rows as nodes have them: real numbers on a grid of their own, written out once more."""
    axes, found = iter(nodes.axes), []
    for row in rows:
        flat = row.reshape(len(row), -1).astype(float)
        for entry in range(flat.shape[1]):
            axis = next(axes)
            if axis.bits is not None:
                grid = axis.step / 2**axis.bits
                flat[:, entry] = axis.low + np.rint((flat[:, entry] - axis.low) / grid) * grid
        found.append(flat.reshape(row.shape))
    return found


def column(name, low, high, dtype="float64", shape=(), **given):
    return Column(name=name, leaf=leaf(name, dtype, shape), bounds=(low, high), **given)


def leaf(name, dtype="float64", shape=()):
    return pytensor.shared(np.zeros((1, *shape), dtype=dtype), name=name)


X, Y = column("x", -3.0, 3.0), column("y", 0.0, 10.0)
K = column("k", 0, 4, "int64")
W = column("w", -1.0, 1.0, shape=(2,))
CASES = {
    "one number": ([X], dp.metrics.L1({"x": 0.1})),
    "two numbers": ([X, Y], dp.metrics.L2({"x": 2.0, "y": 0.5})),
    "two numbers, added": ([X, Y], dp.metrics.L1({"x": 2.0, "y": 0.5})),
    "a level": ([K], dp.metrics.Hamming("k")),
    "a count": ([K], dp.metrics.L1("k")),
    "a number and a level": ([X, K], dp.metrics.L1("x") + dp.metrics.Hamming({"k": 3.0})),
    "numbers told apart": ([X, Y], dp.metrics.Hamming({"x": 1.0, "y": 2.0})),
    "a vector": ([W], dp.metrics.L2("w")),
    "a vector, added": ([W, K], dp.metrics.L1({"w": 0.3, "k": 1.0})),
    "whole rows": ([X, K], dp.metrics.Hamming()),
    "a place": ([column("lat", 46, 49), column("lon", 9, 17)], dp.metrics.Geographic("lat", "lon", 0.01)),
    "a public level": ([X, column("g", 0, 2, "int64", public=True)], dp.metrics.L1("x")),
}
every_case = pytest.mark.parametrize("name", CASES)


def nodes_of(name, n_rows=30):
    return Nodes.of(*CASES[name], n_rows)


def pairs(name, rng, count):
    """Pairs of tables of which one row, or all, moved by anything between nothing and all there is."""
    columns, _ = CASES[name]
    for turn in range(count):
        n = int(rng.choice([1, 2, 30]))
        moved = rng.random(n) < (1.0 if turn % 4 == 0 else 0.0)
        moved[rng.integers(n)] = True
        one, two = [], []
        for item in columns:
            (low, high), shape = item.bounds, (n, *item.leaf.get_value().shape[1:])
            values = np.where(rng.random(shape) < 0.3, rng.choice([low, high], shape), rng.uniform(low, high, shape))
            other = np.clip(
                values + 10.0 ** rng.uniform(-9, 0) * (high - low) * rng.choice([-1, 0, 1], shape), low, high
            )
            if item.integer:
                values, other = np.rint(values), rng.integers(low, high, shape, endpoint=True)
            stays = item.public or rng.random() < 0.3
            other = np.where(moved.reshape(-1, *(1,) * (len(shape) - 1)) & (not stays), other, values)
            one.append(values.astype(item.leaf.type.dtype))
            two.append(other.astype(item.leaf.type.dtype))
        yield one, two


def distance(nodes, one, two):
    columns = [axis.column for axis in nodes.axes if axis.entry == 0]
    tables = [dict(zip([item.name for item in columns], used(nodes, rows), strict=True)) for rows in (one, two)]
    kept = nodes.metric.columns or [item.name for item in columns]
    return float(nodes.metric.distance(*({name: table[name] for name in kept} for table in tables)).sum())


def worst(nodes, tables, sums, shares=1):
    """Largest difference over two points, of sums of two tables, per unit of their distance."""
    found = 0.0
    for one, two in tables:
        apart = distance(nodes, one, two)
        change = sums(one).astype(object) - sums(two).astype(object)  # Python's integers, where sums are whole
        moved = float(max(change) - min(change)) / shares
        if apart == 0:
            assert moved == 0
        else:
            found = max(found, moved / apart)
    return found


@every_case
def test_sums_move_by_no_more_than_their_nodes_say(name, rng):
    nodes = nodes_of(name)
    table = rng.integers(-(2**19), 2**19, (3, nodes.count))
    table[:, rng.random(nodes.count) < 0.7] //= 50  # few steep places
    found = worst(nodes, pairs(name, rng, 150), lambda rows: table @ nodes.weights(rows), nodes.shares)
    assert 0 < found <= nodes.per_unit(table) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["one number", "a level", "a count", "two numbers, added", "whole rows", "a vector"])
def test_what_nodes_say_is_nearly_reached(name, rng):
    """A steep plane, or levels far apart: half of the constant would be too little."""
    nodes = nodes_of(name)
    flat = np.concatenate([item.reshape(nodes.count, -1) for item in nodes.columns], axis=1)
    table = np.stack([np.zeros(nodes.count), np.rint(flat @ rng.uniform(1, 2, flat.shape[1]) * 2.0**14)]).astype(int)
    found = worst(nodes, pairs(name, rng, 300), lambda rows: table @ nodes.weights(rows), nodes.shares)
    assert found > nodes.per_unit(table) / 2 * 1.1


@pytest.mark.few(2)
@pytest.mark.parametrize("hostile", ["jumps", "steep", "not numbers", "impossible", "huge"])
def test_whatever_a_density_returns_no_sum_is_steeper_than_is_charged(hostile, rng):
    nodes, charge = nodes_of("two numbers"), 0.7
    noise = rng.normal(size=(3, nodes.count))
    values = {
        "jumps": 50 * np.sign(noise),
        "steep": np.arange(3)[:, None] * (1e3 * nodes.columns[0]),
        "not numbers": np.where(noise > 1, np.nan, noise),
        "impossible": np.where(noise > 1, -np.inf, noise),
        "huge": 1e300 * noise,
    }[hostile]
    bound = NodeBound(nodes=nodes, most=charge)

    def sums(rows):
        return bound.total(lambda points, _: values[points.astype(int)], POINTS, nodes.columns, nodes.weights(rows))

    for one, two in pairs("two numbers", rng, 150):
        change = sums(one) - sums(two)
        size = 1e-12 * (1 + abs(sums(one)).max())
        assert np.ptp(change) <= charge * distance(nodes, one, two) + size
    assert np.isfinite(sums(next(pairs("two numbers", rng, 1))[0])).all()


@pytest.mark.parametrize(
    "columns",
    [
        [Column(name="x", leaf=leaf("x"), bounds=None)],
        [column("x", 0.0, 1.0, shape=(9,))],
        [column("x", 0, 10**6, "int64")],
        [column("x", 0.0, 1.0, public=True), K],
    ],
)
def test_rows_that_have_no_nodes_are_refused(columns):
    with pytest.raises(dp.errors.UnsupportedModelError, match="under a metric"):
        Nodes.of(columns, dp.metrics.L1(["x"]) if not columns[0].public else dp.metrics.L1("k"), 10)
