"""Copies of rows under noised gradients: room is asked for before the charge, and a folder is chosen."""

import os
import pickle
import tempfile

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.kernel.walks import Walk
from pymc_dp.release.paid import forget_releases
from pymc_dp.rows import person_files, spool
from pymc_dp.rows.spool import PREFIX

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning")
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
N_ROWS = 300
ROWS = {
    "who": np.arange(N_ROWS) // 3,
    "x": np.random.default_rng(1).uniform(-1, 1, N_ROWS),
    "y": np.random.default_rng(2).integers(0, 2, N_ROWS),
}
DOMAINS = {
    "rows": {},
    "hidden rows": {"neighbours": "add_remove", "n_max": 7000},
    "persons": {"neighbours": "add_remove", "n_max": 200, "unit": dp.Unit("who", max_rows=4)},
}
NEEDED = {
    "rows": (16 * N_ROWS, "16 bytes a row, for 300 rows."),
    "hidden rows": (16 * 7000, "16 bytes a row, for at most n_max=7,000 rows."),
    "persons": (24 * 200 * 4, "24 bytes a row, for at most n_max=200 persons with max_rows=4 rows each."),
}
WITH_ROOM = 'Name a folder with more room: dp.Gradients(scratch="/folder/with/room").'


@pytest.fixture(autouse=True)
def usual(tmp_path, monkeypatch):
    """Where copies go if nobody names a folder."""
    forget_releases()
    folder = tmp_path / "usual"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.glob(f"{PREFIX}*"))


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def logistic():
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Normal("b") * pm.Data("x", np.zeros(2))
        pm.Bernoulli("y", logit_p=eta, observed=np.array([0, 1]))
    return model


def beside(kind, engine=True):
    names = [name for name in ROWS if name != "who" or kind == "persons"]
    columns = {name: ROWS[name] for name in names}
    if not engine:
        return columns
    return dp.Table(pytest.importorskip("polars").LazyFrame(columns), {name: name for name in names})


def ledger_of(kind):
    domain = DOMAINS[kind]
    unit = {"unit": "who"} if "unit" in domain else {"neighbours": domain.get("neighbours", "replace")}
    return dp.Ledger(2.0, 1e-5, **unit)


def released(kind, ledger, statistics=None, *, engine=True, **budget):
    domain = dp.Domain(bounds={"x": (-1, 1)}, **DOMAINS[kind])
    statistics = dp.Gradients(steps=10) if statistics is None else statistics
    given = {**BUDGET, **budget, "domain": domain, "statistics": statistics, "ledger": ledger}
    return dp.privatize(logistic(), rows=beside(kind, engine), **given)


@pytest.mark.parametrize("kind", DOMAINS)
def test_too_little_room_is_refused_before_the_charge_by_a_public_number(kind, room, usual):
    ledger, (needed, counted) = ledger_of(kind), NEEDED[kind]
    room(needed - 1)
    with pytest.raises(dp.errors.ArgumentError) as refused:
        released(kind, ledger)
    assert ledger.history == []
    assert str(refused.value) == (
        f"The copy of the rows needs {needed:,} bytes in {usual}, which has {needed - 1:,} bytes left. It takes "
        f"{counted} Nothing was spent. {WITH_ROOM}"
    )
    room(needed)
    released(kind, ledger)
    assert len(ledger.history) == 1


@pytest.mark.parametrize("kind", ["rows", "persons"])
def test_a_folder_that_is_named_has_the_copy_until_the_release_is_made(kind, scratch, usual, monkeypatch):
    made, seen = Walk.made, set()

    def making(self, *arguments):
        seen.update(folder.name for folder in scratch.iterdir())
        return made(self, *arguments)

    monkeypatch.setattr(Walk, "made", making)
    private = released(kind, ledger_of(kind), dp.Gradients(steps=10, scratch=scratch))
    (name,) = seen
    assert name.startswith(PREFIX) and list(scratch.iterdir()) == []
    record = dp.Release.of(private).record
    assert scratch.name not in repr(record) and os.fsencode(str(scratch)) not in pickle.dumps(record)


@pytest.mark.parametrize("kind", ["rows", "persons"])
def test_a_folder_that_is_full_all_the_same_is_said_truthfully(kind, scratch, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    for module in (spool, person_files):
        monkeypatch.setattr(module, "private_file", full)
    ledger = ledger_of(kind)
    with pytest.raises(dp.errors.PrivacyError) as failed:
        released(kind, ledger, dp.Gradients(steps=10, scratch=scratch))
    assert len(ledger.history) == 1 and list(scratch.iterdir()) == []
    assert str(failed.value) == (
        f"The rows could not be copied to {scratch} (No space left on device). The budget is spent, and nothing was "
        f"released. Another call is charged again. {WITH_ROOM}"
    )


@pytest.mark.parametrize("engine", [True, False])
def test_a_folder_that_is_none_is_refused_before_the_charge(engine, tmp_path):
    ledger = ledger_of("rows")
    with pytest.raises(
        dp.errors.ArgumentError, match=r"scratch='.*none' is no folder that can be written to. Nothing was spent"
    ):
        released("rows", ledger, dp.Gradients(steps=10, scratch=tmp_path / "none"), engine=engine)
    assert ledger.history == []
    with pytest.raises(dp.errors.ArgumentError, match="scratch must be a path, got 5 of type int"):
        dp.Gradients(scratch=5)


def test_exact_sums_of_persons_ask_for_room_too(room, usual, monkeypatch):
    ledger = ledger_of("persons")
    room(19_199)
    with pytest.raises(dp.errors.ArgumentError) as refused:
        released("persons", ledger, dp.Statistics(), delta=0.0)
    assert ledger.history == []
    assert f"needs 19,200 bytes in {usual}, which has 19,199 bytes left" in str(refused.value)
    assert "in the environment variable TMPDIR, before Python starts." in str(refused.value)
    monkeypatch.setattr(tempfile, "tempdir", str(usual / "none"))
    with pytest.raises(dp.errors.ArgumentError, match="The folder for temporary files, .*none, is no folder"):
        released("persons", ledger, dp.Statistics(), delta=0.0)
    assert ledger.history == []
