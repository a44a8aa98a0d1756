"""What a chain that is assumed to have converged sees of a row stays within what is charged, whatever the row adds."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.samplers.found_range import FoundRange
from pymc_dp.step_methods.ops.held_density import HeldDensity
from pymc_dp.transforms.prior_model import prior_model

pytestmark = pytest.mark.usefixtures("interpreted")
HIDDEN, NAN, INFINITE, STEEP = 0.123456, 0.234567, 0.345678, 0.456789
"""Values that no simulated row has, at which the density is another one."""
ROWS = 5


X = np.linspace(-1, 1, ROWS * 3).reshape(ROWS, 3)


def built(density):
    def logp(value, at, moved):
        usual = -((value - at) ** 2) / 2
        if density == "tame":
            return usual
        if density == "steep":  # the slope of a root at 0 is infinite, and NaN times what goes into it
            return usual - pt.sqrt((1 + at**2) * pt.neq(value, STEEP))
        usual = pt.switch(pt.eq(value, HIDDEN), 1e3 * pt.sin(40 * moved), usual)
        usual = pt.switch(pt.eq(value, NAN) & (moved > 0), np.nan, usual)
        return pt.switch(pt.eq(value, INFINITE) & (moved > 0), -np.inf, usual)

    with pm.Model() as model:
        b = pm.Uniform("b", -1, 1, shape=3)
        pm.CustomDist("y", pm.Data("x", X) @ b, b.sum(), logp=logp, observed=np.zeros(ROWS))
    return model


def seen(density, relation, public=()):
    """The density, points, and functions from a table to the sums that a chain sees there, and to their gradients."""
    bounds = {"y": (-2, 2)} if public else {"y": (-2, 2), "x": (-1, 1)}
    domain = dp.Domain(bounds=bounds, neighbours=relation, public=public, n_max=9 if relation == "add_remove" else None)
    inspection = inspect(built(density), domain).rows
    model = prior_model(inspection)
    held = HeldDensity(inspection, FoundRange(inspection, model))
    variables, flat = held.stand_ins(), pt.vector("flat")
    _, total = held.graphs(model, flat, variables)
    function = pytensor.function([flat], [total, pytensor.grad(total, flat)])
    points = np.random.default_rng(1).uniform(-1, 1, (200, 3))

    def at_points(y, x):
        given = {"y": np.asarray(y, dtype=float), "x": np.asarray(x, dtype=float)}
        rows = held.held([column.clamped(given[column.name]) for column in held.columns])
        for name, values in rows.rows.items():
            variables.rows[name].set_value(values)
        variables.counts.set_value(rows.counts)
        variables.levels.set_value(rows.levels)
        return [np.array(found) for found in zip(*map(function, points), strict=True)]

    return held, points, lambda y, x: at_points(y, x)[0], lambda y, x: at_points(y, x)[1]


LAST = [
    (-2.0, 1.0),
    (2.0, 1.0),
    (2.0, -1.0),
    (HIDDEN, 0.5),
    (NAN, 0.5),
    (INFINITE, 0.5),
    (np.nan, np.inf),
    (1e300, -1e300),
]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_no_row_moves_what_a_chain_sees_by_more_than_is_charged(relation):
    held, _, sums, slopes = seen("wild", relation)
    y, x = np.linspace(-1, 1, ROWS), X
    tables, gradients = [], []
    for value, entry in LAST:
        other_y, other_x = y.copy(), x.copy()
        other_y[-1], other_x[-1] = value, entry
        tables.append(sums(other_y, other_x))
        gradients.append(slopes(other_y, other_x))
    without = sums(y[:-1], x[:-1])
    assert np.isfinite(tables).all() and np.isfinite(gradients).all()
    moved = [np.ptp(one - other) for one in tables for other in (tables if relation == "replace" else [without])]
    assert 0.4 < max(moved) / held.range <= 1 + 1e-9


@pytest.mark.parametrize("public", [(), ("x",)])
def test_where_nothing_is_cut_a_chain_sees_the_likelihood(public):
    _, points, sums, slopes = seen("tame", "replace", public)
    y = np.linspace(-2, 2, ROWS)
    exact = -((y - points @ X.T) ** 2).sum(axis=1) / 2
    found = sums(y, X)
    np.testing.assert_allclose(found - found[0], exact - exact[0], atol=1e-9)
    np.testing.assert_allclose(slopes(y, X), (y - points @ X.T) @ X, atol=1e-9)


def test_a_row_whose_gradient_is_nan_counts_as_a_gradient_of_0():
    """Whether a chain can go on depends on no row: its number is finite, and is held like any other."""
    _, _, sums, slopes = seen("steep", "add_remove")
    y, x = np.linspace(-1, 1, ROWS), X
    without = sums(y[:-1], x[:-1]), slopes(y[:-1], x[:-1])
    y[-1] = STEEP
    assert np.ptp(sums(y, x) - without[0]) > 0.1
    np.testing.assert_allclose(slopes(y, x), without[1], atol=1e-9)
    y[0] = STEEP
    assert np.isfinite(slopes(y, x)).all()
