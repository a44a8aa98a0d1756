"""What is charged for a row is what is held of its ratio, by the functions that run, whatever floats these are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.ratios import HeldRatio
from pymc_dp.step_methods.metropolis.row_ratios import LANES, RowRatios

MANY = 1_000_000


def barker(model, **given):
    forget_releases()
    options = {"clamp": given.pop("clamp")} if "clamp" in given else {}
    with model:
        return BarkerMetropolis(epsilon=1e4, delta=1e-6, domain=dp.Domain(**given), **options)


def at(step, *values):
    return step.coefficients.at(np.array(values))


def moved(step, pair, **columns):
    """Sum over a table, and how far one row may move it."""
    rows = step.ratio.rows
    rows.hold([column.clamped(np.asarray(columns[column.name])) for column in rows._columns])
    return step.ratio.moved(*pair), step.ratio.reach(*pair)


def cancelling():
    """A probability near 1 that is a rounded sigmoid: its complement has few digits left."""
    with pm.Model() as model:
        a, x = pm.Normal("a", 0.0, 20.0), pm.Data("x", np.zeros(3))
        pm.Bernoulli("y", p=pm.math.sigmoid(a * x) * 1.0, observed=np.array([0, 1, 1]))
    return model


def test_a_density_that_cancels_uses_no_more_than_is_charged():
    step = barker(cancelling(), bounds={"x": (-1.0, 1.0)})
    pair = at(step, -35.66), at(step, 35.66)
    x = np.concatenate([np.linspace(-1, 1, 41), [-1 + 1e-16, 1 - 1e-16, 0.99, -0.99, 5e-324]])
    found = [moved(step, pair, x=[one], y=[y]) for one in x for y in (0, 1)]
    charged = {reach for _, reach in found}
    assert len(charged) == 1 and max(charged) < 71.4
    assert 71.0 < np.ptp([total for total, _ in found]) <= max(charged)


def hostile():
    """A density of one row that is no number, infinite, or near the ends of floats, by its value."""
    nothing = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308])

    def logp(value, mu):
        found = -mu * value
        for place, number in enumerate(nothing, start=1):
            found = pt.switch(pt.eq(value, float(place)), pt.constant(number) * pt.sign(mu), found)
        return found

    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("mu"), logp=logp, observed=np.zeros(4))
    return model


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_what_is_no_number_counts_for_no_more_than_is_charged(relation):
    step = barker(hostile(), clamp=1.0, neighbours=relation, n_max=10 if relation == "add_remove" else None)
    pair = at(step, -0.7), at(step, 0.8)
    found = [moved(step, pair, y=[0.0, value])[0] for value in (*np.arange(6.0), -0.5, 0.5, 1e300, -np.inf, np.nan)]
    assert np.isfinite(found).all() and found[1] == 0.0
    base = moved(step, pair, y=[0.0])[0] if relation == "add_remove" else np.array(found)[:, None]
    used, charged = np.abs(np.array(found) - base).max(), step.ratio.reach(*pair)
    assert used == charged == (1.5 if relation == "add_remove" else 3.0)


def normal():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("s"), observed=np.zeros(3))
    return model


@pytest.mark.slow
def test_sums_of_many_rows_do_not_depend_on_their_order(rng):
    step = barker(normal(), clamp=3.0)
    pair = at(step, 0.1, 0.2), at(step, -0.3, 0.5)
    y = rng.normal(size=MANY + 7)
    total, reach = moved(step, pair, y=y)
    assert moved(step, pair, y=rng.permutation(y))[0] == moved(step, pair, y=y[::-1])[0] == total
    unit = step.ratio._held(*pair).limit.unit
    assert (total / unit).is_integer() and abs(total / unit) <= 2.0**53
    for value in (np.nan, 1e300, -1e300, 0.0, 1 / 3):
        other = y.copy()
        other[MANY // 3] = value
        assert abs(moved(step, pair, y=other)[0] - total) <= reach


def test_a_float_sum_would_depend_on_the_order(rng, monkeypatch):
    def floats(self, there, here, limit, **_):
        ratio = self._at(there, 1)[0] - self._at(here, 1)[0]
        return float(np.clip(ratio, limit.low * limit.unit, limit.high * limit.unit).sum())

    monkeypatch.setattr(RowRatios, "total", floats)
    with pytest.raises(AssertionError):
        test_sums_of_many_rows_do_not_depend_on_their_order(rng)


def test_no_more_rows_than_a_domain_allows_are_counted():
    step = barker(normal(), clamp=1.0, neighbours="add_remove", n_max=2)
    pair = at(step, 0.0, 0.0), at(step, 4.0, 0.0)
    totals = [moved(step, pair, y=np.full(n, 1e9))[0] for n in (0, 1, 2, 3, 5 * LANES)]
    assert totals == [0.0, 4.0, 8.0, 8.0, 8.0]


# Public columns under replace: the place of the interval depends on them, its length is charged.


X = np.array([[0.3, -0.1], [2.0, 1.0]])


def counts():
    """What a rate adds is known to all who know the public columns."""
    with pm.Model() as model:
        rate = pm.math.exp(pm.Data("x", X) @ pm.Normal("b", shape=2))
        pm.Poisson("y", rate, observed=np.zeros(2, dtype=int))
    return model


PLACES = (0.5, 0.7), (0.6, 0.65)
PUBLIC = {
    "all values": ({"y": (0, 3)}, (0, 1, 3, 99)),
    "ends": ({"y": (0, 20)}, (0, 1, 20, 7)),
}


def of_public(name):
    bounds, private = PUBLIC[name]
    step = barker(counts(), public=("x",), bounds=bounds)
    return step, tuple(at(step, *values) for values in PLACES), private


def share(name):
    """Largest difference between tables that differ in a private value, over what is charged."""
    step, pair, private = of_public(name)
    found = []
    for row in (0, 1):
        tables = [np.where(np.arange(2) == row, value, private[0]) for value in private]
        totals = [moved(step, pair, x=X, y=y) for y in tables]
        found.append(np.ptp([total for total, _ in totals]) / totals[0][1])
    return max(found)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_columns_bring_the_charge_down_and_it_holds(name):
    step, pair, _ = of_public(name)
    span = step.ratio._proof.between(*(place.values for place in pair))
    assert span.centred and span.reach < 0.8 * (span.high - span.low)
    assert step.ratio._proof.references.complete == (name == "all values")
    assert span.reach <= step.ratio.reach(*pair) <= span.reach * (1 + 1e-6)
    assert 0.7 < share(name) <= 1.0


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_middles_of_rows_leave_the_target_alone(name):
    step, pair, _ = of_public(name)
    model = counts()
    logp = model.compile_logp(mode="FAST_COMPILE")
    truth = [float(logp(step.coefficients.point(place.values, model.initial_point()))) for place in pair]
    with opened_gate():
        step.load()
    assert step._odds(*pair) == pytest.approx(truth[1] - truth[0], rel=1e-9)
    assert step._odds(*pair[::-1]) == -step._odds(*pair)


def wrong_where_private(monkeypatch):
    """A compiled density that is wrong for the rows held, and right for public references."""
    right = RowRatios._at
    monkeypatch.setattr(
        RowRatios, "_at", lambda *given: [1e3 * terms**3 if k == 0 else terms for k, terms in enumerate(right(*given))]
    )


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_density_that_goes_wrong_uses_no_more_than_is_charged(name, monkeypatch):
    wrong_where_private(monkeypatch)
    assert share(name) <= 1.0


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_mutant_range_of_rows_that_share_public_values_with_another_interval(name, monkeypatch):
    """The range of pairs is charged, and rows are held within all that any row may do."""
    right = HeldRatio.moved

    def moved_wide(self, here, there):
        span = self._proof.between(here.values, there.values)
        held = self._held(here, there)
        self._last = here.values, there.values, replace_held(held, self.rows.limit(span.low, span.high))
        try:
            return right(self, here, there)
        finally:
            self._last = here.values, there.values, held

    wrong_where_private(monkeypatch)
    monkeypatch.setattr(HeldRatio, "moved", moved_wide)
    assert share(name) > 1.2


def replace_held(held, limit):
    return held._replace(limit=replace(limit), centred=False)
