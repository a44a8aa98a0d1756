from __future__ import annotations

import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from tests.trace.conftest import CANARY, LABELS


def test_predictive_of_the_raw_model_is_named_and_not_published(
    trace: xr.DataTree, raw_model: pm.Model, tmp_path
) -> None:
    with raw_model:
        pm.sample_posterior_predictive(trace, extend_inferencedata=True, progressbar=False, random_seed=1)
    additions = trace.dp.report().additions
    assert {line.split()[1] for line in additions} >= {"/posterior_predictive", "/observed_data", "/constant_data"}
    report = str(trace.dp.report())
    assert "Not paid for" in report and "/constant_data" in report and "Do not publish" in report
    assert not any(label in report for label in LABELS) and str(CANARY) not in report
    with pytest.raises(dp.errors.TraceError) as caught:
        trace.dp.publish(tmp_path / "leak.nc")
    assert not (tmp_path / "leak.nc").exists()
    said = str(caught.value)
    assert said.startswith("This trace holds the private rows, so that nothing was written:")
    assert "/observed_data was added (variables answer): these are the private rows themselves" in said
    assert said.index("/observed_data") < said.index("/posterior_predictive")
    assert "these are columns of the private rows" in said and "draws made row by row" in said
    assert "to_netcdf" not in said and "to_zarr" not in said
    assert "this trace holds the private rows" in trace.dp.report().headline
    dropped = trace.drop_nodes(["observed_data", "constant_data", "posterior_predictive"])
    assert "drop_nodes(" in said and dropped.dp.publish(tmp_path / "clean.nc").exists()


def test_predictive_draws_for_rows_are_named_without_their_rows_too(trace: xr.DataTree, raw_model: pm.Model, tmp_path):
    with raw_model:
        drawn = pm.sample_posterior_predictive(trace, progressbar=False, random_seed=1)
    trace["posterior_predictive"] = drawn["posterior_predictive"].to_dataset()
    with pytest.raises(dp.errors.TraceError) as caught:
        trace.dp.publish(tmp_path / "leak.nc")
    said = str(caught.value)
    assert said.startswith("This trace holds draws made row by row") and "to_netcdf" not in said
    assert "holds the private rows" not in said + trace.dp.report().headline


def test_file_names_in_encodings_stay_behind(trace: xr.DataTree, tmp_path) -> None:
    trace["posterior"]["p"].encoding["source"] = f"/home/{LABELS[0]}"
    path = trace.dp.publish(tmp_path / "a.nc")
    assert LABELS[0].encode() not in path.read_bytes()


def test_a_selection_is_one_change_that_is_free_and_cannot_be_checked(trace: xr.DataTree, tmp_path) -> None:
    part = trace.sel(draw=slice(10, None))
    report = part.dp.report()
    assert len(report.additions) == 1 and report.additions == report.changed and not report.publishable
    with pytest.raises(dp.errors.TraceError) as caught:
        part.dp.publish(tmp_path / "part.nc")
    said = str(caught.value)
    assert "\n" not in said and " more were changed since the trace was made" in said and "Drop it" not in said
    assert "pm.Deterministic" in said and "to_netcdf" in said
    text = " ".join(str(report).replace("│", "").split())
    assert "was changed since" in report.headline and "makes the trace publishable" not in text
    assert "Changed since it was paid for" in text
