"""Likelihoods that are proved finite, and are not in floats: refused, whatever rows are held."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection import interpreted
from pymc_dp.step_methods.ops.from_rows import RowGridPosterior
from tests.step_methods.ops.models import bound

UNIT = Domain(bounds={"x": (-1, 1), "y": (0, 1)})


def line(logp, wide, rows=5):
    with pm.Model() as model:
        eta = pm.TruncatedNormal("b", 0, wide / 2, lower=-wide, upper=wide) * pm.Data("x", np.ones(rows))
        pm.CustomDist("y", eta, logp=logp, observed=np.zeros(rows))
    return model


def probit(value, eta):
    """log(1 - Φ(η)) is about -40 at 8.5, and minus infinity in floats."""
    up = pm.math.invprobit(eta)
    return value * pt.log(up) + (1 - value) * pt.log1p(-up)


def test_a_density_that_vanishes_in_floats_alone_is_refused(monkeypatch):
    """What one row is held to would not be its log-likelihood on half of the parameter space."""
    step, _ = bound(line(probit, 12.0), UNIT, read=False)
    assert np.isfinite(step.range.value)  # a form is known that stays finite
    monkeypatch.setattr(interpreted, "stable_form", lambda node, inputs: None)
    with pytest.raises(UnsupportedModelError, match="computed in floats") as refused:
        bound(line(probit, 12.0), UNIT, read=False)
    assert "pm.logcdf" in str(refused.value)
    step, _ = bound(line(probit, 3.0), UNIT, read=False)
    assert isinstance(step.posterior, RowGridPosterior)


def test_what_is_tried_hangs_on_no_row_held():
    found = []
    for rows in (np.zeros(3), np.full(3, np.inf), np.full(3, -1e300)):
        with pm.Model() as model:
            pm.Laplace("y", pm.Normal("b", 0, 1), 1.0, observed=rows)
        with pytest.raises(UnsupportedModelError) as refused:
            bound(model, None, 1.0, 1e-6, read=False)
        found.append(str(refused.value))
    assert len(set(found)) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_rejection_cuts_no_row_that_a_proof_allows(relation):
    """A sum of concave functions that are cut is none, and lies above its envelope: no public row had this code."""
    code = np.full(60, 7)
    with pm.Model() as model:
        b = pm.TruncatedNormal("b", 0, 1, lower=-1, upper=1, shape=3)
        rare = pt.switch(pt.eq(pm.Data("code", code), 7), 1.0, 0.0)
        pm.Bernoulli("y", logit_p=rare * b.sum(), observed=np.arange(60) % 2)
    domain = Domain(bounds={"code": (0, 1000)}, neighbours=relation, n_max=100 if relation == "add_remove" else None)
    step, _ = bound(model, domain)
    held, density = step.posterior.bound, step.posterior.density
    assert held is not None and held.charge >= (4 if relation == "replace" else 2) * step.proved.value
    points = np.array([[-1.0, -1, -1], [1, 1, 1], [0.5, 0.5, -0.9]])
    (_, exact), (_, found) = density.at(points, step.sums), density.held_sums(points, step.sums, held)
    np.testing.assert_allclose(found - found[0], exact - exact[0], atol=1e-6)
