"""What one row may do: given by the user, or proved, and then nothing is cut."""

import re

import numpy as np
import pymc as pm
import pytensor
import pytest

from pymc_dp.accounting import Budget
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from tests.step_methods.hamiltonian.models import UNIT_ROWS, domain, held, logistic, normal, table


@pytest.fixture(scope="module")
def proved():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return held(logistic(*table()), domain_options=UNIT_ROWS)


def looked(model, relation="replace", domain_options=None, **settings):
    """Limits found without compiling anything."""
    found = PrivateHMC(**settings).preview(model, domain(relation, **(domain_options or {})), Budget(1.0, 1e-6))
    return found.bound.limits if found.fits else found.problem


def place(step, values):
    return step.places.at(np.asarray(values, dtype=float))


def test_under_add_remove_a_row_moves_half_as_much(proved):
    here, there = place(proved, np.zeros(3)), place(proved, [0.6, 0.0, 0.8])
    for relation, rows in (("replace", 2), ("add_remove", 1)):
        limits = looked(logistic(*table()), relation, clip_norm=0.3)
        assert limits.gradient_sensitivity == rows * 0.3
        assert limits.ratio.reach(here, there) == pytest.approx(rows * 0.3)


def test_models_without_a_proof_are_refused_with_the_remedy():
    bounded = {"bounds": {"y": (-3.0, 3.0)}}
    assert re.match(r".*no bound of the gradient.*Give clip_norm", looked(normal([0.0]), domain_options=bounded))
    assert "Give clip_norm" in looked(logistic(*table()))  # rows of any length
    with pm.Model() as model:
        pm.Poisson("y", 1.0 + pm.Poisson("k", 2.0), observed=np.array([1, 2]))
    assert "k: it is discrete" in looked(model, clip_norm=1.0)
