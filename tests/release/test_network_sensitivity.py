from itertools import product

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


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("graph", "levels"), CASES)
def test_sensitivity_is_that_of_the_worst_of_all_neighbours(graph, levels, relation):
    sums = NetworkSums(network=network_of(graph, levels), sized=relation == "add_remove")
    found = network_sensitivity(sums, relation)
    assert (found.l1, found.l2_squared) == moved_at_most(sums, relation)
    assert "found by" in found.reason


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


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("graph", "levels"), CASES)
def test_the_length_of_a_family_bounds_what_it_moves(graph, levels, relation, monkeypatch):
    """In squares, one family that holds all nodes loses nothing by it."""
    monkeypatch.setattr(sensitivities, "MOST_WORK", 0)
    sums = NetworkSums(network=network_of(graph, levels), sized=False)
    found, exact = network_sensitivity(sums, relation), moved_at_most(sums, relation)
    assert exact[0] <= found.l1 and exact[1] <= found.l2_squared
    if graph is PAIR and relation == "replace":
        cells = np.prod(sums.network.shape(0)) + np.prod(sums.network.shape(1))
        assert found.l2_squared * sums.step**2 == pytest.approx(2 * cells, rel=0.5)


@pytest.mark.parametrize("length", [2, 5, 9, 60, 400])
def test_a_chain_of_any_length_is_exact(length):
    """Of nodes and edges, flips of every other node move the most: counted by a walk along the chain."""
    best = {0: 0, 1: 1}
    for _ in range(length - 1):
        best = {now: max(best[before] + now + (now != before) for before in (0, 1)) for now in (0, 1)}
    found = network_sensitivity(NetworkSums(network=chain(length), sized=False), "replace")
    assert found.l1 == 2 * max(best.values())
    assert found.l1 < 2 * (2 * length)  # of the paper: every coefficient


def test_a_wide_graph_takes_no_time_exponential_in_its_nodes(rng):
    """Thirty nodes of three parents: 2^30 pairs of rows, bounded by what the closure holds."""
    sums = NetworkSums(network=random_network(rng, 30, 3), sized=False)
    found = network_sensitivity(sums, "replace")
    flips = rng.integers(2, size=(300, 30))
    seen = [sum(sum(flip[node] for node, _ in one) % 2 for one in sums.coefficients) for flip in flips]
    assert 2 * max(seen) <= found.l1 <= 2 * sums.count


def test_the_number_of_rows_moves_only_when_a_row_comes_or_goes():
    network = network_of(PAIR)
    alone, sized = (network_sensitivity(NetworkSums(network=network, sized=one), "replace") for one in (False, True))
    assert alone.l1 == sized.l1
    assert network_sensitivity(NetworkSums(network=network, sized=True), "add_remove").l1 == 4


def test_no_pair_of_signs_is_left_out(rng):
    """The elimination's own states, against rows themselves: levels of binary nodes never matter, only changes."""
    sums = NetworkSums(network=network_of(COLLIDER, {"b": 3}), sized=False)
    limit = network_sensitivity(sums, "replace").l1
    rows = all_rows(sums.network)
    seen = {int(np.abs(added(sums, one) - added(sums, other)).sum()) for one, other in product(rows, rows)}
    assert max(seen) == limit
