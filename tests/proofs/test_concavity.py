"""What composition rules prove of a row's log-likelihood as a function of the parameters."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs.concavity import shape_of
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.transforms.prior_model import prior_model


@pytest.mark.parametrize("answers", [1, 4])
def test_curvatures_of_all_answers_of_a_row_add_up(answers):
    with pm.Model() as model:
        x = pm.Data("x", np.ones((3, 1)))
        pm.Bernoulli("y", logit_p=pm.Normal("b", 0, 1) * x, observed=np.zeros((3, answers), dtype=int))
    found = inspect(model, Domain(bounds={"x": (-1, 1)})).rows
    (row,), _ = row_likelihoods(found, prior_model(found))
    shape = shape_of(row.whole)
    assert shape.concave and shape.self_concordance == pytest.approx(1.0)
    assert shape.curvature == pytest.approx(answers / 4)


def test_a_slope_whose_square_no_float_holds_is_infinite_curvature_and_no_error():
    with pm.Model() as model:
        eta = np.asarray(1e200) * pm.Normal("a", 0, 1) * pm.Data("x", np.ones(3)) + pm.Normal("b", 0, 1)
        pm.Bernoulli("y", logit_p=eta, observed=np.zeros(3, dtype=int))
    found = inspect(model, Domain(bounds={"x": (-1, 1)})).rows
    (row,), _ = row_likelihoods(found, prior_model(found))
    shape = shape_of(row.whole)
    assert shape.concave and shape.curvature == np.inf and shape.self_concordance == pytest.approx(1e200)
