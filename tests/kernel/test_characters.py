"""Coefficients of a network: what rows add, and how far one moves them, against all pairs of rows."""

from itertools import combinations, product

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.network import Network, Node
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.character_sums import Configurations
from pymc_dp.kernel.characters import Coefficients
from pymc_dp.kernel.tallies import Cells, Noised, Part, Rows, SumRelease, Tally
from pymc_dp.testing import without_noise
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
    monkeypatch.setattr("pymc_dp.kernel.characters.MOST_STATES", most)
    small = (PAIR, {"a": 3}), (PAIR, {"a": 4, "b": 5}), (COLLIDER, {"b": 3})
    cases = [*(network_of(graph, levels) for graph, levels in small), random_network(rng, 7, 3)]
    for network in cases:
        sums = NetworkSums(network=network, sized=relation == "add_remove")
        found, exact = sums.reading().shape.move(relation), moved_at_most(sums, relation)
        trivial = sum(int(np.abs(sums.steps_of(one)).max()) for one in sums.coefficients)
        assert exact[0] <= found.l1 <= trivial * (2 if relation == "replace" else 1)
        assert exact[1] <= found.l2_squared
        if relation == "replace" and most < 16:
            assert not sums.reading().shape.greatest(relation)[1]


@pytest.mark.parametrize("length", [2, 5, 9, 60, 400])
def test_a_chain_of_any_length_is_exact(length):
    """Of nodes and edges, flips of every other node move the most: counted by a walk along the chain."""
    best = {0: 0, 1: 1}
    for _ in range(length - 1):
        best = {now: max(best[before] + now + (now != before) for before in (0, 1)) for now in (0, 1)}
    found = NetworkSums(network=chain(length), sized=False).reading().shape.move("replace")
    assert found.l1 == 2 * max(best.values())
    assert found.l1 < 2 * (2 * length)  # of the paper: every coefficient


SMALL = Coefficients(
    levels=(2, 3),
    families=((0,), (0, 1)),
    coefficients=((), ((0, 1),), ((1, 1),), ((1, 2),), ((0, 1), (1, 1)), ((0, 1), (1, 2))),
    places=(-1, 0, 1, 1, 1, 1),
)
WILD = [0.0, 1.0, 2.0, 5.0, -1.0, 0.5, np.nan, np.inf, -np.inf]


class Held:
    """Rows in memory: an array for each node."""

    def __init__(self, *nodes):
        self.nodes = nodes

    def totals(self):
        return None

    def parts(self):
        yield lambda: Part([Rows(list(self.nodes), [])], None)


def released(shape, rows, relation):
    release = SumRelease([Noised(Tally(reading=Configurations(shape)), (1.0,))], noise="laplace", neighbours=relation)
    with without_noise():
        ((found,),) = release.charge(Rehearsal(relation), "network").draw(Held(*np.array(rows).T))
    return found


@pytest.mark.parametrize("relation", RELATIONS)
def test_rows_of_a_network_move_its_coefficients_by_no_more_than_charged(relation):
    """Whatever floats are stored: all pairs of rows of two nodes. Some pair moves them so much."""
    move, (_, exact) = SMALL.move(relation), SMALL.greatest(relation)
    alone = {row: released(SMALL, [row, (1.0, 2.0)], relation) for row in product(WILD, WILD)}
    rest = released(SMALL, [(1.0, 2.0)], relation)
    pairs = combinations(alone.values(), 2) if relation == "replace" else ((one, rest) for one in alone.values())
    apart = [one - other for one, other in pairs]
    assert max(np.abs(one).sum() for one in apart) == move.l1 and exact
    assert max((one**2).sum() for one in apart) == move.l2_squared


def test_the_charge_of_the_paper_is_never_below_that_of_a_row():
    places, coefficients = (0, 1, 1), (((0, 1),), ((1, 1),), ((0, 1), (1, 1)))
    own, paper = (Coefficients((2, 2), ((0,), (0, 1)), coefficients, places, papers=flag) for flag in (False, True))
    assert paper.move("replace").l1 == 2 * len(coefficients) > own.move("replace").l1 == 4
    assert paper.move("add_remove") == own.move("add_remove")


@pytest.mark.parametrize(
    "changed",
    [
        {"levels": (2, 3.0)},
        {"levels": [2, 3]},
        {"families": ((0,), (0, 0))},
        {"families": ((0,), (0, 2))},
        {"coefficients": (*SMALL.coefficients[:5], ((0, 1), (1, 1)))},
        {"coefficients": (*SMALL.coefficients[:5], ((1, 1), (0, 1)))},
        {"coefficients": (*SMALL.coefficients[:5], ((0, 1), (1, 3)))},
        {"places": (-1, 0, 1, 1, 1, 0)},
        {"places": (-1, 0, 1, 1, 1)},
        {"papers": True},
        {"papers": 1},
    ],
)
def test_a_network_that_could_move_otherwise_is_refused(changed):
    fields = ("levels", "families", "coefficients", "places", "papers")
    with pytest.raises(ArgumentError):
        Coefficients(**{name: getattr(SMALL, name) for name in fields} | changed)


@pytest.mark.parametrize("more", [{"cells": Cells(lookup=np.array([-1]))}, {"sized": True}, {"weighted": True}])
def test_coefficients_of_a_network_have_no_cells_and_no_weights(more):
    with pytest.raises(ArgumentError):
        Tally(reading=Configurations(SMALL), **more)
