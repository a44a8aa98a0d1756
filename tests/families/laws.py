"""Likelihoods that are released as counts in bins, of one parameter, and their distribution functions by SciPy."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

A = 0.5
X, K = np.ones(5), np.ones(5, dtype=int)


class Law:
    """A distribution function that SciPy has in parts."""

    def __init__(self, cdf):
        self.cdf = cdf


def zero_inflated(law):
    return Law(lambda x: np.where(x >= 0, 1 - A, 0) + A * law.cdf(x))


def hurdle(law, zero=0.0):
    return Law(lambda x: np.where(x >= 0, 1 - A + A * (law.cdf(x) - zero) / (1 - zero), 0))


def truncated(law, low, high):
    return Law(lambda x: np.clip((law.cdf(x) - law.cdf(low)) / (law.cdf(high) - law.cdf(low)), 0, 1))


def mixed(*laws):
    return Law(lambda x: sum(weight * law.cdf(x) for weight, law in zip((0.3, 0.7), laws, strict=True)))


def logistic_logcdf(value, mu, s):
    return pm.logcdf(pm.Logistic.dist(mu, s), value)


def logistic_logp(value, mu, s):
    return pm.logp(pm.Logistic.dist(mu, s), value)


WEIGHTS = (0.3, 0.7)
LAWS = {
    "Normal": (lambda n, a: pm.Normal(n, a, 1, observed=X), stats.norm(A, 1)),
    "StudentT": (lambda n, a: pm.StudentT(n, 3.0, mu=a, sigma=1, observed=X), stats.t(3, A, 1)),
    "Cauchy": (lambda n, a: pm.Cauchy(n, a, 1, observed=X), stats.cauchy(A, 1)),
    "Gumbel": (lambda n, a: pm.Gumbel(n, a, 1, observed=X), stats.gumbel_r(A, 1)),
    "ExGaussian": (lambda n, a: pm.ExGaussian(n, a, 1, nu=2.0, observed=X), stats.exponnorm(2, A, 1)),
    "LogNormal": (lambda n, a: pm.LogNormal(n, a, 1, observed=X), stats.lognorm(1, scale=np.exp(A))),
    "Gamma": (lambda n, a: pm.Gamma(n, a, 1.5, observed=X), stats.gamma(A, scale=1 / 1.5)),
    "Weibull": (lambda n, a: pm.Weibull(n, a, 1.5, observed=X), stats.weibull_min(A, scale=1.5)),
    "Wald": (lambda n, a: pm.Wald(n, a, 1.5, observed=X), stats.invgauss(A / 1.5, scale=1.5)),
    "Pareto": (lambda n, a: pm.Pareto(n, a, 0.4, observed=X), stats.pareto(A, scale=0.4)),
    "Uniform": (lambda n, a: pm.Uniform(n, a - 0.6, a + 3.1, observed=X), stats.uniform(A - 0.6, 3.7)),
    "Poisson": (lambda n, a: pm.Poisson(n, a, observed=K), stats.poisson(A)),
    "NegativeBinomial": (lambda n, a: pm.NegativeBinomial(n, mu=a, alpha=2.0, observed=K), stats.nbinom(2, 0.8)),
    "Geometric": (lambda n, a: pm.Geometric(n, a, observed=K), stats.geom(A)),
    "BetaBinomial": (lambda n, a: pm.BetaBinomial(n, a, 2.0, 8, observed=K), stats.betabinom(8, A, 2)),
    "ZeroInflatedPoisson": (
        lambda n, a: pm.ZeroInflatedPoisson(n, a, 3.0, observed=K),
        zero_inflated(stats.poisson(3)),
    ),
    "HurdleGamma": (lambda n, a: pm.HurdleGamma(n, a, 3.0, 2.0, observed=X), hurdle(stats.gamma(3, scale=0.5))),
    "NormalMixture": (
        lambda n, a: pm.NormalMixture(n, pt.stack(WEIGHTS), pt.stack([a, 2.0]), pt.stack([1.0, 2.0]), observed=X),
        mixed(stats.norm(A, 1), stats.norm(2, 2)),
    ),
    "Mixture": (
        lambda n, a: pm.Mixture(
            n, pt.stack(WEIGHTS), [pm.StudentT.dist(3.0, mu=a, sigma=1), pm.Gumbel.dist(2.0, 2.0)], observed=X
        ),
        mixed(stats.t(3, A, 1), stats.gumbel_r(2, 2)),
    ),
    "Censored": (
        lambda n, a: pm.Censored(n, pm.Normal.dist(a, 1), lower=-0.7, upper=2.1, observed=X),
        Law(lambda x: np.where(x < -0.7, 0, np.where(x >= 2.1, 1, stats.norm(A, 1).cdf(x)))),
    ),
    "Truncated": (
        lambda n, a: pm.Truncated(n, pm.Logistic.dist(a, 1), lower=-0.7, upper=2.1, observed=X),
        truncated(stats.logistic(A, 1), -0.7, 2.1),
    ),
    "CustomDist": (
        lambda n, a: pm.CustomDist(n, a, 1.0, logp=logistic_logp, logcdf=logistic_logcdf, observed=X),
        stats.logistic(A, 1),
    ),
    "CustomDist of a transform": (
        lambda n, a: pm.CustomDist(
            n, a, 1.0, dist=lambda mu, s, size: pm.math.exp(pm.Logistic.dist(mu, s, size=size)), observed=X
        ),
        Law(lambda x: stats.logistic(A, 1).cdf(np.log(np.maximum(x, 1e-300)))),
    ),
}
