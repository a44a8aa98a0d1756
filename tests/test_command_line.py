"""``python -m pymc_dp``: what it prints, and the status with which it ends."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.__main__ import main
from pymc_dp.accounting import PureEvent
from tests.golden.topics import FOLDER

TRACE = FOLDER / "trace_released.nc"
"""Of an earlier version, and of no ledger that is stored."""


@pytest.fixture
def ledger(tmp_path):
    made = dp.Ledger.create(tmp_path / "budget.sqlite", dataset="survey", epsilon=2.0)
    made.grant("ann", epsilon=1.0)
    made.as_("ann", why="report 7").spend(PureEvent(epsilon=0.25), label="ages", neighbours="replace")
    return tmp_path / "budget.sqlite"


@pytest.fixture
def changed(tmp_path):
    path = tmp_path / "changed.zarr"
    with xr.open_datatree(TRACE) as tree:
        added = tree.load().copy()
    added["observed_data"] = xr.Dataset({"y": ("row", np.arange(3))})
    added.to_zarr(path, consolidated=False)
    return path


def run(capsys, *arguments):
    """Return the status, the lines that were printed, and those of errors."""
    status = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return status, said.out.splitlines(), said.err.splitlines()


def break_a_line(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER dp_entry_update")
        connection.execute("UPDATE dp_entry SET body = '{}' WHERE seq = 1")
    connection.close()


def test_a_report_is_printed_or_saved(capsys, tmp_path):
    status, lines, _ = run(capsys, "report", TRACE)
    assert status == 0 and "covered by ε = 1 for one row" in lines[1]
    path = tmp_path / "statement.html"
    assert run(capsys, "report", TRACE, "--save", path, "--dataset", "survey") == (0, [f"Written: {path}"], [])
    assert "<title>Privacy statement of survey</title>" in path.read_text(encoding="utf-8")


def test_a_check_that_fails_is_the_status(capsys, changed):
    status, lines, _ = run(capsys, "verify", TRACE)
    assert status == 0 and lines[-1] == "No check failed." and lines[0].startswith("ok     record: ")
    status, lines, _ = run(capsys, "verify", changed)
    assert (status, lines[-1]) == (1, "1 check FAILED.")
    what = "group /observed_data was added (variables y): these are the private rows themselves"
    assert f"FAILED manifest: {what}" in lines


def test_a_ledger_that_the_trace_does_not_name_is_checked_too(capsys, ledger):
    status, lines, _ = run(capsys, "verify", TRACE, "--ledger", ledger)
    assert status == 0 and any(line.startswith("note   ledger: the trace names none") for line in lines)
    assert any(line.startswith("ok     ledger of 'survey': every line has its hash; the last is 2") for line in lines)
    break_a_line(ledger)
    status, lines, _ = run(capsys, "verify", TRACE, "--ledger", ledger)
    assert status == 1 and any(line.startswith("FAILED ledger of 'survey': Line 1") for line in lines)


def test_a_ledger_is_shown(capsys, ledger):
    dp.Ledger.create(ledger, dataset="other", epsilon=1.0)
    status, lines, _ = run(capsys, "ledger", "show", ledger, "--dataset", "survey")
    text = "\n".join(lines)
    assert status == 0 and "Of ε = 2, 0.25 is spent and 1.75 is left." in text
    assert "report 7" in text and "ages" in text and "0.75" in text  # of the share
    assert "Of ε = 1, 0 is spent and 1 is left." in "\n".join(run(capsys, "ledger", "show", ledger)[1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "nowhere.nc"], "There is no file nowhere.nc"),
        (["report", "{here}/text.nc"], "cannot be read as a trace"),
        (["report", "{here}/plain.nc"], "no /privacy group"),
        (["report", TRACE, "--save", "statement.pdf"], "--save must end in"),
        (["report", TRACE, "--save", "{here}"], "--save must end in"),
        (["report", TRACE, "--save", "{here}/no/a.md"], "--save lies in a folder that does not exist"),
        (["report", TRACE, "--save", "{here}/a.md", "--dataset", ""], "--dataset must be a name"),
        (["report", TRACE, "--dataset", "survey"], "Give --save as well"),
        (["verify", TRACE, "--ledger", "nowhere.sqlite"], "There is no ledger at"),
        (["verify", TRACE, "--ledger", "{here}/text.nc"], "text.nc is not a ledger: it is no file of SQLite"),
        (["ledger", "show", "{here}/empty.sqlite"], "is not a ledger: it is an empty file, or a database of something"),
        (["ledger", "show", "{here}/other.sqlite"], "makes it once: dp.Ledger.create(place, dataset=..., epsilon=...)"),
        (["ledger", "show", "nowhere.sqlite"], "There is no ledger at"),
        (["ledger", "show", "{ledger}", "--dataset", "x"], "--dataset must be one of 'survey', got 'x'"),
    ],
)
def test_what_cannot_be_run_is_one_line_on_stderr(capsys, tmp_path, ledger, arguments, said):
    (tmp_path / "text.nc").write_text("no trace, and no ledger", encoding="utf-8")
    xr.Dataset({"y": 1}).to_netcdf(tmp_path / "plain.nc")
    (tmp_path / "empty.sqlite").touch()
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE survey (y INTEGER)")
    connection.close()
    given = [str(argument).format(here=tmp_path, ledger=ledger) for argument in arguments]
    status, lines, errors = run(capsys, *given)
    assert (status, lines, len(errors)) == (2, [], 1)
    assert errors[0].startswith("python -m pymc_dp: ") and said in errors[0]
