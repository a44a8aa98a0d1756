import numpy as np
import pytest

from pymc_dp.families.characters import NetworkSums
from pymc_dp.release import network_layout as sensitivities
from pymc_dp.release.network_layout import network_sensitivity
from tests.families.test_characters import chain, random_network
from tests.networks import BAYES, CHAIN, COLLIDER, PAIR, TRIANGLE, added, all_rows, network_of

RELATIONS = ["replace", "add_remove"]
CASES = [
    (PAIR, {}), (TRIANGLE, {}), (COLLIDER, {}), (BAYES, {}), (CHAIN, {}),
    (PAIR, {"a": 3}), (PAIR, {"a": 4, "b": 5}), (COLLIDER, {"b": 3}), (BAYES, {"y": 4}), (TRIANGLE, {"a": 3, "c": 3}),
]  # fmt: skip


def moved_at_most(sums, relation):
    """Largest L1 and squared L2 sensitivity over all neighbouring tables: rows x and x', one by one."""
    rows = [added(sums, row) for row in all_rows(sums.network)]
    moves = rows if relation == "add_remove" else [one - other for one in rows for other in rows]
    return max(np.abs(move).sum() for move in moves), max((move**2).sum() for move in moves)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("most", [1, 4, 16])
def test_elimination_in_groups_is_a_bound(most, relation, monkeypatch, rng):
    monkeypatch.setattr(sensitivities, "MOST_STATES", most)
    cases = [network_of(graph, levels) for graph, levels in CASES[5:8]] + [random_network(rng, 7, 3)]
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
