"""What a trace must say of its draws."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.from_draws.given import TemperedTrace
from tests.from_draws.conftest import coin, logistic, trace_of

DRAWS = {"p": np.array([0.2, 0.3])}


def test_the_record_has_the_temperature_as_a_number():
    trace = TemperedTrace.of(trace_of(coin(50), DRAWS), "idata")
    eta = 0.5  # half of the budget for each of two draws
    assert trace.mechanism["power"] == pytest.approx(eta / (2 * np.log(0.95 / 0.05)), rel=1e-6)
    assert (trace.mechanism["prior_power"], trace.mechanism["n_rows"]) == (1.0, 50)
    assert trace.rows(None) == trace.rows(50) == 50
    with pytest.raises(dp.errors.ArgumentError, match="contradicts"):
        trace.rows(51)


def test_the_papers_rule_says_that_the_prior_was_tempered():
    spec = dp.OPS(papers=True)
    step, _ = spec.bound(spec.inspect(coin(50), None), dp.Budget(1.0), chains=1, steps=1)
    mechanism = step.record().sampler.mechanism
    assert mechanism["power"] == mechanism["prior_power"] < 1


def test_a_private_number_of_rows_is_not_written_and_has_to_be_given():
    domain = dp.Domain(neighbours="add_remove", n_max=80)
    tree = trace_of(coin(50), DRAWS, domain=domain)
    assert "50" not in str(tree["privacy"].attrs["dp_record"])
    trace = TemperedTrace.of(tree, "idata")
    assert trace.rows(60) == 60
    with pytest.raises(dp.errors.ArgumentError, match="n_rows must be given"):
        trace.rows(None)


def test_traces_of_older_versions_and_other_samplers_are_refused():
    with pytest.raises(dp.errors.TraceError, match="did not keep the temperature"):
        TemperedTrace.of(trace_of(coin(50), DRAWS, mechanism=None), "idata")
    with pytest.raises(dp.errors.TraceError, match="these are of TemperedGibbs"):
        TemperedTrace.of(trace_of(coin(50), DRAWS, name="TemperedGibbs"), "idata")


def test_changed_draws_are_refused():
    tree = trace_of(coin(50), DRAWS)
    tree["posterior"] = tree["posterior"].to_dataset().assign(p=tree["posterior"]["p"] + 0.01)
    with pytest.raises(dp.errors.TraceError, match="not those that were paid for"):
        TemperedTrace.of(tree, "idata")


def test_another_model_is_refused():
    tree = trace_of(coin(50), DRAWS)
    with pytest.raises(dp.errors.ArgumentError, match="free variables a, b"):
        dp.from_draws.draw_intervals(tree, logistic(50))
    with pm.Model() as vector:
        p = pm.Uniform("p", 0.05, 0.95, shape=2)
        pm.Bernoulli("y", p[0], observed=np.zeros(50, dtype=int))
    with pytest.raises(dp.errors.ArgumentError, match="of shape"):
        dp.from_draws.draw_intervals(tree, vector)
