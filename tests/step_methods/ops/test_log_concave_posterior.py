"""Exact draws by rejection from log-concave posteriors, through the step, against quadrature and closed forms."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats

from pymc_dp.accounting import BoundedRangeEvent, GDPEvent
from pymc_dp.domain import Domain
from pymc_dp.draws.log_concave import envelope_at
from pymc_dp.draws.log_concave_box import FaceEnvelope, mode_in_box
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.step_methods.ops.from_rows import LogConcavePosterior, RowGridPosterior
from tests.step_methods.ops.models import LINES, bound, draws, logistic, poisson
from tests.step_methods.ops.test_from_rows import cdf

WIDE = [pytest.param(bounds, marks=pytest.mark.slow) for bounds in ((-1.0, 2.5), (0.0, None))]
"""Limits of the boxes that the slow tests look at beside none."""


def exact(model, public, epsilon, delta=1e-6, **settings):
    step, event = bound(model, public, epsilon, delta, **settings)
    assert isinstance(step.posterior, LogConcavePosterior) and step.claimed == "exact"
    return step, event






# --- one dimension ----------------------------------------------------------------------------------------------------












# --- several ----------------------------------------------------------------------------------------------------------


def regression(x, y, wide=None, sd=2.0):
    lower, upper = (None, None) if wide is None else wide
    with pm.Model() as model:
        if wide is None:
            b = pm.Normal("b", 0, sd, shape=3)
        else:
            b = pm.TruncatedNormal("b", 0, sd, lower=lower, upper=upper, shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=y)
    return model


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


def agrees(sample, grid, mass):
    """Means, second moments and their products within 4.5 standard errors."""
    for power in (lambda b: b, lambda b: b**2, lambda b: b * np.roll(b, 1, axis=1)):
        found, wanted = power(sample), mass @ power(grid)
        assert (np.abs(found.mean(axis=0) - wanted) < 4.5 * found.std(axis=0) / np.sqrt(len(found))).all()


def table(rng, n=60):
    x = rng.normal(size=(n, 3))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    return x, (rng.random(n) < special.expit(x @ [3.0, -2.0, 0.5])).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [None, *WIDE])
def test_three_coefficients_of_a_logistic_regression_are_drawn_exactly(wide, rng):
    x, y = table(rng)
    step, _ = exact(regression(x, y, wide), Domain(norms={"x": 1.0}), 50.0)
    low, high = (-9, 9) if wide is None else (wide[0], wide[1] or 9)
    inverse = step.temperature.inverse

    def logp(b):
        eta = b @ x.T
        return -(b**2).sum(axis=1) / 8 + inverse * np.where(y == 1, -np.logaddexp(0, -eta), -np.logaddexp(0, eta)).sum(
            1
        )

    sample = draws(step, 300, rng)["b"]
    assert ((low <= sample) & (sample <= high)).all()
    agrees(sample, *quadrature(logp, [low] * 3, [high] * 3)[:2])




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


