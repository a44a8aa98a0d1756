"""Integers of engines are those of the kernels, bit for bit: awkward rows, every statistic, types, extreme bounds."""

import numpy as np
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pymc_dp as dp
from pymc_dp.networks import FourierUpdates
from pymc_dp.release.statistics import Statistics
from tests.release.test_beside import AWKWARD, GROUPS, LIKELIHOODS, domain_of, model_of, network, table, uses
from tests.rows.engines.engines import ENGINES, HERE, exact, in_engine, part, same

N_ROWS = 3000
PUSHED = [name for name in LIKELIHOODS if name not in ("features", "vectors")]


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


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PUSHED)
def test_awkward_rows_give_the_same_integers(name, engine, relation):
    parts, columns = stored(name, table(N_ROWS), np.random.default_rng(5))
    beside, held = in_engine(engine, parts, columns)
    dummies, domain = model_of(name, table(4)), domain_of(name, relation)
    assert same(exact(dummies, domain, beside), exact(dummies, domain, held))


def test_one_quick_case_in_dask():
    parts, columns = stored("normal", table(300), np.random.default_rng(5))
    beside, held = in_engine("dask", parts, columns)
    dummies, domain = model_of("normal", table(4)), domain_of("normal", "replace")
    assert same(exact(dummies, domain, beside), exact(dummies, domain, held))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "bool", "float32"])
def test_columns_of_any_plain_type(engine, dtype):
    if engine in ("postgres", "spark") and dtype == "int8":
        pytest.skip("no such type")
    rng = np.random.default_rng(2)
    if dtype == "float32":
        level, count = rng.integers(-3, 9, 400), rng.choice(AWKWARD, 400).astype(dtype)
    elif dtype == "bool":
        level, count = rng.random(400) < 0.5, rng.random(400) < 0.3
    else:
        level, count = (rng.choice([np.iinfo(dtype).min, np.iinfo(dtype).max, -1, 0, 1, 2, 3, 4], 400) for _ in "ab")
        level, count = level.astype(dtype), count.astype(dtype)
    parts = {"a": part(level, rng.random(400) < 0.1), "b": part(count, rng.random(400) < 0.1)}
    beside, held = in_engine(engine, parts, {"g": "a", "y": "b"})
    with pm.Model() as model:
        mean = pm.Normal("m", shape=4)[pm.Data("g", np.arange(4))]
        pm.Normal("y", mean, 1, observed=np.zeros(4))
    domain = dp.Domain(bounds={"y": (-1.5, 2.5)})
    assert same(exact(model, domain, beside), exact(model, domain, held))
    with pm.Model() as narrow:
        p = pm.Beta("p", 1, 1, shape=4)[pm.Data("g", np.arange(4, dtype=np.int32))]
        pm.Bernoulli("y", p, observed=pm.Data("held", np.zeros(4, dtype=bool)) if dtype == "bool" else np.zeros(4, int))
    if dtype == "float32":
        return
    domain = dp.Domain(bounds={"g": (1, 3)})
    assert same(exact(narrow, domain, beside), exact(narrow, domain, held))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_vectors_of_trials(engine, dtype):
    rng = np.random.default_rng(3)
    ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, -1, 0, 1, 2, 3, 7]
    parts = {name: part(rng.choice(ends, 500).astype(dtype), rng.random(500) < 0.1) for name in "abc"}
    beside, held = in_engine(engine, parts, {"y": ["a", "b", "c"]})
    with pm.Model() as model:
        pm.Multinomial("y", 7, pm.Dirichlet("p", np.ones(3)), observed=np.tile([7, 0, 0], (4, 1)))
    assert same(exact(model, None, beside), exact(model, None, held))


EXTREMES = [
    *[(-1e16, 1e16), (-1e300, 1e300), (-1e-9, 1e-9), (0.1, 0.7), (0.0, 1e-9), (-1e-300, 1e-300), (1.0, 1e16)],
    *[(-1e16, -1.0), (0.0, 1e300), (-1e300, -1e299), (-0.3, 1e6)],
]
SPECIAL = np.array(
    [*AWKWARD, 1.7e308, -1.7e308, 1e16, -1e16, 1e300, -1e300, 1e-9, -1e-9, 1e-160, -1e-160, 2.2250738585072014e-308]
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bounds", EXTREMES, ids=str)
def test_no_value_makes_an_engine_raise(engine, bounds):
    """All pairs of special values under extreme bounds, as moments, bins and products."""
    near = np.array([np.nextafter(end, far) for end in bounds for far in (-np.inf, np.inf)])
    values = np.concatenate([SPECIAL, near, bounds, [0.5 * bounds[0] + 0.5 * bounds[1]]])
    first, second = (grid.ravel() for grid in np.meshgrid(values, values))
    parts = {"a": part(first), "b": part(second, np.arange(len(second)) % 17 == 0)}
    with pm.Model() as products:
        pm.Normal("y", pm.Normal("m") + pm.Normal("s") * pm.Data("x", np.zeros(3)), 1, observed=np.zeros(3))
    with pm.Model() as moments:
        pm.Normal("y", pm.Normal("m"), pm.HalfNormal("s"), observed=np.zeros(3))
    with pm.Model() as bins:
        pm.StudentT("y", nu=4, mu=pm.Normal("m"), sigma=1, observed=np.zeros(3))
    for model, columns in ((products, {"x": "a", "y": "b"}), (moments, {"y": "b"}), (bins, {"y": "a"})):
        beside, held = in_engine(engine, parts, columns)
        domain = dp.Domain(bounds=dict.fromkeys(columns, bounds))
        try:
            expected = exact(model, domain, held)
        except dp.errors.UnsupportedModelError:
            continue  # too wide or too narrow in memory, too
        assert same(exact(model, domain, beside), expected)


@pytest.mark.parametrize("engine", HERE)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_rows_give_the_same_integers(engine, data):
    n_rows = data.draw(st.integers(1, 30))
    floats = st.lists(st.floats(), min_size=n_rows, max_size=n_rows)
    whole = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n_rows, max_size=n_rows)
    none = st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)
    parts = {name: part(np.array(data.draw(floats)), data.draw(none)) for name in ("y", "x0", "x1")}
    parts |= {name: part(np.array(data.draw(whole)), data.draw(none)) for name in ("g", "k")}
    name = data.draw(st.sampled_from(["normal", "two", "regression"]))
    columns = {key: ["x0", "x1"] if key == "x" else key for key in uses(name)}
    beside, held = in_engine(engine, parts, columns)
    dummies, domain = model_of(name, table(4)), domain_of(name, "add_remove")
    assert same(exact(dummies, domain, beside), exact(dummies, domain, held))


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_of_no_row_of_one_and_of_nulls(engine):
    dummies, domain = model_of("two", table(4)), domain_of("two", "add_remove")
    for n_rows in (0, 1, 40):
        none = np.ones(n_rows, dtype=bool)
        parts = {"y": part(np.ones(n_rows), none), **{key: part(np.ones(n_rows, dtype=int), none) for key in "gk"}}
        beside, held = in_engine(engine, parts, {key: key for key in "gyk"})
        assert same(exact(dummies, domain, beside), exact(dummies, domain, held))


LABELS = ["Oslo", "oslo", "Oslo ", "", "a'b", 'a"b', "a\\b", "%s", "\u00e9", "e\u0301", "\u6771\u4eac", "x" * 300]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("other", ["other", None])
def test_labels_by_public_levels(engine, other):
    rng = np.random.default_rng(7)
    texts = np.array([*LABELS, *map(str.upper, LABELS), "Rome"], dtype=object)
    whole = np.array([-(2**63), -1, 0, 3, 7, 2**63 - 1])
    parts = {
        "city": part(rng.choice(texts, 500), rng.random(500) < 0.1),
        "code": part(rng.choice(whole, 500), rng.random(500) < 0.1),
        "y": part(rng.normal(size=500)),
    }
    for levels in (
        dp.Levels("city", LABELS, other=other),
        dp.Levels("city", ["a\0b", "\ud800", "Rome"], other=other),
        dp.Levels("code", [3, -(2**63), 2**63 - 1, 2**70], other=other),
    ):
        beside, held = in_engine(engine, parts, {"g": levels, "y": "y"})
        n_levels = len(levels.labels)
        with pm.Model() as model:
            mean = pm.Normal("m", shape=n_levels)[pm.Data("g", np.zeros(3, dtype=int))]
            pm.Normal("y", mean, 1, observed=np.zeros(3))
        domain = dp.Domain(bounds={"y": (-1, 1)})
        assert same(exact(model, domain, beside), exact(model, domain, held))


@pytest.mark.parametrize("engine", HERE)
def test_networks(engine):
    rng = np.random.default_rng(6)
    parts = {name: part(rng.integers(-1, 3, 300), rng.random(300) < 0.1) for name in "gk"}
    beside, held = in_engine(engine, parts, {"g": "g", "k": "k"})
    with pm.Model() as model:
        network(table(4))
    how = Statistics(mechanism=FourierUpdates(t=1))
    assert same(exact(model, None, beside, how), exact(model, None, held, how))


@pytest.mark.parametrize("engine", ENGINES)
def test_twenty_predictors(engine):
    rng = np.random.default_rng(4)
    x = rng.choice(AWKWARD, (300, 20))
    parts = {f"x{place}": part(x[:, place]) for place in range(20)}
    parts |= {"y": part(rng.normal(size=300)), "g": part(rng.choice(GROUPS, 300))}
    with pm.Model() as model:
        level = pm.Normal("level", shape=3)[pm.Data("g", np.arange(3))]
        mean = pm.Data("x", np.zeros((3, 20))) @ pm.Normal("b", shape=20)
        pm.Normal("y", mean + level, pm.HalfNormal("s"), observed=np.zeros(3))
    beside, held = in_engine(engine, parts, {"x": [f"x{place}" for place in range(20)], "y": "y", "g": "g"})
    domain = dp.Domain(bounds={"x": (-2, 3), "y": (-1, 1)})
    assert same(exact(model, domain, beside), exact(model, domain, held))
