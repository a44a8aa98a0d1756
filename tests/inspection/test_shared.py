from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.row_terms import inspect_rows
from pymc_dp.inspection.shared import kept_while_shared, shared
from pymc_dp.transforms.likelihood import table_likelihoods
from pymc_dp.transforms.prior_model import prior_model, shared_prior_model


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


def test_a_prior_model_is_made_once_within_unless_somebody_means_to_change_it(model):
    with shared():
        found = inspect(model, dp.Domain())
        assert shared_prior_model(found) is shared_prior_model(found)
        assert table_likelihoods(found) is table_likelihoods(found)
        assert prior_model(found) is not prior_model(found)
    assert shared_prior_model(found) is not shared_prior_model(found)


def test_what_is_made_depends_on_every_argument():
    made = []

    @kept_while_shared
    def make(one, other=None, *, kind="a"):
        made.append((one, other, kind))
        return len(made)

    first, second = object(), object()
    with shared():
        assert [make(first), make(first, None), make(first, kind="a"), make(one=first)] == [1, 1, 1, 1]
        assert [make(second), make(first, second), make(first, kind="b"), make(first)] == [2, 3, 4, 1]
    assert [make(first), make(first)] == [5, 6]
