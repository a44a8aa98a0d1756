from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import kept_while_shared, shared
from pymc_dp.transforms.likelihood import table_likelihoods
from pymc_dp.transforms.prior_model import prior_model, shared_prior_model


@pytest.fixture
def model() -> pm.Model:
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1]))
    return model


def test_a_prior_model_is_made_once_within_unless_somebody_means_to_change_it(model):
    with shared():
        found = inspect(model, dp.Domain()).sums
        assert shared_prior_model(found) is shared_prior_model(found)
        assert table_likelihoods(found) is table_likelihoods(found)
        assert prior_model(found) is not prior_model(found)
    assert shared_prior_model(found) is not shared_prior_model(found)


def test_prior_models_are_kept_apart_and_anew_outside(model):
    one, other = inspect(model, dp.Domain()), inspect(model, dp.Domain())
    with shared():
        kept = shared_prior_model(one.sums)
        assert len({kept, shared_prior_model(one.rows), shared_prior_model(other.sums)}) == 3
    with pytest.raises(ZeroDivisionError), shared():
        raise ZeroDivisionError
    assert shared_prior_model(one.sums) is not kept


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


def test_of_threads_the_last_sets_the_flag_of_graphs_back():
    second = shared()
    with pytensor.config.change_flags(traceback__limit=8), ThreadPoolExecutor(1) as pool:
        with shared():
            pool.submit(second.__enter__).result()
        assert pytensor.config.traceback__limit == 0
        pool.submit(second.__exit__, None, None, None).result()
        assert pytensor.config.traceback__limit == 8
