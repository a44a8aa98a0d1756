import numpy as np
import pytest

from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.network import Network, Node
from tests.networks import BAYES, CHAIN, COLLIDER, TRIANGLE, added, all_rows, network_of

CASES = [(TRIANGLE, {}), (COLLIDER, {}), (COLLIDER, {"b": 3}), (BAYES, {"y": 4}), (CHAIN, {"c": 5, "d": 3})]


def chain(length):
    nodes = tuple(Node(name=f"x{i}", n_levels=2, parents=(i - 1,) if i else ()) for i in range(length))
    return Network(nodes=nodes)


def random_network(rng, n_nodes, in_degree):
    parents = [tuple(sorted(rng.choice(i, min(i, in_degree), replace=False).tolist())) for i in range(n_nodes)]
    return Network(nodes=tuple(Node(name=f"x{i}", n_levels=2, parents=given) for i, given in enumerate(parents)))


def tables_of(network, rows):
    found = []
    for place in range(len(network.nodes)):
        table = np.zeros(network.shape(place), dtype=np.int64)
        np.add.at(table, tuple(rows[:, list(network.family(place))].T), 1)
        found.append(table)
    return found


@pytest.mark.parametrize(("graph", "levels"), CASES)
def test_coefficients_are_the_downward_closure_of_the_families_each_once(graph, levels):
    network = network_of(graph, levels)
    sums = NetworkSums(network=network, sized=True)
    within = set()
    for place in range(len(network.nodes)):
        for row in np.ndindex(*network.shape(place)):
            pairs = zip(network.family(place), row, strict=True)
            within.add(tuple(sorted((node, function) for node, function in pairs if function)))
    assert len(sums.coefficients) == len(set(sums.coefficients)) == len(set(sums.labels))
    assert set(sums.coefficients) == within
    assert sums.coefficients[0] == ()
    assert NetworkSums(network=network, sized=False).coefficients == sums.coefficients[1:]


@pytest.mark.parametrize(("graph", "levels"), CASES)
def test_sums_of_rows_are_those_of_their_tables(graph, levels, rng):
    network = network_of(graph, levels)
    sums = NetworkSums(network=network, sized=True)
    rows = np.array(all_rows(network))[rng.integers(len(all_rows(network)), size=40)]
    expected = np.sum([added(sums, row) for row in rows], axis=0)
    np.testing.assert_array_equal(sums.exact(tables_of(network, rows)), expected.astype(np.int64))


@pytest.mark.parametrize(("graph", "levels"), CASES)
def test_exact_coefficients_give_the_exact_tables_back(graph, levels, rng):
    network = network_of(graph, levels)
    sums = NetworkSums(network=network, sized=False)
    rows = np.array(all_rows(network))[rng.integers(len(all_rows(network)), size=1000)]
    exact = tables_of(network, rows)
    found = sums.tables(sums.exact(exact) * sums.step, 1000)
    for table, expected in zip(found, exact, strict=True):
        # Products that are no whole numbers are off by half a grid step for each row at most.
        np.testing.assert_allclose(table.ravel(), expected.ravel(), atol=1e-9 if sums.whole else 1000 * sums.step)
