"""What is charged for a row is what is held of its ratio, by the functions that run, whatever floats these are."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.metropolis import BarkerMetropolis


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
