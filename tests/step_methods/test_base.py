"""What every private step method promises, shown on the one that is least in the way: OPS."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.step_methods.conftest import bernoulli

ANSWERS = np.arange(60) % 3 == 0
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


def test_a_specification_needs_no_model_and_does_nothing_alone():
    step = dp.OPS()
    assert repr(step) == "OPS()" and repr(dp.OPS(grid=100)) == "OPS(grid=100)"
    with pytest.raises(dp.errors.ArgumentError, match=r"has no budget.*dp.OPS\(epsilon=..., chains=...\)"):
        step.setup_chain(None, 0, 1)
    with pytest.raises(dp.errors.ArgumentError, match="mean nothing"):
        dp.OPS(delta=1e-6)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_funded_step_means_the_same_on_one_core_and_two(cores):
    with bernoulli(ANSWERS) as model:
        step = dp.OPS(epsilon=1.0, chains=2)
        raw = pm.sample(4, step=step, chains=2, cores=cores, **PLAIN)
        tree = dp.scrub(raw, model)
        with pytest.raises(dp.errors.BudgetExceeded, match="all of them have begun"):
            pm.sample(4, step=step, chains=1, **PLAIN)
    assert "observed_data" in raw.children and "observed_data" not in tree.children
    np.testing.assert_allclose(tree["sample_stats"]["epsilon_spent"].values, [[0.25, 0.5, 0.75, 1.0]] * 2)
    one, other = tree["posterior"]["p"].values
    assert not np.isin(one, other).any(), "chains must not repeat each other"
    assert tree.dp.epsilon == 1.0


def test_more_chains_than_paid_for_are_refused():
    with bernoulli(ANSWERS):
        step = dp.OPS(epsilon=1.0)
        with pytest.raises(dp.errors.BudgetExceeded, match="funded for 1 chain,"):
            pm.sample(2, step=step, chains=2, cores=1, **PLAIN)


def test_some_of_the_variables_are_refused():
    with bernoulli(ANSWERS):
        pm.Normal("other")
        with pytest.raises(dp.errors.ArgumentError, match="would see the raw rows"):
            dp.OPS(["p"], epsilon=1.0)


def test_a_funded_step_is_not_funded_again():
    model = bernoulli(ANSWERS)
    with model:
        step = dp.OPS(epsilon=1.0)
    with pytest.raises(dp.errors.ArgumentError, match="budget of its own already"):
        dp.sample(epsilon=1.0, step=step, model=model, **QUIET)
    with pytest.raises(dp.errors.ArgumentError, match="releases none"):
        dp.sample(epsilon=1.0, step=dp.OPS(), statistics=dp.Statistics(), model=model, **QUIET)
    with pytest.raises(dp.errors.ArgumentError, match="only private step methods"):
        dp.sample(epsilon=1.0, step=pm.NUTS, model=model, **QUIET)


def test_a_trace_without_its_step_is_refused():
    model = bernoulli(ANSWERS)
    with model:
        raw = pm.sample(3, step=dp.OPS(epsilon=1.0), chains=1, **PLAIN)
        with pytest.warns(dp.errors.RepeatedReleaseWarning, match="second release"):
            other = dp.OPS(epsilon=1.0)
    with pytest.raises(dp.errors.TraceError, match="not made by privatize"):
        dp.scrub(raw, bernoulli(ANSWERS))
    longer = raw.copy()
    longer["posterior"] = longer["posterior"].to_dataset().reindex(draw=np.arange(7))
    with pytest.raises(dp.errors.TraceError, match="more states than its step has made"):
        dp.scrub(longer, model)
    unnumbered = raw.copy()
    unnumbered["sample_stats"] = unnumbered["sample_stats"].to_dataset().drop_vars("step_identity")
    with pytest.raises(dp.errors.TraceError, match="No funded step of this model made this trace"):
        dp.scrub(unnumbered, model)
    assert other.binding.claims.taken() == []


def test_copies_of_a_begun_step_do_not_repeat_its_randomness():
    """Two that go on from different points with the same noise would show what the rows say of either."""
    with bernoulli(ANSWERS) as model:
        step = dp.OPS(epsilon=1.0, chains=2)
    step.setup_chain(None, 0, 10)
    again = pickle.loads(cloudpickle.dumps(step))
    assert step._generator is not None and again._generator is None
    with pytest.raises(dp.errors.PrivacyError, match="setup_chain first"):
        again.step(model.initial_point())
    again.setup_chain(None, 0, 10)
    start = model.initial_point()
    assert repr(again.step(start)[0]) != repr(step.step(start)[0])


def test_problems_come_all_at_once_and_cost_nothing():
    ledger = dp.Ledger(epsilon=1.0)
    with pm.Model() as model:
        pm.Poisson("a", pm.Gamma("rate", 2, 1), observed=np.array([1, 2]))
        pm.Normal("b", pm.Normal("mu"), 1, observed=np.array([1.0, 2.0]))
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        dp.sample(epsilon=1.0, step=dp.OPS(), model=model, ledger=ledger, **QUIET)
    assert [problem.where for problem in refused.value.problems] == ["a", "b", "rate", "mu"]
    assert "dp.Domain(bounds={'a': (low, high)})" in str(refused.value) and ledger.spent.epsilon == 0


@pytest.mark.usefixtures("interpreted")
def test_other_samplers_beside_a_private_one_are_refused():
    with bernoulli(ANSWERS) as model:
        step = dp.OPS(epsilon=1.0)
        raw = pm.sample(1, tune=0, step=[step, pm.Slice([model["p"]])], chains=1, **PLAIN)
        with pytest.raises(dp.errors.TraceError, match="statistics of other samplers"):
            dp.scrub(raw, model)


@pytest.mark.parametrize("cores", [1, 2])
def test_seeded_chains_are_known_afterwards(cores):
    with bernoulli(ANSWERS) as model:
        step = dp.OPS(epsilon=1.0, chains=2)
        with dp.testing.insecure_randomness(1):
            raw = pm.sample(2, step=step, chains=2, cores=cores, **PLAIN)
        assert dp.scrub(raw, model).dp.guarantee == "none"
    assert raw["posterior"]["p"].values[0, 0] != raw["posterior"]["p"].values[1, 0]


def test_each_trace_gets_the_guarantee_of_its_own_step():
    with bernoulli(ANSWERS) as model:
        first = dp.OPS(epsilon=0.5, delta=0.05)
        with dp.testing.insecure_randomness(1):
            seeded = pm.sample(1, step=first, chains=1, **PLAIN)
        with pytest.warns(dp.errors.RepeatedReleaseWarning):
            second = dp.OPS(epsilon=2.0)
        with pytest.warns(dp.errors.RepeatedReleaseWarning):
            third = dp.OPS(epsilon=0.1)
        traces = [pm.sample(1, step=step, chains=1, **PLAIN) for step in (second, third)]
        found = [dp.scrub(raw, model).dp for raw in (seeded, *traces)]
    assert [(one.delta, one.guarantee) for one in found] == [(0.05, "none"), (0.0, "exact"), (0.0, "exact")]
    assert [one.epsilon for one in found] == pytest.approx([0.5, 2.0, 0.1], rel=1e-4)


def test_steps_beyond_those_paid_for_are_refused():
    with bernoulli(ANSWERS) as model:
        step = dp.OPS(epsilon=1.0)
        step.setup_chain(np.random.default_rng(1), 0, 2)
    point = model.initial_point()
    for _ in range(2):
        point, _ = step.step(point)
    with pytest.raises(dp.errors.BudgetExceeded, match="All 2 steps of this chain"):
        step.step(point)
