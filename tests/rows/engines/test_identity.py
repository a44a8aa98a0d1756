"""Integers of engines are those of the kernels, bit for bit, for every hostile column that a case of the table has."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.release.test_beside import AWKWARD, GROUPS, LIKELIHOODS, domain_of, model_of, network, table, uses
from tests.rows.engines.engines import ENGINES, exact, in_engine, part, same


def stored(name, rows, rng):
    """The columns that a likelihood of `test_beside` uses, a twentieth of them missing."""
    columns, parts = {}, {}
    for key in uses(name):
        entries = [f"{key}{place}" for place in range(2)] if rows[key].ndim > 1 else [key]
        columns[key] = entries if rows[key].ndim > 1 else key
        for place, entry in enumerate(entries):
            values = rows[key] if rows[key].ndim == 1 else rows[key][:, place]
            parts[entry] = part(values, rng.random(len(values)) < 0.05)
    return parts, columns


def grouped(levels, likelihood=pm.Normal):
    """A mean of each level, of rows that are zeros."""
    with pm.Model() as model:
        g = pm.Data("g", np.zeros(levels, dtype=int))
        if likelihood is pm.Normal:
            pm.Normal("y", pm.Normal("m", shape=levels)[g], 1, observed=np.zeros(levels))
        else:
            pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=levels)[g], observed=np.zeros(levels, int))
    return model


def of_likelihood(name, relation, n_rows=3000):
    rows = table(n_rows)
    yield *stored(name, rows, np.random.default_rng(5)), model_of(name, table(4)), domain_of(name, relation), None


def of_type(dtype):
    rng = np.random.default_rng(2)
    if dtype == "float32":
        level, count = rng.integers(-3, 9, 400), rng.choice(AWKWARD, 400).astype(dtype)
    elif dtype == "bool":
        level, count = rng.random(400) < 0.5, rng.random(400) < 0.3
    else:
        ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, -1, 0, 1, 2, 3, 4]
        level, count = (rng.choice(ends, 400).astype(dtype) for _ in "ab")
    parts = {"a": part(level, rng.random(400) < 0.1), "b": part(count, rng.random(400) < 0.1)}
    columns = {"g": "a", "y": "b"}
    yield parts, columns, grouped(4), dp.Domain(bounds={"y": (-1.5, 2.5)}), None
    if dtype != "float32":
        yield parts, columns, grouped(4, pm.Bernoulli), dp.Domain(bounds={"g": (1, 3)}), None


def trials():
    rng, ends = np.random.default_rng(3), [-(2**63), 2**63 - 1, -1, 0, 1, 2, 3, 7]
    parts = {name: part(rng.choice(ends, 500), rng.random(500) < 0.1) for name in "abc"}
    with pm.Model() as model:
        pm.Multinomial("y", 7, pm.Dirichlet("p", np.ones(3)), observed=np.tile([7, 0, 0], (4, 1)))
    yield parts, {"y": ["a", "b", "c"]}, model, None, None


EXTREMES = [
    *[(-1e16, 1e16), (-1e300, 1e300), (-1e-9, 1e-9), (0.1, 0.7), (0.0, 1e-9), (-1e-300, 1e-300), (1.0, 1e16)],
    *[(-1e16, -1.0), (0.0, 1e300), (-1e300, -1e299), (-0.3, 1e6)],
]
SPECIAL = [1.7e308, -1.7e308, 1e16, -1e16, 1e300, -1e300, 1e-9, -1e-9, 1e-160, -1e-160, 2.2250738585072014e-308]


def extreme(bounds):
    """All pairs of special values under extreme bounds, as moments, bins and products."""
    near = [np.nextafter(end, far) for end in bounds for far in (-np.inf, np.inf)]
    values = np.array([*AWKWARD, *SPECIAL, *near, *bounds, 0.5 * bounds[0] + 0.5 * bounds[1]])
    first, second = (grid.ravel() for grid in np.meshgrid(values, values))
    parts = {"a": part(first), "b": part(second, np.arange(len(second)) % 17 == 0)}
    with pm.Model() as products:
        pm.Normal("y", pm.Normal("m") + pm.Normal("s") * pm.Data("x", np.zeros(3)), 1, observed=np.zeros(3))
    with pm.Model() as moments:
        pm.Normal("y", pm.Normal("m"), pm.HalfNormal("s"), observed=np.zeros(3))
    with pm.Model() as bins:
        pm.StudentT("y", nu=4, mu=pm.Normal("m"), sigma=1, observed=np.zeros(3))
    for model, columns in ((products, {"x": "a", "y": "b"}), (moments, {"y": "b"}), (bins, {"y": "a"})):
        yield parts, columns, model, dp.Domain(bounds=dict.fromkeys(columns, bounds)), None


def of_nulls():
    for n_rows in (0, 1, 40):
        none = np.ones(n_rows, dtype=bool)
        parts = {"y": part(np.ones(n_rows), none), **{key: part(np.ones(n_rows, dtype=int), none) for key in "gk"}}
        yield parts, {key: key for key in "gyk"}, model_of("two", table(4)), domain_of("two", "add_remove"), None


LABELS = ["Oslo", "oslo", "Oslo ", "", "a'b", 'a"b', "a\\b", "%s", "\u00e9", "e\u0301", "\u6771\u4eac", "x" * 300]


def labelled(other):
    rng = np.random.default_rng(7)
    texts = np.array([*LABELS, *map(str.upper, LABELS), "Rome"], dtype=object)
    parts = {
        "city": part(rng.choice(texts, 500), rng.random(500) < 0.1),
        "code": part(rng.choice(np.array([-(2**63), -1, 0, 3, 7, 2**63 - 1]), 500), rng.random(500) < 0.1),
        "y": part(rng.normal(size=500)),
    }
    for levels in (
        dp.Levels("city", LABELS, other=other),
        dp.Levels("city", ["a\0b", "\ud800", "Rome"], other=other),
        dp.Levels("code", [3, -(2**63), 2**63 - 1, 2**70], other=other),
    ):
        yield parts, {"g": levels, "y": "y"}, grouped(len(levels.labels)), dp.Domain(bounds={"y": (-1, 1)}), None


def networks():
    rng = np.random.default_rng(6)
    parts = {name: part(rng.integers(-1, 3, 300), rng.random(300) < 0.1) for name in "gk"}
    with pm.Model() as model:
        network(table(4))
    yield parts, {"g": "g", "k": "k"}, model, None, dp.Statistics(mechanism=dp.networks.FourierUpdates(t=1))


def twenty_predictors():
    rng = np.random.default_rng(4)
    names = [f"x{place}" for place in range(20)]
    parts = {name: part(rng.choice(AWKWARD, 300)) for name in names}
    parts |= {"y": part(rng.normal(size=300)), "g": part(rng.choice(GROUPS, 300))}
    with pm.Model() as model:
        level = pm.Normal("level", shape=3)[pm.Data("g", np.arange(3))]
        mean = pm.Data("x", np.zeros((3, 20))) @ pm.Normal("b", shape=20)
        pm.Normal("y", mean + level, pm.HalfNormal("s"), observed=np.zeros(3))
    yield parts, {"x": names, "y": "y", "g": "g"}, model, dp.Domain(bounds={"x": (-2, 3), "y": (-1, 1)}), None


PUSHED = [name for name in LIKELIHOODS if name not in ("features", "vectors")]
RELATIONS = ("replace", "add_remove")
CASES = {
    **{f"{name}, {relation}": (of_likelihood, name, relation) for name in PUSHED for relation in RELATIONS},
    **{f"columns of {dtype}": (of_type, dtype) for dtype in ("int8", "int16", "int32", "bool", "float32")},
    **{f"bounds {bounds}": (extreme, bounds) for bounds in EXTREMES},
    **{f"labels, other={other}": (labelled, other) for other in ("other", None)},
    **{make.__name__: (make,) for make in (trials, of_nulls, networks, twenty_predictors)},
}


def agree(engine, case):
    make, *given = CASES[case]
    for parts, columns, model, domain, statistics in make(*given):
        beside, held = in_engine(engine, parts, columns)
        try:
            expected = exact(model, domain, held, statistics)
        except dp.errors.UnsupportedModelError:
            continue  # too wide or too narrow in memory, too
        assert same(exact(model, domain, beside, statistics), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_sums_of_engines_are_those_of_rows_in_memory(case, engine):
    if engine in ("postgres", "spark") and case == "columns of int8":
        pytest.skip("no such type")
    agree(engine, case)


def test_one_quick_case_in_dask():
    agree("dask", "columns of float32")
