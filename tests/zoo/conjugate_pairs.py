"""Every conjugate pair with one scalar: how a PyMC user writes it, and its density in plain NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
from scipy import stats

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One prior and one likelihood.

    Attributes
    ----------
    prior : callable
        From a name to the free variable.
    likelihood : callable
        From a name, the variable and a column to the observed variable.
    log_prior : callable
        Of the variable, up to a constant.
    log_row : callable
        From rows (in the bounds) and values of the variable, which broadcast.
    ends : (float, float)
        Of the variable.
    bounds : (float, float) or None
        Of a row.
    rows : tuple of float
        The rows of which two differ most.
    """

    prior: Callable[[str], Any]
    likelihood: Callable[[str, Any, Any], Any]
    log_row: Callable[[Array, Array], Array]
    log_prior: Callable[[Array], Array] = lambda v: 0 * v
    ends: tuple[float, float]
    bounds: tuple[float, float] | None
    rows: tuple[float, ...]


def truncated(prior: Any, low: float, high: float) -> Callable[[str], Any]:
    return lambda name: pm.Truncated(name, prior(), low, high)


def uniform(low: float, high: float) -> Callable[[str], Any]:
    return lambda name: pm.Uniform(name, low, high)


def inverse_gamma(low: float, high: float) -> Callable[[str], Any]:
    def make(name: str) -> Any:
        with warnings.catch_warnings():  # PyMC's own, on its way to an inverse distribution function
            warnings.simplefilter("ignore")
            return pm.Truncated(name, pm.InverseGamma.dist(2.0, 1.5), low, high)

    return make


def _beta(p):
    return np.log(p) + 0.5 * np.log1p(-p)


def _gamma(r):
    return np.log(r) - 1.5 * r


def _inverse_gamma(v):
    return -3 * np.log(v) - 1.5 / v


BETA = truncated(lambda: pm.Beta.dist(2.0, 1.5), 0.1, 0.8)
GAMMA = truncated(lambda: pm.Gamma.dist(2.0, np.float64(1.5)), 0.3, 3.0)
RATE = (0.3, 3.0)

PAIRS: dict[str, Pair] = {
    "binomial": Pair(
        prior=BETA,
        likelihood=lambda name, p, d: pm.Binomial(name, 4, p, observed=d),
        log_row=lambda x, p: stats.binom.logpmf(x, 4, p),
        log_prior=_beta,
        ends=(0.1, 0.8),
        bounds=None,
        rows=(0, 4, 1),
    ),
    "geometric": Pair(
        prior=uniform(0.1, 0.7),
        likelihood=lambda name, p, d: pm.Geometric(name, p, observed=d),
        log_row=lambda x, p: stats.geom.logpmf(x, p),
        ends=(0.1, 0.7),
        bounds=(1, 6),
        rows=(1, 6, 3),
    ),
    "negative_binomial": Pair(
        prior=BETA,
        likelihood=lambda name, p, d: pm.NegativeBinomial(name, n=2.5, p=p, observed=d),
        log_row=lambda x, p: stats.nbinom.logpmf(x, 2.5, p),
        log_prior=_beta,
        ends=(0.1, 0.8),
        bounds=(0, 7),
        rows=(0, 7, 2),
    ),
    "exponential": Pair(
        prior=GAMMA,
        likelihood=lambda name, r, d: pm.Exponential(name, r, observed=d),
        log_row=lambda x, r: np.log(r) - r * x,
        log_prior=_gamma,
        ends=RATE,
        bounds=(0, 3),
        rows=(0, 3, 1),
    ),
    "exponential_prior": Pair(
        prior=truncated(lambda: pm.Exponential.dist(scale=0.8), *RATE),
        likelihood=lambda name, r, d: pm.Gamma(name, 2.0, r, observed=d),
        log_row=lambda x, r: 2 * np.log(r) - r * x,
        log_prior=lambda r: -r / 0.8,
        ends=RATE,
        bounds=(0.1, 4),
        rows=(0.1, 4, 1),
    ),
    "gamma_scale": Pair(
        prior=inverse_gamma(0.4, 2.5),
        likelihood=lambda name, s, d: pm.Gamma(name, 3.0, 1 / s, observed=d),
        log_row=lambda x, s: -3 * np.log(s) - x / s,
        log_prior=_inverse_gamma,
        ends=(0.4, 2.5),
        bounds=(0.1, 4),
        rows=(0.1, 4, 1),
    ),
    "gamma_mean": Pair(  # a factor
        prior=inverse_gamma(0.4, 2.5),
        likelihood=lambda name, m, d: pm.Gamma(name, 3.0, 3.0 / m, observed=d),
        log_row=lambda x, m: -3 * np.log(m) - 3 * x / m,
        log_prior=_inverse_gamma,
        ends=(0.4, 2.5),
        bounds=(0.1, 4),
        rows=(0.1, 4, 1),
    ),
    "inverse_gamma": Pair(
        prior=GAMMA,
        likelihood=lambda name, b, d: pm.InverseGamma(name, 2.0, b, observed=d),
        log_row=lambda x, b: 2 * np.log(b) - b / x,
        log_prior=_gamma,
        ends=RATE,
        bounds=(0.25, 4),
        rows=(0.25, 4, 1),
    ),
    "weibull": Pair(
        prior=uniform(*RATE),
        likelihood=lambda name, s, d: pm.Weibull(name, 1.5, s, observed=d),
        log_row=lambda x, s: -1.5 * np.log(s) - (x / s) ** 1.5,
        ends=RATE,
        bounds=(0.2, 2),
        rows=(0.2, 2, 1),
    ),
    "laplace": Pair(
        prior=inverse_gamma(0.4, 2.5),
        likelihood=lambda name, s, d: pm.Laplace(name, 0.5, s, observed=d),
        log_row=lambda x, s: -np.log(s) - abs(x - 0.5) / s,
        log_prior=_inverse_gamma,
        ends=(0.4, 2.5),
        bounds=(-1.5, 2),
        rows=(0.5, -1.5, 2),
    ),
    "half_normal": Pair(
        prior=GAMMA,
        likelihood=lambda name, t, d: pm.HalfNormal(name, tau=t, observed=d),
        log_row=lambda x, t: np.log(t) / 2 - t * x**2 / 2,
        log_prior=_gamma,
        ends=RATE,
        bounds=(0, 2),
        rows=(0, 2, 1),
    ),
    "half_normal_sd": Pair(
        prior=uniform(*RATE),
        likelihood=lambda name, s, d: pm.HalfNormal(name, s, observed=d),
        log_row=lambda x, s: -np.log(s) - x**2 / (2 * s**2),
        ends=RATE,
        bounds=(0, 2),
        rows=(0, 2, 1),
    ),
    "poisson_exposed": Pair(  # a factor
        prior=GAMMA,
        likelihood=lambda name, r, d: pm.Poisson(name, 2.0 * r, observed=d),
        log_row=lambda x, r: x * np.log(r) - 2 * r,
        log_prior=_gamma,
        ends=RATE,
        bounds=(0, 6),
        rows=(0, 6, 2),
    ),
    "precision": Pair(
        prior=GAMMA,
        likelihood=lambda name, t, d: pm.Normal(name, 0.3, tau=t, observed=d),
        log_row=lambda x, t: np.log(t) / 2 - t * (x - 0.3) ** 2 / 2,
        log_prior=_gamma,
        ends=RATE,
        bounds=(-1.5, 2),
        rows=(0.3, -1.5, 2),
    ),
    "variance": Pair(
        prior=inverse_gamma(0.4, 2.5),
        likelihood=lambda name, v, d: pm.Normal(name, 0.3, pm.math.sqrt(v), observed=d),
        log_row=lambda x, v: -np.log(v) / 2 - (x - 0.3) ** 2 / (2 * v),
        log_prior=_inverse_gamma,
        ends=(0.4, 2.5),
        bounds=(-1.5, 2),
        rows=(0.3, -1.5, 2),
    ),
    "log_mean": Pair(
        prior=lambda name: pm.TruncatedNormal(name, 0.2, 1.0, lower=-1, upper=1),
        likelihood=lambda name, m, d: pm.LogNormal(name, m, 0.8, observed=d),
        log_row=lambda x, m: -((np.log(x) - m) ** 2) / (2 * 0.64),
        log_prior=lambda m: -((m - 0.2) ** 2) / 2,
        ends=(-1, 1),
        bounds=(0.2, 5),
        rows=(0.2, 5, 1),
    ),
    "log_sd": Pair(
        prior=uniform(0.4, 2.0),
        likelihood=lambda name, s, d: pm.LogNormal(name, 0.3, s, observed=d),
        log_row=lambda x, s: -np.log(s) - (np.log(x) - 0.3) ** 2 / (2 * s**2),
        ends=(0.4, 2.0),
        bounds=(0.2, 5),
        rows=(np.exp(0.3), 0.2, 5),
    ),
}
