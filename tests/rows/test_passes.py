"""Passes over stored rows: every row once, as the model would hold it, whatever the chunks; how many is held to."""

import numpy as np
import pytest

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.stored import Arrays
from tests.step_methods.langevin.conftest import logistic, table

pytestmark = pytest.mark.usefixtures("paid")


def passes(rows):
    stored = Arrays(rows)
    found = with_stored(inspect(logistic(*(column[:4] for column in table())), None).rows, stored)
    found.require()
    return Passes.of(found, stored)


def hostile(rng):
    x, group, answers = table()
    x[rng.random(x.shape) < 0.2] = np.nan
    x[rng.random(x.shape) < 0.2] = np.inf
    return {"x": x, "g": group * 5, "y": answers - 3}


@pytest.mark.parametrize("size", [1, 7, 200, 1000])
def test_every_row_comes_once_in_order_and_clamped(size, rng):
    rows = hostile(rng)
    made = passes(rows)
    for _ in range(2):  # again and again
        chunks = [chunk() for chunk in made.chunks(size)]
        assert max(len(chunk[0]) for chunk in chunks) == min(size, 200)
        for column, name, parts in zip(made.columns, made.names, zip(*chunks, strict=True), strict=True):
            whole = column.clamped(rows[name].astype(column.leaf.type.dtype))
            np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("n_rows", [199, 201, 0])
def test_another_length_than_was_read_before_is_refused_without_saying_which(n_rows):
    made = passes(dict(zip("xgy", table(), strict=True)))
    other = passes(dict(zip("xgy", table(max(n_rows, 1)), strict=True)))
    stored = Arrays({name: array[:n_rows] for name, array in other.stored._arrays.items()})
    moved = Passes(stored=stored, names=made.names, columns=made.columns, n_rows=made.n_rows)
    with pytest.raises(PrivacyError, match="has changed since") as caught:
        list(moved.chunks(64))
    assert not any(character.isdigit() for character in str(caught.value))
