"""The chain: the right target at any noise, within its budget, and nothing but what was paid for."""

import logging
import pickle

import numpy as np
import pymc as pm
import pytest
import scipy.stats as st
from arviz import ess

import pymc_dp as dp
from pymc_dp.accounting import Budget, total_epsilon
from pymc_dp.audit import contains_canary, differing, plant
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError, UnsupportedModelError
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.hamiltonian.gradient import Climb
from pymc_dp.testing import insecure_randomness
from tests.step_methods.hamiltonian.models import (
    BUDGET,
    PLAIN,
    UNIT_ROWS,
    begun,
    held,
    logistic,
    normal,
    poisson,
    ready,
    sample,
    table,
    walked,
)

# The target.


def mcmc_agrees(draws, truth, least):
    """ESS first, then mean and variance within five of their standard errors, then Kolmogorov-Smirnov."""
    size = float(ess(draws[None, :]))
    assert size > least, size
    assert abs(draws.mean() - truth.mean()) < 5 * draws.std() / np.sqrt(size)
    squares = (draws - truth.mean()) ** 2
    assert abs(squares.mean() - truth.var()) < 5 * squares.std() / np.sqrt(float(ess(squares[None, :])))
    thinned = draws[:: int(np.ceil(2 * len(draws) / size))]
    assert st.kstest(thinned, truth.cdf).pvalue > 0.001


@pytest.mark.slow
def test_a_normal_target_is_sampled_right_under_heavy_noise():
    """Noise of gradients above the gradients met, that of ratios of sd about 1.5; nearly all gradients are clipped."""
    values = np.linspace(-1, 2, 7)
    step = ready("normal", clip_norm=0.05, clamp=20.0)
    step.settings |= {"n_leapfrog": 2, "step_size": 0.2}
    noise = (40.0, 0.1)  # of sensitivities 0.1, and 40 times a distance
    begun(step, draws=1500, noise=noise)
    spreads, reach = [], step.limits.ratio.reach
    step.limits.ratio.reach = lambda *places: spreads.append(noise[1] * reach(*places)) or reach(*places)
    draws, share = walked(step, 1500, "mu")
    assert step.gradient_noise == pytest.approx(4.0) and 0.2 < share < 0.8
    assert np.mean(spreads) > 1.2
    mcmc_agrees(draws, st.norm(values.sum() / 8, 1 / np.sqrt(8)), 40)






@pytest.mark.slow
def test_a_clamp_changes_the_target_and_says_so():
    """Rows at 3 pull by at most the clamp."""
    step = held(normal([3.0] * 5), clip_norm=0.2, step_size=0.5)
    draws, _ = walked(begun(step, draws=400, noise=(0.01, 0.01)), 400, "mu")
    assert draws[100:].mean() < 1.5 < 15 / 6 and "the target changes" in str(step.describe())




# The budget.










# Life of the step.










def test_places_without_prior_density_are_refused_unseen():
    """Values of a uniform prior without a transform; the rows are not asked."""
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", -1, 1, default_transform=None, initval=0.9), 1.0, observed=np.array([9.0] * 5))
    step = begun(held(model, clip_norm=9.0, step_size=0.3, n_leapfrog=1), draws=40, noise=(0.01, 0.01))
    asked, moved = [], step.limits.ratio.moved
    step.limits.ratio.moved = lambda here, there: asked.append(there.values) or moved(here, there)
    draws, _ = walked(step, 40, "mu")
    assert (np.abs(draws) <= 1).all() and len(asked) < 40
    assert (np.abs(asked) <= 1).all()


# What leaves.






