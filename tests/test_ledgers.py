"""A ledger that is stored, with releases: they are kept before any sampler starts, and traces state the line."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import Paid, forget_releases

ROWS = np.random.default_rng(3).integers(0, 2, 40)


def build(rows=ROWS):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=rows)
    return model


@pytest.fixture
def place(tmp_path):
    forget_releases()
    place = tmp_path / "budget.sqlite"
    dp.Ledger.create(place, dataset="survey", epsilon=4.0, delta=1e-5)
    return place


def test_what_was_released_is_kept_and_fits_the_same(place):
    ledger = dp.Ledger.open(place).as_("ann", why="report 7")
    private = dp.privatize(build(), epsilon=1.0, ledger=ledger)
    held = dp.Release.of(private)
    found = dp.Ledger.open(place).release(1)
    assert repr(found) == repr(held) and found.record == replace(held.record, chosen="")
    np.testing.assert_array_equal(found.tables["y"], held.tables["y"])
    again = dp.condition(build(np.zeros(1, dtype=int)), found)
    at = {"p_logodds__": np.array(0.3)}
    assert again.compile_logp()(at) == private.compile_logp()(at)
    assert len(ledger.history) == 1


def test_the_label_of_a_release_is_in_ledger_record_and_report(place):
    ledger, bare = dp.Ledger.open(place), dp.Ledger(1.0)
    model = dp.truncate(build(), {"p": (0.05, 0.95)})
    dp.privatize(model, epsilon=0.5, ledger=ledger, label="yearly table")
    idata = dp.sample(1, epsilon=0.5, model=model, step=dp.OPS(), ledger=ledger, label="one draw", progressbar=False)
    assert [entry.label for entry in dp.Ledger.open(place).history] == ["yearly table", "one draw"]
    assert "yearly table: epsilon=0.5" in repr(ledger) and ledger.release(1).record.label == "yearly table"
    assert "one draw" in str(idata.dp.report())
    forget_releases()
    plain = dp.privatize(build(), epsilon=0.5, ledger=bare)
    assert bare.history[0].label == "statistics of y" and "label" not in dp.Release.of(plain).record.to_dict()
    with pytest.raises(dp.errors.ArgumentError, match="label must be a name, a text that is not empty, got ''"):
        dp.privatize(build(), epsilon=0.5, ledger=bare, label="")
    assert len(bare.history) == 1


def test_rows_of_another_table_are_refused_before_the_charge(tmp_path):
    ledger = dp.Ledger.create(tmp_path / "other.sqlite", dataset="patients", epsilon=1.0, columns=["age"])
    with pytest.raises(dp.errors.ArgumentError, match="is for age; this release observes y"):
        dp.privatize(build(), epsilon=0.5, ledger=ledger)
    assert ledger.history == []


@pytest.fixture
def place_that_goes(place, monkeypatch):
    """A database that is not there any more when the rows were read."""
    read = Paid.read

    def gone(self, work, **more):
        found = read(self, work, **more)
        place.rename(place.with_name("gone"))
        return found

    monkeypatch.setattr(Paid, "read", gone)
    return place


@pytest.mark.filterwarnings("error")
def test_a_release_that_cannot_be_kept_is_in_the_error(place_that_goes):
    with pytest.raises(dp.errors.BudgetWarning, match="could not be written into the ledger") as caught:
        dp.privatize(build(), epsilon=1.0, ledger=dp.Ledger.open(place_that_goes))
    assert dp.Release.of(caught.value.private_model).epsilon == 1.0


def test_ctrl_c_while_a_release_is_kept_says_where_it_is(place, monkeypatch):
    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(dp.Ledger, "keep_release", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        dp.privatize(build(), epsilon=1.0, ledger=dp.Ledger.open(place))
    assert not caught.value.args and dp.Release.of(caught.value.private_model).epsilon == 1.0


RUN = """
import sys
import pymc_dp as dp
from tests.test_ledgers import build
dp.sample(100_000, epsilon=1.0, model=build(), ledger=dp.Ledger.open(sys.argv[1]), progressbar=False, chains=1)
"""


@pytest.mark.slow
def test_killed_during_nuts_the_posterior_is_had_again_for_nothing(place):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", RUN, str(place)], env=environment)
    ledger, until = dp.Ledger.open(place), time.monotonic() + 240
    while len(ledger._book.lines) < 3 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL and len(ledger.history) == 1
    private = dp.condition(build(np.zeros(1, dtype=int)), ledger.release(1))
    with private:
        trace = pm.sample(draws=300, tune=300, chains=1, progressbar=False, random_seed=1)
    kept = ledger.release(1).tables["y"][0, 0] / 40
    assert abs(float(trace.posterior["p"].mean()) - kept) < 0.25 and ledger.spent.epsilon == 1.0
