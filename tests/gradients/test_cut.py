"""Least cuts of graphs."""

import pytensor.tensor as pt
import pytest

from pymc_dp.gradients.cut import NEVER, least_cut, sizes_of


def cut(ends, sources, data, shapes):
    behind = {data}

    def within(var):
        if var.owner is not None and not behind.isdisjoint(var.owner.inputs):
            behind.add(var)
        return var not in behind

    return least_cut(ends, sources, within=within, costs=lambda found: sizes_of(found, shapes))


@pytest.fixture
def variables():
    shapes = {"mu": (), "tau": (), "z": (5,), "long": (3,), "x": (7,)}
    return {name: pt.tensor(f"the {name}", shape=shape, dtype="float64") for name, shape in shapes.items()}


def test_what_is_computed_is_cut_where_that_is_less(variables):
    mu, tau, z, x = (variables[name] for name in ("mu", "tau", "z", "x"))
    found = cut([(mu + tau * z)[:, None] * x], [mu, tau, z], x, {})
    assert found.cost == 5 and found.groups[0][0].owner is not None


def test_the_sources_are_cut_where_these_are_fewer_or_as_many(variables):
    mu, long, x = variables["mu"], variables["long"], variables["x"]
    assert cut([pt.exp(mu) * x], [mu], x, {}).groups == ((mu,),)
    found = cut([(mu * pt.ones(3) + long.sum())[:, None] * x], [mu, long], x, {})
    assert found.cost == 2, "mu and the sum of the others"


def test_what_two_graphs_compute_alike_counts_once(variables):
    mu, tau, z, x = (variables[name] for name in ("mu", "tau", "z", "x"))
    found = cut([(mu + tau * z)[:, None] * x, (mu + tau * z)[:, None] - x], [mu, tau, z], x, {})
    assert found.cost == 5 and len(found.groups) == 1 and len(found.groups[0]) == 2


def test_shapes_carry_no_value(variables):
    z, x, wide = variables["z"], variables["x"], pt.vector("wide")
    found = cut([z.sum() * x + wide.shape[0]], [z, wide], x, {z: (5,), wide: (2,)})
    assert found.cost == 1 and wide not in found.groups[0]


def test_a_cut_that_is_not_allowed_costs_too_much(variables):
    mu, x = variables["mu"], variables["x"]
    found = least_cut([mu * x], [mu], within=lambda var: var is mu, costs=lambda found: dict.fromkeys(found, NEVER))
    assert found.cost >= NEVER


def test_nothing_is_cut_where_nothing_flows(variables):
    mu, x = variables["mu"], variables["x"]
    assert cut([x + 1], [mu], x, {}).groups == ()


def test_sizes_follow_from_shapes_where_types_do_not_say_them():
    one = pt.matrix("one")
    assert list(sizes_of([one.sum(axis=0)], {one: (3, 4)}).values()) == [4]
    (size,) = sizes_of([one.ravel()], {one: (3, 4)}).values()
    assert size == 12
