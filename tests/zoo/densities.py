"""Densities that floats compute badly, each with public bounds within which exact arithmetic is well behaved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.likelihoods import COUNT, REAL, ROWS, Likelihood, real, uniform

B = 11 / 37.75
"""A standard deviation by which |z| is 37.75, where floats lose a normal tail, at a mean of 11."""


def density(logp: Callable[..., object], low: float, high: float, **priors: tuple[float, float]) -> Likelihood:
    """A log density of values in (low, high) and of uniform parameters."""

    def build() -> None:
        free = [uniform(name, *ends) for name, ends in priors.items()]
        pm.CustomDist("y", *free, logp=logp, observed=REAL)

    return real(build, low, high)


def slope(logp: Callable[..., object], width: float) -> Likelihood:
    """A log density of 0 or 1 given a predictor a x, x in (-1, 1)."""

    def build() -> None:
        eta = uniform("a", -width, width) * pm.Data("x", REAL)
        pm.CustomDist("y", eta, logp=logp, observed=REAL)

    return Likelihood(build=build, bounds={"y": (0, 1), "x": (-1, 1)})


def bernoulli(chance: Callable[..., object], width: float) -> Likelihood:
    def build() -> None:
        pm.Bernoulli("y", p=chance(uniform("a", -width, width) * pm.Data("x", REAL)), observed=COUNT)

    return Likelihood(build=build, bounds={"x": (-1, 1)})


def censored() -> None:
    z = pm.Normal.dist(uniform("mu", -35, 35), uniform("sigma", 0.9, 2))
    pm.Censored("y", z, lower=-1, upper=1, observed=REAL)


def truncated() -> None:
    z = pm.Normal.dist(uniform("mu", -12, 12), 1.0)
    pm.Truncated("y", z, lower=20.0, upper=30.0, observed=REAL)


def mixture(v: object, w: object, mu: object) -> object:
    far = pm.logp(pm.Normal.dist(mu, 0.05), v)
    return pt.log(w * pt.exp(far) + (1 - w) * pt.exp(pm.logp(pm.Normal.dist(-mu, 0.05), v)))


def single() -> None:
    """Columns and constants in single precision."""
    x = pm.Data("x", REAL.astype("float32"))
    mu = uniform("a", -3, 3) * pt.cast(x, "float32") + np.float32(0.1)
    pm.Normal("y", mu, np.float32(0.3), observed=REAL.astype("float32"))


def wide_rows() -> None:
    """Entries of a row that cancel."""
    x = pm.Data("x", np.zeros((ROWS, 3)))
    eta = uniform("a", -20, 20) * (x[:, 0] - x[:, 1]) + uniform("b", -20, 20) * (x[:, 1] - x[:, 2])
    pm.Bernoulli("y", p=pm.math.sigmoid(eta) * 1.0, observed=COUNT)


def groups() -> None:
    group = pm.Data("group", COUNT)
    eta = uniform("mu", 0.5, 11, shape=3)[group]
    pm.CustomDist("y", eta, logp=lambda v, mu: pt.log(pm.math.invprobit((v - mu) / B)), observed=REAL)


def two_outcomes() -> None:
    mu = uniform("mu", 0.5, 11)
    pm.CustomDist("y", mu, logp=lambda v, mu: pt.log(pm.math.invprobit((v - mu) / B)), observed=REAL)
    pm.Normal("z", mu, 2.0, observed=REAL)


def tail(v: object, mu: object) -> object:
    return pt.log(pm.math.invprobit((v - mu) / B))


ODD: dict[str, Likelihood] = {
    # --- tails of the normal distribution -----------------------------------------------------------------------------
    "log of a normal tail": density(tail, 0, 0.0437, mu=(0.5, 11)),
    "log of a normal tail, milder": density(
        lambda v, mu: pt.log(pm.math.invprobit((v - mu) / 0.27)), 0, 1, mu=(0.5, 11)
    ),
    "log of half an erfc": density(lambda v, mu: pt.log(0.5 * pt.erfc(mu + v)), 0, 1, mu=(0, 25.5)),
    "log of an erfc of a square": density(lambda v, mu: pt.log(pt.erfc(mu**2 + v)), 0, 0.5, mu=(0, 5.08)),
    "log of 1 + erf": density(lambda v, mu: pt.log1p(pt.erf(v - mu)), 0, 1, mu=(0, 6.5)),
    "log of 1 - a normal probability": density(lambda v, mu: pt.log1p(-pm.math.invprobit(v + mu)), 0, 1, mu=(0, 7.2)),
    "difference of normal probabilities": density(
        lambda v, mu: pt.log(pm.math.invprobit(v - mu + 0.5) - pm.math.invprobit(v - mu - 0.5)), 0, 1, mu=(-7, 7)
    ),
    "probit regression": slope(
        lambda v, eta: v * pt.log(pm.math.invprobit(eta)) + (1 - v) * pt.log1p(-pm.math.invprobit(eta)), 7.5
    ),
    "stable probit regression": slope(lambda v, eta: pm.logcdf(pm.Normal.dist(0, 1), (2 * v - 1) * eta), 36.0),
    "tail of groups": Likelihood(build=groups, bounds={"y": (0, 0.0437)}, relations=("replace",)),
    "tail beside a normal": Likelihood(build=two_outcomes, bounds={"y": (0, 0.0437), "z": (-3, 3)}),
    "censored far away": real(censored, -1, 1, relations=("replace",)),
    "truncated far away": real(truncated, 20, 30),
    # --- chances near 0 and 1 -----------------------------------------------------------------------------------------
    "sigmoid times 1": bernoulli(lambda eta: pm.math.sigmoid(eta) * 1.0, 35.66),
    "1 - sigmoid": bernoulli(lambda eta: 1 - pm.math.sigmoid(eta), 35.0),
    "log1p of minus a sigmoid": slope(
        lambda v, eta: v * pt.log(pm.math.sigmoid(eta)) + (1 - v) * pt.log1p(-pm.math.sigmoid(eta)), 36.0
    ),
    "product of two chances": bernoulli(lambda eta: pm.math.sigmoid(eta) * pm.math.sigmoid(eta + 3), 20.0),
    "complementary log-log": bernoulli(lambda eta: 1 - pt.exp(-pt.exp(eta)), 3.3),
    "1 - exp(-x)": density(lambda v, rate: pt.log(1 - pt.exp(-rate * v)), 1e-15, 1, rate=(0.5, 2)),
    "half of 1 + tanh": bernoulli(lambda eta: 0.5 * (1 + pt.tanh(eta)), 17.0),
    "share of exponentials": bernoulli(lambda eta: pt.exp(eta) / (pt.exp(eta) + pt.exp(-eta)), 17.0),
    "cancelling entries of a row": Likelihood(build=wide_rows, bounds={"x": (-1, 1)}),
    # --- sums and products --------------------------------------------------------------------------------------------
    "log of a product": density(
        lambda v, a: pt.log(pt.exp(-a * v) * pt.exp(-a * (1 - v)) * pt.exp(-a)), 0, 1, a=(0, 300)
    ),
    "log of a small product": density(lambda v, a: pt.log(pt.exp(-a * v) * pt.exp(-a)), 0, 1, a=(0, 371)),
    "log of a sum": density(lambda v, a: pt.log(pt.exp(-a * v) + pt.exp(-a * (1 - v))), 0, 1, a=(0, 1400)),
    "log of a sum of large terms": density(lambda v, a: pt.log(pt.exp(a * v) + pt.exp(a * (1 - v))), 0, 1, a=(0, 709)),
    "mixture with a vanishing component": density(mixture, 0.2, 0.4, w=(0.1, 0.9), mu=(0.1, 1.5)),
    "difference of squares": density(lambda v, mu: -((v - mu) ** 2 - v**2) * 1e-6, 0, 1e8, mu=(0, 1)),
    "difference of large numbers": density(lambda v, mu: ((v + 1e12 + mu) - 1e12) * 1e3, 0, 1, mu=(0, 1)),
    "square of a small difference": density(lambda v, mu: -(((1e8 + v - mu) - 1e8) ** 2), 0, 1, mu=(0, 1)),
    "variance as a difference": density(
        lambda v, m, s: -0.5 * (v**2 - 2 * v * m + m**2) / s**2 - pt.log(s), 999.0, 1001.0, m=(999, 1001), s=(0.5, 1)
    ),
    # --- powers and scales --------------------------------------------------------------------------------------------
    "power near 0": density(lambda v, a: -(v**a), 1e-300, 1, a=(0.01, 0.5)),
    "log of a power": density(lambda v, a: pt.log(v**a), 1e-5, 1, a=(0.5, 64)),
    "root of a difference": density(lambda v, a: -pt.sqrt(pt.maximum(v - a, 0.0) + 1e-20), 0, 1, a=(0, 1)),
    "tiny scale": density(lambda v, s: -pt.abs(v) / s - pt.log(s), 0, 1e-150, s=(1e-150, 1e-149)),
    "huge scale": density(lambda v, s: -((v / s) ** 2) - pt.log(s), 0, 1e150, s=(1e150, 1e151)),
    "squares that overflow": density(lambda v, s: -0.5 * v**2 / s**2, 0, 1e160, s=(1e160, 1e161)),
    "subnormal divisor": density(lambda v, a: -v / (a * 1e-310), 0, 1e-310, a=(0.5, 2)),
    "normal in single precision": Likelihood(build=single, bounds={"x": (-1, 1), "y": (-1, 1)}),
    # --- special functions --------------------------------------------------------------------------------------------
    "ratio of gammas": density(lambda v, a: pt.log(pt.gamma(a + v) / pt.gamma(a)), 0, 1, a=(1, 170)),
    "difference of log gammas": density(lambda v, a: pt.gammaln(a + v) - pt.gammaln(a), 0, 1, a=(1e6, 1e9)),
    "beta density by gammas": density(
        lambda v, a: pt.log(pt.gamma(2 * a) / pt.gamma(a) ** 2 * v ** (a - 1) * (1 - v) ** (a - 1)),
        0.05,
        0.95,
        a=(1, 85),
    ),
    "student by powers": density(lambda v, nu: pt.log((1 + v**2 / nu) ** (-(nu + 1) / 2)), -50, 50, nu=(1, 80)),
    # --- choices ------------------------------------------------------------------------------------------------------
    "nested clips": density(
        lambda v, a: pt.clip(pt.log(pt.clip(v - a, 0.0, 1.0)), -50.0, 0.0) * pt.clip(a, 0.2, 0.8), 0, 1, a=(0, 1)
    ),
    "branch that is not finite": density(
        lambda v, a: pt.switch(v > a, pt.log(pt.maximum(v - a, 1e-30)), pt.log(v - v - 1e-30 + 2e-30)), 0, 1, a=(0, 1)
    ),
    "branch of a logarithm": density(lambda v, a: pt.switch(v < 0.5, -a, pt.log(v - 0.25) * a), 0, 1, a=(0, 3)),
    "branch by a comparison of sums": density(
        lambda v, a: pt.switch(pt.ge(v + a, 1.0), -a, -((v + a) ** 3)), 0, 1, a=(0, 1)
    ),
    "step of a rounding": density(lambda v, a: -pt.floor(10 * (v - a)) / 10, 0, 1, a=(0, 1)),
}
"""By what is odd about them."""

QUICK = (
    "log of a normal tail",
    "log of a normal tail, milder",
    "tail of groups",
    "sigmoid times 1",
    "log1p of minus a sigmoid",
    "1 - exp(-x)",
    "log of 1 - a normal probability",
    "log of a small product",
    "difference of squares",
    "power near 0",
    "ratio of gammas",
    "branch that is not finite",
)
"""Those that are tried whenever tests are run."""

__all__ = ["ODD", "QUICK"]
