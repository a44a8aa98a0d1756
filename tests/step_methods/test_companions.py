"""Funded steps on some of the variables each: together they move all of them, or none begins."""

import pymc as pm
import pytest

import pymc_dp as dp
from tests.step_methods.turns import BOUNDS, LOSS, PLAIN, ROWS, mixture

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
    with model, pytest.raises(dp.errors.ArgumentError, match="does not move low.*would see the raw rows"):
        pm.sample(2, tune=0, step=step, chains=1, **PLAIN)
    assert step.binding.claims.taken() == []


@pytest.mark.slow
def test_a_funded_step_stops_where_something_else_moves_the_others():
    model, both = two()
    with model, pytest.raises(dp.errors.PrivacyError, match="goes on alone, and something else moves low"):
        pm.sample(2, tune=0, step=both[0], chains=1, **PLAIN)


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
