"""Choices among several, and vectors of counts."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry
from tests.gallery.linear import PYMC, RETHINKING


def careers(rng: np.random.Generator) -> Columns:
    income = np.array([1.0, 2.0, 5.0])
    p = np.exp(0.5 * income) / np.exp(0.5 * income).sum()
    family = rng.uniform(0, 1, 500)
    score = np.column_stack([0.5 + -2 * family, 1 + 0 * family, 1.5 * family * 2])
    chosen = np.array([rng.choice(3, p=np.exp(s) / np.exp(s).sum()) for s in score])
    return {"career": rng.choice(3, 500, p=p), "family_income": family, "chosen": chosen}


@entry(RETHINKING, careers, locations="a b")
def careers_softmax(d: Table) -> pm.Model:
    career_income = np.array([1.0, 2.0, 5.0])
    with pm.Model() as m11_13:
        a = pm.Normal("a", 0, 1, shape=2)
        b = pm.HalfNormal("b", 0.5)
        s0 = a[0] + b * career_income[0]
        s1 = a[1] + b * career_income[1]
        p_ = pm.math.stack([s0, s1, 0.0])
        p = pm.math.softmax(p_)
        pm.Categorical("career", p=p, observed=d["career"])
    return m11_13


@entry(RETHINKING, careers, bounds={"family_income": (0, 1)}, locations="a b")
def careers_income(d: Table) -> pm.Model:
    with pm.Model() as m11_14:
        a = pm.Normal("a", 0, 1.5, shape=2)
        b = pm.Normal("b", 0, 1, shape=2)
        family_income = pm.Data("family_income", d["family_income"])
        s0, s1 = a[0] + b[0] * family_income, a[1] + b[1] * family_income
        p_ = pm.math.stack([s0, s1, pt.zeros_like(s0)]).T
        pm.Categorical("career", p=pm.math.softmax(p_, axis=1), observed=d["chosen"])
    return m11_14


def irises(rng: np.random.Generator) -> Columns:
    species = np.repeat(np.arange(3), 100)
    x = rng.normal(0, 0.8, (300, 4)) + np.array([[-1, 0.5, -1.2, -1.2], [0.1, -0.4, 0.3, 0.2], [0.9, 0, 1, 1]])[species]
    return {"x": x, "species": species}


@entry("Bayesian Analysis with Python", irises, bounds={"x": (-5, 5)}, locations="alpha beta")
def iris_softmax(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Normal("alpha", mu=0, sigma=2, shape=2)
        beta = pm.Normal("beta", mu=0, sigma=2, shape=(4, 2))
        alpha_f = pt.concatenate([[0], alpha])
        beta_f = pt.concatenate([np.zeros((4, 1)), beta], axis=1)
        mu = alpha_f + pm.math.dot(d.x, beta_f)
        theta = pm.math.softmax(mu, axis=1)
        pm.Categorical("yl", p=theta, observed=d["species"])
    return model


def forests(rng: np.random.Generator) -> Columns:
    frac = np.array([0.45, 0.3, 0.15, 0.09, 0.01])
    return {"counts": np.array([rng.multinomial(50, rng.dirichlet(6 * frac)) for _ in range(210)])}


@entry(PYMC, forests, bounds={"counts": (0, 50)}, locations="frac", scales="conc")
def dirichlet_multinomial(d: Table) -> pm.Model:
    with pm.Model(coords={"tree": ["pine", "oak", "ebony", "rosewood", "mahogany"], "forest": np.arange(210)}) as model:
        frac = pm.Dirichlet("frac", a=np.ones(5), dims="tree")
        conc = pm.LogNormal("conc", mu=1, sigma=1)
        pm.DirichletMultinomial("counts", n=50, a=frac * conc, observed=d["counts"], dims=("forest", "tree"))
    return model


@entry(PYMC, forests, bounds={"counts": (0, 50)}, locations="frac")
def multinomial_shares(d: Table) -> pm.Model:
    with pm.Model(coords={"tree": ["pine", "oak", "ebony", "rosewood", "mahogany"], "forest": np.arange(210)}) as model:
        frac = pm.Dirichlet("frac", a=np.ones(5), dims="tree")
        pm.Multinomial("counts", n=50, p=frac, observed=d["counts"], dims=("forest", "tree"))
    return model
