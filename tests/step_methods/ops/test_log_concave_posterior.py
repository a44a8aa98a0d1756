"""Exact draws by rejection from log-concave posteriors, through the step, against quadrature and closed forms."""

import numpy as np
import pymc as pm
import pytest
from scipy import special

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.step_methods.ops.from_rows import LogConcavePosterior
from tests.step_methods.ops.models import bound


def exact(model, public, epsilon, delta=1e-6, **settings):
    step, event = bound(model, public, epsilon, delta, **settings)
    assert isinstance(step.posterior, LogConcavePosterior) and step.claimed == "exact"
    return step, event


# --- several ----------------------------------------------------------------------------------------------------------


def quadrature(logp, low, high, panels=9):
    """Places in three dimensions, their probabilities, and the logarithm of the mass of a density."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    axes, masses = [], []
    for a, b in zip(low, high, strict=True):
        half = (b - a) / panels / 2
        axes.append((np.linspace(a + half, b - half, panels)[:, None] + half * nodes).ravel())
        masses.append(np.tile(half * weights, panels))
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    logs = logp(grid) + np.log(np.multiply.outer(np.multiply.outer(*masses[:2]), masses[2])).ravel()
    total = special.logsumexp(logs)
    return grid, np.exp(logs - total), total


# --- what could take too long -----------------------------------------------------------------------------------------


def many(wide, d, n=20):
    with pm.Model() as model:
        limits = {} if wide is None else {"lower": -wide, "upper": wide}
        b = (pm.Normal if wide is None else pm.TruncatedNormal)("b", 0, 3, shape=d, **limits)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((n, d))) @ b, observed=np.zeros(n, dtype=int))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize("wide", [None, 5.0])
def test_what_could_take_too_long_for_some_data_is_refused_for_all(wide, blind):
    with pytest.raises(UnsupportedModelError, match="rejection may need 1e.* proposals for 100 parameters and 20000"):
        bound(many(wide, 100, 20_000), Domain(norms={"x": 1.0}), 3.0, 1e-6, read=False)
    step, _ = exact(many(wide, 3), Domain(norms={"x": 1.0}), 3.0, read=False)
    assert step.posterior.obstacle(step.temperature.inverse, False) == ""


def test_in_several_dimensions_priors_must_be_normal():
    """The bound of the number of tries knows no other; the price would."""
    with pm.Model() as model:
        b = pm.Beta("b", 2, 2, shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((9, 3))) @ b, observed=np.zeros(9, dtype=int))
    with pytest.raises(UnsupportedModelError, match="needs normal priors"):
        bound(model, Domain(norms={"x": 1.0}), 3.0, 1e-6)
