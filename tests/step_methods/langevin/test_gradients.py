"""Per-row gradients of all kinds of models, against PyMC's own gradient of the whole table."""

import numpy as np
import pytensor
import pytest

from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.gate import read
from pymc_dp.step_methods.langevin.gradients import row_gradients
from pymc_dp.transforms.prior_model import prior_model
from tests.inspection.test_row_terms import FINE, N, build

pytestmark = pytest.mark.usefixtures("paid")


def evaluated(model):
    """Function from a position and rows to the gradients of all rows, and to the gradient of the prior."""
    found = inspect(model).rows
    new = prior_model(found)
    graphs = row_gradients(found, new)
    outputs = [item for block in graphs.blocks for item in (block.factors, block.vectors)]
    function = pytensor.function(
        [graphs.position, *graphs.rows], [*outputs, graphs.prior], mode="FAST_COMPILE", on_unused_input="ignore"
    )

    def call(position, rows):
        *parts, prior = function(position, *rows)
        table = np.zeros((len(rows[0]), position.size))
        for block, factors, vectors in zip(graphs.blocks, parts[::2], parts[1::2], strict=True):
            table[:, block.start : block.start + vectors.shape[1]] = factors[:, None] * vectors
        return table, prior

    return graphs, tuple(read(column) for column in found.columns), call


@pytest.fixture(autouse=True)
def _nothing_is_compiled():
    """Composite operations compile what is inside of them in the default mode, or in C."""
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield


@pytest.mark.few(1)
@pytest.mark.parametrize("write", FINE)
def test_rows_and_prior_add_up_to_the_gradient_of_the_model(write, rng):
    model = build(write)
    graphs, rows, call = evaluated(model)
    total = model.compile_dlogp(mode="FAST_COMPILE")
    for _ in range(3):
        position = rng.normal(0, 0.4, size=graphs.position.type.shape)
        point, start = {}, 0
        for name, shape, dtype in graphs.shapes:
            size = int(np.prod(shape))
            point[name] = position[start : start + size].reshape(shape).astype(dtype)
            start += size
        table, prior = call(position, rows)
        assert table.shape == (N, position.size)
        np.testing.assert_allclose(table.sum(axis=0) + prior, total(point), rtol=1e-6, atol=1e-7)
        alone = np.concatenate([call(position, tuple(column[i : i + 1] for column in rows))[0] for i in range(4)])
        np.testing.assert_allclose(alone, table[:4], rtol=1e-9, atol=1e-12)
