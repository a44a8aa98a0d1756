"""The public set of every column of a row: what implies it, and that nothing read lies outside of it."""

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
G, Y = np.arange(N) % 4, np.arange(N) % 2
ADD_REMOVE = {"neighbours": "add_remove", "n_max": 500}


def columns(write, **domain):
    with pm.Model(coords={"level": range(4), "cut": range(3), "two": range(2)}) as model:
        write()
    found = inspect(model, dp.Domain(**domain)).rows
    assert found.problems == ()
    return {column.name: column for column in found.columns}


def bernoulli():
    return pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y)


def normal(mean, observed=V, name="y"):
    pm.Normal(name, mean, 1.0, observed=observed)


def at(index, dims="level", name="m"):
    return pm.Normal(name, dims=dims)[index]


def ordered():
    cuts = pm.Normal("c", [-1.0, 0.0, 1.0], 1.0, dims="cut", transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("y", eta=pm.Data("v", V) * pm.Normal("b"), cutpoints=cuts, observed=G)


WRITTEN = {
    "bernoulli": bernoulli,
    "flags": lambda: normal(pm.Normal("m") * pm.Data("flag", Y.astype(bool))),
    "categories": lambda: pm.Categorical("y", pm.Dirichlet("p", np.ones(4), dims="level"), observed=G),
    "ordered": ordered,
    "trials": lambda: pm.Binomial("y", 5, pm.Beta("p", 1, 1), observed=G),
    "more trials": lambda: pm.BetaBinomial("y", n=6, alpha=pm.Gamma("a", 2, 1), beta=1.0, observed=G),
    "draws": lambda: pm.HyperGeometric("y", N=20, k=3, n=8, observed=Y),
    "index": lambda: normal(at(pm.Data("g", G))),
    "two indices": lambda: (g := pm.Data("g", Y), normal(at(g) + at(g, "two", "k"))),
    "outcome as index": lambda: normal(at(bernoulli()), name="z"),
    "counts": lambda: pm.Poisson("y", pm.Gamma("r", 2, 1), observed=G),
    "trials of its own": lambda: pm.Binomial("y", np.full(N, 7), pm.Beta("p", 1, 1), observed=G),
    "a shifted index": lambda: normal(at(pm.Data("y", G + 1) - 1), name="z"),
    "measured": lambda: normal(pm.Normal("m")),
}
IMPLIED = {
    "bernoulli": ("y", (0, 1), "first"),
    "flags": ("flag", (0, 1), "first"),
    "categories": ("y", (0, 3), "first"),
    "ordered": ("y", (0, 3), "first"),
    "trials": ("y", (0, 5), "nearest"),
    "more trials": ("y", (0, 6), "nearest"),
    "draws": ("y", (0, 3), "nearest"),
    "index": ("g", (0, 3), "first"),
    "two indices": ("g", (0, 1), "first"),
    "outcome as index": ("y", (0, 1), "first"),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("write", IMPLIED)
@pytest.mark.parametrize("relation", [{}, ADD_REMOVE])
def test_what_the_model_gives_a_meaning_bounds_a_column(write, relation):
    name, bounds, outside = IMPLIED[write]
    column = columns(WRITTEN[write], **relation)[name]
    assert (column.bounds, column.outside, column.integer, column.public) == (bounds, outside, True, False)
    with pm.Model(coords={"level": range(4), "cut": range(3), "two": range(2)}) as model:
        WRITTEN[write]()
    assert not any(line.startswith("bounds of") for line in inspect(model, dp.Domain(**relation)).rows.assumptions)


@pytest.mark.parametrize("write", [name for name in WRITTEN if name not in IMPLIED])
def test_no_value_of_a_row_makes_a_bound(write):
    assert columns(WRITTEN[write])["y"].bounds is None


def test_values_outside_go_to_the_first_level_or_to_the_nearest():
    held = np.array([-1, 0, 3, 4, 2**40])
    assert columns(WRITTEN["index"])["g"].clamped(held).tolist() == [0, 0, 3, 0, 0]
    assert columns(WRITTEN["categories"])["y"].clamped(held).tolist() == [0, 0, 3, 0, 0]
    assert columns(bernoulli)["y"].clamped(held).tolist() == [0, 0, 0, 0, 0]
    assert columns(WRITTEN["trials"])["y"].clamped(held).tolist() == [0, 0, 3, 4, 5]
    assert columns(WRITTEN["index"], bounds={"g": (1, 3)})["g"].clamped(held).tolist() == [1, 1, 3, 3, 3]


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
