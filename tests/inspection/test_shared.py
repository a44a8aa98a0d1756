from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.row_terms import inspect_rows
from pymc_dp.inspection.shared import shared


@pytest.fixture
def model() -> pm.Model:
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1]))
    return model


@pytest.mark.parametrize("look", [inspect, inspect_rows])
def test_a_model_is_inspected_once_within_and_anew_outside(model, look):
    domain = dp.Domain()
    with shared():
        assert look(model, domain) is look(model, domain)
        inner = look(model, domain)
    assert look(model, domain) is not inner
    assert look(model, domain) is not look(model, domain)


def test_inspections_of_other_kinds_and_domains_are_kept_apart(model):
    one, other = dp.Domain(), dp.Domain()
    with shared():
        assert type(inspect(model, one)) is not type(inspect_rows(model, one))
        assert inspect(model, one) is not inspect(model, other)
    with pytest.raises(ZeroDivisionError), shared():
        raise ZeroDivisionError
    assert inspect(model, one) is not inspect(model, one)
