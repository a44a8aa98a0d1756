"""Funded steps on some of the variables each: together they move all of them, or none begins."""

import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError, PrivacyError, TraceError
from tests.step_methods.turns import BOUNDS, LOSS, PLAIN, ROWS, mixture, normal

pytestmark = pytest.mark.usefixtures("interpreted")


def funded(model, *names, **options):
    with model:
        return dp.PenaltyMetropolis(list(names), domain=dp.Domain(bounds=BOUNDS), **LOSS, **options)


def two():
    """A model, and funded steps that together move all of its variables."""
    model = mixture()
    with pytest.warns(dp.errors.RepeatedReleaseWarning):
        return model, [funded(model, "w"), funded(model, "low")]


@pytest.mark.slow
def test_funded_steps_that_move_all_variables_work_together():
    model, both = two()
    with model:
        raw = pm.sample(4, tune=0, step=both, chains=1, **PLAIN)
    tree = dp.scrub(raw, model)
    assert (tree.dp.delta, tree.dp.guarantee) == (2e-6, "stepwise")
    assert 2.0 < tree.dp.epsilon < 3.0 < tree.dp.history["epsilon"].sum() < 4.0, "events compose better than losses add"
    assert tree["sample_stats"]["epsilon_spent"].values[0, -1] == tree.dp.epsilon
    assert list(tree["sample_stats"].data_vars) == ["epsilon_spent"]
    assert tree["sample_stats"]["epsilon_spent"].dims == ("chain", "draw")
    assert "observed_data" not in tree.children and "PenaltyMetropolis of low" in str(tree.dp.report())


@pytest.mark.slow
def test_a_funded_step_alone_begins_no_chain():
    model = mixture()
    step = funded(model, "w")
    with model, pytest.raises(ArgumentError, match="does not move low.*would see the raw rows"):
        pm.sample(2, tune=0, step=step, chains=1, **PLAIN)
    assert step.binding.claims.taken() == []


@pytest.mark.slow
def test_a_funded_step_stops_where_something_else_moves_the_others():
    model, both = two()
    with model, pytest.raises(PrivacyError, match="goes on alone, and something else moves low"):
        pm.sample(2, tune=0, step=both[0], chains=1, **PLAIN)


@pytest.mark.slow
def test_a_funded_step_is_not_taken_in_by_an_earlier_chain_of_another():
    model, both = two()
    with model:
        pm.sample(4, tune=0, step=both, chains=1, **PLAIN)
        with pytest.warns(dp.errors.RepeatedReleaseWarning):
            another = funded(model, "w")
        with pytest.raises(PrivacyError, match="something else moves low"):
            pm.sample(4, tune=0, step=another, chains=1, **PLAIN)


@pytest.mark.slow
def test_a_trace_in_which_something_else_moved_a_variable_is_refused(monkeypatch):
    monkeypatch.setattr("pymc_dp.step_methods.companions.Companions.require_pace", lambda *_: None)
    model, both = two()
    with model:
        alone = pm.sample(2, tune=0, step=both[0], chains=1, **PLAIN)
    with pytest.raises(TraceError, match="None of them moved low"):
        dp.scrub(alone, model)
    model, both = two()
    with model:
        beside = pm.sample(2, tune=0, step=[*both, pm.Slice([model["w"]])], chains=1, **PLAIN)
    with pytest.raises(TraceError, match="statistics of other samplers"):
        dp.scrub(beside, model)


def test_what_no_row_tells_about_is_not_left_over_on_the_raw_rows():
    model = normal()
    step = funded(model, "mean", "sd")
    with model, pytest.raises(ArgumentError, match="does not move centre"):
        pm.sample(2, tune=0, step=step, chains=1, **PLAIN)


@pytest.mark.slow
def test_a_later_variable_of_the_model_is_seen():
    model, both = two()
    with model:
        pm.Normal("late")
        raw = pm.sample(2, tune=0, step=both, chains=1, **PLAIN)
    with pytest.raises(TraceError):
        dp.scrub(raw, model)


@pytest.mark.slow
def test_funded_steps_take_one_power_of_the_likelihood():
    with pm.Model() as model:
        mean, sd = pm.Uniform("mean", -2, 2), pm.Uniform("sd", 0.5, 2.0)
        pm.Normal("y", mean, sd, observed=ROWS)
    with model, pytest.warns(dp.errors.RepeatedReleaseWarning):
        gibbs = dp.TemperedGibbs(["sd"], domain=dp.Domain(bounds=BOUNDS), **LOSS)
        barker = dp.BarkerMetropolis(["mean"], scale=0.05, domain=dp.Domain(bounds=BOUNDS), **LOSS)
    with model:
        raw = pm.sample(3, tune=0, step=[barker, gibbs], chains=1, **PLAIN)
    assert gibbs.beta == barker.power < 1
    assert f"beta {gibbs.beta:.6g}, of all steps" in " ".join(str(dp.scrub(raw, model).dp.report()).split())


def test_what_funded_steps_cost_together_is_proved():
    """Basic composition of steps of different kinds, of which no accountant may know all."""
    with pm.Model() as model:
        mean, sd = pm.Uniform("mean", -2, 2), pm.Uniform("sd", 0.5, 2.0)
        pm.Normal("y", mean, sd, observed=ROWS)
    with model, pytest.warns(dp.errors.RepeatedReleaseWarning):
        options = {"domain": dp.Domain(bounds=BOUNDS), "epsilon": 1.0, "delta": 1e-3}
        both = [dp.TemperedGibbs(["sd"], **options), dp.TemperedMetropolis(["mean"], **options)]
    with model:
        tree = dp.scrub(pm.sample(20, tune=0, step=both, chains=1, **PLAIN), model)
    assert 1.9 < tree.dp.epsilon <= 2.0 and tree.dp.delta == 2e-3
