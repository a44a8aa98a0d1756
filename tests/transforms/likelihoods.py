"""One model for every likelihood that statistics are released of, and for wrappers of others, counted in bins."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

N = 200
Build = Callable[[np.random.Generator], None]


def _positive(name):
    return pm.Gamma(name, 2, 1)


def _x(rng, low, high):
    return rng.uniform(low, high, N)


def _k(rng, high):
    return rng.integers(0, high, N)


def _two(rng):
    return pm.Data("g", rng.integers(0, 3, N))


def _regression(rng, likelihood):
    x, b = pm.Data("x", rng.uniform(-1, 1, (N, 2))), pm.Normal("b", shape=2)
    eta = pm.Normal("a") + x @ b
    if likelihood == "normal":
        pm.Normal("y", eta, pm.HalfNormal("s"), observed=_x(rng, -2, 2))
    elif likelihood == "logistic":
        pm.Bernoulli("y", logit_p=eta, observed=_k(rng, 2))
    else:
        pm.Poisson("y", pt.exp(eta), observed=_k(rng, 5))


def _mv_normal(rng):
    chol, *_ = pm.LKJCholeskyCov("c", n=2, eta=2, sd_dist=pm.HalfNormal.dist())
    pm.MvNormal("y", pm.Normal("m", shape=2), chol=chol, observed=rng.normal(size=(N, 2)))


FAMILIES: dict[str, tuple[Build, dict]] = {
    "Bernoulli": (lambda r: pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=_k(r, 2)), {}),
    "Bernoulli, logit": (lambda r: pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 5), observed=_k(r, 2)), {}),
    "Bernoulli by group": (lambda r: pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[_two(r)], observed=_k(r, 2)), {}),
    "Beta": (lambda r: pm.Beta("y", _positive("a"), _positive("b"), observed=_x(r, 0.1, 0.9)), {"y": (0.01, 0.99)}),
    "Binomial": (lambda r: pm.Binomial("y", 7, pm.Beta("p", 1, 1), observed=_k(r, 8)), {}),
    "Categorical": (lambda r: pm.Categorical("y", pm.Dirichlet("p", np.ones(4), dims="four"), observed=_k(r, 4)), {}),
    "Dirichlet": (
        lambda r: pm.Dirichlet("y", pm.Gamma("a", 2, 1, shape=3), observed=r.dirichlet(np.ones(3), N)),
        {"y": (0.01, 0.99)},
    ),
    "Exponential": (lambda r: pm.Exponential("y", _positive("a"), observed=_x(r, 0, 3)), {"y": (0, 5)}),
    "Gamma": (lambda r: pm.Gamma("y", _positive("a"), _positive("b"), observed=_x(r, 0.1, 3)), {"y": (0.01, 8)}),
    "Geometric": (lambda r: pm.Geometric("y", pm.Beta("p", 1, 1), observed=1 + _k(r, 5)), {"y": (1, 20)}),
    "HalfNormal": (lambda r: pm.HalfNormal("y", _positive("s"), observed=_x(r, 0, 3)), {"y": (0, 5)}),
    "InverseGamma": (
        lambda r: pm.InverseGamma("y", _positive("a"), _positive("b"), observed=_x(r, 0.1, 3)),
        {"y": (0.05, 20)},
    ),
    "Laplace about a number": (lambda r: pm.Laplace("y", 0.5, _positive("b"), observed=_x(r, -3, 3)), {"y": (-5, 5)}),
    "LogNormal": (
        lambda r: pm.LogNormal("y", pm.Normal("m"), _positive("s"), observed=_x(r, 0.1, 3)),
        {"y": (0.05, 20)},
    ),
    "Multinomial": (
        lambda r: pm.Multinomial(
            "y", 6, pm.Dirichlet("p", np.ones(3), dims="three"), observed=r.multinomial(6, [0.2, 0.3, 0.5], N)
        ),
        {},
    ),
    "MvNormal": (lambda r: _mv_normal(r), {"y": (-4, 4)}),
    "NegativeBinomial": (
        lambda r: pm.NegativeBinomial("y", mu=_positive("m"), alpha=3.0, observed=_k(r, 6)),
        {"y": (0, 30)},
    ),
    "Normal": (lambda r: pm.Normal("y", pm.Normal("m"), pm.HalfNormal("s"), observed=_x(r, -2, 2)), {"y": (-4, 4)}),
    "Normal, wide priors": (
        lambda r: pm.Normal("y", pm.Normal("m", 0, 100), pm.HalfNormal("s", 100), observed=_x(r, -2, 2)),
        {"y": (-4, 4)},
    ),
    "Normal by group": (
        lambda r: pm.Normal("y", pm.Normal("m", shape=3)[_two(r)], pm.HalfNormal("s"), observed=_x(r, -2, 2)),
        {"y": (-4, 4)},
    ),
    "Poisson": (lambda r: pm.Poisson("y", _positive("a"), observed=_k(r, 6)), {"y": (0, 30)}),
    "VonMises": (lambda r: pm.VonMises("y", pm.Normal("m"), _positive("k"), observed=_x(r, -3, 3)), {}),
    "Weibull": (lambda r: pm.Weibull("y", 1.5, _positive("b"), observed=_x(r, 0.1, 3)), {"y": (0.01, 8)}),
    "normal regression": (lambda r: _regression(r, "normal"), {"x": (-1, 1), "y": (-3, 3)}),
    "logistic regression": (lambda r: _regression(r, "logistic"), {"x": (-1, 1)}),
    "Poisson regression": (lambda r: _regression(r, "poisson"), {"x": (-1, 1), "y": (0, 20)}),
}


def _inner(name):
    """Distributions that wrappers are made of, each with unknown parameters."""
    a, b = _positive("a"), _positive("b")
    return {
        "Normal": lambda: pm.Normal.dist(a, b),
        "StudentT": lambda: pm.StudentT.dist(3.0, mu=a, sigma=b),
        "Laplace": lambda: pm.Laplace.dist(a, b),
        "Logistic": lambda: pm.Logistic.dist(a, b),
        "Weibull": lambda: pm.Weibull.dist(a, b),
        "Gamma": lambda: pm.Gamma.dist(a, b),
        "Exponential": lambda: pm.Exponential.dist(a),
        "LogNormal": lambda: pm.LogNormal.dist(a, b),
        "Poisson": lambda: pm.Poisson.dist(a),
        "NegativeBinomial": lambda: pm.NegativeBinomial.dist(mu=a, alpha=b),
    }[name]()


def _whole(name):
    return name in ("Poisson", "NegativeBinomial")


def _wrapped(wrapper, name):
    def build(r):
        data = _k(r, 5) if _whole(name) else _x(r, 0.1, 5)
        wrapper(name, r, data)

    return build


def _censored(name, r, data):
    pm.Censored("y", _inner(name), lower=None, upper=5, observed=data)


def _censored_below(name, r, data):
    pm.Censored("y", _inner(name), lower=0, upper=None, observed=data)


def _truncated(name, r, data):
    pm.Truncated("y", _inner(name), lower=-0.5, upper=6, observed=data)


def _mixture(name, r, data):
    other = pm.Poisson.dist(3.0) if _whole(name) else pm.Gamma.dist(2.0, 1.0)
    pm.Mixture("y", pm.Dirichlet("w", np.ones(2), dims="two"), [_inner(name), other], observed=data)


WRAPPERS = {
    "Censored above": (_censored, ("Normal", "StudentT", "Laplace", "Weibull", "Gamma", "Exponential", "LogNormal")),
    "Censored below": (
        _censored_below,
        ("Normal", "StudentT", "Logistic", "Weibull", "Gamma", "LogNormal", "NegativeBinomial"),
    ),
    "Truncated": (_truncated, ("Normal", "StudentT", "Logistic", "Weibull", "Gamma", "Exponential", "Poisson")),
    "Mixture with": (
        _mixture,
        ("Normal", "StudentT", "Weibull", "Gamma", "Exponential", "LogNormal", "Poisson", "NegativeBinomial"),
    ),
}
BINNED: dict[str, tuple[Build, dict]] = {
    f"{title} {name}": (_wrapped(wrapper, name), {"y": (0, 6)})
    for title, (wrapper, names) in WRAPPERS.items()
    for name in names
}
BINNED |= {
    "ZeroInflatedPoisson": (
        lambda r: pm.ZeroInflatedPoisson("y", pm.Beta("p", 1, 1), _positive("a"), observed=_k(r, 6)),
        {"y": (0, 9)},
    ),
    "ZeroInflatedBinomial": (
        lambda r: pm.ZeroInflatedBinomial("y", pm.Beta("p", 1, 1), 7, pm.Beta("q", 1, 1), observed=_k(r, 8)),
        {"y": (0, 7)},
    ),
    "ZeroInflatedNegativeBinomial": (
        lambda r: pm.ZeroInflatedNegativeBinomial(
            "y", pm.Beta("p", 1, 1), _positive("a"), _positive("b"), observed=_k(r, 6)
        ),
        {"y": (0, 9)},
    ),
    "HurdlePoisson": (
        lambda r: pm.HurdlePoisson("y", pm.Beta("p", 1, 1), _positive("a"), observed=_k(r, 6)),
        {"y": (0, 9)},
    ),
    "HurdleNegativeBinomial": (
        lambda r: pm.HurdleNegativeBinomial("y", pm.Beta("p", 1, 1), _positive("a"), _positive("b"), observed=_k(r, 6)),
        {"y": (0, 9)},
    ),
    "HurdleGamma": (
        lambda r: pm.HurdleGamma("y", pm.Beta("p", 1, 1), _positive("a"), _positive("b"), observed=_x(r, 0, 5)),
        {"y": (0, 100)},
    ),
    "HurdleLogNormal": (
        lambda r: pm.HurdleLogNormal("y", pm.Beta("p", 1, 1), pm.Normal("a"), _positive("b"), observed=_x(r, 0, 5)),
        {"y": (0, 100)},
    ),
    "StudentT": (
        lambda r: pm.StudentT("y", 3.0, mu=pm.Normal("m"), sigma=_positive("s"), observed=_x(r, -3, 3)),
        {"y": (-4, 4)},
    ),
    "Cauchy": (lambda r: pm.Cauchy("y", pm.Normal("m"), _positive("s"), observed=_x(r, -3, 3)), {"y": (-4, 4)}),
    "Uniform": (lambda r: pm.Uniform("y", 0, pm.Pareto("u", 2, 1), observed=_x(r, 0, 1)), {"y": (0, 6)}),
    "Pareto": (lambda r: pm.Pareto("y", _positive("a"), 1.0, observed=_x(r, 1, 4)), {"y": (0, 6)}),
    "TruncatedNormal": (
        lambda r: pm.TruncatedNormal("y", pm.Normal("m"), _positive("s"), lower=0, observed=_x(r, 0, 4)),
        {"y": (0, 6)},
    ),
    "Gumbel": (lambda r: pm.Gumbel("y", pm.Normal("m"), _positive("s"), observed=_x(r, -3, 3)), {"y": (-4, 4)}),
    "Moyal": (lambda r: pm.Moyal("y", pm.Normal("m"), _positive("s"), observed=_x(r, -3, 3)), {"y": (-4, 4)}),
    "ExGaussian": (
        lambda r: pm.ExGaussian("y", pm.Normal("m"), _positive("s"), nu=_positive("n"), observed=_x(r, -3, 3)),
        {"y": (-4, 4)},
    ),
    "Wald": (lambda r: pm.Wald("y", _positive("m"), _positive("l"), observed=_x(r, 0.1, 3)), {"y": (0, 6)}),
    "HalfCauchy": (lambda r: pm.HalfCauchy("y", _positive("b"), observed=_x(r, 0, 3)), {"y": (0, 6)}),
    "Kumaraswamy": (lambda r: pm.Kumaraswamy("y", _positive("a"), _positive("b"), observed=_x(r, 0, 1)), {"y": (0, 1)}),
    "BetaBinomial": (
        lambda r: pm.BetaBinomial("y", _positive("a"), _positive("b"), 8, observed=_k(r, 9)),
        {"y": (0, 8)},
    ),
    "NormalMixture": (
        lambda r: pm.NormalMixture(
            "y",
            pm.Dirichlet("w", np.ones(2), dims="two"),
            pm.Normal("m", shape=2),
            pm.HalfNormal("s", shape=2),
            observed=_x(r, -3, 3),
        ),
        {"y": (-4, 4)},
    ),
}
MODELS = FAMILIES | BINNED


def model_of(name: str, rng: np.random.Generator) -> tuple[pm.Model, dict]:
    """Return a model and the bounds of its columns."""
    build, bounds = MODELS[name]
    with pm.Model(coords={"two": range(2), "three": range(3), "four": range(4)}) as model:
        build(rng)
    return model, bounds
