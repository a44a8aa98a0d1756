"""No row moves the sums of a family by more than is claimed, and some by as much: integers just before the noise."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.audit.pipeline import Pipeline, domain

NAN, INF = float("nan"), float("inf")
WILD = (-(2**31), -1, 0, 3, 7, 10**6)
RELATIONS = ("replace", "add_remove")


def vectors(relation, build, corners, grouped=False, reach=1 - 1e-6, **declared):
    """Rows that are vectors, with a private column of groups or without one."""
    start, levels = np.array(corners[0]), ("group",) if grouped else ()
    with pm.Model(coords={"of": range(2), "level": range(start.size)}) as model:
        group = pm.Data("group", np.array([0, 1])) if grouped else ()
        build(group, pm.Data("rows", np.stack([start, start])))
    held = [(*g, row) for g in (((0,), (1,)) if grouped else ((),)) for row in corners]
    names = (*levels, "rows")
    return Pipeline(model=model, domain=domain(relation, **declared), columns=names, corners=tuple(held), reach=reach)


def shares(width):
    def build(group, rows):
        dims = ("of", "level") if hasattr(group, "owner") else ("level",)
        p = pm.Dirichlet("p", np.ones(width), dims=dims)
        pm.Multinomial("y", 7, p[group] if len(dims) > 1 else p, observed=rows)

    return build


def several(width, grouped, relation):
    return vectors(relation, shares(width), tuple(product(WILD, repeat=width)), grouped)


def own_totals(relation):
    with pm.Model(coords={"of": range(2)}) as model:
        p = pm.Beta("p", 1, 1, dims="of")[pm.Data("g", np.array([0, 1]))]
        pm.Binomial("y", n=pm.Data("n", np.array([1, 2])), p=p, observed=pm.Data("d", np.array([0, 1])))
    corners = tuple(product((0, 1, -1), (-3, 1, 5, 20, 50), (-2, 0, 4, 20, 99)))
    return Pipeline(
        model=model, domain=domain(relation, bounds={"n": (1, 20)}), columns=("g", "n", "d"), corners=corners
    )


def exposed(relation, public=()):
    with pm.Model(coords={"of": range(2)}) as model:
        rate = pm.math.exp(pm.Normal("a", dims="of")[pm.Data("g", np.array([0, 1]))])
        y = pm.Data("d", np.array([0, 1]))
        pm.Poisson("y", pm.Data("exposure", np.ones(2)) * rate, observed=y)
    exposures = (NAN, INF, -INF, -7.0, -0.0, 5e-324, 0.3, 0.5, np.nextafter(0.5, 0), 3.7, 4.0, 4.0000001, 1e300)
    corners = tuple(product((0,) if public else (0, 1), exposures, (-(2**31), 0, 7, 30, 31, 2**31 - 1)))
    known = domain(relation, bounds={"exposure": (0.5, 4.0), "y": (0, 30)}, public=public)
    return Pipeline(model=model, domain=known, columns=("g", "exposure", "d"), corners=corners)


def histogram(relation):
    with pm.Model(coords={"of": range(2)}) as model:
        mu = pm.Normal("mu", dims="of")[pm.Data("g", np.array([0, 1]))]
        pm.StudentT("y", 3, mu=mu, sigma=1.0, observed=pm.Data("d", np.zeros(2)))
    values = (NAN, INF, -INF, -0.0, 0.5, np.nextafter(0.5, 1), 3.0, 1e300, -1e300, 5e-324, -2.0)
    corners = tuple(product((0, 1, -7, 99), values))
    how = dp.Histogram((-2.0, 0.0, 0.5, 3.0))
    return Pipeline(model=model, domain=domain(relation), columns=("g", "d"), corners=corners, how=how)


def stated(statistics, bounds, values, relation, *, grouped=False):
    def build(group, rows):
        p = pm.Normal("p", dims=("of", "level") if grouped else "level")
        y = pm.CustomDist("y", p[group], logp=lambda value, p: value[..., 0] * 0.0, signature="(k)->(k)", observed=rows)
        zero = np.zeros(len(bounds))
        moments = lambda p: (zero + p[0], np.outer(zero, zero) + p[0])  # noqa: E731
        dp.models.with_statistics(y, statistics, bounds=bounds, values=values, moments=moments)

    low, high = values
    corners = (*product(map(float, range(low, high + 1)), repeat=2), (NAN, INF), (-1e308, 0.4))
    return vectors(relation, build, corners, grouped)


def pairs(relation):
    def build(group, rows):
        mu, sd = pm.Normal("mu", shape=2), pm.HalfNormal("sd", shape=2)
        pm.MvNormal("y", mu, pt.outer(sd, sd) * (0.2 + 0.8 * pt.eye(2)), observed=rows)

    ends = (-3.0, 0.5, 4.0, 0.5 + 3.5 * 2 / 3, 0.5 - 3.5 / 3, -0.5 * 3.5 + 0.5)
    corners = (*product(ends, repeat=2), (NAN, INF), (1e308, -INF))
    return vectors(relation, build, corners, reach=0.9, bounds={"y": (-3, 4)})


def simplex(relation):
    def build(group, rows):
        pm.Dirichlet("y", pm.HalfNormal("a", 5, shape=3), observed=rows)

    corners = (*product((0.01, 0.3, 0.98), repeat=3), (NAN, INF, -INF), (1e308, -7.0, 1e-320))
    return vectors(relation, build, corners, bounds={"y": (0.01, 0.98)})


KINDS = {
    "counts of two levels": partial(several, 2, False),
    "counts of three levels": partial(several, 3, False),
    "counts of two levels, groups": partial(several, 2, True),
    "counts of three levels, groups": partial(several, 3, True),
    "own totals": own_totals,
    "exposures": exposed,
    "histogram": histogram,
    "equal or not": partial(stated, lambda y: [pt.eq(y[0], y[1]), y[0] * y[1]], [(0, 1), (0, 4)], (0, 2)),
    "sum and distance, groups": partial(
        stated, lambda y: [y[0] + y[1], abs(y[0] - y[1])], [(0, 4), (0, 3)], (0, 3), grouped=True
    ),
    "sum and distance": partial(stated, lambda y: [y[0] + y[1], abs(y[0] - y[1])], [(0, 4), (0, 3)], (0, 3)),
    "pairs of numbers": pairs,
    "shares": simplex,
}


def moved(line, plan, place, relation):
    """Differences of what the sums are for any two rows, or for a row and none, beside the same other row."""
    sums_of, others = line.block_sums(plan, place), line.corners[:1]
    seen = [np.array(sums_of((row, *others)), dtype=float).ravel() for row in line.corners]
    if relation == "add_remove":
        none = np.array(sums_of(others), dtype=float).ravel()
        return np.array([one - none for one in seen])
    return np.array([one - other for one, other in combinations(np.unique(seen, axis=0), 2)])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_moves_sums_by_more_than_is_claimed_and_some_by_as_much(kind, relation):
    line = KINDS[kind](relation)
    for each, own in ((line, "l1"), (line.with_gaussian_noise(1e-6), "l2_squared")):
        plan = each.plan()
        for place, block in enumerate(plan.blocks):
            apart = moved(each, plan, place, relation)
            found = (np.abs(apart) if own == "l1" else apart**2).sum(axis=1).max()
            claimed = getattr(block.sensitivity, own)
            assert claimed * line.reach**2 <= found <= claimed * (1 + 1e-12), (own, found / claimed)
            assert getattr(block.event, "sensitivity" if own == "l1" else own) == claimed
