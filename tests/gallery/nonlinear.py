"""Curves and spreads: means and standard deviations that bend, and responses above 0."""

from __future__ import annotations

import numpy as np
import pymc as pm

from tests.gallery.entry import Columns, Table, entry
from tests.gallery.linear import ARM, PYMC, RETHINKING


def variance(rng: np.random.Generator) -> Columns:
    x = rng.uniform(0, 24, 300)
    return {"x": x, "y": 60 + 1.3 * x + rng.normal(0, np.exp(0.5 + 0.08 * x))}


@entry(
    "Bayesian Modeling and Computation in Python",
    variance,
    bounds={"x": (0, 24), "y": (30, 140)},
    locations="a b g0 g1",
)
def babies_variance(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", d["x"])
        a, b = pm.Normal("a", sigma=100), pm.HalfNormal("b", 10)
        g0, g1 = pm.Normal("g0", 0, 2), pm.Normal("g1", 0, 0.2)
        mu = pm.Deterministic("mu", a + b * x)
        sigma = pm.Deterministic("sigma", pm.math.exp(g0 + g1 * x))
        pm.Normal("y", mu=mu, sigma=sigma, observed=d["y"])
    return model


@entry("Bayesian Analysis with Python", variance, bounds={"x": (0, 24), "y": (30, 140)}, locations="a b", scales="s0")
def babies_root(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", d["x"])
        a, b = pm.Normal("a", 60, 10), pm.Normal("b", 0, 10)
        s0 = pm.HalfNormal("s0", 10)
        pm.Normal("y", mu=a + b * pm.math.sqrt(x), sigma=s0 * (1 + x / 24), observed=d["y"])
    return model


def costs(rng: np.random.Generator) -> Columns:
    age, smoker = rng.uniform(18, 64, 500), rng.integers(0, 2, 500)
    mean = np.exp(0.5 + 0.9 * (age - 41) / 23 + 0.8 * smoker)
    return {"age_c": (age - 41) / 23, "smoker": smoker, "cost": rng.gamma(2.5, mean / 2.5)}


@entry(ARM, costs, bounds={"age_c": (-1, 1), "cost": (0.01, 40)}, locations="a b", scales="alpha")
def gamma_costs(d: Table) -> pm.Model:
    with pm.Model(coords={"smoker": ["no", "yes"]}) as model:
        a = pm.Normal("a", 0, 1, dims="smoker")
        b = pm.Normal("b", 0, 1)
        alpha = pm.Exponential("alpha", 0.5)
        mu = pm.math.exp(a[d.smoker] + b * d.age_c)
        pm.Gamma("cost", alpha=alpha, beta=alpha / mu, observed=d["cost"])
    return model


def anova(rng: np.random.Generator) -> Columns:
    sex, site = rng.integers(0, 2, 480), rng.integers(0, 5, 480)
    y = 10 + np.array([-0.5, 0.5])[sex] + np.array([1, 0, -1, 0.5, -0.5])[site] + rng.normal(0, 1.5, 480)
    return {"sex": sex, "site": site, "y": y}


@entry(PYMC, anova, bounds={"y": (0, 20)}, locations="grand sex_effect site_effect", scales="sigma")
def zero_sum_anova(d: Table) -> pm.Model:
    coords = {"sex": ["f", "m"], "site": list("ABCDE"), "obs": np.arange(480)}
    with pm.Model(coords=coords) as model:
        sex_idx = pm.Data("sex_idx", d["sex"], dims="obs")
        site_idx = pm.Data("site_idx", d["site"], dims="obs")
        grand = pm.Normal("grand", 10, 5)
        sex_effect = pm.ZeroSumNormal("sex_effect", sigma=1, dims="sex")
        site_effect = pm.ZeroSumNormal("site_effect", sigma=2, dims="site")
        mu = grand + sex_effect[sex_idx] + site_effect[site_idx]
        pm.Normal("y", mu, pm.HalfNormal("sigma", 3), observed=d["y"], dims="obs")
    return model


def cylinder(rng: np.random.Generator) -> Columns:
    h = rng.uniform(0.4, 1.25, 544)
    return {"h": h, "w": np.exp(np.log(np.pi * 5.6 * 0.06 * h**3) + rng.normal(0, 0.2, 544))}


@entry(RETHINKING, cylinder, bounds={"h": (0.3, 1.5), "w": (0.01, 5)}, locations="", scales="sigma")
def howell_cylinder(d: Table) -> pm.Model:
    with pm.Model() as m16_1:
        h = pm.Data("h", d["h"])
        p = pm.Beta("p", 2, 18)
        k = pm.Exponential("k", 0.5)
        sigma = pm.Exponential("sigma", 1)
        mu = pm.math.log(np.pi * k * p**2 * h**3)
        pm.LogNormal("w", mu, sigma, observed=d["w"])
    return m16_1


def dugongs_rows(rng: np.random.Generator) -> Columns:
    age = rng.uniform(1, 31, 216)
    return {"age": age, "length": 2.65 - 0.97 * 0.87**age + rng.normal(0, 0.09, 216)}


@entry(
    "BUGS examples",
    dugongs_rows,
    bounds={"age": (1, 32), "length": (1, 3.5)},
    locations="alpha beta lam",
    scales="sigma",
)
def dugongs(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("age", d["age"])
        alpha, beta = pm.Normal("alpha", 2, 2), pm.Normal("beta", 1, 2)
        lam = pm.Uniform("lam", 0.5, 1)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("length", alpha - beta * lam**x, sigma, observed=d["length"])
    return model


def enzyme(rng: np.random.Generator) -> Columns:
    conc, state = rng.uniform(0.02, 1.1, 240), rng.integers(0, 2, 240)
    return {
        "conc": conc,
        "state": state,
        "rate": np.array([160, 210])[state] * conc / (0.06 + conc) + rng.normal(0, 10, 240),
    }


@entry("BUGS examples", enzyme, bounds={"conc": (0, 1.2), "rate": (0, 300)}, locations="Vm", scales="K sigma")
def puromycin(d: Table) -> pm.Model:
    with pm.Model() as model:
        conc = pm.Data("conc", d["conc"])
        Vm = pm.Normal("Vm", 200, 50, shape=2)
        K = pm.HalfNormal("K", 0.2)
        sigma = pm.HalfNormal("sigma", 20)
        pm.Normal("rate", Vm[d["state"]] * conc / (K + conc), sigma, observed=d["rate"])
    return model
