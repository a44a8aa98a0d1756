"""A bar says what is done of how much, and nothing unless it is shown."""

import numpy as np
import polars as pl
import pymc as pm
import pytest
from rich.progress import Progress

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
N_ROWS = 500


@pytest.fixture
def bars(monkeypatch):
    """The bars of a call: words, parts that are done, all parts, and whether it was shown."""
    found, stop = [], Progress.stop

    def stopped(bar):
        found.extend((task.description, task.completed, task.total, not bar.disable) for task in bar.tasks)
        stop(bar)

    monkeypatch.setattr(Progress, "stop", stopped)
    return found


@pytest.fixture(scope="module")
def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1]))
    return model


TOSSED = np.arange(N_ROWS) % 2
BESIDE = {
    "arrays": lambda: {"y": TOSSED},
    "engine": lambda: dp.Table(pl.LazyFrame({"y": TOSSED}), {"y": "y"}),
}


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("kind", BESIDE)
def test_rows_beside_a_model_have_a_bar_that_comes_to_its_end(bars, coin, kind, shown):
    dp.privatize(coin, epsilon=1.0, ledger=dp.Ledger(1.0), rows=BESIDE[kind](), progressbar=shown)
    assert bars == [("rows read", N_ROWS, N_ROWS, shown)]


@pytest.mark.parametrize("kind", BESIDE)
def test_no_bar_says_how_many_rows_there_are_where_that_is_private(bars, coin, kind, capfd):
    hidden = dp.Domain(neighbours="add_remove", n_max=1000)
    ledger = dp.Ledger(1.0, neighbours="add_remove")
    dp.privatize(coin, epsilon=1.0, domain=hidden, ledger=ledger, rows=BESIDE[kind]())
    assert not any(shown for *_, shown in bars)
    assert str(N_ROWS) not in "".join(capfd.readouterr())


CITIES = np.array(["Oslo", "Rome", None, "Oslo"] * (N_ROWS // 4), dtype=object)


def stored_labels(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"city": CITIES.tolist()}), folder / "t.parquet", row_group_size=200)
    return dp.Parquet(folder / "t.parquet", {"city": "city"})


LABELS = {
    "array": lambda folder: {"city": CITIES},
    "polars": lambda folder: pl.DataFrame({"city": CITIES.tolist()}),
    "files": stored_labels,
}


@pytest.mark.parametrize("kind", LABELS)
def test_no_bar_says_how_many_labels_there_are_where_that_is_private(bars, tmp_path, kind, capfd):
    hidden = dp.Domain(neighbours="add_remove", n_max=1000)
    account = dp.Ledger(1.0, 1e-5, neighbours="add_remove")
    rows = LABELS[kind](tmp_path)
    dp.find_levels("city", rows=rows, epsilon=1.0, delta=1e-6, max_levels=3, domain=hidden, ledger=account)
    assert not any(shown for *_, shown in bars)
    assert str(N_ROWS) not in "".join(capfd.readouterr())


@pytest.mark.parametrize(("options", "shown"), [({}, True), ({"progressbar": False}, False), ({"quiet": True}, False)])
def test_draws_that_pymc_shows_no_bar_of_have_one(bars, coin, options, shown):
    bounded = dp.truncate(coin, {"p": (0.05, 0.95)})
    dp.sample(3, epsilon=1.0, step=dp.OPS(), model=bounded, ledger=dp.Ledger(1.0), **options)
    assert bars == [("draws of OPS", 3, 3, shown)]


@pytest.mark.parametrize("call", [dp.privatize, dp.find_map])
def test_what_is_no_flag_is_refused(coin, call):
    with pytest.raises(dp.errors.ArgumentError, match="progressbar must be True or False"):
        call(model=coin, epsilon=1.0, ledger=dp.Ledger(1.0), progressbar="split")
