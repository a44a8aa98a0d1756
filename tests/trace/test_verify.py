"""What is checked of a trace that somebody published, and what a ledger says of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from pymc_dp.accounting import Ledger, PureEvent, event_from_dict
from pymc_dp.accounting.events import base
from pymc_dp.trace.manifest import PRIVACY, RECORD
from pymc_dp.trace.verify import verify
from tests.trace.conftest import write_record


def record_of(tree: xr.DataTree) -> dict[str, object]:
    return json.loads(tree[PRIVACY].attrs[RECORD])


def failures(tree: xr.DataTree, ledger: Ledger | None = None) -> list[str]:
    opened = None if ledger is None else lambda dataset: ledger
    return [f"{check.what}: {check.says}" for check in verify(tree, opened) if check.outcome == "FAILED"]


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "budget.sqlite", dataset="survey", epsilon=4.0)


def charged(tree: xr.DataTree, ledger: Ledger, event: base.Event | None = None) -> xr.DataTree:
    """Let a trace name a line of a ledger, as if that had paid for it."""
    paid = event or event_from_dict(record_of(tree)["event"])
    entry = ledger.spend(paid, label="counts", neighbours="replace")
    write_record(tree, {**record_of(tree), "ledger": ledger.head_at(entry)})
    return tree


def test_a_trace_as_it_was_made_passes(trace: xr.DataTree, ledger: Ledger) -> None:
    assert failures(trace) == [] and failures(charged(trace, ledger), ledger) == []
    assert {check.what for check in verify(trace)} == {"record", "events", "guarantee", "manifest", "ledger"}


def test_what_was_changed_is_named(trace: xr.DataTree) -> None:
    trace["posterior"]["p"] = trace["posterior"]["p"] + 1
    trace["more"] = xr.Dataset({"y": ("row", np.arange(3))})
    found = ["manifest: group /more was added (variables y)", "manifest: /posterior/p was changed"]
    assert failures(trace) == found


def test_a_record_that_was_changed_ends_it(trace: xr.DataTree) -> None:
    trace[PRIVACY].attrs[RECORD] = json.dumps({**record_of(trace), "epsilon": 0.1})
    (check,) = verify(trace)
    assert check.outcome == "FAILED" and "dp_record was changed" in check.says


def test_events_that_cost_more_than_the_record_says_are_seen(trace: xr.DataTree) -> None:
    write_record(trace, {**record_of(trace), "epsilon": 0.1})
    (said,) = failures(trace)
    assert said.startswith("events: ") and "cost more than the ε = 0.1" in said


def test_what_is_missing_is_noted(trace: xr.DataTree) -> None:
    del trace["released"]
    notes = [check.says for check in verify(trace) if check.outcome == "note"]
    assert failures(trace) == [] and any("not in the file: /released/ and" in says for says in notes)


def test_a_line_of_another_ledger_fails(trace: xr.DataTree, ledger: Ledger, tmp_path) -> None:
    other = Ledger.create(tmp_path / "other.sqlite", dataset="survey", epsilon=4.0)
    charged(trace, other)
    ledger.spend(PureEvent(epsilon=1.0), label="counts", neighbours="replace")
    (said,) = failures(trace, ledger)
    assert "no such line: the trace names line 1 of the ledger of 'survey'" in said
    assert failures(trace, other) == []


@pytest.mark.parametrize(("epsilon", "passes"), [(0.5, False), (1.5, True)])
def test_a_charge_for_less_fails(trace: xr.DataTree, ledger: Ledger, epsilon: float, passes: bool) -> None:
    charged(trace, ledger, PureEvent(epsilon=epsilon))
    assert failures(trace, ledger) == (
        [] if passes else ["ledger: line 1 of the ledger of 'survey' was charged for less than the trace records"]
    )
