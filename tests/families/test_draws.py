"""Rows are drawn from the likelihood that PyTensor's operation of the same name and parameters is."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.families import FAMILIES
from pymc_dp.families.family import drawn_levels
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.likelihoods import likelihood_of

LAWS = {
    "bernoulli": (pm.Bernoulli.dist(0.3), stats.bernoulli(0.3)),
    "binomial": (pm.Binomial.dist(12, 0.3), stats.binom(12, 0.3)),
    "poisson": (pm.Poisson.dist(2.5), stats.poisson(2.5)),
    "geometric": (pm.Geometric.dist(0.3), stats.geom(0.3)),
    "negative_binomial": (pm.NegativeBinomial.dist(mu=4, alpha=2.5), stats.nbinom(2.5, 2.5 / 6.5)),
    "normal": (pm.Normal.dist(1, 0.5), stats.norm(1, 0.5)),
    "lognormal": (pm.LogNormal.dist(1, 0.5), stats.lognorm(0.5, scale=np.e)),
    "halfnormal": (pm.HalfNormal.dist(2), stats.halfnorm(scale=2)),
    "laplace": (pm.Laplace.dist(1, 2), stats.laplace(1, 2)),
    "exponential": (pm.Exponential.dist(2), stats.expon(scale=0.5)),
    "gamma": (pm.Gamma.dist(2, 3), stats.gamma(2, scale=1 / 3)),
    "invgamma": (pm.InverseGamma.dist(3, 2), stats.invgamma(3, scale=2)),
    "weibull": (pm.Weibull.dist(1.7, 2), stats.weibull_min(1.7, scale=2)),
    "beta": (pm.Beta.dist(2, 3), stats.beta(2, 3)),
    "vonmises": (pm.VonMises.dist(0.5, 3), stats.vonmises(3, loc=0.5)),
}
N = 4000


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_the_law(name, rng):
    variable, law = LAWS[name]
    known, parameters = likelihood_of(variable)
    assert known == name
    values = [np.full(N, float(item)) for item in plain_function([], list(parameters))()]
    drawn = FAMILIES[name].draw(rng, *values)
    if hasattr(law.dist, "pmf"):
        k = np.arange(*law.support()) if name in ("bernoulli", "binomial") else np.arange(1, 12)
        observed = np.append((drawn[:, None] == k).sum(axis=0), (~np.isin(drawn, k)).sum())
        assert stats.chisquare(observed, N * np.append(law.pmf(k), 1 - law.pmf(k).sum())).pvalue > 1e-4
    else:
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-4


def test_levels_have_their_probabilities(rng):
    p = np.tile([0.2, 0.0, 0.5, 0.3], (N, 1))
    observed = np.bincount(drawn_levels(rng, p).astype(int), minlength=4)
    assert observed[1] == 0 and stats.chisquare(observed[[0, 2, 3]], N * np.array([0.2, 0.5, 0.3])).pvalue > 1e-4
