"""ε protects a person with several rows: what is refused, what is said, and that a release is of that person alone."""

import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
PERSONS, MOST = 60, 3
OWNERS = np.repeat(np.arange(PERSONS) * 7 + 20, np.random.default_rng(5).integers(1, 7, PERSONS))
RNG = np.random.default_rng(6)
X = RNG.uniform(-1, 1, len(OWNERS))
Y = RNG.binomial(1, 0.3, len(OWNERS))
G = RNG.integers(0, 2, len(OWNERS))
DOMAIN = dp.Domain(
    bounds={"x": (-1, 1), "z": (-2, 2)}, neighbours="add_remove", n_max=100, unit=dp.Unit("patient_id", max_rows=MOST)
)


def counts(rows=slice(None), owners=OWNERS):
    with pm.Model(coords={"group": range(2)}) as model:
        pm.Data("patient_id", owners[rows])
        group = pm.Data("g", G[rows])
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Bernoulli("y", p[group], observed=Y[rows])
    return model


def logistic(rows=slice(None)):
    with pm.Model() as model:
        pm.Data("patient_id", OWNERS[rows])
        x = pm.Data("x", X[rows])
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1)
        pm.Bernoulli("y", logit_p=a + b * x, observed=Y[rows])
    return model


def linear(rows=slice(None)):
    with pm.Model() as model:
        pm.Data("patient_id", OWNERS[rows])
        x = pm.Data("x", X[rows])
        a, b, s = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1), pm.HalfNormal("s", 1)
        pm.Normal("z", a + b * x, s, observed=X[rows] + Y[rows] - 0.5)
    return model


MODELS = {"counts": counts, "logistic": logistic, "linear": linear}
WAYS = [
    ("counts", dp.Statistics(), 0.0),
    ("linear", dp.Statistics("gaussian"), 1e-6),
    ("logistic", dp.Gradients(steps=10), 1e-6),
]


def domain_of(model):
    names = {var.name for var in (*model.data_vars, *model.observed_RVs)}
    bounds = {name: ends for name, ends in DOMAIN.bounds.items() if name in names}
    return dp.Domain(bounds=bounds, neighbours="add_remove", n_max=100, unit=DOMAIN.unit)


def released(model, statistics, delta, rows=None, domain=None):
    with dp.testing.without_noise(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        domain = domain_of(model) if domain is None else domain
        private = dp.privatize(model, epsilon=1.0, delta=delta, statistics=statistics, domain=domain, rows=rows)
    found = dp.Release.of(private)
    return found.record, next(iter(found.tables.values()))


@pytest.mark.parametrize(("name", "statistics", "delta"), WAYS)
def test_the_order_of_rows_and_where_they_are_make_no_difference(name, statistics, delta):
    """Where all rows of a person count: a choice of them would be another in another order."""
    own = domain_of(MODELS[name]())
    whole = dp.Domain(bounds=own.bounds, neighbours="add_remove", n_max=100, unit=dp.Unit("patient_id", max_rows=6))
    plain = released(MODELS[name](), statistics, delta, domain=whole)[1]
    order = np.random.default_rng(1).permutation(len(OWNERS))
    np.testing.assert_array_equal(released(MODELS[name](order), statistics, delta, domain=whole)[1], plain)
    columns = {"patient_id": OWNERS, "x": X, "g": G, "y": Y, "z": X + Y - 0.5}
    model = MODELS[name](slice(2))
    names = {var.name for var in (*model.data_vars, *model.observed_RVs)}
    rows = {key: column[order] for key, column in columns.items() if key in names}
    np.testing.assert_array_equal(released(model, statistics, delta, rows, whole)[1], plain)


def test_at_most_so_many_rows_of_a_person_count():
    _, table = released(counts(), dp.Statistics(), 0.0)
    held = np.unique(OWNERS, return_counts=True)[1]
    assert table.sum() == np.minimum(held, MOST).sum() < len(OWNERS)


@pytest.mark.parametrize("name", ["counts", "linear"])
def test_the_whole_noise_is_for_a_person(name):
    model = MODELS[name]()
    domain = domain_of(model)
    alone = dp.Domain(bounds=domain.bounds, neighbours="add_remove", n_max=100 * MOST)
    of_person, of_row = (released(model, dp.Statistics(), 0.0, domain=one)[0] for one in (domain, alone))
    for one, other in zip(of_person.tables, of_row.tables, strict=True):
        assert one.columns == other.columns
        assert f"a person adds {MOST} rows at most" in one.sensitivities[-1]
    ledgers = dp.Ledger(1.0, unit="patient_id"), dp.Ledger(1.0, neighbours="add_remove")
    scales = []
    for ledger, one in zip(ledgers, (domain, alone), strict=True):
        record = dp.Release.of(dp.privatize(model, epsilon=1.0, domain=one, ledger=ledger)).record
        scales.append(record.tables[0].scales[0])
        assert record.epsilon <= 1.0
    assert scales[0] == pytest.approx(MOST * scales[1], rel=1e-6)


NAMES = "OPS TemperedGibbs BarkerMetropolis PenaltyMetropolis TemperedMetropolis PrivateHMC SGLD SGHMC SGNHT SGFS"
STEPS = [dp.OPS(assume_converged=True), *(getattr(dp, name)() for name in NAMES.split())]


@pytest.mark.parametrize("step", STEPS, ids=repr)
@pytest.mark.parametrize("name", ["counts", "logistic"])
def test_samplers_that_hold_rows_refuse_and_say_what_releases_of_persons(step, name):
    model = MODELS[name]()
    ledger = dp.Ledger(5.0, 1e-3, unit="patient_id")
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"(?s)dp\.privatize without step=.*not per person"):
        dp.sample(epsilon=1.0, delta=1e-4, step=step, model=model, domain=domain_of(model), ledger=ledger)
    assert not ledger.history


def test_every_other_way_refuses_too():
    model = counts()
    domain, two = domain_of(model), [dp.TemperedGibbs(["p"]), dp.BarkerMetropolis(["p"])]
    for call in (
        lambda: dp.sample(epsilon=1.0, delta=1e-4, step=two[:1], model=model, domain=domain),
        lambda: dp.find_map(model=model, epsilon=1.0, domain=domain),
        lambda: dp.sample_ais(model=model, epsilon=1.0, domain=domain),
        lambda: dp.sensitivity(model, domain),
        lambda: dp.find_bounds(model, "y", epsilon=1.0, domain=domain),
        lambda: dp.find_levels("y", rows={"y": Y}, epsilon=1.0, delta=1e-6, max_levels=3, domain=domain),
        lambda: dp.plan(model, epsilon=1.0, domain=domain, step=dp.OPS()),
        lambda: dp.privatize(
            model, epsilon=1.0, domain=domain, statistics=dp.Statistics(mechanism=dp.networks.LaplaceUpdates())
        ),
        lambda: dp.privatize(
            model, epsilon=1.0, domain=domain, statistics=dp.Statistics(mechanism=dp.networks.FourierUpdates(1))
        ),
    ):
        with pytest.raises(dp.errors.PrivacyError, match=r"person|unit|add_remove|number of rows"):
            call()


def test_a_ledger_of_persons_takes_no_event_per_row_and_the_reverse():
    model = counts()
    rows = dp.Domain(neighbours="add_remove", n_max=1000)
    for ledger, domain in (
        (dp.Ledger(5.0, unit="patient_id"), rows),
        (dp.Ledger(5.0, neighbours="add_remove"), domain_of(model)),
        (dp.Ledger(5.0), domain_of(model)),
        (dp.Ledger(5.0, unit="clinic"), domain_of(model)),
    ):
        with pytest.raises(dp.errors.ArgumentError, match="ledger of the same persons"):
            dp.privatize(model, epsilon=1.0, domain=domain, ledger=ledger)
        assert not ledger.history
    ledger = dp.Ledger(5.0, unit="patient_id")
    for most in (1, 2):  # how many rows count makes no difference to whom ε protects
        domain = dp.Domain(neighbours="add_remove", n_max=100, unit=dp.Unit("patient_id", most))
        dp.privatize(model, epsilon=1.0, domain=domain, ledger=ledger)
    assert ledger.spent.epsilon == 2.0
