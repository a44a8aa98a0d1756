"""Rows beside the model: the release is that of the same rows inside, to the last digit; what is refused."""

import tracemalloc
from functools import partial

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError, UnsupportedModelError
from pymc_dp.gradients import fit
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.integers import add_curvatures, add_scores
from pymc_dp.gradients.interface import interface_of
from pymc_dp.release.paid import forget_releases
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.stored import Arrays, stored_rows

pytestmark = pytest.mark.usefixtures("paid")

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
BUDGET = {"epsilon": 3.0, "delta": 1e-5}
N_ROWS, FEW = 1500, 3
QUIET = {"tune": 5, "chains": 1, "progressbar": False}
COLUMNS = {"x": ["a", "b"], "g": "group", "y": "answer"}


def table(n_rows=N_ROWS):
    """Rows with values beyond all bounds, and numbers that are none."""
    rng = np.random.default_rng(11)
    x = rng.uniform(-1.5, 1.5, (n_rows, 2))
    x[rng.random((n_rows, 2)) < 0.05] = np.nan
    x[rng.random((n_rows, 2)) < 0.02] = np.inf
    return {"x": x, "g": rng.integers(-1, 5, n_rows), "y": rng.integers(0, 2, n_rows)}


def in_memory():
    """The same, as a model may hold it: what is no number stands in the middle of its bounds."""
    rows = table()
    return rows | {"x": np.where(np.isnan(rows["x"]), 0.0, rows["x"])}


def logistic(x, g, y):
    with pm.Model(coords={"of": range(4)}) as model:
        level = pm.Normal("level", 0, pm.HalfNormal("spread"), dims="of")
        slopes = pm.Normal("slopes", shape=2)
        eta = pm.Data("x", x) @ slopes + level[pm.Data("g", g)]
        pm.Bernoulli("y", logit_p=eta, observed=y)
    return model


def dummies():
    return logistic(np.zeros((FEW, 2)), np.zeros(FEW, dtype=int), np.zeros(FEW, dtype=int))


def domain(relation="replace"):
    return dp.Domain(bounds={"x": (-1, 1)}, neighbours=relation, n_max=5000 if relation == "add_remove" else None)


@pytest.fixture(autouse=True)
def _no_history():
    forget_releases()


@pytest.fixture(scope="module")
def planned():
    return Planned.of(dp.Gradients(steps=10), interface_of(logistic(**in_memory()), domain()), Budget(**BUDGET))


def passes(planned, rows):
    stored = stored_rows(rows)
    return Passes.of(with_stored(planned.interface.inspection, stored), stored)


def walked(planned, rows):
    with dp.testing.insecure_randomness(4):
        return planned.walk(rows)


@pytest.fixture(scope="module")
def inside(planned):
    with opened_gate():
        return walked(planned, planned.read())


def in_files(folder, parts, row_group_size):
    """Columns of narrow types; NaN as a null here, as NaN there."""
    found = table()
    values = {
        **{name: found["x"][:, k] for k, name in enumerate("ab")},
        "group": found["g"].astype(np.int8),
        "answer": found["y"].astype(bool),
    }
    for place, part in enumerate(np.array_split(np.arange(N_ROWS), parts)):
        own = {name: pa.array(column[part], from_pandas=name == "a") for name, column in values.items()}
        pq.write_table(pa.table(own), folder / f"{place}.parquet", row_group_size=row_group_size)
    return dp.Parquet(folder, COLUMNS)


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("slope", "curvature", "noise", "end")
    )


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("block", [32, 700, 10**6])
def test_the_release_is_that_of_the_same_rows_in_the_model(planned, inside, monkeypatch, tmp_path, block):
    monkeypatch.setattr(fit, "block_size", lambda rows: block)
    assert same(walked(planned, planned.read()), inside)
    assert same(walked(planned, passes(planned, table())), inside)
    assert same(walked(planned, passes(planned, in_files(tmp_path, 3, 101))), inside)


@pytest.mark.slow
def test_a_table_in_an_engine_is_read_once_and_gives_the_same_release(planned, inside, monkeypatch):
    pl, found = pytest.importorskip("polars"), table()
    held = {"a": found["x"][:, 0], "b": found["x"][:, 1], "group": found["g"], "answer": found["y"]}
    beside, reads = dp.Table(pl.LazyFrame(held, nan_to_null=True), COLUMNS), []
    blocks = dp.Table.blocks
    monkeypatch.setattr(dp.Table, "blocks", lambda self, size: reads.append(size) or blocks(self, size))
    with dp.testing.insecure_randomness(4), opened_gate():
        released = planned.walk_over(passes(planned, beside))
    assert same(released, inside) and len(reads) == 1


@pytest.mark.parametrize("block", [31, 33])
def test_chunks_that_fit_no_group_change_nothing(planned, inside, monkeypatch, tmp_path, block):
    monkeypatch.setattr(fit, "block_size", lambda rows: block)
    for name, column in table().items():
        np.save(tmp_path / f"{name}.npy", column)
    rows = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in table()}
    assert same(walked(planned, passes(planned, rows)), inside)


def test_neither_order_nor_file_nor_width_matters(planned, inside, rng):
    order = rng.permutation(N_ROWS)
    rows = {name: column[order] for name, column in table().items()}
    rows |= {"g": rows["g"].astype(">i2"), "y": rows["y"].astype(np.uint8), "x": np.asfortranarray(rows["x"])}
    assert same(walked(planned, passes(planned, rows)), inside)


def test_what_one_row_holds_changes_no_other(planned):
    """Sums of whole numbers differ by what that row adds, in whatever chunks the others are read."""
    at = planned.prior.mean + 0.3
    parts, limits = fit.RowParts(rows=planned.simulated.rows), planned.dummy().limits

    def sums(rows, size):
        chunks = partial(passes(planned, rows).chunks, size)
        made = fit.NoisedSums(parts=parts, chunks=chunks, schedule=planned.schedule)
        return (
            made._summed(lambda chunk: parts.scores(chunk, at, limits), add_scores, (len(at),), 2),
            made._summed(lambda chunk: parts.factors(chunk, at, limits), add_curvatures, (len(at),) * 2, 2),
        )

    rows = table()
    whole = sums(rows, 400)
    for place in (0, 399, N_ROWS - 1):
        without = {name: np.delete(column, place, axis=0) for name, column in rows.items()}
        alone = sums({name: column[place : place + 1] for name, column in rows.items()}, 1)
        for size in (37, 512):
            for all_of_them, rest, own in zip(whole, sums(without, size), alone, strict=True):
                np.testing.assert_array_equal(all_of_them - rest, own)


def test_each_release_is_one_pass(planned):
    made = []

    class Counted(Arrays):
        def blocks(self, size):
            made.append(size)
            return super().blocks(size)

    shown = []
    with dp.testing.insecure_randomness(4):
        planned.walk(passes(planned, Counted(table())), lambda: shown.append(1))
    assert len(made) == len(shown) == len(planned.schedule.event.events) == 17


@pytest.mark.slow
def test_a_table_is_never_in_memory_as_a_whole(planned, tmp_path):
    n_rows = 2_000_000
    for name, column in table(2).items():
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", column.dtype, (n_rows, *column.shape[1:])).flush()
    rows = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in table(2)}
    size = sum(column.nbytes for column in rows.values())
    tracemalloc.start()
    walked(planned, passes(planned, rows))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 2


def released(rows, model=None, relation="replace", **options):
    given = {**BUDGET, "domain": domain(relation), "statistics": dp.Gradients(steps=10), **options}
    return dp.privatize(dummies() if model is None else model, rows=rows, **given)


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_privatize_takes_them(relation):
    found = []
    for model, rows in ((logistic(**in_memory()), None), (dummies(), table())):
        ledger = dp.Ledger(10.0, 1e-5, neighbours=relation)
        with dp.testing.insecure_randomness(8):
            found.append(released(rows, model, relation, ledger=ledger))
        assert len(ledger.history) == 1 and ledger.spent.epsilon > 2.99
    tables = [dp.Release.of(private).tables["gradients"] for private in found]
    np.testing.assert_array_equal(*tables)
    records = [dp.Release.of(private).record for private in found]
    assert records[0].assumptions == records[1].assumptions
    shown = any(str(N_ROWS) in line for line in records[1].assumptions)
    assert shown == (relation == "replace")
    assert records[1].guarantee == "none" and str(N_ROWS) not in repr(found[1].coords)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning")  # so few rows give what may be doubted
def test_sample_takes_them_and_nothing_of_a_row_leaves():
    rows = table(60)
    planted = plant(rows["x"][:, 0], rows=range(0, 60, 10), low=-1, high=1)
    rows["x"][:, 0] = planted.values
    with dummies():
        options = {**BUDGET, "domain": domain(), "statistics": dp.Gradients(steps=10)}
        found = dp.sample(5, rows=rows, **options, **QUIET)
    assert not contains_canary(found, planted.canaries)
    assert found.dp.guarantee == "exact" and found["posterior"]["slopes"].shape == (1, 5, 2)


@pytest.mark.slow
def test_sample_releases_gradients_of_them_where_nothing_is_named():
    with dummies():
        found = dp.sample(5, rows=table(), **BUDGET, domain=domain(), **QUIET)
        assert "gradients" in found["released"]
        assert "a polynomial in place of the likelihood of y" in found["privacy"].attrs["dp_record"]


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_explain_looks_at_their_number_and_no_value(relation):
    rows = table()
    others = {name: np.zeros_like(column) for name, column in rows.items()}
    found, other = (dp.explain(dummies(), domain(relation), **BUDGET, rows=held) for held in (rows, others))
    assert str(found.full()) == str(other.full())
    assert found.gradients.fits and found.default.by_gradients and found.ok and not found.samplers
    whole = dp.explain(logistic(**in_memory()), domain(relation), **BUDGET)
    assert found.gradients == whole.gradients and found.assumptions == whole.assumptions
    assert "Yes: dp.sample(epsilon=..., delta=...) releases noised gradients once" in str(found.full())
    wrong = dp.explain(dummies(), domain(relation), **BUDGET, rows={"x": rows["x"]})
    assert not wrong.gradients.fits and "is not in rows=" in str(wrong.full())


@pytest.mark.parametrize(("relation", "most"), [("replace", N_ROWS), ("add_remove", 5000)])
def test_explain_holds_the_budget_against_the_stored_rows(relation, most):
    found = dp.explain(dummies(), domain(relation), epsilon=20.0, delta=2 / most, rows=table())
    assert "ε = 20 bounds very little" in found.weak[0] and f"not below 1 / {most}" in found.weak[1]
    assert not dp.explain(dummies(), domain(relation), epsilon=1.0, delta=0.5 / most, rows=table()).weak


def test_a_table_without_rows_is_released_under_add_remove():
    empty = {name: column[:0] for name, column in table().items()}
    assert released(empty, relation="add_remove") is not None
    with pytest.raises(UnsupportedModelError, match="the table has 0 rows"):
        released(empty)


def test_the_charge_comes_before_the_rows(monkeypatch):
    def touched(self, size):
        raise ValueError("secret 0.1234")

    monkeypatch.setattr(Arrays, "blocks", touched)
    ledger = dp.Ledger(1.0, 1e-5)
    with pytest.raises(BudgetExceeded):
        released(table(), ledger=ledger)
    assert ledger.history == []
    with pytest.raises(ReleaseError) as caught:
        released(table(), epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon > 0.49 and "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_broken_file_costs_and_shows_no_value(tmp_path):
    rows = in_files(tmp_path, 1, 1000)
    path, ledger = tmp_path / "0.parquet", dp.Ledger(10.0, 1e-5)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(300) + whole[304:])
    with pytest.raises(PrivacyError, match=r"0\.parquet cannot be read") as caught:
        released(rows, ledger=ledger)
    assert len(ledger.history) == 1 and caught.value.__context__ is None


def test_a_table_that_grows_or_shrinks_on_the_way_is_noticed(planned):
    class Moving(Arrays):
        left = N_ROWS

        def blocks(self, size):
            self.left -= 1
            yield from Arrays({name: column[: self.left + 1] for name, column in self._arrays.items()}).blocks(size)

    with pytest.raises(PrivacyError, match="has changed") as caught:
        walked(planned, passes(planned, Moving(table())))
    assert not any(character.isdigit() for character in str(caught.value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "y: the column is not in rows="),
        ({"other": np.zeros(N_ROWS)}, "no row-level column of the model"),
        ({"g": np.zeros(N_ROWS)}, "cannot become int"),
        ({"y": np.zeros(N_ROWS - 1, dtype=int)}, "of lengths"),
        ({"x": np.zeros((N_ROWS, 3))}, "shape"),
    ],
)
def test_what_does_not_fit_costs_nothing(change, message):
    rows = {name: column for name, column in (table() | change).items() if column is not None}
    ledger = dp.Ledger(10.0, 1e-5)
    with pytest.raises(UnsupportedModelError) as caught:
        released(rows, ledger=ledger)
    assert message in str(caught.value) and ledger.history == []


def test_public_columns_of_dummies_are_refused():
    with pytest.raises(UnsupportedModelError, match="range of the dummy rows"):
        released(table(), domain=dp.Domain(bounds={"x": (-1, 1)}, public=["g"]))


def test_lengths_are_not_shown_under_add_remove():
    rows = table() | {"y": np.zeros(N_ROWS - 1, dtype=int)}
    with pytest.raises(UnsupportedModelError, match="of different lengths") as caught:
        released(rows, relation="add_remove")
    assert str(N_ROWS) not in str(caught.value) and str(N_ROWS - 1) not in str(caught.value)


def test_gradients_of_them_need_a_delta():
    for call in (dp.privatize, dp.sample):
        with pytest.raises(ArgumentError, match=r"Give delta > 0"):
            call(model=dummies(), domain=domain(), epsilon=1.0, rows=table(), statistics=dp.Gradients())


def test_steps_take_rows_of_their_own():
    with pytest.raises(ArgumentError, match="leave step= out"):
        dp.sample(epsilon=1.0, delta=1e-6, model=dummies(), rows=table(), step=dp.SGLD())
    with pytest.raises(ArgumentError, match="rows must map names"):
        dp.privatize(dummies(), epsilon=1.0, delta=1e-6, rows=[1.0], statistics=dp.Gradients())
