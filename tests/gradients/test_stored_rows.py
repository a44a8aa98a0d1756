"""Rows beside the model: the release is that of the same rows inside, to the last digit; what is refused."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.rows.stored import Arrays

pytestmark = [
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
BUDGET = {"epsilon": 3.0, "delta": 1e-5}
N_ROWS, FEW = 1500, 3
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


def domain(relation="replace", **given):
    n_max = 5000 if relation == "add_remove" else None
    return dp.Domain(bounds={"x": (-1, 1)}, neighbours=relation, n_max=n_max, **given)


def released(rows, model=None, relation="replace", **options):
    given = {**BUDGET, "domain": domain(relation), "statistics": dp.Gradients(steps=10), **options}
    return dp.privatize(dummies() if model is None else model, rows=rows, progressbar=False, **given)


def numbers(rows, model=None, relation="replace"):
    with dp.testing.insecure_randomness(4):
        return dp.Release.of(released(rows, model, relation)).tables["gradients"]


def permuted(folder):
    order = np.random.default_rng(2).permutation(N_ROWS)
    rows = {name: column[order] for name, column in table().items()}
    return rows | {"g": rows["g"].astype(">i2"), "y": rows["y"].astype(np.uint8), "x": np.asfortranarray(rows["x"])}


def mapped(folder):
    for name, column in table().items():
        np.save(folder / f"{name}.npy", column)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in table()}


def in_files(folder, parts=3, row_group_size=101):
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


def in_an_engine(folder):
    found = table()
    held = {"a": found["x"][:, 0], "b": found["x"][:, 1], "group": found["g"], "answer": found["y"]}
    return dp.Table(pytest.importorskip("polars").LazyFrame(held, nan_to_null=True), COLUMNS)


@pytest.fixture(scope="module")
def inside():
    return numbers(None, logistic(**in_memory()))


@pytest.mark.parametrize(
    ("beside", "block"), [(permuted, 10**6), (mapped, 33), (in_files, 700), (in_files, 32), (in_an_engine, 700)]
)
def test_the_release_is_that_of_the_same_rows_in_the_model(beside, block, inside, monkeypatch, tmp_path):
    """Whatever their order, files, types, and the blocks that several threads take."""
    monkeypatch.setattr("pymc_dp.gradients.fit.block_size", lambda rows: block)
    np.testing.assert_array_equal(numbers(beside(tmp_path)), inside)


def test_records_and_accounts_are_those_of_rows_in_the_model():
    for relation in ("replace", "add_remove"):
        found = []
        for model, rows in ((logistic(**in_memory()), None), (dummies(), table())):
            ledger = dp.Ledger(10.0, 1e-5, neighbours=relation)
            found.append(released(rows, model, relation, ledger=ledger))
            assert len(ledger.history) == 1 and ledger.spent.epsilon > 2.99
        one, other = (dp.Release.of(private).record for private in found)
        assert one.assumptions == other.assumptions and one.event == other.event
        assert any(str(N_ROWS) in line for line in other.assumptions) == (relation == "replace")
        assert str(N_ROWS) not in repr(found[1].coords)


def test_the_charge_comes_before_the_rows(monkeypatch):
    def touched(self, size):
        raise ValueError("secret 0.1234")

    monkeypatch.setattr("pymc_dp.rows.stored.Arrays.blocks", touched)
    ledger = dp.Ledger(1.0, 1e-5)
    with pytest.raises(dp.errors.BudgetExceeded):
        released(table(), ledger=ledger)
    assert ledger.history == []
    with pytest.raises(dp.errors.ReleaseError) as caught:
        released(table(), epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon > 0.49 and "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_table_that_grows_or_shrinks_on_the_way_is_noticed(monkeypatch):
    blocks, left = Arrays.blocks, [N_ROWS]

    def moving(self, size):
        left[0] -= 1
        return blocks(Arrays({name: column[: left[0] + 1] for name, column in self._arrays.items()}), size)

    monkeypatch.setattr(Arrays, "blocks", moving)
    with pytest.raises(dp.errors.PrivacyError, match="has changed") as caught:
        released(table())
    assert not any(character.isdigit() for character in str(caught.value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "y: the column is not in rows="),
        ({"other": np.zeros(N_ROWS)}, "no row-level column of the model"),
        ({"g": np.zeros(N_ROWS)}, "cannot become int"),
        ({"y": np.zeros(N_ROWS - 1, dtype=int)}, "of lengths"),
        ({"x": np.zeros((N_ROWS, 3))}, "shape"),
        ({name: column[:0] for name, column in table(1).items()}, "the table has 0 rows"),
    ],
)
def test_what_does_not_fit_costs_nothing(change, message):
    rows = {name: column for name, column in (table() | change).items() if column is not None}
    ledger = dp.Ledger(10.0, 1e-5)
    with pytest.raises(dp.errors.UnsupportedModelError) as caught:
        released(rows, ledger=ledger)
    assert message in str(caught.value) and ledger.history == []


def test_lengths_are_not_shown_and_not_asked_for_under_add_remove():
    assert released({name: column[:0] for name, column in table(1).items()}, relation="add_remove") is not None
    rows = table() | {"y": np.zeros(N_ROWS - 1, dtype=int)}
    with pytest.raises(dp.errors.UnsupportedModelError, match="of different lengths") as caught:
        released(rows, relation="add_remove")
    assert str(N_ROWS) not in str(caught.value) and str(N_ROWS - 1) not in str(caught.value)


def test_other_calls_with_rows_are_refused():
    with pytest.raises(dp.errors.UnsupportedModelError, match="range of the dummy rows"):
        released(table(), domain=domain(public=["g"]))
    for call in (dp.privatize, dp.sample):
        with pytest.raises(dp.errors.ArgumentError, match=r"Give delta > 0"):
            call(model=dummies(), domain=domain(), epsilon=1.0, rows=table(), statistics=dp.Gradients())
    with pytest.raises(dp.errors.ArgumentError, match="leave step= out"):
        dp.sample(epsilon=1.0, delta=1e-6, model=dummies(), rows=table(), step=dp.SGLD())
    with pytest.raises(dp.errors.ArgumentError, match="rows must map names"):
        released([1.0])
