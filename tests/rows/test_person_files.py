"""Stored rows of persons: whole in one file, which only its owner can read and which goes at the end."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows import person_files
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.person_files import PersonFiles
from pymc_dp.rows.spool import PREFIX
from pymc_dp.rows.stored import Arrays, Part

pytestmark = pytest.mark.usefixtures("paid")
N = 500


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch) -> Iterator[Path]:
    """Files are made here, many of them, and none is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(person_files, "PART_BYTES", 2000)
    yield tmp_path
    assert not [name for name in os.listdir(tmp_path) if name.startswith(PREFIX)]


def table():
    rng = np.random.default_rng(2)
    owners = rng.zipf(1.5, N).astype(np.int64) % 60 + 2**40
    return {"who": owners, "x": rng.uniform(-2, 2, (N, 2)), "y": rng.integers(0, 2, N)}


def passes(rows, stored=Arrays):
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((2, 2))) @ b, observed=np.array([0, 1]))
    unit = dp.Unit("who", max_rows=2)
    domain = dp.Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=90, unit=unit)
    made = stored(rows)
    found = with_stored(inspect(model, domain, per_person=True).rows, made)
    found.require()
    return Passes.of(found, made)


def test_files_are_for_their_owner_alone(scratch):
    mask = os.umask(0)
    try:
        with PersonFiles.of(passes(table()), N) as files:
            (folder,) = scratch.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert len(list(folder.iterdir())) == files.count
            assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    finally:
        os.umask(mask)


def test_files_go_where_something_fails_and_no_value_is_shown(monkeypatch):
    made = passes(table())

    def failing(self, size):
        yield {name: [Part(column[:9], None)] for name, column in table().items()}
        raise ValueError("1099511627776 is shown")

    monkeypatch.setattr(Arrays, "blocks", failing)
    with pytest.raises(dp.errors.PrivacyError) as caught:
        PersonFiles.of(made, N)
    assert "10995" not in str(caught.value)


def test_all_rows_of_a_person_are_in_one_file():
    """Rows come in blocks, of other persons each."""

    class Blocks(Arrays):
        def blocks(self, size):
            yield from super().blocks(7)

    with PersonFiles.of(passes(table(), Blocks), N) as files:
        owners = [set(owner.tolist()) for owner, _ in files.parts()]
    assert len(owners) > 3 and sum(map(len, owners)) == len(set().union(*owners))
