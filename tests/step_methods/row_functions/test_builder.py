"""A row as a function: of the row and of the parameters, and of nothing else of the table."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.basic import Alloc

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.rows import reached
from pymc_dp.rows.gate import read
from pymc_dp.step_methods.row_functions import RowFunction, vectorised
from pymc_dp.step_methods.row_functions.builder import compiled_rows
from pymc_dp.transforms.prior_model import prior_model as prior_model_of

pytestmark = pytest.mark.usefixtures("paid")

N = 5


def logistic():
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(-1, 1, N))
        slope = pm.Normal("slope", 0, 1)
        pm.Bernoulli("y", logit_p=slope * x, observed=np.array([0, 1, 1, 0, 1]))
        pm.Normal("z", slope, 1.0, observed=np.arange(N) / N)
    inspection = inspect(model, Domain(bounds={"x": (-1, 1), "z": (0, 1)})).rows
    inspection.require()
    return inspection, prior_model_of(inspection)


@pytest.mark.slow
def test_rows_add_up_to_the_log_likelihood_of_the_model():
    inspection, prior_model = logistic()
    rows = RowFunction.of(inspection, prior_model)
    each = rows.over_rows(rows.total)
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        function = pytensor.function([*inspection.stand_ins, *rows.many], each)
    held = [read(column) for column in rows.columns]
    whole = inspection.model.compile_logp(vars=inspection.model.observed_RVs, jacobian=False)
    assert function(0.7, *held).shape == (N,)
    assert function(0.7, *held).sum() == pytest.approx(whole({"slope": 0.7}))
    assert set(rows.terms) == {"y", "z"}


def test_nothing_of_the_table_is_in_the_graph():
    inspection, prior_model = logistic()
    rows = RowFunction.of(inspection, prior_model)
    assert not inspection.hidden & set(reached([rows.total]))


def test_parameters_may_stand_for_the_free_variables():
    inspection, prior_model = logistic()
    free = dict(zip(inspection.stand_ins, prior_model.value_vars, strict=True))
    rows = RowFunction.of(inspection, prior_model, free)
    assert prior_model.value_vars[0] in set(reached([rows.total])) and not set(inspection.stand_ins) & set(
        reached([rows.total])
    )


def test_rows_that_do_not_separate_are_refused():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)

        def logp(value, mu):
            return -((value - mu) ** 2) / value.shape[0]

        pm.CustomDist("y", mu, logp=logp, observed=np.zeros(N))
    inspection = inspect(model, Domain(bounds={"y": (0, 1)})).rows
    with pytest.raises(UnsupportedModelError):  # by the inspection, or by dummy rows
        inspection.require()
        RowFunction.of(inspection, prior_model_of(inspection))


@pytest.mark.slow
def test_what_no_row_enters_is_the_same_for_every_row():
    one, many = pt.scalar("one"), pt.vector("many")
    fixed = vectorised(pt.constant(2.0) * 3, {one: many})
    assert fixed.eval({many: np.zeros(4)}).tolist() == [6.0] * 4


def test_arrays_are_filled_from_vectors_of_one_entry():
    """From an array without axes, Numba would compile what it says of shapes that do not fit."""
    x, number = pt.vector("x"), pt.scalar("number")
    outputs = [pt.alloc(number, x.shape[0]), pt.alloc(pt.constant(2.0), x.shape[0], 3)]
    function = compiled_rows([x, number], outputs, "NUMBA")
    filled = [node.inputs[0].type.ndim for node in function.maker.fgraph.toposort() if isinstance(node.op, Alloc)]
    assert filled == [1, 1]
    ones, twos = function(np.zeros(2), 1.5)
    assert ones.tolist() == [1.5, 1.5] and (twos == np.full((2, 3), 2.0)).all()
