"""The step: what it costs, what it refuses, what its chains are and what they show."""

import math

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.accounting import Budget, ComposedEvent, SelfComposedEvent, total_epsilon
from pymc_dp.domain import Domain
from pymc_dp.sampling import sample
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.gibbs.tempered import largest_beta, scans_event
from tests.step_methods.conftest import bernoulli
from tests.step_methods.gibbs.conftest import bound, normal, scans

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
R = 2 * math.log(19)  # of one probability in (.05, .95)


# --- cost -------------------------------------------------------------------------------------------------------------


def test_pure_budgets_divide_by_the_sum_of_ranges():
    model, public = normal([0.0, 1.0])
    step, event = bound(model, public, 1.0, steps=10, read=False)
    (mean,), (sd,) = (update.ranges for update in step.scan.updates)
    assert step.beta == pytest.approx(1.0 / (10 * (mean + sd)))
    assert isinstance(event, SelfComposedEvent) and event.count == 10
    assert isinstance(event.event, ComposedEvent) and len(event.event.events) == 2
    assert total_epsilon(event).epsilon == pytest.approx(1.0) and total_epsilon(event).epsilon <= 1.0


def test_four_hundred_updates_of_range_one_hundredth_are_told_at_their_price():
    """The papers add up to 4. A chain whose budget comes to such a β says what it really costs."""
    event = scans_event([0.01], 1.0, 400)
    assert total_epsilon(event).epsilon == pytest.approx(4.0)
    assert 0.37 < total_epsilon(event, 1e-5).epsilon <= 0.376
    with bernoulli([0, 1] * 50):
        step = TemperedGibbs()
        idata = sample(400, tune=0, epsilon=0.376, delta=1e-5, step=step, **QUIET)
    beta = largest_beta([R], Budget(0.376, 1e-5), 400)
    assert f"{beta:.6g}" in str(idata.dp.report())
    assert 0.01 <= beta * R < 0.0101
    assert idata.posterior.sizes["draw"] == 400 and idata.sample_stats.epsilon_spent.values.max() <= 0.376


# --- law --------------------------------------------------------------------------------------------------------------


def check(sample, cdf, mean, least=200):
    """It mixes first; then it is right."""
    chain = sample[None]
    ess, error = float(az.ess(chain)), float(az.mcse(chain))
    assert ess >= least
    assert abs(sample.mean() - mean) < 5 * error
    thinned = sample[:: max(1, math.ceil(len(sample) / ess))]
    assert stats.kstest(thinned, cdf).pvalue > 0.001


def marginal(log_density, axes, place):
    """CDF and mean of one coordinate of a density on a grid."""
    mesh = np.meshgrid(*axes, indexing="ij")
    height = log_density(*mesh)
    mass = np.exp(height - height.max())
    mass = mass.sum(axis=tuple(other for other in range(len(axes)) if other != place))
    mass /= mass.sum()
    axis = axes[place]
    return (lambda x: np.interp(x, axis, np.cumsum(mass))), float((axis * mass).sum())


@pytest.mark.slow
def test_a_skewed_hierarchy_at_a_temperature(rng):
    """A rate and its prior's scale, both skewed, few rows, β < 1: the scale is free, the rate is paid for."""
    with pm.Model() as model:
        scale = pm.Uniform("scale", 0.1, 4.0)
        rate = pm.Truncated("rate", pm.Gamma.dist(0.5, 1 / scale), 0.01, 9.0)
        pm.Poisson("y", rate, observed=np.array([0, 0, 1]))
    step, _ = bound(model, Domain(bounds={"y": (0, 3)}), 12.0)
    found = scans(step, 4000, rng)

    def log_density(scale, rate):
        tail = stats.gamma(0.5, scale=scale)
        prior = tail.logpdf(rate) - np.log(tail.cdf(9.0) - tail.cdf(0.01))
        return prior + step.beta * (np.log(rate) - 3 * rate)

    axes = [np.linspace(0.1, 4.0, 400), np.linspace(0.01, 9.0, 4000)]
    for place, name in enumerate(("scale", "rate")):
        check(found[name], *marginal(log_density, axes, place))
