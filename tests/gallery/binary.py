"""Yes or no: logistic, probit and complementary log-log regressions, shares of trials, ratings of pairs."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry, expit
from tests.gallery.linear import ARM, POSTERIORDB, PYMC, RETHINKING, nes


def visitors(rng: np.random.Generator) -> Columns:
    variant = np.repeat([0, 1], [1200, 1150])
    return {"variant": variant, "converted": rng.binomial(1, np.where(variant, 0.14, 0.11))}


@entry(PYMC, visitors, locations="theta")
def ab_test(d: Table) -> pm.Model:
    with pm.Model(coords={"variant": ["A", "B"]}) as model:
        theta = pm.Beta("theta", alpha=100, beta=900, dims="variant")
        pm.Bernoulli("converted", p=theta[d.variant], observed=d["converted"])
        pm.Deterministic("uplift", theta[1] / theta[0] - 1)
    return model


def chimpanzees(rng: np.random.Generator) -> Columns:
    actor, treatment = np.repeat(np.arange(7), 72), np.tile(np.arange(4), 126)
    block = np.tile(np.repeat(np.arange(6), 12), 7)
    logit = np.array([-0.4, 3, -0.7, -0.7, -0.4, 0.6, 2.1])[actor] + np.array([0, 0.5, -0.4, 0.4])[treatment]
    return {"actor": actor, "treatment": treatment, "block": block, "pulled_left": rng.binomial(1, expit(logit))}


@entry(RETHINKING, chimpanzees, locations="a b")
def chimpanzees_fixed(d: Table) -> pm.Model:
    with pm.Model() as m11_4:
        a = pm.Normal("a", 0, 1.5, shape=7)
        b = pm.Normal("b", 0, 0.5, shape=4)
        p = pm.Deterministic("p", pm.math.invlogit(a[d.actor] + b[d.treatment]))
        pm.Binomial("pulled_left", 1, p, observed=d["pulled_left"])
    return m11_4


@entry(RETHINKING, chimpanzees, locations="a_bar b", scales="sigma_a")
def chimpanzees_crossed(d: Table) -> pm.Model:
    with pm.Model() as m13_4nc:
        a_bar = pm.Normal("a_bar", 0, 1.5)
        sigma_a, sigma_g = pm.Exponential("sigma_a", 1), pm.Exponential("sigma_g", 1)
        b = pm.Normal("b", 0, 0.5, shape=4)
        z, x = pm.Normal("z", 0, 1, shape=7), pm.Normal("x", 0, 1, shape=6)
        logit_p = a_bar + z[d.actor] * sigma_a + x[d.block] * sigma_g + b[d.treatment]
        pm.Bernoulli("pulled_left", logit_p=logit_p, observed=d["pulled_left"])
    return m13_4nc


@entry(RETHINKING, chimpanzees, locations="g")
def chimpanzees_covarying(d: Table) -> pm.Model:
    with pm.Model(coords={"actor": range(7), "block": range(6), "treatment": range(4)}) as m14_3:
        g = pm.Normal("g", 0, 1, dims="treatment")
        chol_a, _, _ = pm.LKJCholeskyCov("chol_a", n=4, eta=2, sd_dist=pm.Exponential.dist(1), compute_corr=True)
        chol_b, _, _ = pm.LKJCholeskyCov("chol_b", n=4, eta=2, sd_dist=pm.Exponential.dist(1), compute_corr=True)
        z_a = pm.Normal("z_a", 0, 1, shape=(4, 7))
        z_b = pm.Normal("z_b", 0, 1, shape=(4, 6))
        alpha = pm.Deterministic("alpha", pt.dot(chol_a, z_a).T)
        beta = pm.Deterministic("beta", pt.dot(chol_b, z_b).T)
        p = pm.math.invlogit(g[d.treatment] + alpha[d.actor, d.treatment] + beta[d.block, d.treatment])
        pm.Bernoulli("pulled_left", p=p, observed=d["pulled_left"])
    return m14_3


def admissions(rng: np.random.Generator) -> Columns:
    dept = rng.choice(6, 4526, p=[0.21, 0.13, 0.2, 0.17, 0.13, 0.16])
    gender = rng.binomial(1, np.array([0.88, 0.95, 0.35, 0.53, 0.33, 0.52])[dept])
    return {
        "gid": 1 - gender,
        "dept": dept,
        "admit": rng.binomial(1, np.array([0.64, 0.63, 0.35, 0.34, 0.25, 0.06])[dept]),
    }


@entry(RETHINKING, admissions, locations="a delta")
def ucb_admissions(d: Table) -> pm.Model:
    with pm.Model() as m11_8:
        a = pm.Normal("a", 0, 1.5, shape=2)
        delta = pm.Normal("delta", 0, 1.5, shape=6)
        p = pm.math.invlogit(a[d.gid] + delta[d.dept])
        pm.Bernoulli("admit", p=p, observed=d["admit"])
    return m11_8


def applications(rng: np.random.Generator) -> Columns:
    gid, applied = np.tile([0, 1], 120), rng.integers(20, 400, 240)
    return {"gid": gid, "applications": applied, "admit": rng.binomial(applied, rng.beta(2.2, 3, 240))}


@entry(RETHINKING, applications, bounds={"admit": (0, 400), "applications": (1, 400)}, locations="a", scales="phi")
def ucb_beta_binomial(d: Table) -> pm.Model:
    with pm.Model() as m12_1:
        a = pm.Normal("a", 0, 1.5, shape=2)
        phi = pm.Exponential("phi", 1)
        theta = pm.Deterministic("theta", phi + 2)
        pbar = pm.Deterministic("pbar", pm.math.invlogit(a))
        N = pm.Data("applications", d["applications"])
        pm.BetaBinomial("admit", n=N, alpha=pbar[d.gid] * theta, beta=(1 - pbar[d.gid]) * theta, observed=d["admit"])
    return m12_1


def frogs(rng: np.random.Generator) -> Columns:
    density = rng.choice([10, 25, 35], 240)
    return {"tank": np.arange(240), "density": density, "surv": rng.binomial(density, expit(rng.normal(1.4, 1.6, 240)))}


@entry(RETHINKING, frogs, bounds={"surv": (0, 35), "density": (10, 35)}, locations="a_bar", scales="sigma")
def reedfrogs_tanks(d: Table) -> pm.Model:
    n_tanks = 240
    with pm.Model() as m13_2:
        a_bar = pm.Normal("a_bar", 0, 1.5)
        sigma = pm.Exponential("sigma", 1)
        a = pm.Normal("a", a_bar, sigma, shape=n_tanks)
        p = pm.math.invlogit(a[d.tank])
        pm.Binomial("surv", n=d.density, p=p, observed=d["surv"])
    return m13_2


def tadpoles(rng: np.random.Generator) -> Columns:
    tank = np.repeat(np.arange(48), 25)
    return {"tank": tank, "surv": rng.binomial(1, expit(rng.normal(1.4, 1.6, 48))[tank])}


@entry(RETHINKING, tadpoles, locations="a_bar a", scales="sigma")
def reedfrogs_tadpoles(d: Table) -> pm.Model:
    with pm.Model() as m13_2:
        a_bar = pm.Normal("a_bar", 0, 1.5)
        sigma = pm.Exponential("sigma", 1)
        a = pm.Normal("a", a_bar, sigma, shape=48)
        pm.Bernoulli("surv", logit_p=a[d.tank], observed=d["surv"])
    return m13_2


def wells_rows(rng: np.random.Generator) -> Columns:
    dist, arsenic = rng.exponential(48, 3020).clip(0, 340), 0.5 + rng.exponential(1.15, 3020).clip(0, 9)
    educ = rng.integers(0, 18, 3020) / 4
    logit = -0.15 - 0.9 * dist / 100 + 0.47 * arsenic + 0.17 * (educ - 1.2)
    return {"dist100": dist / 100, "arsenic": arsenic, "educ4": educ, "switched": rng.binomial(1, expit(logit))}


WELLS = {"dist100": (0, 4), "arsenic": (0, 10), "educ4": (0, 5)}


@entry(POSTERIORDB, wells_rows, bounds=WELLS, locations="alpha beta")
def wells_interaction(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0, 5)
        beta = pm.Normal("beta", 0, 5, shape=3)
        dist, arsenic = pm.Data("dist100", d["dist100"]), pm.Data("arsenic", d["arsenic"])
        eta = alpha + beta[0] * dist + beta[1] * arsenic + beta[2] * dist * arsenic
        pm.Bernoulli("switched", logit_p=eta, observed=d["switched"])
    return model


@entry(ARM, wells_rows, bounds=WELLS, locations="b")
def wells_log_arsenic(d: Table) -> pm.Model:
    with pm.Model(coords={"coef": ["intercept", "dist", "log_arsenic", "educ"]}) as model:
        dist = pm.Data("dist100", d["dist100"])
        arsenic = pm.Data("arsenic", d["arsenic"])
        educ = pm.Data("educ4", d["educ4"])
        b = pm.Normal("b", 0, 2.5, dims="coef")
        p = pm.math.sigmoid(b[0] + b[1] * dist + b[2] * pm.math.log(arsenic + 0.01) + b[3] * educ)
        pm.Bernoulli("switched", p=p, observed=d["switched"])
    return model


@entry(POSTERIORDB, nes, bounds={"income": (1, 5)}, locations="alpha beta")
def nes_logit(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0, 10)
        beta = pm.Normal("beta", 0, 10)
        pm.Bernoulli("vote", logit_p=alpha + beta * d.income, observed=d["vote"])
    return model


def adult(rng: np.random.Generator) -> Columns:
    age, hours, educ = rng.uniform(17, 80, 2000), rng.normal(40, 12, 2000).clip(1, 99), rng.integers(1, 17, 2000)
    a, h, e = (age - 40) / 10, (hours - 40) / 10, (educ - 10) / 3
    return {
        "age": a,
        "hours": h,
        "educ": e,
        "income": rng.binomial(1, expit(-1.2 + 0.6 * a - 0.25 * a**2 + 0.4 * h + e)),
    }


@entry(PYMC, adult, bounds={"age": (-3, 5), "hours": (-5, 7), "educ": (-4, 3)}, locations="intercept betas")
def adult_income(d: Table) -> pm.Model:
    with pm.Model() as model:
        age, hours, educ = pm.Data("age", d["age"]), pm.Data("hours", d["hours"]), pm.Data("educ", d["educ"])
        intercept = pm.Normal("intercept", 0, 10)
        betas = pm.Normal("betas", 0, 5, shape=4)
        logits = intercept + betas[0] * age + betas[1] * age**2 + betas[2] * educ + betas[3] * hours
        pm.Bernoulli("income", p=pm.math.sigmoid(logits), observed=d["income"])
    return model


def beetles(rng: np.random.Generator) -> Columns:
    dose = rng.uniform(1.65, 1.9, 480)
    return {"dose": dose - 1.77, "died": rng.binomial(1, 1 - np.exp(-np.exp(22 * (dose - 1.77))))}


@entry("BUGS examples", beetles, bounds={"dose": (-0.15, 0.15)}, locations="alpha beta")
def beetles_cloglog(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha, beta = pm.Normal("alpha", 0, 10), pm.Normal("beta", 0, 50)
        p = 1 - pm.math.exp(-pm.math.exp(alpha + beta * d.dose))
        pm.Bernoulli("died", p=p, observed=d["died"])
    return model


@entry("Bayesian Data Analysis", beetles, bounds={"dose": (-0.15, 0.15)}, locations="alpha beta")
def bioassay_probit(d: Table) -> pm.Model:
    with pm.Model() as model:
        dose = pm.Data("dose", d["dose"])
        alpha, beta = pm.Normal("alpha", 0, 5), pm.Normal("beta", 10, 20)
        pm.Bernoulli("died", p=pm.math.invprobit(alpha + beta * dose), observed=d["died"])
    return model


@entry(
    "Doing Bayesian Data Analysis", adult, bounds={"age": (-3, 5), "hours": (-5, 7), "educ": (-4, 3)}, locations="b0 b1"
)
def robust_logistic(d: Table) -> pm.Model:
    with pm.Model() as model:
        educ = pm.Data("educ", d["educ"])
        b0, b1 = pm.Normal("b0", 0, 2), pm.Normal("b1", 0, 2)
        guess = pm.Beta("guess", 1, 9)
        p = guess * 0.5 + (1 - guess) * pm.math.sigmoid(b0 + b1 * educ)
        pm.Bernoulli("income", p, observed=d["income"])
    return model


def psychometric(rng: np.random.Generator) -> Columns:
    intensity = rng.uniform(-2, 2, 600)
    return {"intensity": intensity, "yes": rng.binomial(1, 0.03 + 0.94 * expit(3 * (intensity - 0.2)))}


@entry(PYMC, psychometric, bounds={"intensity": (-2, 2)}, locations="threshold", scales="slope")
def psychometric_lapse(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("intensity", d["intensity"])
        threshold, slope = pm.Normal("threshold", 0, 1), pm.Gamma("slope", 2, 0.7)
        lapse, guess = pm.Beta("lapse", 1, 20), pm.Beta("guess", 1, 20)
        p = guess + (1 - guess - lapse) * pm.math.invlogit(slope * (x - threshold))
        pm.Bernoulli("yes", p=p, observed=d["yes"])
    return model


def hospitals(rng: np.random.Generator) -> Columns:
    hospital = rng.choice(12, 2800, p=np.array([1, 3, 2, 16, 4, 4, 3, 4, 4, 2, 5, 7]) / 55)
    return {"hospital": hospital, "death": rng.binomial(1, expit(rng.normal(-2.6, 0.4, 12))[hospital])}


@entry(POSTERIORDB, hospitals, locations="mu", scales="sigma")
def surgical(d: Table) -> pm.Model:
    with pm.Model(coords={"hospital": list("ABCDEFGHIJKL")}) as model:
        mu = pm.Normal("mu", 0, 1000**0.5)
        sigma = pm.InverseGamma("sigmasq", 0.5, 0.02) ** 0.5
        pm.Deterministic("sigma", sigma)
        b = pm.Normal("b", mu, sigma, dims="hospital")
        pm.Bernoulli("death", p=pm.math.invlogit(b[d.hospital]), observed=d["death"])
    return model


def plates(rng: np.random.Generator) -> Columns:
    x1, x2, n = rng.integers(0, 2, 210), rng.integers(0, 2, 210), rng.integers(5, 80, 210)
    logit = -0.55 + 0.08 * x1 + 1.35 * x2 - 0.8 * x1 * x2 + rng.normal(0, 0.3, 210)
    return {"x1": x1, "x2": x2, "n": n, "r": rng.binomial(n, expit(logit))}


@entry("BUGS examples", plates, bounds={"r": (0, 80), "n": (1, 80)}, public=("n",), locations="alpha")
def seeds(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0, 5, shape=4)
        sigma = pm.HalfNormal("sigma", 1)
        b = pm.Normal("b", 0, sigma, shape=210)
        eta = alpha[0] + alpha[1] * d.x1 + alpha[2] * d.x2 + alpha[3] * d.x1 * d.x2 + b
        pm.Binomial("r", n=d.n, p=pm.math.sigmoid(eta), observed=d["r"])
    return model


def games(rng: np.random.Generator) -> Columns:
    white, black = rng.integers(0, 15, 1500), rng.integers(0, 15, 1500)
    skill = rng.normal(0, 1, 15)
    return {"white": white, "black": black, "won": rng.binomial(1, expit(0.2 + skill[white] - skill[black]))}


@entry(PYMC, games, locations="advantage skill")
def bradley_terry(d: Table) -> pm.Model:
    with pm.Model(coords={"player": range(15)}) as model:
        advantage = pm.Normal("advantage", 0, 1)
        skill = pm.ZeroSumNormal("skill", sigma=1, dims="player")
        pm.Bernoulli("won", logit_p=advantage + skill[d.white] - skill[d.black], observed=d["won"])
    return model
