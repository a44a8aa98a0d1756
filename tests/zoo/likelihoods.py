"""PyMC's univariate likelihoods with bounded priors, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp

Bounds = tuple[float, float]

ROWS = 7
REAL, COUNT = np.zeros(ROWS), np.zeros(ROWS, dtype=int)


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """An observed variable ``y`` and what is public of it.

    Attributes
    ----------
    build : callable
        Adds the variables to the model of the context.
    bounds : mapping
        Of the domain.
    edges : sequence of float
        Values of y where its density jumps or has an atom.
    relations : sequence of {"replace", "add_remove"}
        ``add_remove`` refuses arrays that no name tells from columns; PyMC makes some of numbers given to `dist`.
    """

    build: Callable[[], object]
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    edges: tuple[float, ...] = ()
    relations: tuple[str, ...] = ("replace", "add_remove")

    def model(self) -> pm.Model:
        with pm.Model() as model:
            self.build()
        return model

    def domain(self, neighbours: str = "replace") -> dp.Domain:
        n_max = 1000 if neighbours == "add_remove" else None
        return dp.Domain(bounds=self.bounds, neighbours=neighbours, n_max=n_max)


def real(build: Callable[[], object], low: float, high: float, *edges: float, **options: object) -> Likelihood:
    return Likelihood(build=build, bounds={"y": (low, high)}, edges=edges, **options)


def uniform(name: str, low: float, high: float, **options: object) -> pt.TensorVariable:
    return pm.Uniform(name, np.asarray(float(low)), np.asarray(float(high)), **options)  # no float32 holds some of them


def mixture() -> None:
    w, mu = uniform("w", 0.2, 0.8), uniform("mu", -1, 1, shape=2)
    parts = [pm.Normal.dist(mu[0], 1.0), pm.Normal.dist(mu[1], 2.0)]
    pm.Mixture("y", w=pt.stack([w, 1 - w]), comp_dists=parts, observed=REAL)


def normal_mixture() -> None:
    w, mu, sigma = uniform("w", 0.2, 0.8), uniform("mu", -1, 1, shape=2), uniform("sigma", 0.5, 2)
    pm.NormalMixture("y", w=pt.stack([w, 1 - w]), mu=mu, sigma=sigma, observed=REAL)


def poisson_mixture() -> None:
    w, mu = uniform("w", 0.2, 0.8), uniform("mu", 0.5, 5, shape=2)
    pm.Mixture("y", w=pt.stack([w, 1 - w]), comp_dists=pm.Poisson.dist(mu, shape=(2,)), observed=COUNT)


def categorical() -> None:
    pm.modelcontext(None).add_coord("level", range(3))
    pm.Categorical("y", p=dp.TruncatedDirichlet("p", np.ones(3), lower=0.1, dims="level"), observed=COUNT)


def categorical_logits() -> None:
    pm.Categorical("y", logit_p=uniform("a", -1, 1, shape=3), observed=COUNT)


def ordered(kind: type) -> None:
    first, gap, eta = uniform("first", -2, -1), uniform("gap", 1, 2), uniform("eta", -1, 1)
    kind("y", eta=eta, cutpoints=pt.stack([first, first + gap]), observed=COUNT)


def grouped() -> None:
    group = pm.Data("group", COUNT)
    p = uniform("p", 0.1, 0.9, shape=4)
    pm.Bernoulli("y", p[group], observed=COUNT)


def hierarchical() -> None:
    group = pm.Data("group", COUNT)
    m, tau, z = uniform("m", -1, 1), uniform("tau", 0.1, 1), uniform("z", -2, 2, shape=3)
    pm.Normal("y", (m + tau * z)[group], 1.0, observed=REAL)


def regression() -> None:
    x = pm.Data("x", np.zeros((ROWS, 2)))
    a, b = uniform("a", -1, 1), uniform("b", -1, 1, shape=2)
    pm.Normal("y", a + x @ b, uniform("sigma", 0.5, 2), observed=REAL)


A = uniform  # short, for the table
POSITIVE = (0.1, 5.0)

ZOO: dict[str, Likelihood] = {
    "normal": real(lambda: pm.Normal("y", A("mu", -1, 1), A("sigma", 0.5, 2), observed=REAL), -3, 3),
    "truncated normal": real(
        lambda: pm.TruncatedNormal("y", A("mu", -1, 1), A("sigma", 0.5, 2), lower=-2, upper=3, observed=REAL), -2, 3
    ),
    "half-normal": real(lambda: pm.HalfNormal("y", A("sigma", 0.5, 2), observed=REAL), 0, 4),
    "skew-normal": real(
        lambda: pm.SkewNormal("y", mu=A("mu", -1, 1), sigma=A("sigma", 0.5, 2), alpha=A("alpha", -3, 3), observed=REAL),
        -3,
        3,
    ),
    "beta": real(lambda: pm.Beta("y", A("alpha", 0.5, 4), A("beta", 0.5, 4), observed=REAL), 0.05, 0.95),
    "beta, mean": real(lambda: pm.Beta("y", mu=A("mu", 0.2, 0.8), nu=A("nu", 2, 8), observed=REAL), 0.05, 0.95),
    "kumaraswamy": real(lambda: pm.Kumaraswamy("y", A("a", 0.5, 4), A("b", 0.5, 4), observed=REAL), 0.05, 0.95),
    "exponential": real(lambda: pm.Exponential("y", A("rate", 0.1, 2), observed=REAL), 0, 5),
    "laplace": real(lambda: pm.Laplace("y", A("mu", -1, 1), A("b", 0.5, 2), observed=REAL), -3, 3),
    "asymmetric laplace": real(
        lambda: pm.AsymmetricLaplace("y", kappa=A("kappa", 0.5, 2), mu=A("mu", -1, 1), b=A("b", 0.5, 2), observed=REAL),
        -3,
        3,
    ),
    "student": real(
        lambda: pm.StudentT("y", nu=A("nu", 1, 10), mu=A("mu", -1, 1), sigma=A("sigma", 0.5, 2), observed=REAL), -3, 3
    ),
    "half-student": real(
        lambda: pm.HalfStudentT("y", nu=A("nu", 1, 10), sigma=A("sigma", 0.5, 2), observed=REAL), 0, 4
    ),
    "skew-student": real(
        lambda: pm.SkewStudentT(
            "y", A("a", 1, 4), A("b", 1, 4), mu=A("mu", -1, 1), sigma=A("s", 0.5, 2), observed=REAL
        ),
        -3,
        3,
    ),
    "cauchy": real(lambda: pm.Cauchy("y", A("alpha", -1, 1), A("beta", 0.5, 2), observed=REAL), -3, 3),
    "half-cauchy": real(lambda: pm.HalfCauchy("y", A("beta", 0.5, 2), observed=REAL), 0, 4),
    "gamma": real(lambda: pm.Gamma("y", A("alpha", 0.5, 4), A("beta", 0.5, 2), observed=REAL), *POSITIVE),
    "gamma, mean": real(lambda: pm.Gamma("y", mu=A("mu", 0.5, 3), sigma=A("sigma", 0.5, 2), observed=REAL), *POSITIVE),
    "weibull": real(lambda: pm.Weibull("y", A("alpha", 0.5, 3), A("beta", 0.5, 2), observed=REAL), *POSITIVE),
    "log-normal": real(lambda: pm.LogNormal("y", A("mu", -1, 1), A("sigma", 0.5, 2), observed=REAL), *POSITIVE),
    "chi-squared": real(lambda: pm.ChiSquared("y", A("nu", 1, 6), observed=REAL), *POSITIVE),
    "wald": real(lambda: pm.Wald("y", A("mu", 0.5, 3), A("lam", 0.5, 3), observed=REAL), *POSITIVE),
    "pareto": real(lambda: pm.Pareto("y", A("alpha", 0.5, 3), A("m", 0.5, 1), observed=REAL), 1, 5),
    "inverse gamma": real(
        lambda: pm.InverseGamma("y", A("alpha", 0.5, 4), A("beta", 0.5, 2), observed=REAL), *POSITIVE
    ),
    "ex-gaussian": real(
        lambda: pm.ExGaussian("y", mu=A("mu", -1, 1), sigma=A("sigma", 0.5, 2), nu=A("nu", 0.5, 2), observed=REAL),
        -3,
        3,
    ),
    "von mises": real(lambda: pm.VonMises("y", A("mu", -1, 1), A("kappa", 0.5, 4), observed=REAL), -3, 3),
    "triangular": real(
        lambda: pm.Triangular("y", lower=A("low", -3, -2), c=A("c", -1, 1), upper=A("high", 2, 3), observed=REAL),
        -1.5,
        1.5,
    ),
    "gumbel": real(lambda: pm.Gumbel("y", A("mu", -1, 1), A("beta", 0.5, 2), observed=REAL), -3, 3),
    "rice": real(lambda: pm.Rice("y", nu=A("nu", 0, 2), sigma=A("sigma", 0.5, 2), observed=REAL), *POSITIVE),
    "moyal": real(lambda: pm.Moyal("y", A("mu", -1, 1), A("sigma", 0.5, 2), observed=REAL), -3, 3),
    "logistic": real(lambda: pm.Logistic("y", A("mu", -1, 1), A("s", 0.5, 2), observed=REAL), -3, 3),
    "logit-normal": real(
        lambda: pm.LogitNormal("y", A("mu", -1, 1), A("sigma", 0.5, 2), observed=REAL),
        0.05,
        0.95,
        relations=("replace",),
    ),
    "uniform": real(lambda: pm.Uniform("y", A("low", -3, -2), A("high", 2, 3), observed=REAL), -1.5, 1.5),
    "bernoulli": Likelihood(build=lambda: pm.Bernoulli("y", A("p", 0.05, 0.95), observed=COUNT)),
    "bernoulli, logit": Likelihood(build=lambda: pm.Bernoulli("y", logit_p=A("eta", -3, 2), observed=COUNT)),
    "binomial": Likelihood(build=lambda: pm.Binomial("y", 10, A("p", 0.1, 0.8), observed=COUNT)),
    "beta-binomial": Likelihood(
        build=lambda: pm.BetaBinomial("y", n=10, alpha=A("alpha", 0.5, 4), beta=A("beta", 0.5, 4), observed=COUNT)
    ),
    "poisson": real(lambda: pm.Poisson("y", A("mu", 0.5, 5), observed=COUNT), 0, 20),
    "negative binomial": real(
        lambda: pm.NegativeBinomial("y", mu=A("mu", 0.5, 5), alpha=A("alpha", 0.5, 4), observed=COUNT), 0, 15
    ),
    "negative binomial, p": real(
        lambda: pm.NegativeBinomial("y", p=A("p", 0.2, 0.8), n=A("n", 0.5, 4), observed=COUNT), 0, 15
    ),
    "geometric": real(lambda: pm.Geometric("y", A("p", 0.1, 0.8), observed=COUNT), 1, 15),
    "hypergeometric": real(lambda: pm.HyperGeometric("y", N=50, k=A("k", 15, 30), n=10, observed=COUNT), 0, 10),
    "discrete weibull": real(
        lambda: pm.DiscreteWeibull("y", A("q", 0.2, 0.8), A("beta", 0.5, 1.5), observed=COUNT), 0, 10
    ),
    "discrete uniform": real(
        lambda: pm.DiscreteUniform("y", lower=0, upper=pm.DiscreteUniform("n", 10, 20), observed=COUNT), 0, 10
    ),
    "categorical": Likelihood(build=categorical),
    "categorical, logits": Likelihood(build=categorical_logits),
    "ordered logistic": Likelihood(build=lambda: ordered(pm.OrderedLogistic)),
    "ordered probit": Likelihood(build=lambda: ordered(pm.OrderedProbit)),
    "zero-inflated poisson": real(
        lambda: pm.ZeroInflatedPoisson("y", psi=A("psi", 0.1, 0.9), mu=A("mu", 0.5, 5), observed=COUNT), 0, 10
    ),
    "zero-inflated binomial": real(
        lambda: pm.ZeroInflatedBinomial("y", psi=A("psi", 0.1, 0.9), n=10, p=A("p", 0.1, 0.8), observed=COUNT), 0, 10
    ),
    "zero-inflated negative binomial": real(
        lambda: pm.ZeroInflatedNegativeBinomial(
            "y", psi=A("psi", 0.1, 0.9), mu=A("mu", 0.5, 5), alpha=A("alpha", 0.5, 4), observed=COUNT
        ),
        0,
        10,
    ),
    "hurdle poisson": real(
        lambda: pm.HurdlePoisson("y", psi=A("psi", 0.1, 0.9), mu=A("mu", 0.5, 5), observed=COUNT), 0, 10
    ),
    "hurdle negative binomial": real(
        lambda: pm.HurdleNegativeBinomial(
            "y", psi=A("psi", 0.1, 0.9), mu=A("mu", 0.5, 5), alpha=A("alpha", 0.5, 4), observed=COUNT
        ),
        0,
        10,
    ),
    "hurdle gamma": real(
        lambda: pm.HurdleGamma(
            "y", psi=A("psi", 0.1, 0.9), alpha=A("alpha", 1, 4), beta=A("beta", 0.5, 2), observed=REAL
        ),
        0.1,
        5,
    ),
    "hurdle log-normal": real(
        lambda: pm.HurdleLogNormal("y", psi=A("psi", 0.1, 0.9), mu=A("mu", -1, 1), sigma=A("s", 0.5, 2), observed=REAL),
        0.1,
        5,
    ),
    "mixture of normals": real(mixture, -3, 3),
    "normal mixture": real(normal_mixture, -3, 3),
    "mixture of poissons": real(poisson_mixture, 0, 10),
    "censored normal": real(
        lambda: pm.Censored("y", pm.Normal.dist(A("mu", -1, 1), A("s", 0.5, 2)), lower=-1, upper=2, observed=REAL),
        -1,
        2,
        -1,
        2,
        relations=("replace",),
    ),
    "censored exponential": real(
        lambda: pm.Censored("y", pm.Exponential.dist(A("rate", 0.2, 2)), lower=None, upper=3, observed=REAL),
        0,
        3,
        3,
        relations=("replace",),
    ),
    "truncated gamma": real(
        lambda: pm.Truncated("y", pm.Gamma.dist(A("a", 1, 3), A("b", 0.5, 2)), lower=0.1, upper=3, observed=REAL),
        0.1,
        3,
    ),
    "truncated student": real(
        lambda: pm.Truncated("y", pm.StudentT.dist(nu=4, mu=A("mu", -1, 1), sigma=1), lower=-2, upper=2, observed=REAL),
        -2,
        2,
    ),
    "truncated poisson": real(
        lambda: pm.Truncated("y", pm.Poisson.dist(A("mu", 0.5, 5)), lower=1, upper=10, observed=COUNT), 1, 10
    ),
    "groups": Likelihood(build=grouped),
    "hierarchy": real(hierarchical, -3, 3),
    "regression": Likelihood(build=regression, bounds={"y": (-3, 3), "x": (-1, 1)}),
}
