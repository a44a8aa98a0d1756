"""What the sampler was made for, on a table of a hundred thousand rows: its price, and what it buys."""

import numpy as np
import pytest
import scipy.stats as st

from pymc_dp.accounting import zcdp
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import bernoulli, held, sample

N, SUCCESSES = 100_000, 30_000
ROWS = (np.arange(N) < SUCCESSES).astype(int)


@pytest.mark.slow
def test_price_of_the_exact_posterior_of_a_large_table(seed):
    """Proposals of 2.38 posterior standard deviations from the mode: E Σρ = 4000 · 2.38² / (8 n p (1 - p)) = 0.135.

    One chain's sum varies by 2.2%, so the mean of eight is looked at.
    """
    spent = []
    for chain in range(8):
        _, step = held("bernoulli", ROWS, scale=2.38 / np.sqrt(N * 0.3 * 0.7), epsilon=4.0)
        with insecure_randomness(seed + chain):
            step.setup_chain(np.random.default_rng(0), 0, 4000)
        point = {step.coefficients.names[0]: np.array(np.log(0.3 / 0.7) + 0.007)}
        for _ in range(4000):
            point, _ = step.step(point)
        assert step.active()
        assert step.spent_so_far() == pytest.approx(zcdp.epsilon_of_rho(step.spending.spent, 1e-6), rel=0.01)
        assert step.spent() == pytest.approx(4.0)  # at the end: what it leaves is not given back
        spent.append(step.spending.spent)
    assert np.mean(spent) == pytest.approx(0.135, rel=0.05)
    assert zcdp.epsilon_of_rho(float(np.mean(spent)), 1e-6) == pytest.approx(2.52, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("run", range(5))
def test_the_posterior_of_a_large_table(seed, run):
    with insecure_randomness(seed + run):
        tree = sample(bernoulli(ROWS), 3500, tune=500, epsilon=4.0, delta=1e-6, step=BarkerMetropolis())
    draws, truth = tree["posterior"]["p"].values[0], st.beta(1 + SUCCESSES, 1 + N - SUCCESSES)
    assert len(draws) == 3500
    assert abs(draws.mean() - truth.mean()) < truth.std()
    assert draws.std() == pytest.approx(truth.std(), rel=0.1)
    assert tree["sample_stats"][SPENT].values[0, -1] <= 4.0
