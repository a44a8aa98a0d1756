"""Sums of columns that a model computes: those of the columns computed by hand, wherever the rows are held."""

import numpy as np
import polars as pl
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
BOUNDS = {"x": (-2.0, 2.0), "z": (0.5, 3.0), "H": (0, 1), "y": (-4.0, 4.0)}
COMPUTED = {
    "x2": lambda x, z, h: x**2,
    "xz": lambda x, z, h: x * z,
    "hinge": lambda x, z, h: pt.maximum(z - 1.5, 0),
    "over": lambda x, z, h: (z > 1.0).astype(float),
    "flagged": lambda x, z, h: h * x,
    "log": lambda x, z, h: pt.log(z),
}


def table(rng, n):
    columns = {"x": rng.uniform(-2, 2, n), "z": rng.uniform(0.5, 3, n), "H": rng.integers(0, 2, n)}
    return {**columns, "y": rng.normal(0, 1, n), "who": np.repeat(np.arange(n // 2), 2)}


def sums(held, stored=None, **domain):
    """Exact sums of a regression on x and every column of COMPUTED, with one in cells, as PyMC writes it."""
    with pm.Model() as model:
        x, z = (pm.Data(name, np.zeros(len(held["y"]))) for name in "xz")
        h = pm.Data("H", held["H"])
        if domain:
            pm.Data("who", held["who"])
        terms = [pm.Normal(f"b_{name}") * made(x, z, h) for name, made in COMPUTED.items()]
        mean = sum(terms) + pm.Normal("b") * x + pm.Normal("a", shape=2)[(x > 0).astype(int)]
        pm.Normal("y", mean, pm.HalfNormal("s"), observed=held["y"])
    for name in "xz":  # PyMC takes NaN in its data only afterwards
        model[name].set_value(held[name])
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=dp.Domain(bounds=BOUNDS, **domain), rows=stored)
    return dp.Release.of(private).tables["y"]


@pytest.mark.parametrize(
    "hold", [dict, lambda rows: dp.Table(pl.DataFrame(rows).lazy(), {name: name for name in rows})]
)
def test_stored_rows_give_the_sums_of_rows_in_the_model(hold, rng):
    rows = table(rng, 300)
    rows["x"][:3], rows["z"][:3] = [np.nan, np.inf, -7], [-1, np.nan, 99]
    del rows["who"]
    dummy = {name: column[-4:] for name, column in rows.items()}
    np.testing.assert_array_equal(sums(dummy, hold(rows)), sums(rows))


def test_rows_of_persons_are_chosen_before_columns_are_computed(rng):
    rows, hidden = table(rng, 50), {"neighbours": "add_remove", "n_max": 300}
    whole = sums(rows, **hidden, unit=dp.Unit("who", max_rows=2))
    np.testing.assert_array_equal(whole, sums(rows, **{**hidden, "unit": None}))
