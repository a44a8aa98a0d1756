"""Bambi's models are taken where PyMC's are."""

import bambi
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError
from tests.inspection.formulas.models import table


@pytest.fixture(scope="module")
def grouped():
    return bambi.Model("b ~ (1|g)", table(0), family="bernoulli")


def test_a_bambi_model_is_privatized_as_it_is(grouped):
    private = dp.privatize(grouped, epsilon=1.0, ledger=dp.Ledger(epsilon=1.0))
    assert [rv.name for rv in private.free_RVs] == ["Intercept", "1|g_sigma", "1|g_offset"]
    assert list(private.coords["g__factor_dim"]) == ["b", "c", "a"]
    assert not private.data_vars


def test_where_a_model_is_taken_without_its_domain_the_remedy_is_told(grouped):
    with pytest.raises(ArgumentError, match="dp.models.from_bambi"):
        dp.truncate(grouped, {"Intercept": (-1, 1)})


def test_other_models_are_not_bambis():
    with pytest.raises(ArgumentError, match="bambi.Model"):
        dp.models.from_bambi(object())
    with pytest.raises(ArgumentError, match="pymc.Model"):
        dp.privatize(object(), epsilon=1.0)


def test_a_model_of_named_axes_is_refused_with_what_to_write():
    pmd = pytest.importorskip("pymc.dims")
    with pm.Model(coords={"row": range(3)}) as model:
        pmd.Normal("y", pmd.Normal("mu", 0, 1), 1, observed=pmd.as_xtensor(np.zeros(3), dims=("row",)), dims="row")
    for call in (dp.explain, dp.privatize):
        with pytest.raises(ArgumentError, match="must not use pymc.dims, as 'mu' does"):
            call(model, epsilon=1.0)
