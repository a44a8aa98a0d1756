"""Exact sums of weighted rows: what one of them moves, claimed beside reached; the same whole numbers in any order."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.kernel.table import WEIGHT, shares_of
from pymc_dp.kernel.tallies import added_up
from pymc_dp.rows.passes import Passes
from pymc_dp.rows.source import StoredSource
from pymc_dp.rows.stored import stored_rows
from pymc_dp.transforms.privatize import plan_for

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
LARGEST, ROWS = 3.0, 12
KINDS = {
    "normal": (lambda g: (pm.Normal, {"mu": pm.Normal("m", dims="group")[g], "sigma": pm.HalfNormal("s")}), (-2, 2)),
    "bernoulli": (lambda g: (pm.Bernoulli, {"p": pm.Beta("p", 1, 1, dims="group")[g]}), None),
    "binomial": (lambda g: (pm.Binomial, {"n": 7, "p": pm.Beta("p", 1, 1, dims="group")[g]}), None),
    "poisson": (lambda g: (pm.Poisson, {"mu": pm.Gamma("r", 2, 1, dims="group")[g]}), (0, 9)),
    "gamma": (lambda g: (pm.Gamma, {"alpha": pm.Exponential("a", 1, dims="group")[g], "beta": 1.0}), (0.1, 5)),
    "categorical": (lambda g: (pm.Categorical, {"p": pm.Dirichlet("p", pt.ones(3), dims=("group", "level"))[g]}), None),
}


def model_of(kind, y, w=None):
    build, bounds = KINDS[kind]
    with pm.Model(coords={"group": range(2), "level": range(3)}) as model:
        g = pm.Data("g", np.arange(len(y)) % 2)
        if w is not None:
            pm.Data("w", w)
        likelihood, given = build(g)
        likelihood("y", **given, observed=y)
    return model, {} if bounds is None else {"y": bounds}


def planned(kind, rows, largest=LARGEST, neighbours="replace", weights=True, **given):
    n_max = 50 if neighbours == "add_remove" else None
    y, w = rows
    model, bounds = model_of(kind, y, w if weights else None)
    bounds |= {"w": (0, largest)} if weights else {}
    domain = dp.Domain(bounds=bounds, neighbours=neighbours, n_max=n_max, weights={"y": "w"} if weights else None)
    return plan_for(model, domain=domain, **{"epsilon": 1.0, "delta": 0.0, "statistics": None} | given)[1]


def values(rng, kind, count):
    if kind in ("normal", "gamma"):
        return rng.choice([-2.0, 2.0, 0.1, 5.0, 0.0, 1.4142135623730951, 9.0], count) + 0.1 * (kind == "gamma")
    return rng.integers(0, {"bernoulli": 2, "binomial": 8, "poisson": 10, "categorical": 3}[kind], count)


@pytest.mark.usefixtures("paid")
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_of_weighted_rows_whatever_their_order(kind, rng):
    y, w = values(rng, kind, 500), rng.uniform(0, LARGEST, 500)
    held = {"y": y, "w": w, "g": rng.integers(0, 2, 500)}
    (table,) = planned(kind, (y, w)).tables
    (plain,) = planned(kind, (y, w), neighbours="add_remove", weights=False).tables
    order = rng.permutation(500)
    (asked,), weights = table.asked, w[:, None, None]
    found = asked.of(lambda column: held[column.name])
    np.testing.assert_array_equal(found, asked.of(lambda column: held[column.name][order]))
    each = np.array([plain.asked[0].of(lambda column, k=k: held[column.name][k : k + 1]) for k in range(500)])
    for block, once in zip(table.blocks, plain.blocks, strict=True):
        columns = list(block.columns)
        wanted = (each[:, :, columns] * weights).sum(axis=0) * once.steps
        room = 500 * (np.max(np.abs(each[:, :, columns])) * LARGEST / WEIGHT * np.array(once.steps) + block.steps)
        assert (np.abs(found[:, columns] * block.steps - wanted) <= room).all()


@pytest.mark.usefixtures("paid")
def test_weights_beside_the_model_give_the_same_sums(rng):
    held = {"y": rng.integers(0, 2, 300), "w": rng.uniform(-1, 5, 300), "g": rng.integers(0, 2, 300)}
    held["w"][:9] = np.nan
    plan = planned("bernoulli", (held["y"], np.ones(300)))
    model, _ = model_of("bernoulli", held["y"][:3])
    domain = dp.Domain(bounds={"w": (0, LARGEST)}, weights={"y": "w"})
    stored = stored_rows(held)
    inspection, beside = plan_for(model, epsilon=1.0, delta=0.0, domain=domain, statistics=None, rows=stored)
    source = StoredSource(beside.asked, Passes.of(inspection, stored))
    (found,) = added_up([one.tally for one in beside.asked], source)
    np.testing.assert_array_equal(found, plan.tables[0].asked[0].of(lambda column: held[column.name]))


def test_what_sums_do_not_weigh_is_refused_before_the_charge(rng):
    ledger, rows = dp.Ledger(9.0), (rng.integers(0, 2, 40), np.ones(40))
    x = rng.uniform(-1, 1, 40)
    with pm.Model() as regression:
        pm.Data("w", np.ones(40))
        pm.Normal("y", pm.Normal("b") * pm.Data("x", x), 1.0, observed=x)
    bounds = {"x": (-1, 1), "y": (-1, 1), "w": (0, LARGEST)}
    domain = dp.Domain(bounds=bounds, weights={"y": "w"})
    with pytest.raises(dp.errors.UnsupportedModelError, match="(?s)Gradients.*do not weigh rows"):
        dp.privatize(regression, domain=domain, epsilon=1.0, ledger=ledger)
    for mechanism in (dp.networks.LaplaceUpdates(), dp.networks.FourierUpdates()):
        with pytest.raises(dp.errors.UnsupportedModelError, match="(?s)Gradients.*do not weigh rows"):
            planned("bernoulli", rows, statistics=dp.Statistics(mechanism=mechanism))
    with pytest.raises(dp.errors.ArgumentError, match="mean of about 1"):
        planned("bernoulli", rows, largest=0.1, epsilon=9.0)
    assert not ledger.history


def test_a_weight_beyond_the_largest_counts_as_the_largest_and_changes_no_other():
    released = []
    for extreme in (LARGEST, 2 * LARGEST, 1e300, np.inf):
        model, bounds = model_of("bernoulli", np.array([1, 0, 1, 1]), np.array([1.0, 1.0, 0.5, extreme]))
        domain = dp.Domain(bounds={**bounds, "w": (0, LARGEST)}, weights={"y": "w"})
        with dp.testing.without_noise():
            private = dp.privatize(model, epsilon=1.0, domain=domain)
        released.append(dp.Release.of(private).tables["y"])
    for other in released[1:]:
        np.testing.assert_array_equal(other, released[0])


def test_shares_are_held_within_the_largest_whatever_others_weigh():
    hostile = [LARGEST / 2, LARGEST, 2 * LARGEST, 1e300, np.inf, -1.0, -np.inf, np.nan]
    assert shares_of(np.array(hostile) / LARGEST).tolist() == [WEIGHT // 2, *[WEIGHT] * 4, 0, 0, 0]
