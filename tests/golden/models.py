"""The models whose numbers and texts are kept: those of the pages and notebooks, small, and one for each family.

Columns are made by exact arithmetic, so that they are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp
from tests.networks import COLLIDER, network_model

N_ROWS = 60
N_MAX = 100
"""Public bound on the number of rows where it is private."""
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model of rows, and what is public about one of them.

    Attributes
    ----------
    model : callable
        Makes it, for PyMC or bambi.
    given : mapping
        Arguments of ``dp.Domain``.
    """

    model: Callable[[], Any]
    given: Mapping[str, Any]

    def domain(self, neighbours: str = "replace") -> dp.Domain:
        n_max = N_MAX if neighbours == "add_remove" else None
        return dp.Domain(**self.given, neighbours=neighbours, n_max=n_max)


def case(build: Callable[[], object], **given: Any) -> Case:
    """A case whose variables are added to the model of the context."""

    def model() -> pm.Model:
        with pm.Model() as made:
            build()
        return made

    return Case(model=model, given=given)


def reals(low: float, high: float, shift: int = 0, count: int = N_ROWS) -> np.ndarray:
    """Numbers that are spread evenly, and in no order."""
    return low + (high - low) * ((GOLDEN * (np.arange(count) + 1 + 7 * shift)) % 1.0)


def codes(levels: int, shift: int = 0, count: int = N_ROWS) -> np.ndarray:
    return reals(0, levels, shift, count).astype(int)


def survey() -> None:
    pm.modelcontext(None).add_coord("rating", range(1, 6))
    rating = pm.Data("rating_index", codes(5))
    p = pm.Beta("p", 1, 1, dims="rating")
    pm.Bernoulli("affair", p[rating], observed=codes(2, 1))


def truncated_survey() -> pm.Model:
    return dp.truncate(case(survey).model(), {"p": (0.05, 0.95)})


def hierarchy() -> None:
    pm.modelcontext(None).add_coord("clinic", range(3))
    mean, spread = pm.Normal("mean", 0, 1), pm.HalfNormal("spread", 1)
    logit = mean + spread * pm.Normal("offset", 0, 1, dims="clinic")
    pm.Bernoulli("recovered", logit_p=logit[pm.Data("clinic_index", codes(3))], observed=codes(2, 1))


def children() -> None:
    pm.modelcontext(None).add_coord("rating", range(1, 6))
    rating = pm.Data("rating_index", codes(5))
    rate = pm.Gamma("rate", 2, 1, dims="rating")
    pm.Poisson("children", rate[rating], observed=codes(11, 1))


def claims() -> None:
    pm.modelcontext(None).add_coord("place", range(3))
    years, region = pm.Data("years", reals(0.1, 2, 4)), pm.Data("region", codes(3, 2))
    rate = pm.Gamma("rate", 2, 1, dims="place")
    pm.Poisson("claims", pm.math.exp(pm.math.log(rate)[region] + pm.math.log(years)), observed=codes(6, 1))


def naive_bayes() -> None:
    pm.modelcontext(None).add_coord("of", range(3))
    kind = pm.Categorical("kind", pm.Dirichlet("share", np.ones(3), dims="of"), observed=codes(3))
    rate = pm.Gamma("rate", 2, 1, dims="of")
    pm.Poisson("visits", rate[kind], observed=codes(9, 1))
    mu, sigma = pm.Normal("mu", 0, 2, dims="of"), pm.HalfNormal("sigma", 2, dims="of")
    pm.Normal("length", mu[kind], sigma[kind], observed=reals(-2, 2, 2))


def linear() -> None:
    pm.modelcontext(None).add_coord("level", range(2))
    x, group = pm.Data("x", np.column_stack([reals(-1, 1), reals(-1, 1, 3)])), pm.Data("group", codes(2, 2))
    a, b = pm.Normal("a", 0, 1, dims="level"), pm.Normal("b", 0, 1, shape=2)
    pm.Normal("y", a[group] + x @ b, pm.HalfNormal("sigma", 1), observed=reals(-3, 3, 1))


def logistic() -> None:
    x = pm.Data("x", np.column_stack([reals(-0.7, 0.7), reals(-0.7, 0.7, 3)]))
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 2, shape=2), observed=codes(2, 1))


def poisson_regression() -> None:
    x = pm.Data("x", reals(-1, 1))
    pm.Poisson("y", pm.math.exp(pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * x), observed=codes(6, 1))


def network() -> pm.Model:
    return network_model(COLLIDER, {name: codes(2, place) for place, name in enumerate(COLLIDER)})


def hidden_markov() -> None:
    model = pm.modelcontext(None)
    model.add_coords({"region": range(2), "month": range(3), "kind": range(3)})
    start = pm.Dirichlet("start", np.array([1.0, 2.0]))
    moves = pm.Dirichlet("moves", np.array([[2.0, 1.0], [1.0, 1.5]]))
    states = dp.markov.MarkovStates("states", start, moves, dims=("region", "month"))
    cell = states[pm.Data("region_index", codes(2, 2)), pm.Data("month_index", codes(3, 3))]
    profile = dp.TruncatedDirichlet("profile", np.ones((2, 3)), 0.1)
    pm.Categorical("event", profile[cell], observed=codes(3))


def bambi_regression() -> Any:
    import bambi
    import pandas as pd

    group = pd.Categorical.from_codes(codes(3, 2), categories=list("abc"), ordered=True)
    table = pd.DataFrame({"y": reals(-2, 2, 1), "x": reals(0, 1), "g": group})
    normal = bambi.Prior("Normal", mu=0, sigma=1.5)
    priors = {"common": normal, "sigma": bambi.Prior("HalfNormal", sigma=2)}
    return bambi.Model("y ~ x + g", table, priors=priors, center_predictors=False)


def robust() -> None:
    pm.StudentT("age", nu=4, mu=pm.Uniform("centre", 20, 40), sigma=8, observed=reals(17.5, 42))


def clamped() -> pm.Model:
    return dp.clamp(case(robust).model(), -4, -3)


def bounded_normal() -> None:
    mean, sd = pm.Truncated("mean", pm.Normal.dist(0.0, 1.0), -2.0, 2.0), pm.Uniform("sd", 0.5, 2.0)
    pm.Normal("y", mean, sd, observed=reals(-3, 3))


def years() -> None:
    pm.Normal("age", pm.Uniform("centre", 20, 40), 8, observed=reals(17.5, 42))


def coupled() -> None:
    """What has to be refused, each with its remedy: rows in a Potential, counts without bounds, an unknown shape."""
    rate = pm.Gamma("rate", 2, 1)
    pm.Potential("nudge", pt.sum(pm.Data("x", reals(0, 1))) * rate)
    pm.Poisson("visits", rate, observed=codes(9))
    pm.Weibull("wait", pm.HalfNormal("shape"), 1.0, observed=reals(0.1, 3))


AGES = {"bounds": {"age": (17.5, 42)}}

MODELS: dict[str, Case] = {
    "survey": case(survey),
    "survey, truncated": Case(model=truncated_survey, given={}),
    "hierarchy, public groups": case(hierarchy, public=["clinic_index"]),
    "children": case(children, bounds={"children": (0, 10)}, public=["rating_index"]),
    "exposure": case(claims, bounds={"years": (0.1, 2), "claims": (0, 5)}),
    "naive Bayes": case(naive_bayes, bounds={"visits": (0, 10), "length": (-3, 3)}),
    "linear regression": case(linear, bounds={"x": (-1, 1), "y": (-4, 4)}),
    "logistic regression": case(logistic, norms={"x": 1.0}),
    "logistic regression, bounds": case(logistic, bounds={"x": (-0.7, 0.7)}),
    "Poisson regression": case(poisson_regression, bounds={"x": (-1, 1), "y": (0, 10)}),
    "network": Case(model=network, given={}),
    "hidden Markov": case(hidden_markov, public=["region_index", "month_index"]),
    "bambi": Case(model=bambi_regression, given={"bounds": {"y": (-3, 3), "x": (0, 1)}}),
    "robust": case(robust, **AGES),
    "clamped": Case(model=clamped, given={}),
    "bounded normal": case(bounded_normal, bounds={"y": (-3, 3)}),
    "metric": case(years, **AGES, metric=dp.metrics.L1({"age": 0.2})),
    "metric, normal": case(bounded_normal, bounds={"y": (-3, 3)}, metric=dp.metrics.L1({"y": 0.5})),
    "refused": case(coupled),
}


def matrix(low: float, high: float, width: int) -> np.ndarray:
    return np.column_stack([reals(low, high, 3 * place) for place in range(width)])


def shares(levels: int) -> pt.TensorVariable:
    pm.modelcontext(None).add_coord("level", range(levels))
    return pm.Dirichlet("p", np.ones(levels), dims="level")


def multinomial() -> None:
    first, second = codes(4), codes(3, 1)
    table = np.column_stack([first, second, 6 - first - second])
    pm.Multinomial("y", 6, shares(3), observed=table)


def vectors() -> None:
    sd, r = pm.HalfNormal("sd", 2, shape=2), pm.Uniform("r", -0.4, 0.9)
    covariance = pt.outer(sd, sd) * (pt.eye(2) + r * (1 - pt.eye(2)))
    pm.MvNormal("y", pm.Normal("mu", 0, 3, shape=2), covariance, observed=matrix(-2, 2, 2))


def proportions() -> None:
    parts = matrix(0.05, 1, 3)
    pm.Dirichlet("y", pm.HalfNormal("a", 5, shape=3), observed=parts / parts.sum(axis=1, keepdims=True))


def plus(name: str) -> pt.TensorVariable:
    return pm.HalfNormal(name, 1.0)


POSITIVE = {"bounds": {"y": (0.1, 5.0)}}
COUNTS = {"bounds": {"y": (0, 10)}}
REAL = {"bounds": {"y": (-3, 3)}}

FAMILIES: dict[str, Case] = {
    "Bernoulli": case(lambda: pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=codes(2))),
    "Categorical": case(lambda: pm.Categorical("y", shares(4), observed=codes(4))),
    "Binomial": case(lambda: pm.Binomial("y", 12, pm.Beta("p", 1, 1), observed=codes(13))),
    "Poisson": case(lambda: pm.Poisson("y", plus("mu"), observed=codes(12)), **COUNTS),
    "Geometric": case(lambda: pm.Geometric("y", pm.Beta("p", 1, 1), observed=1 + codes(12)), bounds={"y": (1, 10)}),
    "NegativeBinomial": case(lambda: pm.NegativeBinomial("y", mu=plus("mu"), alpha=2.5, observed=codes(12)), **COUNTS),
    "Normal": case(lambda: pm.Normal("y", pm.Normal("mu"), plus("sigma"), observed=reals(-4, 4)), **REAL),
    "Normal, mean": case(lambda: pm.Normal("y", pm.Normal("mu"), 1.5, observed=reals(-4, 4)), **REAL),
    "Normal, scale": case(lambda: pm.Normal("y", 0.7, plus("sigma"), observed=reals(-4, 4)), **REAL),
    "LogNormal": case(lambda: pm.LogNormal("y", pm.Normal("mu"), plus("sigma"), observed=reals(0.05, 6)), **POSITIVE),
    "HalfNormal": case(lambda: pm.HalfNormal("y", plus("sigma"), observed=reals(0, 6)), bounds={"y": (0, 5)}),
    "Laplace": case(lambda: pm.Laplace("y", 1.0, plus("b"), observed=reals(-4, 4)), **REAL),
    "Exponential": case(lambda: pm.Exponential("y", plus("rate"), observed=reals(0, 6)), bounds={"y": (0, 5)}),
    "Gamma": case(lambda: pm.Gamma("y", plus("a"), plus("b"), observed=reals(0.05, 6)), **POSITIVE),
    "InverseGamma": case(lambda: pm.InverseGamma("y", plus("a"), plus("b"), observed=reals(0.05, 6)), **POSITIVE),
    "Weibull": case(lambda: pm.Weibull("y", 1.7, plus("b"), observed=reals(0.05, 6)), **POSITIVE),
    "Beta": case(lambda: pm.Beta("y", plus("a"), plus("b"), observed=reals(0, 1)), bounds={"y": (0.05, 0.95)}),
    "VonMises": case(lambda: pm.VonMises("y", pm.Normal("mu"), plus("kappa"), observed=reals(-3, 3))),
    "Multinomial": case(multinomial),
    "MvNormal": case(vectors, **REAL),
    "Dirichlet": case(proportions, bounds={"y": (0.05, 0.95)}),
    "Poisson, exposure": MODELS["exposure"],
    "regression": MODELS["linear regression"],
    "regression, Bernoulli": MODELS["logistic regression, bounds"],
    "regression, Poisson": MODELS["Poisson regression"],
}
"""One for each family of released sums, and the regressions."""
