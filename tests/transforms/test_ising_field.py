"""Fields of binary nodes: everything against the enumeration of all states, and what a release shows of a row."""

from itertools import combinations, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.families.stated import Stated, sums_of
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.stated import statement_of
from pymc_dp.kernel.shapes import GRID
from tests.families.vectors import plug_in_gaps

GRAPHS = {
    "pair": (2, [(0, 1)]),
    "triangle": (3, [(0, 1), (2, 1), (0, 2)]),
    "cycle": (4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "complete": (4, list(combinations(range(4), 2))),
    "star": (4, [(0, 1), (0, 2), (0, 3)]),
}
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def field_model(rows, graph="triangle", group=None):
    n_nodes, edges = GRAPHS[graph]
    with pm.Model(coords={"node": range(n_nodes), "edge": range(len(edges)), "level": range(2)}) as model:
        theta = pm.Normal("theta", 0, 1, dims=("node",) if group is None else ("level", "node"))
        phi = pm.Normal("phi", 0, 1, dims="edge")
        given = theta if group is None else theta[pm.Data("group", group)]
        dp.markov.IsingField("y", given, phi, edges=edges, observed=pm.Data("rows", rows))
    return model


def states_of(n_nodes):
    return np.array(list(product((0, 1), repeat=n_nodes)))


def statistics_of(rows, edges):
    spin = 2 * rows - 1
    return np.concatenate([spin, np.stack([spin[:, i] * spin[:, j] for i, j in edges], axis=1)], axis=1)


def probabilities(n_nodes, edges, theta, phi):
    y = states_of(n_nodes)
    energy = y @ theta + np.stack([y[:, i] * y[:, j] for i, j in edges], axis=1) @ phi
    return np.exp(energy) / np.exp(energy).sum()


@pytest.mark.parametrize("graph", GRAPHS)
def test_density_and_moments_are_those_of_the_enumeration(graph, rng):
    n_nodes, edges = GRAPHS[graph]
    theta, phi = rng.normal(size=n_nodes), rng.normal(size=len(edges))
    p, states = probabilities(n_nodes, edges, theta, phi), states_of(n_nodes)
    with pm.Model():
        y = dp.markov.IsingField("y", theta, phi, edges=edges, shape=(len(states), n_nodes))
    np.testing.assert_allclose(pm.logp(y, states).eval(mode="FAST_COMPILE"), np.log(p), atol=1e-10)
    family = Stated(statement_of(y))
    statistic = sums_of(family.statement)
    given = [item[None] for item in (theta, phi)]
    mean, covariance = plain_function([], list(family.moments([pt.as_tensor(item) for item in given], statistic)))()
    t = statistics_of(states, edges)
    np.testing.assert_allclose(mean[0], p @ t, atol=1e-12)
    np.testing.assert_allclose(covariance[0], (t * p[:, None]).T @ t - np.outer(p @ t, p @ t), atol=1e-12)


def test_the_largest_field_is_bounded_by_its_largest_cut():
    """Of 16 coupled nodes no pairs of rows are compared: those that differ in h nodes cut h (16 - h) edges."""
    edges = list(combinations(range(16), 2))
    with pm.Model():
        y = dp.markov.IsingField("y", np.zeros(16), np.zeros(len(edges)), edges=edges, shape=(3, 16))
    statistic = sums_of(statement_of(y))
    largest = max(h + h * (16 - h) for h in range(17))
    assert (statistic.spread, statistic.spread_squared) == (2 * largest * GRID, 4 * largest * GRID**2)
    assert statistic.magnitude == (16 + len(edges)) * GRID


@pytest.mark.parametrize("grouped", [False, True])
def test_plug_in_is_the_density_of_the_rows(grouped, rng):
    rows, group = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, 40)
    model = field_model(rows, group=group if grouped else None)
    shape = (2, 3) if grouped else (3,)
    points = [{"theta": rng.normal(size=shape), "phi": rng.normal(size=3)} for _ in range(4)]
    assert np.abs(plug_in_gaps(model, dp.Domain(public=("group",) if grouped else ()), points)).max() < 1e-9


@pytest.mark.parametrize(
    ("nodes", "couplings", "edges", "text"),
    [
        (17, 1, [(0, 1)], "2 to 16 nodes"),
        (1, 1, [(0, 1)], "2 to 16 nodes"),
        (3, 1, [(0, 3)], r"edges\[0\]\[1\] must be"),
        (3, 1, [(-1, 2)], r"edges\[0\]\[0\] must be"),
        (3, 2, [(0, 1), (1, 0)], "edges.1. is .1, 0. again"),
        (3, 1, [(1, 1)], "with itself"),
        (3, 1, [(0, 1, 2)], r"edges\[0\]"),
        (3, 1, [], "one pair at least"),
        (3, 1, [(0, 1), (1, 2)], "one entry per edge, 2, got 1"),
    ],
)
def test_what_is_no_graph_is_refused(nodes, couplings, edges, text):
    with pm.Model(), pytest.raises(dp.errors.ArgumentError, match=text):
        dp.markov.IsingField("y", np.zeros(nodes), np.zeros(couplings), edges=edges, shape=(2, nodes))
