"""Persons with several rows whose latents are integrated out, or whose values are missing: released as any others."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pymc as pm
import pytest

import pymc_dp as dp
from tests.test_units import OWNERS, released

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
RNG = np.random.default_rng(sum(map(ord, "latents of persons")))
ROWS, ITEMS = len(OWNERS), 3
MOST = int(np.unique(OWNERS, return_counts=True)[1].max())
"""Rows of a person that count: all, as a choice of them would be another in another order."""
ANSWERS = RNG.integers(0, 2, (ROWS, ITEMS))
X = np.where(RNG.random(ROWS) < 0.3, np.nan, RNG.uniform(-1, 1, ROWS))
Y = RNG.integers(0, 2, ROWS)
ORDER = np.random.default_rng(1).permutation(ROWS)
STATISTICS = dp.Gradients(steps=10)


def domain(most=MOST, **more):
    return dp.Domain(neighbours="add_remove", n_max=100, unit=dp.Unit("patient_id", max_rows=most), **more)


def wide(rows=slice(None), answers=ANSWERS):
    """Answers to several items at several visits of a patient."""
    with pm.Model() as model:
        pm.Data("patient_id", OWNERS[rows])
        a, b = pm.LogNormal("a", 0, 0.5, shape=ITEMS), pm.Normal("b", 0, 1, shape=ITEMS)
        theta = pm.Normal("theta", 0, 1, shape=len(OWNERS[rows]))
        pm.Bernoulli("y", logit_p=a * (theta[:, None] - b), observed=answers[rows])
    return dp.integrate(model, "theta", nodes=9)


def filled(rows=slice(None), x=X):
    with pm.Model() as model:
        pm.Data("patient_id", OWNERS[rows])
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1)
        pm.Bernoulli("y", logit_p=a + b * pm.Data("x", np.zeros(len(x[rows]))), observed=Y[rows])
        pm.set_data({"x": x[rows]})
    return dp.fill(model, {"x": 0.0})


def release(model, rows=None, most=MOST):
    bounds = {"bounds": {"x": (-1, 1)}} if "x" in model.named_vars else {}
    return released(model, STATISTICS, 1e-6, rows, domain(most, **bounds))


@pytest.mark.slow
def test_latents_integrated_out_are_released_for_persons():
    """In whatever order rows come, out of a table or the model."""
    record, plain = release(wide())
    assert record.domain["unit"] == {"column": "patient_id", "max_rows": MOST} and np.abs(plain).max() > 0
    np.testing.assert_array_equal(release(wide(ORDER))[1], plain)
    stored = {"patient_id": OWNERS[ORDER], "y": ANSWERS[ORDER]}
    np.testing.assert_array_equal(release(wide(slice(2)), stored)[1], plain)


@pytest.mark.few(1)
@pytest.mark.parametrize("texts", [False, True])
def test_filled_columns_of_persons_come_from_any_table(texts, tmp_path):
    """Whether a value is missing is read off the table, and whose row it is, too."""
    _, plain = release(filled())
    np.testing.assert_array_equal(release(filled(ORDER))[1], plain)
    assert (release(filled(x=np.nan_to_num(X)))[1] != plain).any(), "a value that is missing is no 0"
    owners = np.array([f"Zoë {one}" for one in OWNERS]) if texts else OWNERS
    stored = {"patient_id": owners[ORDER], "x": X[ORDER], "y": Y[ORDER]}
    np.testing.assert_array_equal(release(filled(slice(2)), stored)[1], plain)
    values = pa.array(np.nan_to_num(stored["x"]), mask=np.isnan(stored["x"]))
    labels = pa.array(list(stored["patient_id"]))
    for owner in (labels, labels.dictionary_encode()):
        pq.write_table(pa.table({**stored, "x": values, "patient_id": owner}), tmp_path / "t.parquet")
        found = release(filled(slice(2)), dp.Parquet(tmp_path / "t.parquet", {name: name for name in stored}))
        np.testing.assert_array_equal(found[1], plain)
