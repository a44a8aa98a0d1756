"""Prices of networks against all pairs of rows and a grid of shares with its corners, however edges are written."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.domain import Domain
from pymc_dp.step_methods.ops.from_sums import ConjugatePosterior
from tests.step_methods.ops.models import bound

LOW, HIGH = 0.1, 0.8
ENDS = (LOW, 0.5, HIGH)
BITS = [list(product((0, 1), repeat=count)) for count in range(4)]
HELD = [np.arange(6) % 2, np.arange(6) // 2 % 2, np.array([0, 0, 1, 0, 1, 1])]


@dataclass(frozen=True, kw_only=True)
class Net:
    """A network: how it is written, a row's log-likelihood once more, its rows, its parameters, its price."""

    write: Any
    row: Any
    rows: list
    places: list
    reached: float = 1.0
    """Of what is claimed, what some pair of rows reaches, under replace."""
    floors: dict = field(default_factory=dict)
    public: tuple = ()
    relations: tuple = ("replace", "add_remove")


def share(name, low=LOW, high=HIGH, **options):
    return pm.Truncated(name, pm.Beta.dist(1.0, 2.0), low, high, **options)


def bit(p, x):
    return np.log(p) if x else np.log1p(-p)


def one_share_of_two_nodes():
    p, p_a = share("p", shape=2), share("p_a")
    a = pm.Bernoulli("a", p_a, observed=HELD[0])
    b = pm.Bernoulli("b", p[a], observed=HELD[1])
    pm.Bernoulli("c", p[b], observed=HELD[2])


def one_share_of_two_roots():
    p = share("p")
    pm.Bernoulli("a", p, observed=HELD[0], dims="row")
    pm.Bernoulli("b", p, observed=HELD[1], dims="row")


def by_expression():
    p = share("p", shape=4)
    a = pm.Bernoulli("a", share("p_a"), observed=HELD[0])
    b = pm.Bernoulli("b", share("p_b"), observed=HELD[1])
    pm.Bernoulli("c", p[a * 2 + b], observed=HELD[2])


def never_selected():
    p = share("p", dims="of")
    a = pm.Bernoulli("a", share("p_a"), observed=HELD[0])
    pm.Bernoulli("b", p[a + 1], observed=HELD[1])


def boxes_of_their_own():
    low, high = share("low", 0.1, 0.5), share("high", 0.5, 0.99)
    a = pm.Bernoulli("a", share("p_a"), observed=HELD[0])
    pm.Bernoulli("b", pm.math.stack([low, high])[a], observed=HELD[1])


def public_and_private_parents():
    z, p = pm.Data("z", HELD[0]), share("p", shape=(2, 2))
    a = pm.Bernoulli("a", share("p_a"), observed=HELD[1])
    pm.Bernoulli("b", p[z, a], observed=HELD[2])


def public_parent():
    z, p = pm.Data("z", HELD[0]), share("p", shape=2)
    pm.Bernoulli("a", p[z], observed=HELD[1])


def trimmed_unevenly():
    w = pm.Dirichlet("w", np.ones(3))
    a = pm.Categorical("a", w, observed=np.arange(6) % 3)
    pm.Bernoulli("b", share("p", shape=3)[a], observed=HELD[1])


def more_levels():
    a = pm.Categorical("a", pm.Dirichlet("w", np.ones(3)), observed=np.arange(6) % 3)
    pm.Categorical("b", pm.Dirichlet("q", np.ones((3, 4)))[a], observed=np.arange(6) % 4)


def corners(floors):
    """Vertices of a trimmed simplex, and its middle."""
    floors = np.asarray(floors)
    rest = 1 - floors.sum()
    return [*(floors + rest * np.eye(len(floors))), floors + rest / len(floors)]


FLOORS = [0.02, 0.3, 0.1]
NETS = {
    "one share of two nodes": Net(
        write=one_share_of_two_nodes,
        row=lambda x, p: bit(p[0], x[0]) + bit(p[1 + x[0]], x[1]) + bit(p[1 + x[1]], x[2]),
        rows=BITS[3],
        places=list(product(ENDS, repeat=3)),
        reached=0.95,
    ),
    "one share of two roots": Net(
        write=one_share_of_two_roots,
        row=lambda x, p: bit(p[0], x[0]) + bit(p[0], x[1]),
        rows=BITS[2],
        places=[(p,) for p in np.linspace(LOW, HIGH, 41)],
    ),
    "expression": Net(
        write=by_expression,
        row=lambda x, p: bit(p[0], x[0]) + bit(p[1], x[1]) + bit(p[2 + 2 * x[0] + x[1]], x[2]),
        rows=BITS[3],
        places=list(product((LOW, HIGH), repeat=6)),
    ),
    "never selected": Net(
        write=never_selected,
        row=lambda x, p: bit(p[0], x[0]) + bit(p[2 + x[0]], x[1]),
        rows=BITS[2],
        places=list(product(ENDS, repeat=5)),
    ),
    "boxes of their own": Net(
        write=boxes_of_their_own,
        row=lambda x, p: bit(p[0], x[0]) + bit(p[1 + x[0]], x[1]),
        rows=BITS[2],
        places=list(product(ENDS, np.linspace(0.1, 0.5, 5), np.linspace(0.5, 0.99, 5))),
    ),
    "public and private parents": Net(
        write=public_and_private_parents,
        row=lambda x, p: bit(p[0], x[1]) + bit(p[1 + 2 * x[0] + x[1]], x[2]),
        rows=BITS[3],
        places=list(product(ENDS, repeat=5)),
        public=("z",),
        relations=("replace",),
    ),
    "public parent": Net(
        write=public_parent,
        row=lambda x, p: bit(p[x[0]], x[1]),
        rows=BITS[2],
        places=list(product(ENDS, repeat=2)),
        public=("z",),
        relations=("replace",),
    ),
    "trimmed unevenly": Net(
        write=trimmed_unevenly,
        row=lambda x, p: np.log(p[0][x[0]]) + bit(p[1 + x[0]], x[1]),
        rows=list(product(range(3), (0, 1))),
        places=list(product(corners(FLOORS), ENDS, ENDS, ENDS)),
        floors={"w": (FLOORS, None)},
        relations=("replace",),
    ),
    "more levels": Net(
        write=more_levels,
        row=lambda x, p: np.log(p[0][x[0]]) + np.log(p[1 + x[0]][x[1]]),
        rows=list(product(range(3), range(4))),
        places=list(product(corners([0.1] * 3), *[corners([0.05] * 4)] * 3)),
        floors={"w": (0.1, None), "q": (0.05, None)},
        relations=("replace",),
    ),
}


def price(net, relation):
    """The largest range over places of what one row adds, or of the difference of two that agree in public columns."""
    found = np.array([[net.row(row, place) for place in net.places] for row in net.rows])
    if relation == "add_remove":
        return np.ptp(found, axis=1).max()
    pairs = [
        (one, two)
        for one, two in product(range(len(net.rows)), repeat=2)
        if not net.public or net.rows[one][0] == net.rows[two][0]
    ]
    return max(np.ptp(found[one] - found[two]) for one, two in pairs)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("name", "relation"), [(name, relation) for name, net in sorted(NETS.items()) for relation in net.relations]
)
def test_the_price_is_what_the_worst_pair_of_rows_moves(name, relation):
    net = NETS[name]
    with pm.Model(coords={"of": range(4), "row": range(len(HELD[0]))}) as model:
        net.write()
    model = dp.truncate(model, net.floors) if net.floors else model
    public = Domain(neighbours=relation, n_max=50 if relation == "add_remove" else None, public=list(net.public))
    step, _ = bound(model, public, 1.0, read=False)
    assert isinstance(step.posterior.form, ConjugatePosterior)
    worst, least = price(net, relation), net.reached if relation == "replace" else 1.0
    assert worst <= step.range.value * (1 + 1e-9) and worst == pytest.approx(least * step.range.value, rel=2e-3)
