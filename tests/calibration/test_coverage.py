"""Noise-aware posteriors cover what they claim; posteriors that take the release for the data do not."""

from __future__ import annotations

import zlib

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.transforms.density import ReleaseDensity
from tests.calibration.posteriors import LIKELIHOODS, Releaser, posterior_below, simplex_below, simulate

N_SIMULATIONS = 300
SETTINGS = [(100, 0.1), (1000, 0.01), (1000, 0.1)]
KINDS = ["replace", "private groups", "add_remove"]


def below_truth(name: str, kind: str, n_rows: int, epsilon: float, *, noise_aware: bool = True) -> np.ndarray:
    """Posterior probability of {parameter <= true value} of each parameter: (n_simulations, n_parameters) array."""
    likelihood, grouped = LIKELIHOODS[name], kind == "private groups"
    rng = np.random.default_rng(zlib.crc32(f"{name} {kind} {n_rows} {epsilon}".encode()))
    n_max = 3 * n_rows if kind == "add_remove" else None
    result = []
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):
        release = Releaser(likelihood, n_rows, epsilon, grouped=grouped, n_max=n_max)
        log_density = release.log_density(noise_aware=noise_aware)
        for _ in range(N_SIMULATIONS):
            columns, truth = simulate(likelihood, rng, n_rows, grouped=grouped)
            released = release(**columns)
            if name == "Categorical":
                below, effective = simplex_below(rng, log_density, released, truth[0])
                assert effective > 30
            else:
                below = posterior_below(likelihood, log_density, released, truth[0])
            result.append(below)
    return np.array(result)


def coverage(below: np.ndarray) -> np.ndarray:
    """Number of simulations whose central 90% interval holds the truth, for each parameter."""
    return np.sum((below > 0.05) & (below < 0.95), axis=0)


CASES = [
    (name, kind, *setting)
    for name in LIKELIHOODS
    for kind in KINDS
    for setting in SETTINGS
    # At (1000, 0.01) two moments and a size, all drowned in noise, say nothing and take minutes to say it.
    if not (name == "Normal" and kind != "replace" and setting == (1000, 0.01))
]


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(("name", "kind", "n_rows", "epsilon"), CASES)
def test_noise_aware_intervals_cover(name: str, kind: str, n_rows: int, epsilon: float) -> None:
    below = below_truth(name, kind, n_rows, epsilon)
    held = coverage(below)
    print(f"coverage of {name}, {kind}, n = {n_rows}, ε = {epsilon}: {held / N_SIMULATIONS}")
    for count in held:
        assert stats.binomtest(int(count), N_SIMULATIONS, 0.9).pvalue > 1e-4, held / N_SIMULATIONS


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "epsilon"), SETTINGS)
def test_binary_posterior_is_calibrated_at_every_level(n_rows: int, epsilon: float) -> None:
    """Simulation-based calibration (Talts et al. 2018): the rank of the truth among 99 posterior draws is uniform."""
    below = below_truth("Bernoulli", "replace", n_rows, epsilon)[:, 0]
    ranks = np.random.default_rng(1).binomial(99, below)
    observed = np.bincount(ranks // 10, minlength=10)
    assert stats.chisquare(observed).pvalue > 1e-4, observed
    assert stats.kstest(below, "uniform").pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "epsilon", "claimed"), [(100, 0.1, (0.41, 0.46)), (1000, 0.01, (0.18, 0.18)), (1000, 0.1, (0.72, 0.72))]
)
def test_plugin_intervals_fall_short_as_published(n_rows: int, epsilon: float, claimed: tuple[float, float]) -> None:
    held = int(coverage(below_truth("Bernoulli", "replace", n_rows, epsilon, noise_aware=False))[0])
    print(f"coverage of plug-in, n = {n_rows}, ε = {epsilon}: {held / N_SIMULATIONS}")
    assert stats.binomtest(held, N_SIMULATIONS, 0.9).pvalue < 1e-12
    low, high = claimed
    nearest = np.clip(held / N_SIMULATIONS, low, high)
    assert stats.binomtest(held, N_SIMULATIONS, float(nearest)).pvalue > 1e-3, held / N_SIMULATIONS


@pytest.mark.few(2)
@pytest.mark.parametrize(("n_rows", "epsilon"), [(100, 0.1), (50, 1.0), (1000, 0.1)])
def test_binary_posterior_equals_a_direct_numerical_one(n_rows: int, epsilon: float, rng: np.random.Generator) -> None:
    """Every count is tried: prior x binomial x discrete Laplace, normalised on a grid of p."""
    rows = rng.binomial(1, 0.3, size=n_rows)
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        pm.Bernoulli("y", p, observed=rows)
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):
        private = dp.privatize(model, epsilon=epsilon, ledger=dp.Ledger(epsilon=epsilon))
    released = float(private.rvs_to_values[private["y"]].get_value()[0, 0])

    grid = (np.arange(300) + 0.5) / 300
    logit = special.logit(grid)
    logp = private.compile_fn(private.logp(jacobian=False), mode="FAST_COMPILE")
    ours = np.array([float(logp({"p_logodds__": value})) for value in logit])

    counts = np.arange(n_rows + 1)
    kernel = special.xlogy(counts, grid[:, None]) + special.xlogy(n_rows - counts, 1 - grid[:, None])
    ways = special.gammaln(n_rows + 1) - special.gammaln(counts + 1) - special.gammaln(n_rows - counts + 1)
    noise = -np.abs(released - counts) * epsilon + np.log(np.tanh(epsilon / 2))
    direct = special.logsumexp(ways + kernel + noise, axis=1) + stats.beta.logpdf(grid, 2, 3)

    # Counts further than 40 noise scales from the release are left out: below e^-40 where it matters.
    likely = direct > direct.max() - 20
    np.testing.assert_allclose(ours[likely], direct[likely], rtol=0, atol=1e-6)
    ours, direct = (np.exp(item - special.logsumexp(item)) for item in (ours, direct))
    np.testing.assert_allclose(ours, direct, rtol=0, atol=1e-6 * direct.max())


def test_density_of_one_cell_is_that_of_the_private_model(rng: np.random.Generator) -> None:
    """What the simulations above call is what a user samples."""
    likelihood = LIKELIHOODS["Poisson"]
    release = Releaser(likelihood, 200, 0.5, grouped=True)
    columns, _ = simulate(likelihood, rng, 200, grouped=True)
    released = release(**columns)
    rates = np.array([0.5, 1.5, 2.5])
    log_density = release.log_density()
    one_by_one = [log_density(np.roll(released, -i, axis=0), np.array([[rate]]))[0] for i, rate in enumerate(rates)]
    density = ReleaseDensity.of(release.table, noise_aware=True).of_release(released, at_most=False)
    together = density.logp(np.asarray(released), pm.math.stack(list(rates))).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(together, one_by_one, rtol=1e-9)
