from __future__ import annotations

import json

import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.trace.manifest import MANIFEST, PRIVACY, RECORD
from tests.trace.conftest import write_record


def record_of(tree: xr.DataTree) -> dict:
    return json.loads(tree[PRIVACY].attrs[RECORD])


READ = ("epsilon", "delta", "guarantee", "arithmetic", "neighbours", "history", "metric", "release", "approximations")


@pytest.mark.parametrize("attribute", READ)
def test_an_edited_record_is_not_believed(trace: xr.DataTree, attribute: str) -> None:
    trace[PRIVACY].attrs[RECORD] = json.dumps({**record_of(trace), "epsilon": 0.1})
    with pytest.raises(dp.errors.TraceError, match=r"/privacy@dp_record was changed\. Nothing that it says"):
        getattr(trace.dp, attribute)


@pytest.mark.parametrize("edit", ["attribute", "variable", "no manifest of the record", "no JSON"])
def test_whatever_else_is_edited_is_named(trace: xr.DataTree, edit: str) -> None:
    group = trace[PRIVACY]
    listed = json.loads(group.attrs[MANIFEST])
    if edit == "attribute":
        group.attrs["epsilon"], what = 0.1, "/privacy@epsilon was changed"
    elif edit == "variable":
        group["epsilon"].values[0], what = 0.1, "/privacy/epsilon was changed"
    elif edit == "no manifest of the record":
        del listed["/privacy@dp_record"]
        group.attrs[MANIFEST], what = json.dumps(listed), "/privacy@dp_record was changed"
    else:
        group.attrs[RECORD], what = "{", "cannot be read"
    with pytest.raises(dp.errors.TraceError, match=what):
        _ = trace.dp.epsilon
    with pytest.raises(dp.errors.TraceError, match=what):
        trace.dp.report()
    with pytest.raises(dp.errors.TraceError, match=what):
        dp.answer(trace, lambda p, response: 0.0, [0])
    with pytest.raises(dp.errors.TraceError, match=what):
        dp.Release.of(trace)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0.999}, r"its events cost more than the ε = 0.999, δ = 0 that it says"),
        ({"epsilon": -1.0}, "are no privacy loss"),
        ({"delta": 1.0}, "are no privacy loss"),
        ({"event": {"kind": "pure", "epsilon": 1.01}}, "its events cost more than"),
        ({"event": {"kind": "of another version"}}, "cannot read"),
        ({"event": {"kind": "pure", "rho": 1}}, "cannot read"),
        ({"epsilon": None}, "cannot read"),
    ],
)
def test_a_record_that_contradicts_its_events_is_refused_even_with_a_manifest_that_fits(trace, change, words) -> None:
    write_record(trace, {**record_of(trace), **change})
    with pytest.raises(dp.errors.TraceError, match=words):
        _ = trace.dp.epsilon


def test_a_loss_per_unit_is_held_against_that_of_whole_rows(trace: xr.DataTree) -> None:
    metric = {"metric": "|Δx|", "columns": ["x"], "epsilon_per_unit": 1.0, "diameter": 3.0, "grids": []}
    write_record(trace, {**record_of(trace), "epsilon": 3.0, "metric": metric})
    assert trace.dp.epsilon == 3.0
    write_record(trace, {**record_of(trace), "epsilon": 2.9})
    with pytest.raises(dp.errors.TraceError, match=r"ε = 1 per unit of ρ is more than ε = 2.9 for rows up to 3 apart"):
        _ = trace.dp.epsilon
    write_record(trace, {**record_of(trace), "epsilon": 3.0, "metric": {**metric, "epsilon_per_unit": 0.9}})
    with pytest.raises(dp.errors.TraceError, match="per unit of ρ, δ = 0 that it says"):
        _ = trace.dp.epsilon


def test_a_saved_release_that_contradicts_itself_is_refused(trace: xr.DataTree, tmp_path) -> None:
    path = dp.Release.of(trace).save(tmp_path / "release.json")
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "record": {**written["record"], "epsilon": 0.5}}))
    with pytest.raises(
        dp.errors.TraceError, match=r"release.json contradicts itself: its events cost more than the ε = 0.5"
    ):
        dp.Release.load(path)
