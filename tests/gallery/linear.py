"""Lines: one response with a normal, heavier or skewed distribution around a linear or curved mean."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry, standardize

RETHINKING, ARM, PYMC, POSTERIORDB = (
    "Statistical Rethinking",
    "Regression and Other Stories",
    "PyMC examples",
    "posteriordb",
)


def howell(rng: np.random.Generator) -> Columns:
    male = rng.integers(0, 2, 352)
    weight = rng.normal(42 + 7 * male, 5.5)
    height = 113.5 + 0.9 * weight + 3 * male + rng.normal(0, 4.5, 352)
    weight_s = standardize(weight)
    return {
        "male": male,
        "weight": weight,
        "weight_c": weight - weight.mean(),
        "weight_s": weight_s,
        "weight_s2": weight_s**2,
        "weight_s3": weight_s**3,
        "height": height,
    }


HOWELL = {"height": (100, 220), "weight": (20, 80), "weight_c": (-30, 30), "weight_s": (-4, 4)}


@entry(RETHINKING, howell, bounds=HOWELL, locations="mu", scales="sigma")
def howell_height(d: Table) -> pm.Model:
    with pm.Model() as m4_1:
        mu = pm.Normal("mu", mu=178, sigma=20)
        sigma = pm.Uniform("sigma", lower=0, upper=50)
        pm.Normal("height", mu=mu, sigma=sigma, observed=d["height"])
    return m4_1


@entry(RETHINKING, howell, bounds=HOWELL, locations="a b", scales="sigma")
def howell_line(d: Table) -> pm.Model:
    with pm.Model() as m4_3:
        a = pm.Normal("a", mu=178, sigma=20)
        b = pm.LogNormal("b", mu=0, sigma=1)
        sigma = pm.Uniform("sigma", 0, 50)
        mu = pm.Deterministic("mu", a + b * d.weight_c)
        pm.Normal("height", mu=mu, sigma=sigma, observed=d["height"])
    return m4_3


@entry(RETHINKING, howell, bounds=HOWELL, locations="a b1 b2", scales="sigma")
def howell_parabola(d: Table) -> pm.Model:
    with pm.Model() as m4_5:
        a = pm.Normal("a", mu=178, sigma=100)
        b1 = pm.LogNormal("b1", mu=0, sigma=1)
        b2 = pm.Normal("b2", mu=0, sigma=1)
        sigma = pm.Uniform("sigma", 0, 50)
        weight_s = pm.Data("weight_s", d["weight_s"])
        mu = a + b1 * weight_s + b2 * weight_s**2
        pm.Normal("height", mu=mu, sigma=sigma, observed=d["height"])
    return m4_5


@entry(RETHINKING, howell, bounds={**HOWELL, "weight_m": (-64, 64)}, locations="a b", scales="sigma")
def howell_cubic(d: Table) -> pm.Model:
    weight_m = np.vstack((d["weight_s"], d["weight_s2"], d["weight_s3"])).T
    with pm.Model() as m4_6:
        weight_m = pm.Data("weight_m", weight_m)
        a = pm.Normal("a", mu=178, sigma=100)
        b = pm.Normal("b", mu=0, sigma=10, shape=3)
        sigma = pm.Uniform("sigma", 0, 50)
        mu = pm.Deterministic("mu", a + pm.math.dot(weight_m, b))
        pm.Normal("height", mu=mu, sigma=sigma, observed=d["height"])
    return m4_6


@entry(RETHINKING, howell, bounds=HOWELL, locations="mu", scales="sigma")
def howell_sex(d: Table) -> pm.Model:
    with pm.Model() as m5_8:
        sigma = pm.Uniform("sigma", 0, 50)
        mu = pm.Normal("mu", 178, 20, shape=2)
        pm.Normal("height", mu[d.male], sigma, observed=d["height"])
        pm.Deterministic("difference", mu[0] - mu[1])
    return m5_8


def divorce(rng: np.random.Generator) -> Columns:
    age = rng.normal(26, 1.2, 250)
    marriage = 20 - 2 * (age - 26) + rng.normal(0, 3, 250)
    rate = 9.7 - 1.0 * (age - 26) + rng.normal(0, 1.4, 250)
    return {"A": standardize(age), "M": standardize(marriage), "D": standardize(rate)}


@entry(RETHINKING, divorce, bounds={"D": (-5, 5), "A": (-5, 5), "M": (-5, 5)}, locations="a bA bM", scales="sigma")
def waffle_divorce(d: Table) -> pm.Model:
    with pm.Model() as m5_3:
        a = pm.Normal("a", 0, 0.2)
        bA = pm.Normal("bA", 0, 0.5)
        bM = pm.Normal("bM", 0, 0.5)
        sigma = pm.Exponential("sigma", 1)
        mu = pm.Deterministic("mu", a + bA * d.A + bM * d.M)
        pm.Normal("D", mu, sigma, observed=d["D"])
    return m5_3


@entry(
    RETHINKING,
    divorce,
    bounds={"D": (-5, 5), "A": (-5, 5), "M": (-5, 5)},
    locations="a aM bA bM bAM",
    scales="sigma sigma_M",
)
def waffle_counterfactual(d: Table) -> pm.Model:
    with pm.Model() as m5_3_A:
        A = pm.Data("A", d["A"])
        aM, bAM = pm.Normal("aM", 0, 0.2), pm.Normal("bAM", 0, 0.5)
        M = pm.Normal("M", aM + bAM * A, pm.Exponential("sigma_M", 1), observed=d["M"])
        a, bA, bM = pm.Normal("a", 0, 0.2), pm.Normal("bA", 0, 0.5), pm.Normal("bM", 0, 0.5)
        pm.Normal("D", a + bA * A + bM * M, pm.Exponential("sigma", 1), observed=d["D"])
    return m5_3_A


def milk(rng: np.random.Generator) -> Columns:
    clade = rng.integers(0, 4, 290)
    neocortex = rng.normal(67, 6, 290)
    log_mass = 1.4 + 0.15 * (neocortex - 67) + rng.normal(0, 1.2, 290)
    kcal = 0.64 + 0.008 * (neocortex - 67) - 0.04 * log_mass + 0.05 * (clade - 1.5) + rng.normal(0, 0.1, 290)
    return {"clade_id": clade, "N": standardize(neocortex), "M": standardize(log_mass), "K": standardize(kcal)}


@entry(RETHINKING, milk, bounds={"K": (-5, 5), "N": (-5, 5), "M": (-5, 5)}, locations="a bN bM", scales="sigma")
def milk_masked(d: Table) -> pm.Model:
    with pm.Model() as m5_7:
        sigma = pm.Exponential("sigma", 1)
        bN = pm.Normal("bN", 0, 0.5)
        bM = pm.Normal("bM", 0, 0.5)
        a = pm.Normal("a", 0, 0.2)
        mu = a + bN * d.N + bM * d.M
        pm.Normal("K", mu, sigma, observed=d["K"])
    return m5_7


@entry(RETHINKING, milk, bounds={"K": (-5, 5)}, locations="mu", scales="sigma")
def milk_clades(d: Table) -> pm.Model:
    with pm.Model(coords={"clade": ["ape", "new", "old", "strepsirrhine"]}) as m5_9:
        sigma = pm.Exponential("sigma", 1)
        mu = pm.Normal("mu", 0, 0.5, dims="clade")
        pm.Normal("K", mu[d.clade_id], sigma, observed=d["K"])
    return m5_9


def plants(rng: np.random.Generator) -> Columns:
    treatment = np.repeat([0, 1], 150)
    fungus = rng.binomial(1, 0.5 - 0.4 * treatment)
    h0 = rng.normal(10, 2, 300)
    return {"h0": h0, "treatment": treatment, "fungus": fungus, "h1": h0 + rng.normal(5 - 3 * fungus, 1)}


@entry(
    RETHINKING,
    plants,
    bounds={"h0": (2, 20), "h1": (2, 30), "treatment": (0, 1), "fungus": (0, 1)},
    locations="a bt bf",
    scales="sigma",
)
def fungus_post_treatment(d: Table) -> pm.Model:
    with pm.Model() as m6_7:
        a = pm.LogNormal("a", 0, 0.2)
        bt = pm.Normal("bt", 0, 0.5)
        bf = pm.Normal("bf", 0, 0.5)
        p = a + bt * d.treatment + bf * d.fungus
        mu = p * d.h0
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("h1", mu, sigma, observed=d["h1"])
    return m6_7


def rugged(rng: np.random.Generator) -> Columns:
    cid, rough = rng.integers(0, 2, 234), rng.beta(1, 3, 234)
    gdp = 1 + 0.05 * (1 - cid) - 0.12 * cid + np.where(cid, 0.13, -0.14) * (rough - 0.215) + rng.normal(0, 0.11, 234)
    return {"cid": cid, "rugged_std": rough, "log_gdp_std": gdp}


@entry(RETHINKING, rugged, bounds={"rugged_std": (0, 1), "log_gdp": (0.4, 1.6)}, locations="a b", scales="sigma")
def ruggedness_interaction(d: Table) -> pm.Model:
    with pm.Model() as m8_3:
        a = pm.Normal("a", 1, 0.1, shape=2)
        b = pm.Normal("b", 0, 0.3, shape=2)
        mu = a[d.cid] + b[d.cid] * (d.rugged_std - 0.215)
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("log_gdp", mu, sigma, observed=d["log_gdp_std"])
    return m8_3


def tulips(rng: np.random.Generator) -> Columns:
    water, shade = np.tile([-1, 0, 1], 72), np.repeat([-1, 0, 1], 72)
    blooms = 0.36 + 0.2 * water - 0.11 * shade - 0.14 * water * shade + rng.normal(0, 0.12, 216)
    return {"water_cent": water, "shade_cent": shade, "blooms_std": np.clip(blooms, 0, 1)}


@entry(
    RETHINKING,
    tulips,
    bounds={"water_cent": (-1, 1), "shade_cent": (-1, 1), "blooms": (-0.5, 1.5)},
    locations="a bw bs bws",
    scales="sigma",
)
def tulips_interaction(d: Table) -> pm.Model:
    with pm.Model() as m8_5:
        a = pm.Normal("a", 0.5, 0.25)
        bw = pm.Normal("bw", 0, 0.25)
        bs = pm.Normal("bs", 0, 0.25)
        bws = pm.Normal("bws", 0, 0.25)
        mu = a + bw * d.water_cent + bs * d.shade_cent + bws * d.water_cent * d.shade_cent
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("blooms", mu, sigma, observed=d["blooms_std"])
    return m8_5


def kidiq(rng: np.random.Generator) -> Columns:
    mom_hs = rng.binomial(1, 0.79, 434)
    mom_iq = rng.normal(94 + 7 * mom_hs, 14)
    score = -11 + 51 * mom_hs + 0.97 * mom_iq - 0.48 * mom_hs * mom_iq + rng.normal(0, 18, 434)
    return {"mom_hs": mom_hs, "mom_iq": mom_iq, "kid_score": score, "inter": mom_hs * mom_iq}


KIDS = {"mom_hs": (0, 1), "mom_iq": (60, 150), "kid_score": (0, 200), "inter": (0, 150)}


@entry(ARM, kidiq, bounds=KIDS, locations="beta", scales="sigma")
def kidiq_interaction(d: Table) -> pm.Model:
    with pm.Model(coords={"coef": ["1", "hs", "iq", "hs:iq"]}) as model:
        mom_hs = pm.Data("mom_hs", d["mom_hs"])
        mom_iq = pm.Data("mom_iq", d["mom_iq"])
        beta = pm.Normal("beta", 0, 100, dims="coef")
        sigma = pm.HalfCauchy("sigma", beta=2.5)
        mu = beta[0] + beta[1] * mom_hs + beta[2] * mom_iq + beta[3] * mom_hs * mom_iq
        pm.Normal("kid_score", mu=mu, sigma=sigma, observed=d["kid_score"])
    return model


@entry(POSTERIORDB, kidiq, bounds=KIDS, locations="beta", scales="sigma")
def kidscore_mom_work(d: Table) -> pm.Model:
    X = np.column_stack([np.ones(434), d["mom_hs"], (d["mom_iq"] - 100) / 15])
    with pm.Model() as model:
        beta = pm.Flat("beta", shape=3)
        sigma = pm.HalfFlat("sigma")
        pm.Normal("kid_score", X @ beta, sigma, observed=d["kid_score"])
    return model


def earnings(rng: np.random.Generator) -> Columns:
    male = rng.binomial(1, 0.42, 1192)
    height = rng.normal(64.5 + 5 * male, 2.6)
    log_earn = 8.4 + 0.017 * height - 0.08 * male + 0.007 * height * male + rng.normal(0, 0.88, 1192)
    return {
        "height": height,
        "male": male,
        "log_earn": log_earn,
        "z_height": standardize(height),
        "earn": np.exp(log_earn),
    }


EARNINGS = {"log_earn": (4, 14), "z_height": (-4, 4), "male": (0, 1), "height": (50, 85), "earn": (100, 300_000)}


@entry(POSTERIORDB, earnings, bounds=EARNINGS, locations="b0 b_height b_male b_inter", scales="sigma")
def logearn_interaction(d: Table) -> pm.Model:
    with pm.Model() as model:
        z_height, male = pm.Data("z_height", d["z_height"]), pm.Data("male", d["male"])
        b0 = pm.Normal("b0", 0, 20)
        b_height, b_male, b_inter = pm.Normal("b_height", 0, 5), pm.Normal("b_male", 0, 5), pm.Normal("b_inter", 0, 5)
        sigma = pm.HalfNormal("sigma", 5)
        mu = b0 + b_height * z_height + b_male * male + b_inter * z_height * male
        pm.Normal("log_earn", mu, sigma, observed=d["log_earn"])
    return model


@entry(ARM, earnings, bounds=EARNINGS, locations="b0 b1", scales="sigma")
def earnings_lognormal(d: Table) -> pm.Model:
    with pm.Model() as model:
        height = pm.Data("z_height", d["z_height"])
        b0, b1 = pm.Normal("b0", 9, 3), pm.Normal("b1", 0, 1)
        sigma = pm.HalfNormal("sigma", 2)
        pm.LogNormal("earn", mu=b0 + b1 * height, sigma=sigma, observed=d["earn"])
    return model


def mesquite(rng: np.random.Generator) -> Columns:
    logs = rng.normal([0.6, 0.3, 0.3, 0.1], [0.5, 0.5, 0.4, 0.3], size=(230, 4))
    log_weight = 4.8 + logs @ [0.4, 1.1, 0.4, 0.3] + rng.normal(0, 0.33, 230)
    return {"X": logs, "log_weight": log_weight}


@entry(POSTERIORDB, mesquite, bounds={"X": (-3, 3), "log_weight": (0, 12)}, locations="beta0 beta", scales="sigma")
def mesquite_logs(d: Table) -> pm.Model:
    with pm.Model(coords={"leaf": ["diam1", "diam2", "canopy", "total"]}) as model:
        X = pm.Data("X", d["X"], dims=("obs", "leaf"))
        beta0 = pm.Normal("beta0", 0, 10)
        beta = pm.Normal("beta", 0, 5, dims="leaf")
        sigma = pm.HalfCauchy("sigma", 2)
        pm.Normal("log_weight", beta0 + pm.math.dot(X, beta), sigma, observed=d["log_weight"], dims="obs")
    return model


def nes(rng: np.random.Generator) -> Columns:
    columns = np.column_stack(
        [rng.integers(1, 8, 1179), rng.integers(0, 2, 1179), rng.integers(1, 5, 1179), rng.integers(1, 6, 1179)]
    ).astype(float)
    age = rng.integers(0, 4, 1179)
    party = 1.5 + columns @ [0.48, -1.1, 0.3, 0.17] + np.array([0, -0.2, -0.05, -0.1])[age] + rng.normal(0, 1.9, 1179)
    return {
        "X": columns,
        "age_discrete": age,
        "partyid7": party,
        "vote": rng.binomial(1, 1 / (1 + np.exp(1.4 - 0.33 * columns[:, 3]))),
        "income": columns[:, 3],
    }


@entry(POSTERIORDB, nes, bounds={"X": (0, 8), "partyid7": (-6, 14)}, locations="beta age", scales="sigma")
def nes_party(d: Table) -> pm.Model:
    with pm.Model() as model:
        X = pm.Data("X", d["X"])
        beta = pm.Normal("beta", 0, 5, shape=4)
        age = pm.Normal("age", 0, 5, shape=4)
        sigma = pm.HalfNormal("sigma", 5)
        pm.Normal("partyid7", X @ beta + age[d["age_discrete"]], sigma, observed=d["partyid7"])
    return model


def outliers(rng: np.random.Generator) -> Columns:
    x = np.linspace(0, 1, 300)
    return {"x": x, "y": 1 + 2 * x + 0.4 * rng.standard_t(2, 300)}


@entry(PYMC, outliers, bounds={"x": (0, 1), "y": (-5, 9)}, locations="alpha beta", scales="sigma")
def robust_line(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", d["x"], dims="obs_id")
        alpha = pm.Normal("alpha", 0, 10)
        beta = pm.Normal("beta", 0, 10)
        sigma = pm.HalfCauchy("sigma", 5)
        nu = pm.InverseGamma("nu", 1, 1)
        pm.StudentT("y", nu=nu, mu=alpha + beta * x, sigma=sigma, observed=d["y"], dims="obs_id")
    return model


def drug(rng: np.random.Generator) -> Columns:
    group = np.repeat([0, 1], [130, 120])
    return {"group": group, "iq": np.where(group, 100.3, 101.7) + 2.5 * rng.standard_t(3, 250)}


@entry(PYMC, drug, bounds={"drug": (70, 130), "placebo": (70, 130), "iq": (70, 130)}, locations="mu", scales="sigma")
def best_two_groups(d: Table) -> pm.Model:
    with pm.Model(coords={"group": ["drug", "placebo"]}) as model:
        mu = pm.Normal("mu", mu=101, sigma=10, dims="group")
        sigma = pm.Uniform("sigma", lower=1, upper=10, dims="group")
        nu = pm.Exponential("nu_minus_one", 1 / 29.0) + 1
        pm.StudentT("iq", nu=nu, mu=mu[d.group], lam=sigma[d.group] ** -2, observed=d["iq"])
        pm.Deterministic("effect size", (mu[0] - mu[1]) / pm.math.sqrt((sigma[0] ** 2 + sigma[1] ** 2) / 2))
    return model


def diabetes(rng: np.random.Generator) -> Columns:
    X = rng.normal(size=(442, 10))
    beta = np.array([0, -0.15, 0.33, 0.2, 0, 0, 0, 0, 0.3, 0])
    return {"X": X, "target": X @ beta + rng.normal(0, 0.7, 442)}


@entry(PYMC, diabetes, bounds={"X": (-4, 4), "target": (-6, 6)}, locations="alpha", scales="sigma")
def regularized_horseshoe(d: Table) -> pm.Model:
    with pm.Model(coords={"predictors": [f"x{i}" for i in range(10)]}) as model:
        X = pm.Data("X", d["X"])
        sigma = pm.HalfNormal("sigma", 2.5)
        tau = pm.HalfStudentT("tau", 2, 3 / (10 - 3) * sigma / np.sqrt(442))
        lam = pm.HalfStudentT("lam", 5, dims="predictors")
        c2 = pm.InverseGamma("c2", 1, 1)
        z = pm.Normal("z", 0.0, 1.0, dims="predictors")
        beta = pm.Deterministic("beta", z * tau * lam * pt.sqrt(c2 / (c2 + tau**2 * lam**2)), dims="predictors")
        alpha = pm.Normal("alpha", 0, 2)
        pm.Normal("target", alpha + pm.math.dot(X, beta), sigma, observed=d["target"])
    return model


@entry(PYMC, diabetes, bounds={"X": (-4, 4), "target": (-6, 6)}, locations="intercept beta", scales="sigma")
def lasso(d: Table) -> pm.Model:
    with pm.Model() as model:
        intercept = pm.Normal("intercept", 0, 1)
        beta = pm.Laplace("beta", 0, 0.5, shape=10)
        sigma = pm.HalfCauchy("sigma", 1)
        pm.Normal("target", intercept + pt.dot(d.X, beta), sigma, observed=d["target"])
    return model
