"""Simulation-based calibration of every family released as sums of a clamped row (Talts et al. 2018)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from tests.calibration.posteriors import N_GROUPS, Likelihood, Releaser, posterior_below, simulate

N_SIMULATIONS = 300
N_ROWS, EPSILON = 200, 0.5
Prior = tuple[Callable[..., Any], Any]
"""As PyMC builds it, given a name and a shape, and as SciPy's distribution."""


def positive(median: float, spread: float) -> Prior:
    return (
        lambda name, shape: pm.LogNormal(name, np.log(median), spread, shape=shape),
        stats.lognorm(spread, scale=median),
    )


def uniform(low: float, high: float) -> Prior:
    return lambda name, shape: pm.Uniform(name, low, high, shape=shape), stats.uniform(low, high - low)


def normal(mean: float, sd: float) -> Prior:
    return lambda name, shape: pm.Normal(name, mean, sd, shape=shape), stats.norm(mean, sd)


def likelihood(
    make: Callable[..., Any],
    draw: Callable[..., Any],
    *priors: Prior,
    known: Callable[..., tuple[Any, ...]] = lambda *given: given,
    bounds: tuple[float, float] | None = None,
    dtype: str = "float64",
) -> Likelihood:
    """Put one likelihood together.

    Parameters
    ----------
    make : adds the likelihood of rows to the model of the context, given its unknown numbers
    draw : one row per row of parameters of the random operation
    priors : of the unknown numbers
    known : maps the unknown numbers to the parameters of the random operation
    """

    def quantiles(u: np.ndarray) -> np.ndarray:
        given = [prior.ppf(u[:, i]) for i, (_, prior) in enumerate(priors)]
        return np.stack(np.broadcast_arrays(*known(*given)), axis=1)

    def build(rows: Any, group: Any) -> None:
        shape = None if group is None else N_GROUPS
        given = [prior(f"parameter_{i}", shape) for i, (prior, _) in enumerate(priors)]
        make(rows, *(item if group is None else item[group] for item in given))

    return Likelihood(
        n_parameters=len(priors),
        dtype=dtype,
        quantiles=quantiles,
        build=build,
        simulate=lambda rng, given: draw(rng, *given.T).astype(dtype),
        bounds=bounds,
    )


FAMILIES = {
    "Gamma": likelihood(
        lambda y, a, b: pm.Gamma("y", a, b, observed=y),
        lambda rng, shape, scale: rng.gamma(shape, scale),
        *(positive(2, 0.5), positive(1, 0.5)),
        known=lambda a, b: (a, 1 / b),
        bounds=(0.05, 12),
    ),
    "Gamma of known shape": likelihood(
        lambda y, b: pm.Gamma("y", 2, b, observed=y),
        lambda rng, shape, scale: rng.gamma(shape, scale),
        positive(1, 0.7),
        known=lambda b: (2.0, 1 / b),
        bounds=(0.05, 12),
    ),
    "InverseGamma": likelihood(
        lambda y, a, b: pm.InverseGamma("y", a, b, observed=y),
        lambda rng, shape, scale: scale / rng.gamma(shape),
        *(positive(3, 0.4), positive(2, 0.4)),
        bounds=(0.1, 8),
    ),
    "Beta": likelihood(
        lambda y, a, b: pm.Beta("y", a, b, observed=y),
        lambda rng, a, b: rng.beta(a, b),
        *(positive(2, 0.5), positive(3, 0.5)),
        bounds=(0.02, 0.97),
    ),
    "Exponential": likelihood(
        lambda y, rate: pm.Exponential("y", rate, observed=y),
        lambda rng, scale: rng.exponential(scale),
        positive(1, 0.7),
        known=lambda rate: (1 / rate,),
        bounds=(0, 6),
    ),
    "HalfNormal": likelihood(
        lambda y, sigma: pm.HalfNormal("y", sigma, observed=y),
        lambda rng, _, sigma: np.abs(rng.normal(0, sigma)),
        positive(1, 0.7),
        known=lambda sigma: (0.0, sigma),
        bounds=(0, 5),
    ),
    "LogNormal": likelihood(
        lambda y, mu, sigma: pm.LogNormal("y", mu, sigma, observed=y),
        lambda rng, mu, sigma: rng.lognormal(mu, sigma),
        *(normal(0, 1), positive(1, 0.4)),
        bounds=(0.05, 20),
    ),
    "LogNormal of known standard deviation": likelihood(
        lambda y, mu: pm.LogNormal("y", mu, 0.7, observed=y),
        lambda rng, mu, sigma: rng.lognormal(mu, sigma),
        normal(0, 1),
        known=lambda mu: (mu, 0.7),
        bounds=(0.1, 10),
    ),
    "LogNormal of known mean": likelihood(
        lambda y, sigma: pm.LogNormal("y", 0.4, sigma, observed=y),
        lambda rng, mu, sigma: rng.lognormal(mu, sigma),
        positive(1, 0.5),
        known=lambda sigma: (0.4, sigma),
        bounds=(0.1, 10),
    ),
    "Laplace": likelihood(
        lambda y, b: pm.Laplace("y", 1.0, b, observed=y),
        lambda rng, mu, b: rng.laplace(mu, b),
        positive(1, 0.7),
        known=lambda b: (1.0, b),
        bounds=(-3, 6),
    ),
    "Weibull": likelihood(
        lambda y, beta: pm.Weibull("y", 1.7, beta, observed=y),
        lambda rng, alpha, beta: beta * rng.weibull(alpha),
        positive(2, 0.7),
        known=lambda beta: (1.7, beta),
        bounds=(0.01, 6),
    ),
    "VonMises": likelihood(
        lambda y, mu, kappa: pm.VonMises("y", mu, kappa, observed=y),
        lambda rng, mu, kappa: rng.vonmises(mu, kappa),
        *(uniform(-np.pi, np.pi), positive(2, 0.7)),
    ),
    "Geometric": likelihood(
        lambda y, p: pm.Geometric("y", p, observed=y),
        lambda rng, p: rng.geometric(p),
        uniform(0.05, 0.95),
        bounds=(1, 20),
        dtype="int64",
    ),
    "NegativeBinomial": likelihood(
        lambda y, mu: pm.NegativeBinomial("y", mu=mu, alpha=2.5, observed=y),
        lambda rng, alpha, p: rng.negative_binomial(alpha, p),
        positive(5, 0.7),
        known=lambda mu: (2.5, 2.5 / (2.5 + mu)),
        bounds=(1, 25),
        dtype="int64",
    ),
    "Binomial": likelihood(
        lambda y, p: pm.Binomial("y", 12, p, observed=y),
        lambda rng, trials, p: rng.binomial(trials.astype(int), p),
        uniform(0, 1),
        known=lambda p: (12.0, p),
        dtype="int64",
    ),
}
CASES = [
    (name, kind)
    for name, family in FAMILIES.items()
    for kind in ("replace", "private groups", "add_remove")
    if kind == "replace" or family.n_parameters == 1  # two sums and a size over a grid take minutes
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_posteriors_are_calibrated(name: str, kind: str) -> None:
    """The rank of the truth among 99 posterior draws is uniform, and 90% intervals cover."""
    family, grouped = FAMILIES[name], kind == "private groups"
    rng = np.random.default_rng(zlib.crc32(f"{name} {kind}".encode()))
    below = []
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):
        release = Releaser(family, N_ROWS, EPSILON, grouped=grouped, n_max=3 * N_ROWS if kind == "add_remove" else None)
        log_density = release.log_density()
        for _ in range(N_SIMULATIONS):
            columns, truth = simulate(family, rng, N_ROWS, grouped=grouped)
            below.append(posterior_below(family, log_density, release(**columns), truth[0]))
    for found in np.array(below).T:
        observed = np.bincount(rng.binomial(99, found) // 10, minlength=10)
        covered = int(np.sum((found > 0.05) & (found < 0.95)))
        print(f"{name}, {kind}: coverage {covered / N_SIMULATIONS:.3f}, ranks {observed}")
        assert stats.chisquare(observed).pvalue > 1e-4, observed
        assert stats.binomtest(covered, N_SIMULATIONS, 0.9).pvalue > 1e-4, covered
