"""Models of likelihoods beside those of `models`: each a function of nothing to a model and its domain."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp

ROWS = 32
RNG = np.random.default_rng(5)
X, ANY, SHARE = RNG.uniform(-1, 1, (ROWS, 2)), RNG.normal(size=ROWS), RNG.uniform(0.1, 0.9, ROWS)
COUNTS, TRIALS = RNG.integers(0, 5, ROWS), RNG.integers(4, 9, ROWS)


def _built(observe, bounds, **columns):
    def build():
        with pm.Model() as model:
            predictor = pm.Normal("a") + pm.Data("x", X) @ pm.Normal("b", sigma=0.4, shape=2)
            observe(predictor)
        return model, dp.Domain(bounds={"x": (-1, 1), "y": bounds, **columns})

    return build


def _scale():
    return pm.HalfNormal("scale")


def _laplace(value, mean, scale):
    return -pt.abs(value - mean) / scale - pt.log(2 * scale)


def _two_normals(eta):
    parts = [pm.Normal.dist(eta, 0.5), pm.StudentT.dist(nu=4, mu=eta + 4, sigma=_scale())]
    pm.Mixture("y", w=pm.Dirichlet("w", [2.0, 2.0]), comp_dists=parts, observed=ANY)


def _normal_mixture(eta):
    mu = pt.stack([eta, eta + 2], axis=-1)
    w = pm.Dirichlet("w", [2.0, 2.0])
    pm.NormalMixture("y", w=w, mu=mu, sigma=pm.LogNormal("s", shape=2), observed=ANY)


def _censored(eta):
    whole = pm.ExGaussian.dist(mu=eta, sigma=_scale(), nu=pm.LogNormal("nu"))
    pm.Censored("y", whole, lower=None, upper=1.0, observed=np.minimum(ANY, 1))


CONTINUOUS = {
    "normal, a third clamped": _built(lambda eta: pm.Normal("y", eta, _scale(), observed=ANY), (-1, 1)),
    "normal mixture": _built(_normal_mixture, (-8, 8)),
    "mixture of two peaks": _built(_two_normals, (-12, 12)),
    "von Mises": _built(lambda eta: pm.VonMises("y", 2 * pt.arctan(eta), _scale(), observed=ANY), (-np.pi, np.pi)),
    "Wald": _built(lambda eta: pm.Wald("y", mu=pt.exp(eta), lam=pm.LogNormal("l"), observed=SHARE), (0, 20)),
    "skew normal": _built(
        lambda eta: pm.SkewNormal("y", mu=eta, sigma=_scale(), alpha=pm.Normal("alpha"), observed=ANY), (-10, 10)
    ),
    "gamma": _built(lambda eta: pm.Gamma("y", mu=pt.exp(eta), sigma=_scale(), observed=SHARE), (0, 20)),
    "beta": _built(
        lambda eta: pm.Beta("y", mu=pm.math.invlogit(eta), nu=pm.LogNormal("nu", 1.5, 0.3), observed=SHARE), (0, 1)
    ),
    "Weibull": _built(
        lambda eta: pm.Weibull("y", alpha=pm.LogNormal("alpha"), beta=pt.exp(eta), observed=SHARE), (0, 20)
    ),
    "asymmetric Laplace": _built(
        lambda eta: pm.AsymmetricLaplace("y", b=pm.LogNormal("b2"), kappa=1.5, mu=eta, observed=ANY), (-10, 10)
    ),
    "ex-Gaussian": _built(
        lambda eta: pm.ExGaussian("y", mu=eta, sigma=_scale(), nu=pm.LogNormal("nu"), observed=ANY), (-10, 20)
    ),
    "truncated normal": _built(
        lambda eta: pm.Truncated("y", pm.Normal.dist(eta, _scale()), lower=0, observed=SHARE), (0, 20)
    ),
    "censored": _built(_censored, (-10, 1)),
    "written by hand": _built(lambda eta: pm.CustomDist("y", eta, _scale(), logp=_laplace, observed=ANY), (-10, 10)),
    "hurdle": _built(
        lambda eta: pm.HurdleLogNormal("y", psi=pm.Beta("psi", 2, 2), mu=eta, sigma=_scale(), observed=SHARE), (0, 20)
    ),
}
"""Responses of real numbers."""


def _in_binomial(eta):
    pm.Binomial("y", n=pm.Data("n", TRIALS), logit_p=eta, observed=COUNTS)


def _zero_inflated(eta):
    psi, alpha = pm.Beta("psi", 2, 2), pm.LogNormal("alpha")
    pm.ZeroInflatedNegativeBinomial("y", psi=psi, mu=pt.exp(eta), alpha=alpha, observed=COUNTS)


DISCRETE = {
    "binomial, n a column": _built(_in_binomial, (0, 8), n=(4, 8)),
    "zero-inflated": _built(_zero_inflated, (0, 80)),
}
"""Responses of whole numbers."""
CUT = _built(lambda eta: pm.Poisson("y", pt.exp(eta), observed=np.minimum(COUNTS, 2)), (0, 2))
"""Counts of which many are clamped."""


def _outcomes(predictor):
    factor = pm.math.stack([pm.math.stack(list(line)) for line in [[1.5, 0.0], [-0.6, 0.8]]])
    pm.MvNormal("y", pt.stack([predictor, -predictor], axis=1), chol=factor, observed=RNG.normal(size=(ROWS, 2)))


VECTORS = {"normal vectors": _built(_outcomes, (-9, 9))}
