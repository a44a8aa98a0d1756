"""What is proved about rows is proved once for all steps that ask for it, of as much work."""

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import shared
from pymc_dp.proofs.branch_and_bound import ALLOWED
from pymc_dp.step_methods.ops.row_proofs import prove_rows
from pymc_dp.transforms.prior_model import shared_prior_model


def test_a_proof_is_shared_with_whoever_asks_for_the_same():
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1)
        pm.Bernoulli("y", logit_p=b * pm.Data("x", np.array([0.5, -0.5, 0.1])), observed=[0, 1, 1])
    with shared():
        rows = inspect(model, dp.Domain(bounds={"x": (-1, 1)})).rows
        prior_model = shared_prior_model(rows)
        first = prove_rows(rows, prior_model)
        assert prove_rows(rows, prior_model, papers=False) is first
        before = ALLOWED.set(1e3)
        try:
            assert prove_rows(rows, prior_model) is not first
        finally:
            ALLOWED.reset(before)
    assert prove_rows(rows, prior_model) is not first
