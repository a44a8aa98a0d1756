"""Clamped copies on a disk: who may read them, when they go, what other processes get, and that draws are the same."""

import copy
import gc
import pickle
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import cloudpickle
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import ArgumentError, PrivacyError, ReleaseError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows import spool as spool_module
from pymc_dp.rows import stored
from pymc_dp.rows.gate import read
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.spool import Scratch, Spool, SpooledRows, spooled
from pymc_dp.rows.stored import Arrays
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.langevin.kernels import Plan, make_table
from pymc_dp.step_methods.row_functions.limits import clip_to
from tests.step_methods.langevin.conftest import BATCH, BUDGET, CLIP, N_ROWS, logistic, table

pytestmark = pytest.mark.usefixtures("paid")

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


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


def begun(step):
    """Begin the chain of a funded step."""
    with dp.testing.insecure_randomness(1):
        step.setup_chain(None, 0, 50)
    return step


# --- files ------------------------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_copy(small, rows, scratch):
    held, _ = poured(small, rows, scratch)
    (folder,) = scratch.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in sorted(folder.iterdir())] == ["0", "1", "2"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert isinstance(held, SpooledRows)


def test_columns_are_mapped_and_clamped(small, rows, scratch, monkeypatch):
    monkeypatch.setattr(spool_module, "BLOCK_BYTES", 100)
    domain = dp.Domain(bounds={"x": (-0.5, 0.25)})
    found, inspection = poured(small, rows, scratch, domain)
    memory = inspect(logistic(*table()), domain).rows.columns
    for column, array, whole in zip(inspection.columns, found, memory, strict=True):
        assert column.name == whole.name and np.array_equal(array, read(whole)) and array.dtype == read(whole).dtype
        assert not array.flags.owndata and array.flags.c_contiguous and array.flags.aligned
    (x,) = (array for array in found if array.ndim == 2)
    assert (x.min(), x.max()) == (-0.5, 0.25)


def test_floats_may_be_held_narrower(small, rows, scratch):
    found, inspection = poured(small, rows, scratch, held_as=SGLD(dtype="float32")._held)
    kinds = {column.name: array.dtype for column, array in zip(inspection.columns, found, strict=True)}
    assert kinds["x"] == np.float32 and kinds["y"].kind == kinds["g"].kind == "i"
    (x,) = (array for array in found if array.ndim == 2)
    assert np.array_equal(x, rows["x"].astype(np.float32))


@pytest.mark.slow
def test_the_copy_goes_with_its_owner_and_not_before(small, rows, scratch):
    found, _ = poured(small, rows, scratch)
    other = pickle.loads(cloudpickle.dumps(found))
    assert all(np.array_equal(one, two) for one, two in zip(found, other, strict=True))
    again = copy.deepcopy(other)
    other.spool.remove()
    del other
    gc.collect()
    assert len(list(scratch.iterdir())) == 1, "a copy owns nothing"
    way = pickle.dumps(found)
    assert len(way) < 1000, "no row travels"
    del found
    gc.collect()
    assert list(scratch.iterdir()) == []
    assert np.array_equal(np.sort(again[0], axis=None), np.sort(again[0].copy(), axis=None)), "mapped files live on"
    with pytest.raises(PrivacyError, match="gone"):
        pickle.loads(way)


@pytest.mark.slow
def test_a_forked_process_and_the_end_of_the_owner(scratch, monkeypatch):
    spool = Spool([], Scratch(folder=str(scratch)))
    assert spool._end.atexit
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        spool_module._remove(spool.folder, 1)
    assert len(list(scratch.iterdir())) == 1
    del spool
    gc.collect()
    assert list(scratch.iterdir()) == []


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


def test_a_table_without_rows_is_a_table(small, rows, scratch):
    hidden = dp.Domain(neighbours="add_remove", n_max=100)
    found, _ = poured(small, {name: column[:0] for name, column in rows.items()}, scratch, hidden)
    assert [len(column) for column in found] == [0, 0, 0]


def test_failures_leave_no_file_and_show_no_value(small, rows, scratch, monkeypatch):
    def shown(self, size):
        yield {name: [stored.Part(column[:5], None)] for name, column in rows.items()}
        raise error

    monkeypatch.setattr(Arrays, "blocks", shown)
    for error in (ValueError("secret 123.456"), OSError(28, "No space left on device"), KeyboardInterrupt()):
        with pytest.raises((PrivacyError, KeyboardInterrupt)) as refused:
            poured(small, rows, scratch)
        assert "secret" not in str(refused.value) and list(scratch.iterdir()) == []
        if isinstance(error, OSError):
            assert str(refused.value) == (
                f"The rows could not be copied to {scratch} (No space left on device). The budget is spent, and "
                "nothing was released. Another call is charged again. Name a folder with more room in the environment "
                "variable TMPDIR, before Python starts."
            )


def test_a_table_that_has_changed_is_refused(small, rows, scratch, monkeypatch):
    blocks = Arrays.blocks
    monkeypatch.setattr(Arrays, "blocks", lambda self, size: list(blocks(self, 150))[:1])
    with pytest.raises(PrivacyError, match="has changed"):
        poured(small, rows, scratch)
    assert list(scratch.iterdir()) == []


def test_a_folder_that_is_gone_after_the_charge_is_named(scratch):
    with pytest.raises(PrivacyError, match=r"to .*none \(No such file.*The budget is spent.*dp\.SGLD\(scratch="):
        Spool([], Scratch(folder=str(scratch / "none"), call="dp.SGLD"))


@pytest.mark.parametrize(
    ("hidden", "n_rows", "dtype", "row"),
    [({}, N_ROWS, "float64", 36), ({"neighbours": "add_remove", "n_max": 7000}, 7000, "float32", 24)],
)
def test_a_sampler_asks_for_room_by_a_public_number(small, rows, scratch, shared, room, hidden, n_rows, dtype, row):
    ledger = dp.Ledger(**BUDGET, neighbours=hidden.get("neighbours", "replace"))
    given = {"model": small, "domain": dp.Domain(**hidden), "ledger": ledger, **QUIET}
    room(row * n_rows - 1)
    step = SGLD(rows=rows, scratch=scratch, batch_size=5, dtype=dtype)
    with pytest.raises(ArgumentError) as refused:
        dp.sample(3, **BUDGET, step=step, **given)
    assert f"needs {row * n_rows:,} bytes in {scratch}, which has {row * n_rows - 1:,}" in str(refused.value)
    assert 'dp.SGLD(scratch="/folder/with/room")' in str(refused.value) and ledger.history == []
    with pytest.raises(ArgumentError, match="is no folder that can be written to"):
        dp.sample(3, **BUDGET, step=SGLD(rows=rows, scratch=scratch / "none", batch_size=5), **given)
    assert ledger.history == [] and list(scratch.iterdir()) == []


def test_memory_does_not_grow_with_the_table(small, scratch, monkeypatch):
    """Neither the copy nor the scratch space of the loop holds an array as long as the table."""
    n_rows = 90_000
    source = {"x": np.zeros((n_rows, 3)), "g": np.zeros(n_rows, int), "y": np.zeros(n_rows, int)}
    monkeypatch.setattr(spool_module, "BLOCK_BYTES", 2**15)
    poured(small, {name: column[:100] for name, column in source.items()}, scratch)
    clip = clip_to(1.0, size=5, n_rows=n_rows)
    noise = {"sigma": 1.0, "products": 0.0, "centred": False}
    public = {"clip": clip, "scale": 1.0, "constants": (1.0,), "waiting": 0.1, "chunk": 32, **noise}
    tracemalloc.start()
    held, _ = poured(small, source, scratch)
    tables = [make_table(held, Plan(poisson=poisson, batch_size=BATCH, **public)) for poisson in (True, False)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tables[0].rows[0]) == n_rows and peak < 8 * n_rows, "one number a row would be as much"


# --- chains -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_draws_are_those_of_the_same_rows_in_memory(model, small, rows, scratch, shared, sampling):
    trees = []
    for source, settings in ((model, {}), (small, {"rows": rows, "scratch": scratch})):
        with dp.testing.insecure_randomness(4):
            step = SGLD(batch_size=BATCH, clip_norm=CLIP, sampling=sampling, steps_per_draw=7, **settings)
            ledger = dp.Ledger(**BUDGET)
            trees.append(dp.sample(5, **BUDGET, step=step, model=source, ledger=ledger, **QUIET))
        assert ledger.spent.epsilon > 0 and list(scratch.iterdir()) == []
    for name in ("coefficients", "scale", "offset"):
        assert np.array_equal(*(tree["posterior"][name].values for tree in trees))
    assert str(trees[0].dp.report()) == str(trees[1].dp.report())


@pytest.mark.slow
def test_hostile_rows_are_clamped_before_anything_compiled(small, rows, scratch, shared):
    x = rows["x"].copy()
    x[:3] = np.nan, np.inf, -1e300
    hostile = {"x": x, "g": rows["g"].astype(np.int64) + 2**40, "y": rows["y"].astype(np.int64) - 2**62}
    domain = dp.Domain(bounds={"x": (-1, 1), "g": (0, 1)})
    with small:
        step = begun(SGLD(rows=hostile, scratch=scratch, batch_size=BATCH, clip_norm=CLIP, domain=domain, **BUDGET))
    for array in step._rows:
        assert np.isfinite(array).all() and array.min() >= -1 and array.max() <= 1
    total = step.clipped_sum(np.full(5, 0.1), np.arange(N_ROWS))
    assert np.isfinite(total).all() and np.linalg.norm(total) <= CLIP * N_ROWS


@pytest.mark.few(1)
@pytest.mark.parametrize("cores", [1, 2])
def test_a_funded_step_reads_its_rows_in_every_process(small, rows, scratch, shared, cores):
    with small:
        step = SGLD(rows=rows, scratch=scratch, batch_size=BATCH, chains=2, **BUDGET)
        assert len(list(scratch.iterdir())) == 1
        tree = dp.scrub(pm.sample(4, step=step, chains=2, cores=cores, **PLAIN), small)
    assert len(np.unique(tree["posterior"]["scale"])) == 8
    assert len(list(scratch.iterdir())) == 1, "it goes with the step, whatever becomes of the workers"
    step.forget()
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_workers_that_share_nothing_find_the_rows(small, rows, scratch, shared):
    with small:
        step = SGLD(rows=rows, scratch=scratch, batch_size=BATCH, chains=2, **BUDGET)
        tree = dp.scrub(pm.sample(4, step=step, chains=2, cores=2, mp_ctx="forkserver", **PLAIN), small)
    assert len(np.unique(tree["posterior"]["scale"])) == 8


@pytest.mark.slow
def test_rows_do_not_travel_with_a_step(small, rows, scratch, shared):
    x = np.array(rows["x"])
    planted = plant(x[:, 1], low=-9, high=9)
    x[:, 1] = planted.values
    source = {**rows, "x": x}
    specification = SGLD(rows=source, scratch=scratch, batch_size=BATCH)
    with small:
        step = begun(SGLD(rows=source, scratch=scratch, batch_size=BATCH, **BUDGET))
    assert x.tobytes()[:64] not in cloudpickle.dumps(step)
    again = pickle.loads(cloudpickle.dumps(step))
    assert np.array_equal(again._rows[0], step._rows[0])
    names = [str(path) for path in scratch.rglob("*")]
    assert contains_canary([repr(specification), repr(step), step.describe(), names], planted.canaries) == []


def test_a_failing_chain_leaves_no_file(small, rows, scratch, shared, monkeypatch):
    def broken(self, *arguments):
        raise RuntimeError("stopped")

    monkeypatch.setattr(SGLD, "_walk", broken)
    with pytest.raises(ReleaseError):
        dp.sample(3, **BUDGET, step=SGLD(rows=rows, scratch=scratch, batch_size=BATCH), model=small, **QUIET)
    assert list(scratch.iterdir()) == []


def test_nothing_is_copied_before_the_charge(small, rows, scratch, shared):
    ledger = dp.Ledger(epsilon=0.01, delta=1e-5)
    with pytest.raises(dp.BudgetExceeded):
        dp.sample(3, **BUDGET, step=SGLD(rows=rows, scratch=scratch, batch_size=5), model=small, ledger=ledger, **QUIET)
    assert list(scratch.iterdir()) == []


def test_folders_are_named_by_chance(scratch):
    names = {Path(Spool([], Scratch(folder=str(scratch))).folder).name for _ in range(3)}
    assert len(names) == 3
