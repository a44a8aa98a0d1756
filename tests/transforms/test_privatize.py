"""Model in, model out: the same free variables, a release in place of the rows, and no row anywhere."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered

import pymc_dp as dp
from tests.transforms.zoo import no_reading, privatize

N = 23
PEOPLE = [f"person-{i}-canary" for i in range(N)]
CANARY = 987654.25
Y = np.resize([0, 1, 1], N)
GROUP = np.resize([0, 1, 2, 3, 1], N)
VALUE = np.resize([CANARY, 1.0, 5.0, 3.5], N)
LEVELS = {"group": list("abcd"), "region": ["north", "south"], "item": range(3)}


def hierarchical():
    """Groups around a common mean, with everything that a model can carry beside its likelihood."""
    with pm.Model(coords={**LEVELS, "person": PEOPLE}) as model:
        group = pm.Data("group_index", GROUP, dims="person")
        offset = pm.Data("offset", np.array([0.5, -0.5, 0.25, 0.0]), dims="group")
        mu = pm.Normal("mu", offset.mean(), 2, initval=0.75)
        sigma = pm.HalfNormal("sigma", initval="prior")
        z = pm.Normal("z", dims="group", initval=np.array([0.1, 0.2, 0.3, 0.4]))
        theta = pm.Deterministic("theta", mu + sigma * z, dims="group")
        pm.Deterministic("by_person", theta[group], dims="person")
        pm.Deterministic("mean_of_rows", pt.as_tensor(VALUE).mean() + mu)
        pm.Potential("soft", -0.5 * (z.sum() / 0.01) ** 2)
        pm.Bernoulli("y", logit_p=theta[group], observed=Y, dims="person")
        pm.Normal("x", theta[GROUP], 1.5, observed=VALUE, dims="person")
    return model


def ordered_logistic():
    with pm.Model(coords=LEVELS) as model:
        cut = pm.Normal("cut", [-1, 0, 1], 2, transform=ordered, initval=[-1, 0, 1], shape=3)
        eta = pm.Normal("eta", dims="region")
        pm.OrderedLogistic("y", eta[Y], cut, observed=GROUP, compute_p=False)
        pm.Bernoulli("x", pm.math.invprobit(eta.sum()), observed=Y)
    return model


MODELS = [hierarchical, ordered_logistic]
DOMAIN = {"hierarchical": dp.Domain(bounds={"x": (0, 10)}, public=["offset"])}


@pytest.fixture(scope="module", params=MODELS, ids=lambda build: build.__name__)
def pair(request):
    """A model and its private form."""
    model = request.param()
    return model, privatize(model, domain=DOMAIN.get(request.param.__name__))


@pytest.mark.few(1)
def test_free_variables_are_the_same_in_all_that_is_public(pair):
    model, private = pair
    assert [rv.name for rv in private.free_RVs] == [rv.name for rv in model.free_RVs]
    assert [value.name for value in private.continuous_value_vars] == [
        value.name for value in model.continuous_value_vars
    ]
    for rv, new in zip(model.free_RVs, private.free_RVs, strict=True):
        assert new is not rv
        assert new.type.ndim == rv.type.ndim
        assert private.named_vars_to_dims.get(new.name) == model.named_vars_to_dims.get(rv.name)
        assert type(private.rvs_to_transforms[new]) is type(model.rvs_to_transforms[rv])
        np.testing.assert_equal(private.rvs_to_initial_values[new], model.rvs_to_initial_values[rv])
    start, other = model.initial_point(random_seed=3), private.initial_point(random_seed=3)
    assert start.keys() == other.keys()
    for name, value in start.items():
        np.testing.assert_array_equal(other[name], value)


def test_the_release_is_an_observed_variable_under_its_old_name(pair):
    model, private = pair
    release = dp.Release.of(private)
    record, tables = release.record, release.tables
    assert [rv.name for rv in private.observed_RVs] == [rv.name for rv in model.observed_RVs]
    for rv, table in zip(private.observed_RVs, record.tables, strict=True):
        assert private.named_vars_to_dims[rv.name] == (f"{rv.name}_cell", f"{rv.name}_statistic")
        np.testing.assert_array_equal(private.rvs_to_values[rv].get_value(), tables[rv.name])
        assert tables[rv.name].shape == (len(table.cells), len(table.columns))
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))


def test_no_row_and_no_label_is_pickled(pair):
    _, private = pair
    dumped = cloudpickle.dumps(private)
    for dtype in (np.float64, np.float32):
        assert np.array(CANARY, dtype=dtype).tobytes() not in dumped
    for column in (Y, GROUP):
        for dtype in ("int64", "int32", "int8", "float64"):
            assert column.astype(dtype).tobytes() not in dumped
    assert b"canary" not in dumped


def test_what_is_computed_from_rows_is_left_out_and_the_rest_is_kept():
    model = hierarchical()
    private = privatize(model, domain=DOMAIN["hierarchical"])
    assert [det.name for det in private.deterministics] == ["theta"]
    assert [var.name for var in private.data_vars] == ["offset"]
    assert [var.name for var in private.potentials] == ["soft"]
    assert set(private.coords) == {"group", "y_cell", "y_statistic", "x_cell", "x_statistic"}
    assert dp.Release.of(private).record.left_out == ("by_person", "mean_of_rows")
    private["offset"].set_value(np.zeros(4))
    assert model["offset"].get_value().any()


def simple(y=Y, **arguments):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=y, **arguments)
    return model


def test_values_that_arrive_by_set_data_are_clamped_in_silence(recwarn):
    with pm.Model(coords=LEVELS) as model:
        group, held = pm.Data("g", GROUP), pm.Data("held", VALUE)
        pm.Normal("x", pm.Normal("mu", dims="group")[group], 1, observed=held)
    domain, wild = dp.Domain(bounds={"x": (0, 10)}), VALUE.copy()
    wild[:3] = [np.nan, np.inf, -np.inf]
    pm.set_data({"held": wild, "g": np.where(Y, GROUP, -7)}, model=model)
    with dp.testing.without_noise():
        found = dp.Release.of(privatize(model, domain=domain)).tables["x"]
    level = np.where(Y, GROUP, 0)
    clean = np.clip(np.where(np.isnan(wild), 5, wild), 0, 10) - 5
    np.testing.assert_allclose(found[:, 0], np.bincount(level, minlength=4))
    np.testing.assert_allclose(found[:, 1], np.bincount(level, weights=clean, minlength=4), atol=1e-6)
    assert not recwarn.list


def test_a_spent_ledger_refuses_before_the_rows_are_read(monkeypatch):
    ledger = dp.Ledger(epsilon=1.5)
    privatize(simple(), epsilon=1.0, ledger=ledger)
    before = (ledger.spent, ledger.remaining, repr(ledger))
    with no_reading(monkeypatch), pytest.raises(dp.errors.BudgetExceeded) as caught:
        privatize(simple(), epsilon=1.0, ledger=ledger)
    assert (ledger.spent, ledger.remaining, repr(ledger)) == before
    assert "at most 0.5" in str(caught.value)


def test_the_budget_is_spent_before_the_rows_are_read(monkeypatch):
    """A failure while reading loses budget, never privacy."""
    ledger = dp.Ledger(epsilon=1.5)
    with no_reading(monkeypatch), pytest.raises(dp.errors.ReleaseError):
        privatize(simple(), epsilon=1.0, ledger=ledger)
    assert ledger.spent.epsilon == 1.0
