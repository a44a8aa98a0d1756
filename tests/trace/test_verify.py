"""What is checked of a trace that somebody published, and what a ledger says of it."""

from __future__ import annotations

import json

import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.accounting import PureEvent, event_from_dict
from pymc_dp.kernel.accounting.events import base
from pymc_dp.trace.manifest import PRIVACY, RECORD
from pymc_dp.trace.verify import verify
from tests.trace.conftest import write_record


def record_of(tree: xr.DataTree) -> dict[str, object]:
    return json.loads(tree[PRIVACY].attrs[RECORD])


def failures(tree: xr.DataTree, ledger: dp.Ledger | None = None) -> list[str]:
    opened = None if ledger is None else lambda dataset: ledger
    return [f"{check.what}: {check.says}" for check in verify(tree, opened) if check.outcome == "FAILED"]


@pytest.fixture
def ledger(tmp_path) -> dp.Ledger:
    return dp.Ledger.create(tmp_path / "budget.sqlite", dataset="survey", epsilon=4.0)


def charged(tree: xr.DataTree, ledger: dp.Ledger, event: base.Event | None = None) -> xr.DataTree:
    """Let a trace name a line of a ledger, as if that had paid for it."""
    paid = event or event_from_dict(record_of(tree)["event"])
    entry = ledger.spend(paid, label="counts", neighbours="replace")
    write_record(tree, {**record_of(tree), "ledger": ledger.head_at(entry)})
    return tree


def test_a_trace_as_it_was_made_passes(trace: xr.DataTree, ledger: dp.Ledger) -> None:
    assert failures(trace) == [] and failures(charged(trace, ledger), ledger) == []
    assert {check.what for check in verify(trace)} == {"record", "events", "guarantee", "manifest", "ledger"}


def test_what_is_missing_is_noted(trace: xr.DataTree) -> None:
    del trace["released"]
    notes = [check.says for check in verify(trace) if check.outcome == "note"]
    assert failures(trace) == [] and any("not in the file: /released/ and" in says for says in notes)


def test_a_line_of_another_ledger_fails(trace: xr.DataTree, ledger: dp.Ledger, tmp_path) -> None:
    other = dp.Ledger.create(tmp_path / "other.sqlite", dataset="survey", epsilon=4.0)
    charged(trace, other)
    ledger.spend(PureEvent(epsilon=1.0), label="counts", neighbours="replace")
    (said,) = failures(trace, ledger)
    assert "no such line: the trace names line 1 of the ledger of 'survey'" in said
    assert failures(trace, other) == []


@pytest.mark.parametrize(("epsilon", "passes"), [(0.5, False), (1.5, True)])
def test_a_charge_for_less_fails(trace: xr.DataTree, ledger: dp.Ledger, epsilon: float, passes: bool) -> None:
    charged(trace, ledger, PureEvent(epsilon=epsilon))
    assert failures(trace, ledger) == (
        [] if passes else ["ledger: line 1 of the ledger of 'survey' was charged for less than the trace records"]
    )
