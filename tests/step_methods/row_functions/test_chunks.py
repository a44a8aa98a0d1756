"""Rows are evaluated in whole groups, and never handed to one call of a library together."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.linalg.solvers.core import SolveBase

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.priors import priors_of
from pymc_dp.simulation.columns import dummy_rows
from pymc_dp.step_methods.hamiltonian.gradient import ClippedGradient
from pymc_dp.step_methods.langevin.gradients import compiled, row_gradients
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.row_functions.builder import ALIKE, UNDIVIDED, compiled_rows, filled, whole_chunk
from pymc_dp.transforms.prior_model import prior_model


@pytest.mark.parametrize("entries", [0, 1, 3, 10, 256, 10_000])
@pytest.mark.parametrize("most", [32, 1000, 8192])
def test_chunks_are_whole_groups_of_few_entries(entries, most):
    chunk = whole_chunk(entries, most)
    assert chunk % ALIKE == 0 and ALIKE <= chunk <= most
    assert chunk * entries <= UNDIVIDED or chunk == ALIKE


@pytest.mark.parametrize(("count", "whole"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_groups_are_filled_up(count, whole):
    assert filled(count) == whole


# --- row by row -------------------------------------------------------------------------------------------------------


def langevin(inspection, new):
    compiled(row_gradients(inspection, new))


def hamiltonian(inspection, new):
    graphs = row_gradients(inspection, new)
    dummies = dummy_rows(inspection.columns, 3, np.random.default_rng(0))
    ClippedGradient(graphs, dummies, 1.0, 10).compile()


def metropolis(inspection, new):
    RowRatios(inspection, new).compile()


def posterior_samples(inspection, new):
    assert RowDensity(inspection, new, priors_of(new))._values


@pytest.fixture
def made(monkeypatch):
    """The functions that are compiled."""
    functions, function = [], pytensor.function
    monkeypatch.setattr(pytensor, "function", lambda *a, **k: functions.append(function(*a, **k)) or functions[-1])
    return functions


def solves(functions):
    """Each linear solve, with how many axes its right-hand side has beside those of one system."""
    nodes = [node for each in functions for node in each.maker.fgraph.toposort()]
    cores = [(getattr(node.op, "core_op", node.op), node) for node in nodes]
    return [(core, node.inputs[1].type.ndim - core.b_ndim) for core, node in cores if isinstance(core, SolveBase)]


@pytest.mark.few(1)
@pytest.mark.parametrize("compile_rows", [langevin, hamiltonian, metropolis, posterior_samples])
def test_no_sampler_solves_all_rows_by_one_call_of_a_library(compile_rows, made, rng):
    with pm.Model() as model:
        scale = pt.diag(pm.HalfNormal("s", shape=3)) + pm.Data("lower", np.tril(np.full((3, 3), 0.3)))
        pm.MvNormal("y", pm.Normal("mu", shape=3), chol=scale, observed=rng.normal(size=(40, 3)))
    found = inspect(model, Domain(bounds={"y": (-3, 3)}, public=["lower"])).rows
    compile_rows(found, prior_model(found))
    assert solves(made) and all(rows >= 1 for _, rows in solves(made))


def test_pytensor_would_solve_them_together():
    matrix, rows = pt.matrix("a", shape=(3, 3)), pt.matrix("rows", shape=(None, 3))
    graph = pt.linalg.solve_triangular(matrix, rows, lower=True, b_ndim=1)
    ((_, together),) = solves([pytensor.function([matrix, rows], graph)])
    ((_, alone),) = solves([compiled_rows([matrix, rows], graph)])
    assert together == 0 and alone == 1
