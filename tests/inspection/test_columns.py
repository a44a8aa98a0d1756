"""Nothing that is read of a column lies outside of its public bounds or norm."""

from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect

pytestmark = pytest.mark.usefixtures("paid")
N = 12
X, V = np.linspace(-3, 3, 3 * N).reshape(N, 3), np.linspace(-1, 2, N)


def columns(write, **domain):
    with pm.Model(coords={"level": range(4), "cut": range(3), "two": range(2)}) as model:
        write()
    found = inspect(model, dp.Domain(**domain)).rows
    assert found.problems == ()
    return {column.name: column for column in found.columns}


def of_dtype(dtype, bounds, norm=None):
    def write():
        data = pm.Data("x", np.zeros((N, 3), dtype=dtype))
        pm.Normal("y", data @ pm.Normal("b", shape=3), 1.0, observed=V)

    with pytensor.config.change_flags(floatX="float32" if dtype == "float32" else "float64"):
        norms = {} if norm is None else {"x": norm}
        return columns(write, bounds={} if bounds is None else {"x": bounds}, norms=norms)["x"]


def test_bounds_are_rounded_inwards_to_what_the_dtype_holds():
    column = of_dtype("float32", (0.1, 1e39))
    low, high = column.bounds
    assert 0.1 < low < 0.1 + 1e-8 and high == np.finfo("float32").max
    held = column.clamped(np.array([[0.1, np.inf, np.nan]], dtype="float32"))
    assert held.dtype == "float32"
    assert float(held[0, 0]) == low and float(held[0, 1]) == high and low < float(held[0, 2]) < high


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_column_without_bounds_holds_numbers_only(dtype):
    """Proofs are about numbers: a density that asks whether a value is NaN would go ways that no proof sees."""
    held = of_dtype(dtype, None).clamped(np.array([[np.nan, np.inf, -np.inf], [0.5, -7.0, 0.0]], dtype=dtype))
    most = np.finfo(dtype).max
    assert held.tolist() == [[0.0, most, -most], [0.5, -7.0, 0.0]] and held.dtype == dtype


def square(row):
    return sum(Fraction(float(value)) ** 2 for value in row.ravel())


AWKWARD = np.array(
    [
        [0.0, 0.0, 0.0],
        [3.0, -4.0, 0.0],
        [0.6, 0.8, 0.0],
        [1e308, 1e308, -1e308],
        [5e-324, 1e-310, 0.0],
        [np.inf, -np.inf, 1.0],
        [np.nan, np.inf, np.nan],
        [np.nan, np.nan, np.nan],
        [1e-200, 1e200, 1.0],
    ]
)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("norm", [1.0, 0.1, 1e-99, 1e99])
def test_the_exact_norm_of_a_row_is_never_above(dtype, norm, rng):
    wild = rng.normal(size=(2000, 3)) * 10 ** rng.uniform(-3, 3, size=(2000, 1))
    unit = rng.normal(size=(2000, 3))
    unit *= norm / np.linalg.norm(unit, axis=1, keepdims=True)
    with np.errstate(over="ignore", under="ignore"):
        rows = np.concatenate([AWKWARD, wild, unit]).astype(dtype)
    held = of_dtype(dtype, None, norm).clamped(rows)
    assert held.dtype == dtype and np.isfinite(held).all()
    assert max(map(square, held)) <= Fraction(norm) ** 2
    known = np.nan_to_num(rows, nan=0.0)
    assert (np.abs(held) <= np.abs(known)).all() and (np.sign(held) * np.sign(known) >= 0).all()


def test_values_are_clamped_before_rows_are_scaled():
    held = of_dtype("float64", (-1, 3), 2.0).clamped(np.array([[np.nan, np.inf, -np.inf], [0.5, -7.0, 0.0]]))
    np.testing.assert_allclose(held[0], np.array([1.0, 3.0, -1.0]) * 2 / np.sqrt(11), rtol=1e-14)
    assert held[1].tolist() == [0.5, -1.0, 0.0]
