"""Sums of a table beside the model: the integers of the same rows inside, whatever the blocks; what is refused."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.rows.stored import Arrays

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")

AWKWARD = np.array(
    [
        *(np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.8e308, -1.8e308, 0.49999999999999994, 0.5, 1.5, 2.5),
        *(-2.0, 12.0, np.nextafter(12, 13), np.nextafter(12, 0), 5.0, 5.1, 1e-300, 0.1, 0.7),
    ]
)
GROUPS = np.array([-(2**63), 2**63 - 1, -1, 0, 1, 2, 3, 4, 2**40])
QUIET = {"tune": 5, "chains": 1, "progressbar": False}


def table(n_rows=4000, seed=3):
    rng = np.random.default_rng(seed)
    return {
        "x": np.where(rng.random((n_rows, 2)) < 0.3, rng.choice(AWKWARD, (n_rows, 2)), rng.normal(size=(n_rows, 2))),
        "g": rng.choice(GROUPS, n_rows),
        "y": np.where(rng.random(n_rows) < 0.4, rng.choice(AWKWARD, n_rows), rng.normal(5, 4, n_rows)),
        "k": rng.choice([-(2**63), 2**63 - 1, 0, 1, 2, 3, 5, 6], n_rows),
    }


def group(rows):
    return pm.Normal("level", 0, 1, dims="group")[pm.Data("g", rows["g"])]


def bernoulli(rows):
    pm.Bernoulli("k", logit_p=group(rows), observed=rows["k"])


def categorical(rows):
    p = pm.Dirichlet("p", pt.ones(6), dims=("group", "of"))
    pm.Categorical("k", p[pm.Data("g", rows["g"])], observed=rows["k"])


def binomial(rows):
    pm.Binomial("k", 5, logit_p=group(rows), observed=rows["k"])


def normal(rows):
    pm.Normal("y", group(rows), pm.HalfNormal("sd"), observed=rows["y"])


def one_cell(rows):
    pm.Normal("y", pm.Normal("m"), pm.HalfNormal("sd"), observed=rows["y"])


def histogram(rows):
    pm.StudentT("y", nu=4, mu=group(rows), sigma=pm.HalfNormal("sd"), observed=rows["y"])


def features(rows):
    pm.Beta("y", 1 + pm.Exponential("a", 1), 1 + pm.Exponential("b", 1), observed=rows["y"])


def vectors(rows):
    pm.MvNormal("x", pm.Normal("m", shape=2), pt.eye(2), observed=rows["x"])


def regression(rows):
    mean = pm.Data("x", rows["x"]) @ pm.Normal("slopes", shape=2) + group(rows)
    pm.Normal("y", mean, pm.HalfNormal("sd"), observed=rows["y"])


def two(rows):
    level = group(rows)
    pm.Normal("y", level, 1, observed=rows["y"])
    pm.Bernoulli("k", logit_p=level, observed=rows["k"])


def network(rows):
    root = pm.Bernoulli("g", pm.Beta("root", 1, 1), observed=rows["g"])
    pm.Bernoulli("k", pm.Beta("leaf", 1, 1, shape=2)[root], observed=rows["k"])


LIKELIHOODS = {
    build.__name__: build
    for build in (bernoulli, categorical, binomial, normal, one_cell, histogram, features, vectors, regression, two)
}
BOUNDS = {"y": (-2.0, 12.0), "x": (0.1, 0.7)}
NARROW = {"features": {"y": (0.01, 0.99)}}
USES = {"one_cell": "y", "features": "y", "vectors": "x", "regression": "xgy", "two": "gyk"}


def uses(name):
    return USES.get(name, "gy" if name in ("normal", "histogram") else "gk")


def model_of(name, rows):
    with pm.Model(coords={"group": range(4), "of": range(6)}) as model:
        LIKELIHOODS[name](rows)
    return model


def domain_of(name, relation):
    bounds = {key: pair for key, pair in NARROW.get(name, BOUNDS).items() if key in uses(name)}
    return dp.Domain(bounds=bounds, neighbours=relation, n_max=10_000 if relation == "add_remove" else None)


def exact(model, domain, rows=None, statistics=None):
    """The sums without noise, of the rows of the model or of a table beside it."""
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain, rows=rows, statistics=statistics or dp.Statistics())
    return dp.Release.of(private).tables


def as_observed(rows):
    """What PyMC can hold: for NaN what it counts as, the middle of the bounds; of integers 32 bits."""
    held = {name: np.where(np.isnan(rows[name]), middle, rows[name]) for name, middle in (("x", 0.4), ("y", 5.0))}
    return rows | held | {name: np.clip(rows[name], -(2**31), 2**31 - 1) for name in "gk"}


@pytest.mark.few(5, cases="all")
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_sums_are_those_of_the_same_rows_in_the_model(name, relation, monkeypatch):
    rows = table()
    if name in ("histogram", "features"):
        rows["y"] = rows["y"][~np.isnan(rows["y"])][:2000]
        rows = {key: values[:2000] for key, values in rows.items()}
    held = {key: rows[key] for key in uses(name)}
    domain = domain_of(name, relation)
    expected = exact(model_of(name, as_observed(rows)), domain)
    dummies = model_of(name, {key: np.zeros_like(values[:3]) for key, values in rows.items()})
    for size in (1, 2**9, 2**25):  # bytes: one row at a time, a few, all
        if size == 1:
            held = {key: values[:150] for key, values in held.items()}
            small = exact(model_of(name, as_observed({key: values[:150] for key, values in rows.items()})), domain)
        else:
            held, small = {key: rows[key] for key in uses(name)}, expected
        monkeypatch.setattr("pymc_dp.rows.passes.SUM_BYTES", size)
        found = exact(dummies, domain, held)
        assert found.keys() == small.keys()
        assert all(np.array_equal(found[key], small[key]) for key in found)


def test_networks_are_counted_beside_the_model():
    rng = np.random.default_rng(1)
    rows = {"g": rng.integers(0, 2, 500), "k": rng.integers(0, 2, 500)}
    how = dp.Statistics(mechanism=dp.networks.FourierUpdates(t=1))
    with pm.Model() as whole:
        network(rows)
    with pm.Model() as dummies:
        network({name: values[:4] for name, values in rows.items()})
    expected, found = exact(whole, None, None, how), exact(dummies, None, rows, how)
    assert np.array_equal(found["network"], expected["network"])


def test_the_charge_comes_first_and_errors_show_no_value(monkeypatch):
    def touched(self, size):
        raise ValueError("secret 0.1234")

    dummies = model_of("one_cell", {"y": np.zeros(3)})
    monkeypatch.setattr(Arrays, "blocks", touched)
    ledger = dp.Ledger(1.0)
    how = {"domain": domain_of("one_cell", "replace"), "rows": {"y": np.ones(9)}, "ledger": ledger}
    with pytest.raises(dp.errors.BudgetExceeded):
        dp.privatize(dummies, epsilon=3.0, **how)
    assert ledger.history == []
    with pytest.raises(dp.errors.ReleaseError) as caught:
        dp.privatize(dummies, epsilon=0.5, **how)
    assert ledger.spent.epsilon == 0.5 and "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_table_that_grows_is_noticed():
    class Growing(Arrays):
        def blocks(self, size):
            yield from super().blocks(size)
            yield from super().blocks(size)

    dummies = model_of("one_cell", {"y": np.zeros(3)})
    with pytest.raises(dp.errors.PrivacyError, match="has changed"):
        dp.privatize(dummies, epsilon=0.5, domain=domain_of("one_cell", "replace"), rows=Growing({"y": np.ones(9)}))


def test_no_value_warns():
    """A signalling NaN of 32 bits makes a cast warn, which a filter may turn into an error."""
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)[0]
    for value in (np.float32(0.5), signalling):
        x = np.full(6, np.float32(0.25))
        x[2] = value
        with pm.Model() as model:
            slope = pm.Normal("slope")
            pm.Normal("y", pm.Data("x", np.zeros(4, np.float32)) * slope, 1, observed=np.zeros(4))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            bounds = {"x": (-1, 1), "y": (-1, 1)}
            dp.privatize(
                model,
                epsilon=1.0,
                domain=dp.Domain(bounds=bounds),
                rows={"x": x, "y": np.zeros(6)},
                ledger=dp.Ledger(1.0),
            )
