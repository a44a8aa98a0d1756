"""``statistics=dp.Gradients()``: from a model to a trace, what is charged before rows are read, what leaves."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.audit import contains_canary, plant

BUDGET = {"epsilon": 3.0, "delta": 1e-5}
TRUTH = np.array([0.8, -0.5])


def table(rng, n=2000):
    design = rng.uniform(-1, 1, (n, 2))
    return design, (rng.random(n) < 1 / (1 + np.exp(-design @ TRUTH))).astype(int)


def logistic(design, answers, spread=1.0):
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", spread)
        b = pm.Normal("b", 0, tau, shape=2)
        pm.Bernoulli("y", logit_p=pm.Data("x", design) @ b, observed=answers)
    return model


def domain(relation="replace"):
    return dp.Domain(bounds={"x": (-1, 1)}, neighbours=relation, n_max=10_000 if relation == "add_remove" else None)


@pytest.fixture(scope="module")
def released():
    rng = np.random.default_rng(5)
    ledger = dp.Ledger(10.0, 1e-5)
    private = dp.privatize(logistic(*table(rng)), **BUDGET, domain=domain(), statistics=dp.Gradients(), ledger=ledger)
    return private, ledger


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_a_release_is_saved_and_refitted_with_another_prior(released, tmp_path):
    private, _ = released
    release = dp.Release.load(dp.Release.of(private).save(tmp_path / "release.json"))
    assert release.of_gradients and release.epsilon == dp.Release.of(private).epsilon
    dummies = logistic(np.zeros((3, 2)), np.zeros(3, dtype=int), spread=0.1)
    again = dp.condition(dummies, release)
    same = dp.condition(logistic(np.zeros((3, 2)), np.zeros(3, dtype=int)), release)
    point = private.initial_point(0)
    assert same.compile_logp()(point) == pytest.approx(private.compile_logp()(point))
    assert again.compile_logp()(point) != pytest.approx(private.compile_logp()(point))
    with pm.Model() as other:
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros(3)) * pm.Normal("c"), observed=np.zeros(3, dtype=int))
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"gradients were released for b\[0\], b\[1\]"):
        dp.condition(other, release)


def test_the_charge_comes_before_the_rows(rng, monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    model, ledger = logistic(*table(rng, 50)), dp.Ledger(1.0, 1e-5)
    with pytest.raises(dp.errors.BudgetExceeded):
        dp.privatize(model, **BUDGET, domain=domain(), statistics=dp.Gradients(), ledger=ledger)
    assert ledger.history == []
    with pytest.raises(dp.errors.ArgumentError, match="The ledger has delta=0, and this release needs delta=1e-05"):
        dp.privatize(model, **BUDGET, domain=domain(), statistics=dp.Gradients(), ledger=dp.Ledger(1.0))
    with pytest.raises(dp.errors.ReleaseError) as caught:
        dp.privatize(model, epsilon=0.5, delta=1e-6, domain=domain(), statistics=dp.Gradients(), ledger=ledger)
    assert ledger.spent.epsilon > 0.4 and "rows were read" not in str(caught.value)


@pytest.mark.usefixtures("interpreted")
def test_nothing_of_a_row_leaves():
    rng = np.random.default_rng(6)
    design, answers = table(rng, 60)
    planted = plant(design[:, 0], rows=range(0, 60, 10), low=-1, high=1)
    design[:, 0] = planted.values
    with logistic(design, answers):
        found = dp.sample(
            5, tune=5, chains=1, **BUDGET, domain=domain("add_remove"), statistics=dp.Gradients(steps=10),
            progressbar=False, ledger=dp.Ledger(**BUDGET, neighbours="add_remove"),
        )  # fmt: skip
    assert found["posterior"]["b"].shape == (1, 5, 2) and found.dp.neighbours == "add_remove"
    assert "Δ2 = C of scores" in found.dp.history["sensitivity"][0]
    assert not contains_canary(found, planted.canaries)
