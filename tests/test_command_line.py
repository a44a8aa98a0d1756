"""``python -m pymc_dp``: what it prints, and the status with which it ends."""

from __future__ import annotations

import shutil
import sqlite3

import numpy as np
import pytest
import xarray as xr

from pymc_dp.__main__ import main
from pymc_dp.accounting import Ledger, PureEvent
from tests.golden.topics import FOLDER

TRACE = FOLDER / "trace_released.nc"
"""Of an earlier version, and of no ledger that is stored."""


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.sqlite", dataset="survey", epsilon=2.0)
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
    assert "FAILED manifest: group /observed_data was added (variables y)" in lines


def test_a_ledger_is_shown(capsys, ledger):
    Ledger.create(ledger, dataset="other", epsilon=1.0)
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
        (["report", TRACE, "--save", "statement.pdf"], "path must end in"),
        (["report", TRACE, "--save", "{here}"], "path must end in"),
        (["report", TRACE, "--dataset", "survey"], "Give --save as well"),
        (["verify", TRACE, "--ledger", "nowhere.sqlite"], "There is no ledger at"),
        (["verify", TRACE, "--ledger", "{here}/text.nc"], "could not be read"),
        (["ledger", "show", "nowhere.sqlite"], "There is no ledger at"),
        (["ledger", "show", "{ledger}", "--dataset", "x"], "none of them is of 'x'"),
    ],
)
def test_what_cannot_be_run_is_one_line_on_stderr(capsys, tmp_path, ledger, arguments, said):
    (tmp_path / "text.nc").write_text("no trace, and no ledger", encoding="utf-8")
    xr.Dataset({"y": 1}).to_netcdf(tmp_path / "plain.nc")
    given = [str(argument).format(here=tmp_path, ledger=ledger) for argument in arguments]
    status, lines, errors = run(capsys, *given)
    assert (status, lines, len(errors)) == (2, [], 1)
    assert errors[0].startswith("python -m pymc_dp: ") and said in errors[0]


def test_an_error_of_another_package_is_one_line_too(capsys, tmp_path, ledger):
    broken = tmp_path / "broken.sqlite"
    shutil.copy(ledger, broken)
    with sqlite3.connect(broken) as connection:
        connection.execute("DROP TRIGGER dp_entry_update")
        connection.execute("UPDATE dp_entry SET body = '{}' WHERE seq = 1")
    connection.close()
    status, _, errors = run(capsys, "ledger", "show", broken)
    assert status == 2 and "was changed after it was written" in errors[0] and len(errors) == 1


@pytest.mark.parametrize("command", [[], ["report"], ["verify"], ["ledger"], ["ledger", "show"], ["warm"]])
def test_every_command_says_what_it_does(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: python -m pymc_dp") and len(said.splitlines()) > 3
