"""Ordered answers and durations: cutpoints, censored times, hazards."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry, expit
from tests.gallery.linear import ARM, PYMC, RETHINKING


def trolley(rng: np.random.Generator) -> Columns:
    n = 2000
    action, intention, contact = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    contact = contact * (1 - action)
    educ = rng.integers(0, 8, n)
    phi = -0.5 * action - 0.3 * contact - 0.3 * intention - 0.8 * intention * contact - 0.3 * educ / 7
    cuts = np.array([-2.9, -2.3, -1.8, -0.8, 0, 0.9])
    return {
        "A": action,
        "I": intention,
        "C": contact,
        "educ": educ,
        "response": (phi[:, None] + rng.logistic(size=(n, 1)) > cuts).sum(1),
    }


TROLLEY = {"A": (0, 1), "I": (0, 1), "C": (0, 1)}
START = np.arange(6) - 2.5


@entry(RETHINKING, trolley, locations="cutpoints")
def trolley_intercepts(d: Table) -> pm.Model:
    with pm.Model() as m12_4:
        cutpoints = pm.Normal(
            "cutpoints", 0, 1.5, transform=pm.distributions.transforms.ordered, shape=6, initval=START
        )
        pm.OrderedLogistic("R", cutpoints=cutpoints, eta=0, observed=d["response"], compute_p=False)
    return m12_4


@entry(RETHINKING, trolley, bounds=TROLLEY, locations="cutpoints bA bC bI bIA bIC")
def trolley_interactions(d: Table) -> pm.Model:
    with pm.Model() as m12_5:
        cutpoints = pm.Normal(
            "cutpoints", 0, 1.5, transform=pm.distributions.transforms.ordered, shape=6, initval=START
        )
        bA, bC, bI = pm.Normal("bA", 0, 0.5), pm.Normal("bC", 0, 0.5), pm.Normal("bI", 0, 0.5)
        bIA, bIC = pm.Normal("bIA", 0, 0.5), pm.Normal("bIC", 0, 0.5)
        A, I, C = pm.Data("A", d["A"]), pm.Data("I", d["I"]), pm.Data("C", d["C"])
        BI = bI + bIA * A + bIC * C
        phi = pm.Deterministic("phi", bA * A + bC * C + BI * I)
        pm.OrderedLogistic("R", eta=phi, cutpoints=cutpoints, observed=d["response"])
    return m12_5


@entry(RETHINKING, trolley, bounds=TROLLEY, locations="bA bC bI bE")
def trolley_education(d: Table) -> pm.Model:
    with pm.Model() as m12_6:
        bA, bC, bI, bE = (pm.Normal(name, 0, 1) for name in ("bA", "bC", "bI", "bE"))
        delta = pm.Dirichlet("delta", np.repeat(2.0, 7))
        delta_j = pt.concatenate([pt.zeros(1), delta])
        sums = pt.cumsum(delta_j)
        cutpoints = pm.Normal(
            "cutpoints", 0, 1.5, transform=pm.distributions.transforms.ordered, shape=6, initval=START
        )
        phi = bE * sums[d.educ] + bA * d.A + bI * d.I + bC * d.C
        pm.OrderedLogistic("R", cutpoints=cutpoints, eta=phi, observed=d["response"], compute_p=False)
    return m12_6


def movies(rng: np.random.Generator) -> Columns:
    movie = np.repeat(np.arange(3), 150)
    latent = rng.normal(np.array([3, 3.4, 2.8])[movie], np.array([1, 1.3, 0.8])[movie])
    return {"movie": movie, "rating": (latent[:, None] > np.array([1.5, 2.5, 3.5, 4.5])).sum(1)}


@entry(PYMC, movies, locations="mu", scales="sigma")
def movie_ratings(d: Table) -> pm.Model:
    with pm.Model(coords={"movie": range(3), "cut": range(4)}) as model:
        mu = pm.Normal("mu", 3, 3, dims="movie")
        sigma = pm.HalfNormal("sigma", 2, dims="movie")
        theta = pm.Data("thresholds", np.array([1.5, 2.5, 3.5, 4.5]), dims="cut")
        pm.OrderedProbit(
            "rating", eta=mu[d.movie], sigma=sigma[d.movie], cutpoints=theta, observed=d["rating"], compute_p=False
        )
    return model


@entry(PYMC, movies, locations="beta")
def ordered_dirichlet_cuts(d: Table) -> pm.Model:
    with pm.Model() as model:
        gaps = pm.Dirichlet("gaps", np.ones(3))
        cutpoints = pm.Deterministic("cutpoints", pt.concatenate([np.ones(1) * 1.0, 1 + 3 * pt.cumsum(gaps)]))
        beta = pm.Normal("beta", 2.5, 2, shape=3)
        scale = pm.HalfNormal("scale", 1)
        pm.OrderedLogistic(
            "rating", eta=beta[d["movie"]] / scale, cutpoints=cutpoints / scale, observed=d["rating"], compute_p=False
        )
    return model


def applicants(rng: np.random.Generator) -> Columns:
    pared, public, gpa = rng.integers(0, 2, 400), rng.integers(0, 2, 400), rng.normal(3, 0.4, 400).clip(1.9, 4)
    eta = 1.05 * pared - 0.05 * public + 0.6 * (gpa - 3)
    return {
        "X": np.column_stack([pared, public, gpa - 3]),
        "apply": ((eta + rng.logistic(size=400))[:, None] > [0.4, 2.4]).sum(1),
    }


@entry("UCLA data analysis examples", applicants, bounds={"X": (-2, 2)}, locations="beta cutpoints")
def graduate_school(d: Table) -> pm.Model:
    with pm.Model(coords={"predictors": ["pared", "public", "gpa"]}) as model:
        beta = pm.Normal("beta", 0, 1, dims="predictors")
        cutpoints = pm.Normal("cutpoints", mu=[0, 2], sigma=2, transform=pm.distributions.transforms.ordered)
        pm.OrderedLogistic(
            "apply", eta=pm.math.dot(d.X, beta), cutpoints=cutpoints, observed=d["apply"], compute_p=False
        )
    return model


# Durations -----------------------------------------------------------------------------------------------------------


def patients(rng: np.random.Generator) -> Columns:
    metastasized = rng.binomial(1, 0.6, 240)
    time = 6 * np.exp(-0.6 * metastasized) * rng.weibull(1.4, 240) + 0.02
    end = rng.uniform(2, 10, 240)
    return {"metastasized": metastasized, "time": np.minimum(time, end), "event": (time <= end).astype(int), "end": end}


TIMES = {
    "metastasized": (0, 1),
    "time": (0.01, 10),
    "end": (2, 10),
    "event": (0, 1),
    "days": (0.01, 40),
    "t": (0.01, 10),
}


@entry(PYMC, patients, bounds=TIMES, locations="beta", scales="alpha")
def weibull_aft_potential(d: Table) -> pm.Model:
    dead = d["event"] == 1
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 2)
        beta = pm.Normal("beta", 0, 2, shape=2)
        eta = pm.math.exp(beta[0] + beta[1] * d["metastasized"])
        pm.Weibull("time", alpha=alpha, beta=eta[dead], observed=d["time"][dead])
        pm.Potential("censored", -((d["time"][~dead] / eta[~dead]) ** alpha))
    return model


@entry(PYMC, patients, bounds=TIMES, locations="beta", scales="alpha")
def weibull_aft_censored(d: Table) -> pm.Model:
    with pm.Model() as model:
        metastasized = pm.Data("metastasized", d["metastasized"])
        end = pm.Data("end", np.where(d["event"] == 1, 10, d["time"]))
        alpha = pm.HalfNormal("alpha", 2)
        beta = pm.Normal("beta", 0, 2, shape=2)
        latent = pm.Weibull.dist(alpha=alpha, beta=pm.math.exp(beta[0] + beta[1] * metastasized))
        pm.Censored("time", latent, lower=None, upper=end, observed=d["time"])
    return model


@entry(PYMC, patients, bounds=TIMES, locations="mu beta", scales="sigma")
def lognormal_aft(d: Table) -> pm.Model:
    with pm.Model() as model:
        metastasized = pm.Data("metastasized", d["metastasized"])
        mu, beta, sigma = pm.Normal("mu", 1, 1), pm.Normal("beta", 0, 1), pm.HalfNormal("sigma", 1)
        latent = pm.LogNormal.dist(mu + beta * metastasized, sigma)
        pm.Censored("time", latent, lower=None, upper=10.0, observed=d["time"])
    return model


def cats_rows(rng: np.random.Generator) -> Columns:
    black = rng.binomial(1, 0.2, 1500)
    days = rng.exponential(np.where(black, 50, 46)) + 1
    return {"black": black, "adopted": rng.binomial(1, 0.5, 1500), "days": days.clip(1, 250) / 10}


@entry(RETHINKING, cats_rows, bounds={"days": (0.1, 25)}, locations="a")
def adopted_cats(d: Table) -> pm.Model:
    with pm.Model() as m11_15:
        a = pm.Normal("a", 0, 1, shape=2)
        adopted = pm.Data("adopted", d["adopted"])
        lam = 1 / pm.math.exp(a[d.black])

        def logp(days, lam, adopted):
            return pm.math.switch(pt.eq(adopted, 1), pm.math.log(lam) - lam * days, -lam * days)

        pm.CustomDist("days", lam, adopted, logp=logp, observed=d["days"])
    return m11_15


def intervals(rng: np.random.Generator) -> Columns:
    interval, treated, exposure = rng.integers(0, 10, 1500), rng.integers(0, 2, 1500), rng.uniform(0.2, 3, 1500)
    hazard = 0.1 * np.exp(0.1 * interval - 0.5 * treated)
    return {
        "interval": interval,
        "treated": treated,
        "exposure": exposure,
        "death": rng.poisson(hazard * exposure).clip(0, 1),
    }


@entry(
    PYMC, intervals, bounds={"exposure": (0, 3), "death": (0, 1), "treated": (0, 1)}, locations="beta", scales="lambda0"
)
def piecewise_exponential(d: Table) -> pm.Model:
    with pm.Model(coords={"interval": range(10)}) as model:
        exposure, treated = pm.Data("exposure", d["exposure"]), pm.Data("treated", d["treated"])
        lambda0 = pm.Gamma("lambda0", 0.01, 0.01, dims="interval")
        beta = pm.Normal("beta", 0, sigma=1000)
        mu = exposure * pm.math.exp(beta * treated) * lambda0[d["interval"]]
        pm.Poisson("death", mu, observed=d["death"])
    return model


@entry(ARM, intervals, bounds={"treated": (0, 1)}, locations="baseline beta")
def discrete_hazard(d: Table) -> pm.Model:
    with pm.Model(coords={"interval": range(10)}) as model:
        baseline = pm.Normal("baseline", -2, 1.5, dims="interval")
        beta = pm.Normal("beta", 0, 1)
        p = 1 - pt.exp(-pt.exp(baseline[d.interval] + beta * d.treated))
        pm.Bernoulli("died", p, observed=d["death"])
    return model


def waits(rng: np.random.Generator) -> Columns:
    kind = rng.integers(0, 3, 300)
    return {"kind": kind, "wait": rng.gamma(2.2, np.array([1, 1.5, 2.4])[kind]), "speed": expit(rng.normal(0, 1, 300))}


@entry("Think Bayes", waits, bounds={"wait": (0.01, 30)}, locations="", scales="alpha beta")
def waiting_gamma(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.HalfNormal("alpha", 3)
        beta = pm.HalfNormal("beta", 2, shape=3)
        pm.Gamma("wait", alpha=alpha, beta=beta[d.kind], observed=d["wait"])
    return model


def answers_in_steps(rng: np.random.Generator) -> Columns:
    item, person = np.tile(np.arange(5), 60), np.repeat(np.arange(60), 5)
    at = rng.normal(0, 1, 60)[person][:, None] - np.linspace(-1, 1, 5)[item][:, None] + [0.0, -0.8]
    steps = np.column_stack([np.zeros(300), np.cumsum(at, axis=1)])
    answer = (steps + rng.gumbel(size=steps.shape)).argmax(axis=1)
    return {"item": item, "person": person, "answer": answer}


@entry("posteriordb", answers_in_steps, locations="b", scales="a")
def partial_credit(d: Table) -> pm.Model:
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 1, shape=60)
        a, b = pm.LogNormal("a", 0, 0.5, shape=5), pm.Normal("b", 0, 2, shape=(5, 2))
        steps = pt.cumsum(a[d.item][:, None] * (theta[d.person][:, None] - b[d.item]), axis=1)
        logits = pt.concatenate([pt.zeros_like(steps[:, :1]), steps], axis=1)
        pm.Categorical("answer", logit_p=logits, observed=d["answer"])
    return model
