"""How far one row moves the coefficients of a network: against all pairs of rows."""

import numpy as np
import pytest

from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.network import Network, Node
from pymc_dp.release.network_layout import network_sensitivity
from tests.networks import COLLIDER, PAIR, added, all_rows, network_of

RELATIONS = ["replace", "add_remove"]


def chain(length):
    nodes = tuple(Node(name=f"x{i}", n_levels=2, parents=(i - 1,) if i else ()) for i in range(length))
    return Network(nodes=nodes)


def random_network(rng, n_nodes, in_degree):
    parents = [tuple(sorted(rng.choice(i, min(i, in_degree), replace=False).tolist())) for i in range(n_nodes)]
    return Network(nodes=tuple(Node(name=f"x{i}", n_levels=2, parents=given) for i, given in enumerate(parents)))


def moved_at_most(sums, relation):
    """Largest L1 and squared L2 sensitivity over all neighbouring tables: rows x and x', one by one."""
    rows = [added(sums, row) for row in all_rows(sums.network)]
    moves = rows if relation == "add_remove" else [one - other for one in rows for other in rows]
    return max(np.abs(move).sum() for move in moves), max((move**2).sum() for move in moves)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("most", [1, 4, 16])
def test_elimination_in_groups_is_a_bound(most, relation, monkeypatch, rng):
    monkeypatch.setattr("pymc_dp.release.network_layout.MOST_STATES", most)
    small = (PAIR, {"a": 3}), (PAIR, {"a": 4, "b": 5}), (COLLIDER, {"b": 3})
    cases = [*(network_of(graph, levels) for graph, levels in small), random_network(rng, 7, 3)]
    for network in cases:
        sums = NetworkSums(network=network, sized=relation == "add_remove")
        found, exact = network_sensitivity(sums, relation), moved_at_most(sums, relation)
        trivial = sum(int(np.abs(sums.steps_of(one)).max()) for one in sums.coefficients)
        assert exact[0] <= found.l1 <= trivial * (2 if relation == "replace" else 1)
        assert exact[1] <= found.l2_squared
        if relation == "replace" and most < 16:
            assert "bounded by" in found.reason


@pytest.mark.parametrize("length", [2, 5, 9, 60, 400])
def test_a_chain_of_any_length_is_exact(length):
    """Of nodes and edges, flips of every other node move the most: counted by a walk along the chain."""
    best = {0: 0, 1: 1}
    for _ in range(length - 1):
        best = {now: max(best[before] + now + (now != before) for before in (0, 1)) for now in (0, 1)}
    found = network_sensitivity(NetworkSums(network=chain(length), sized=False), "replace")
    assert found.l1 == 2 * max(best.values())
    assert found.l1 < 2 * (2 * length)  # of the paper: every coefficient
