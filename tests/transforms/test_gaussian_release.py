"""Releases with Gaussian noise from the model to the published file, and the posteriors they give."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dp as dp
from pymc_dp.accounting import Ledger, event_from_dict, total_epsilon
from pymc_dp.release.statistics import Statistics
from pymc_dp.transforms.privatize import record_of
from tests.tied import tied
from tests.transforms.zoo import log_likelihoods, points, privatize

DELTA = 1e-6
GAUSSIAN = Statistics("gaussian")
SHORT = {
    "draws": 30, "tune": 30, "chains": 1, "cores": 1, "random_seed": 3, "progressbar": False,
    "compute_convergence_checks": False, "quiet": True, "compile_kwargs": {"mode": "FAST_COMPILE"},
}  # fmt: skip


BOUNDS = {"x": (0, 10), "visits": (0, 20)}


def survey(rng, n=400, others=False):
    group = rng.integers(0, 3, n)
    with pm.Model(coords={"group": range(3), "level": range(4)}) as model:
        held = pm.Data("held", group)
        p, mu = pm.Beta("p", 2, 2, dims="group"), pm.Normal("mu", 5, 3, dims="group")
        pm.Bernoulli("y", p[held], observed=rng.random(n) < 0.2 + 0.3 * group / 2)
        pm.Normal("x", mu[held], pm.HalfNormal("s", 2), observed=rng.normal(3 + group, 1, n))
        if others:
            pm.Categorical("k", pm.Dirichlet("q", np.ones(4), dims="level"), observed=rng.integers(0, 4, n))
            pm.Poisson("visits", pm.Gamma("rate", 2, 1, dims="group")[held], observed=rng.integers(0, 9, n))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "domain",
    [{}, {"neighbours": "add_remove", "n_max": 500}, {"public": ["held"]}],
    ids=["replace", "add_remove", "public"],
)
def test_every_likelihood_has_a_density_of_its_gaussian_release(domain, rng):
    private = privatize(
        tied(survey(rng, others=True)), 5.0, delta=DELTA, domain=dp.Domain(bounds=BOUNDS, **domain), statistics=GAUSSIAN
    )
    record, tables = record_of(private)
    assert (record.asked, record.delta, record.noise) == (5.0, DELTA, "discrete Gaussian")
    assert 4.99 < record.epsilon <= 5.0
    assert total_epsilon(event_from_dict(record.event), DELTA).epsilon <= 5.0
    assert all(line.startswith("Δ2 = ") for table in record.tables for line in table.sensitivities)
    found = log_likelihoods(private, points(private, rng, 2))
    assert found.keys() == tables.keys() == {"y", "x", "k", "visits"}
    for name, values in found.items():
        assert np.isfinite(values).all() and values[0] != values[1], name


@pytest.fixture(scope="module")
def trace():
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    tree = dp.sample(
        epsilon=2.0, delta=DELTA, statistics=GAUSSIAN, domain=dp.Domain(bounds={"x": (0, 10)}), ledger=ledger,
        model=survey(np.random.default_rng(4)), **SHORT,
    )  # fmt: skip
    return tree, ledger


@pytest.mark.slow
def test_the_trace_says_what_was_spent_and_how(trace):
    tree, ledger = trace
    assert (tree.dp.delta, tree.dp.guarantee, tree.dp.arithmetic) == (DELTA, "exact", "hardened")
    assert 1.999 < tree.dp.epsilon == ledger.history[0].alone.epsilon <= 2.0
    text, page = str(tree.dp.report()), tree.dp.report()._repr_html_()
    for phrase in (
        f"ε = {tree.dp.epsilon:g}, δ = 1e-06",
        "ε = 2 was asked for",
        "discrete Gaussian",
        "Δ2 = 1.41421",
        "accounts for the noise",
    ):
        assert phrase in text and phrase in page, phrase
    assert tree.dp.release.attrs["noise"] == "discrete Gaussian"
    (entry,) = ledger.history
    assert entry.alone.epsilon <= 2.0
    assert ledger.spent.epsilon <= 2.0
    assert (tree.dp.history["epsilon"] < 2.0).all()
    assert tree.dp.history["epsilon"].sum() > 2.0, "ρ adds, ε does not"


@pytest.mark.slow
def test_the_trace_is_published_read_and_drawn(trace, tmp_path):
    tree, ledger = trace
    assert tree.dp.report().publishable
    found = xr.open_datatree(tree.dp.publish(tmp_path / "trace.nc"))
    assert (found.dp.epsilon, found.dp.delta) == (tree.dp.epsilon, DELTA)
    assert str(found.dp.report()) == str(tree.dp.report())
    xr.testing.assert_equal(found.dp.release, tree.dp.release)
    dp.plots.release(found, backend="none")
    for source in (found, ledger):
        bars = [bar["x"].tolist() for bar in dp.plots.budget(source, backend="none").viz["bars"]["epsilon"].values]
        assert bars[-1][1] <= (2.0 if source is found else 3.0)
    found.close()


@pytest.mark.slow
def test_a_released_trace_changed_by_hand_is_not_published(trace):
    tree, _ = trace
    changed = tree.copy()
    changed["posterior"] = changed["posterior"].to_dataset().assign(extra=1.0)
    assert not changed.dp.report().publishable


def test_the_posterior_of_a_count_is_that_of_its_noise():
    """Against a grid over p with the exact convolution."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("p", 0, 1, default_transform=None), observed=np.resize([0, 1, 1], 60))
    private = privatize(model, 0.5, delta=DELTA, statistics=GAUSSIAN)
    (record, tables), grid = record_of(private), np.linspace(0.01, 0.99, 99)
    released, scale = tables["y"].item(), record.tables[0].scales[0]
    evaluate = private.compile_logp(vars=private["y"], mode="FAST_COMPILE")
    found = np.array([evaluate({"p": np.array(p)}) for p in grid])
    s = np.arange(61)[:, None]
    exact = np.log((stats.binom.pmf(s, 60, grid) * np.exp(-0.5 * ((released - s) / scale) ** 2)).sum(axis=0))
    difference = found - exact
    assert np.ptp(difference) < 1e-4


def test_sizes_seen_in_a_gaussian_release_serve_the_features(rng):
    kind = rng.integers(0, 2, 2000)
    with pm.Model() as model:
        held = pm.Data("kind", kind)
        pm.Bernoulli("label", pm.Beta("q", 1, 1), observed=held)
        pm.Categorical("feature", pm.Dirichlet("share", np.ones(3), shape=(2, 3))[held], observed=kind)
    private = privatize(model, 0.5, delta=DELTA, statistics=GAUSSIAN)
    label = private.rvs_to_values[private["label"]].get_value()[0, 0]
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
    draws = pm.draw(private["feature"], draws=40, random_seed=1, mode="FAST_COMPILE").sum(axis=-1)
    scales = [record_of(private)[0].tables[place].scales[0] for place in (0, 1)]
    spread = np.hypot(scales[0], 3**0.5 * scales[1])
    assert np.all(np.abs(draws.mean(axis=0) - [2000 - label, label]) < 6 * spread / np.sqrt(40))
