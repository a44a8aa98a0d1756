"""Sums of columns that a model computes: those of the columns computed by hand, wherever the rows are held."""

import numpy as np
import polars as pl
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.persons import summed
from pymc_dp.rows.stored import Arrays

pytestmark = pytest.mark.usefixtures("paid")
N = 300
BOUNDS = {"x": (-2.0, 2.0), "z": (0.5, 3.0), "H": (0, 1), "y": (-4.0, 4.0)}
COMPUTED = {
    "x2": ((0.0, 4.0), lambda x, z, h: x**2, np.square),
    "xz": ((-6.0, 6.0), lambda x, z, h: x * z, None),
    "hinge": ((0.0, 1.5), lambda x, z, h: pt.maximum(z - 1.5, 0), None),
    "over": ((0.0, 1.0), lambda x, z, h: (z > 1.0).astype(float), None),
    "flagged": ((-2.0, 2.0), lambda x, z, h: h * x, None),
    "log": ((np.log(0.5), np.log(3.0)), lambda x, z, h: pt.log(z), None),
}


def table(rng, n_rows=N):
    columns = {"x": rng.uniform(-2, 2, n_rows), "z": rng.uniform(0.5, 3, n_rows), "H": rng.integers(0, 2, n_rows)}
    return {**columns, "y": rng.normal(0, 1, n_rows)}


def computed(rows, **domain):
    """A regression on x, z and every column of COMPUTED, with one in cells, as PyMC writes it."""
    with pm.Model() as model:
        x, z, h = (pm.Data(name, rows[name]) for name in "xzH")
        terms = [pm.Normal(f"b_{name}") * made(x, z, h) for name, (_, made, _) in COMPUTED.items()]
        mean = sum(terms) + pm.Normal("b") * x + pm.Normal("a", shape=2)[(x > 0).astype(int)]
        pm.Normal("y", mean, pm.HalfNormal("s"), observed=rows["y"])
    known = {name: ends for name, ends in BOUNDS.items() if name in model.named_vars}
    return model, dp.Domain(bounds=known, **domain)


def asked_of(model, domain):
    (one,) = plan_release(inspect(model, domain, per_person=True).sums, dp.Statistics(), 1.0).asked
    return one


@pytest.mark.parametrize("hold", ["memory", "polars"])
def test_stored_rows_give_the_sums_of_rows_in_the_model(hold, rng):
    rows = table(rng)
    one = asked_of(*computed(rows))
    rows["x"][:3], rows["z"][:3] = [np.nan, np.inf, -7], [-1, np.nan, 99]
    expected = one.of(lambda column: rows[column.name])
    dummy = inspect(*computed({name: array[-4:] for name, array in rows.items()})).sums
    stored = Arrays(rows) if hold == "memory" else dp.Table(pl.DataFrame(rows).lazy(), {name: name for name in rows})
    found = with_stored(dummy, stored)
    found.require()
    made = Passes.of(found, stored)
    asked = plan_release(found, dp.Statistics(), 1.0).asked
    assert made.check(asked) == ()
    np.testing.assert_array_equal(made.sums(asked)[0], expected)


def test_rows_of_persons_are_chosen_before_columns_are_computed(rng):
    rows, owners = table(rng, 50), np.repeat(np.arange(25), 2)
    one = asked_of(*computed(rows, neighbours="add_remove", n_max=N))
    (sums,) = summed([one], owners, lambda column: rows[column.name], 2)
    np.testing.assert_array_equal(sums, one.of(lambda column: rows[column.name]))
