"""What becomes of tables of others: the trace, its report, figures, and what asks for rows that are not there."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

SCALES = np.array([3.0, 4.0, 5.0])


def model():
    with pm.Model(coords={"area": ["a", "b", "c"]}) as made:
        rate = pm.Gamma("rate", 2, 0.1, dims="area")
        pm.Poisson("count", rate, dims="area", observed=np.zeros(3, dtype=int))
    return made


@pytest.fixture(scope="module")
def private():
    release = dp.Release.of_counts(
        {"count": [12, -3, 45], "total": 58},
        {"count": SCALES, "total": 1.0},
        noise="discrete laplace",
        dims={"count": "area", "total": ()},
        made_by="the office of statistics",
        guarantee="pure, epsilon = 1.5 for one household",
        budget=dp.Budget(1.5),
    )
    return dp.condition(model(), release)


@pytest.fixture(scope="module")
def trace(private):
    with private:
        raw = pm.sample_prior_predictive(3, var_names=["rate"], random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"})
    raw["posterior"] = raw["prior"].copy()
    return dp.scrub(raw, private)


def test_the_report_names_the_makers_and_claims_nothing(trace):
    text = " ".join(str(trace.dp.report()).replace("│", " ").split())
    assert "Computed from tables that the office of statistics published. Nothing here is from rows" in text
    assert "pure, epsilon = 1.5 for one household" in text and "nothing here proves it" in text
    assert "covered by ε" not in text and "One row is protected" not in text
    assert trace.dp.guarantee == "stated" and trace.dp.epsilon == 1.5
    assert "treated as normal" in trace.dp.approximations[0]


def test_the_trace_is_published_and_its_release_read(trace, tmp_path):
    trace.dp.publish(tmp_path / "trace.nc")
    release = dp.Release.of(trace)
    assert release.record.maker["made_by"] == "the office of statistics"
    assert np.array_equal(release.tables["count"][:, 0], [12, -3, 45])
    assert [rv.name for rv in dp.condition(model(), release).observed_RVs] == ["count", "total"]


def test_what_was_added_is_still_not_published(trace, tmp_path):
    added = trace.copy()
    added["more"] = added["posterior"].copy()
    assert "Do not publish it as it is" in str(added.dp.report())
    with pytest.raises(dp.errors.TraceError, match="not paid for"):
        added.dp.publish(tmp_path / "trace.nc")


def test_rows_that_are_not_there_are_not_made_up(private, trace):
    with pytest.raises(dp.errors.ArgumentError, match="there is no one table of rows"):
        dp.synthesize(trace, model(), 5)
    with pytest.raises(dp.errors.ArgumentError, match="tables of others"):
        dp.markov.marginalize_states(private)
    with pytest.raises(dp.errors.ArgumentError, match="private already"):
        dp.condition(private, dp.Release.of(private))
