"""Clamped copies on a disk: who may read them, when they go, what other processes get, and that draws are the same."""

import stat
import subprocess
import sys

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows import stored
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.spool import Scratch, SpooledRows, spooled
from pymc_dp.rows.stored import Arrays
from tests.step_methods.langevin.conftest import BUDGET, N_ROWS, logistic, table

pytestmark = pytest.mark.usefixtures("paid")

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


@pytest.fixture(scope="module")
def small():
    return logistic(*(column[:4] for column in table()))


@pytest.fixture
def rows(tmp_path):
    """The table of the other tests, in files."""
    for name, column in zip("xgy", table(), strict=True):
        np.save(tmp_path / f"{name}.npy", column)
    return {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xgy"}


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def poured(model, rows, scratch, domain=None, **how):
    source = Arrays(rows)
    found = with_stored(inspect(model, domain).rows, source)
    found.require()
    return spooled(Passes.of(found, source), scratch=Scratch(folder=str(scratch)), **how), found


# --- files ------------------------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_copy(small, rows, scratch):
    held, _ = poured(small, rows, scratch)
    (folder,) = scratch.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in sorted(folder.iterdir())] == ["0", "1", "2"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert isinstance(held, SpooledRows)


@pytest.mark.slow
def test_the_copy_goes_with_the_process(scratch):
    code = (
        "import os, sys; from pymc_dp.rows.spool import Scratch, Spool;"
        "kept = Spool([('int64', (1,))], Scratch(folder=sys.argv[1])); kept.path(0).write_bytes(b'12345678');"
        "child = os.fork();\n"
        "if child == 0: del kept; os._exit(0)\n"
        "os.waitpid(child, 0); assert kept.path(0).exists()"
    )
    subprocess.run([sys.executable, "-c", code, str(scratch)], check=True)
    assert list(scratch.iterdir()) == []


def test_failures_leave_no_file_and_show_no_value(small, rows, scratch, monkeypatch):
    def shown(self, size):
        yield {name: [stored.Part(column[:5], None)] for name, column in rows.items()}
        raise error

    monkeypatch.setattr(Arrays, "blocks", shown)
    for error in (ValueError("secret 123.456"), OSError(28, "No space left on device"), KeyboardInterrupt()):
        with pytest.raises((dp.errors.PrivacyError, KeyboardInterrupt)) as refused:
            poured(small, rows, scratch)
        assert "secret" not in str(refused.value) and list(scratch.iterdir()) == []
        if isinstance(error, OSError):
            assert str(refused.value) == (
                f"The rows could not be copied to {scratch} (No space left on device). The budget is spent, and "
                "nothing was released. Another call is charged again. Name a folder with more room in the environment "
                "variable TMPDIR, before Python starts."
            )


@pytest.mark.parametrize(
    ("hidden", "n_rows", "dtype", "row"),
    [({}, N_ROWS, "float64", 36), ({"neighbours": "add_remove", "n_max": 7000}, 7000, "float32", 24)],
)
def test_a_sampler_asks_for_room_by_a_public_number(small, rows, scratch, shared, room, hidden, n_rows, dtype, row):
    ledger = dp.Ledger(**BUDGET, neighbours=hidden.get("neighbours", "replace"))
    given = {"model": small, "domain": dp.Domain(**hidden), "ledger": ledger, **QUIET}
    room(row * n_rows - 1)
    step = dp.SGLD(rows=rows, scratch=scratch, batch_size=5, dtype=dtype)
    with pytest.raises(dp.errors.ArgumentError) as refused:
        dp.sample(3, **BUDGET, step=step, **given)
    assert f"needs {row * n_rows:,} bytes in {scratch}, which has {row * n_rows - 1:,}" in str(refused.value)
    assert 'dp.SGLD(scratch="/folder/with/room")' in str(refused.value) and ledger.history == []
    with pytest.raises(dp.errors.ArgumentError, match="is no folder that can be written to"):
        dp.sample(3, **BUDGET, step=dp.SGLD(rows=rows, scratch=scratch / "none", batch_size=5), **given)
    assert ledger.history == [] and list(scratch.iterdir()) == []


# --- chains -----------------------------------------------------------------------------------------------------------


def test_nothing_is_copied_before_the_charge(small, rows, scratch, shared):
    ledger = dp.Ledger(epsilon=0.01, delta=1e-5)
    with pytest.raises(dp.BudgetExceeded):
        dp.sample(
            3, **BUDGET, step=dp.SGLD(rows=rows, scratch=scratch, batch_size=5), model=small, ledger=ledger, **QUIET
        )
    assert list(scratch.iterdir()) == []
