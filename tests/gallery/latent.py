"""Answers of people to items, components of mixtures, and columns that are measured with error, missing or cut."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry, expit, standardize
from tests.gallery.linear import POSTERIORDB, PYMC, RETHINKING

# Item response -------------------------------------------------------------------------------------------------------


def answers(rng: np.random.Generator) -> Columns:
    person, item = np.repeat(np.arange(60), 20), np.tile(np.arange(20), 60)
    ability, difficulty, slope = rng.normal(0, 1, 60), rng.normal(0, 1, 20), rng.lognormal(0, 0.3, 20)
    p = expit(slope[item] * (ability[person] - difficulty[item]))
    return {"person": person, "item": item, "correct": rng.binomial(1, p)}


@entry("Stan user's guide", answers, locations="mean difficulty")
def rasch(d: Table) -> pm.Model:
    with pm.Model(coords={"person": range(60), "item": range(20)}) as model:
        ability = pm.Normal("ability", 0, 1, dims="person")
        mean = pm.Normal("mean", 0.75, 1)
        difficulty = pm.Normal("difficulty", 0, 1, dims="item")
        pm.Bernoulli("correct", logit_p=ability[d.person] - difficulty[d.item] + mean, observed=d["correct"])
    return model


@entry(POSTERIORDB, answers, locations="mu_beta", scales="sigma_beta")
def irt_2pl(d: Table) -> pm.Model:
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 1, shape=60)
        sigma_a, sigma_beta = pm.HalfCauchy("sigma_a", 2), pm.HalfCauchy("sigma_beta", 2)
        a = pm.LogNormal("a", 0, sigma_a, shape=20)
        mu_beta = pm.Normal("mu_beta", 0, 5)
        b = pm.Normal("b", mu_beta, sigma_beta, shape=20)
        pm.Bernoulli("correct", p=pm.math.invlogit(a[d.item] * (theta[d.person] - b[d.item])), observed=d["correct"])
    return model


def sheets(rng: np.random.Generator) -> Columns:
    return {"responses": rng.binomial(1, expit(rng.normal(0, 1, (220, 1)) - rng.normal(0, 1, 10)))}


@entry(PYMC, sheets, locations="difficulty")
def irt_wide(d: Table) -> pm.Model:
    with pm.Model(coords={"person": range(220), "item": range(10)}) as model:
        ability = pm.Normal("ability", 0, 1, dims="person")
        difficulty = pm.Normal("difficulty", 0, 1, dims="item")
        eta = ability[:, None] - difficulty[None, :]
        pm.Bernoulli("responses", logit_p=eta, observed=d["responses"], dims=("person", "item"))
    return model


# Mixtures ------------------------------------------------------------------------------------------------------------


def clusters(rng: np.random.Generator) -> Columns:
    k = rng.choice(3, 500, p=[0.3, 0.5, 0.2])
    return {"x": rng.normal(np.array([-5, 0, 5])[k], np.array([0.5, 2.0, 0.75])[k])}


@entry(PYMC, clusters, bounds={"x": (-15, 15)}, locations="mu", scales="sigma")
def gaussian_mixture(d: Table) -> pm.Model:
    with pm.Model(coords={"cluster": range(3)}) as model:
        mu = pm.Normal(
            "mu", mu=0, sigma=5, transform=pm.distributions.transforms.ordered, initval=[-4, 0, 4], dims="cluster"
        )
        sigma = pm.HalfNormal("sigma", sigma=1, dims="cluster")
        weights = pm.Dirichlet("w", np.ones(3), dims="cluster")
        pm.NormalMixture("x", w=weights, mu=mu, sigma=sigma, observed=d["x"])
    return model


@entry(POSTERIORDB, clusters, bounds={"x": (-15, 15)}, locations="mu1 mu2", scales="sigma1 sigma2")
def mixture_of_two(d: Table) -> pm.Model:
    with pm.Model() as model:
        mu1, mu2 = pm.Normal("mu1", -5, 2), pm.Normal("mu2", 2, 2)
        sigma1, sigma2 = pm.HalfNormal("sigma1", 2), pm.HalfNormal("sigma2", 4)
        theta = pm.Beta("theta", 5, 5)
        components = [pm.Normal.dist(mu1, sigma1), pm.Normal.dist(mu2, sigma2)]
        pm.Mixture("x", w=pt.stack([theta, 1 - theta]), comp_dists=components, observed=d["x"])
    return model


@entry(PYMC, clusters, bounds={"x": (-15, 15)}, locations="mu")
def mixture_of_categories(d: Table) -> pm.Model:
    with pm.Model() as model:
        p = pm.Dirichlet("p", a=np.ones(3), shape=3)
        mu = pm.Normal("mu", mu=[-5, 0, 5], sigma=2, shape=3)
        sd = pm.Uniform("sd", lower=0, upper=5)
        category = pm.Categorical("category", p=p, shape=500)
        pm.Normal("x", mu=mu[category], sigma=sd, observed=d["x"])
    return model


@entry(PYMC, clusters, bounds={"x": (-15, 15)}, locations="")
def dirichlet_process(d: Table) -> pm.Model:
    def stick_breaking(beta):
        remaining = pt.concatenate([[1], pt.extra_ops.cumprod(1 - beta)[:-1]])
        return beta * remaining

    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0)
        beta = pm.Beta("beta", 1.0, alpha, shape=8)
        w = pm.Deterministic("w", stick_breaking(beta))
        tau = pm.Gamma("tau", 1.0, 1.0, shape=8)
        mu = pm.Normal("mu", 0, 4, shape=8)
        pm.NormalMixture("x", w, mu, tau=tau, observed=d["x"])
    return model


def two_lines(rng: np.random.Generator) -> Columns:
    x, k = rng.uniform(-1, 1, 400), rng.binomial(1, 0.35, 400)
    return {"x": x, "y": np.where(k, -2 - x, 1 + 2 * x) + rng.normal(0, 0.4, 400)}


@entry(PYMC, two_lines, bounds={"x": (-1, 1), "y": (-8, 8)}, locations="a b", scales="sigma")
def mixture_of_lines(d: Table) -> pm.Model:
    with pm.Model(coords={"k": range(2)}) as model:
        x = pm.Data("x", d["x"])
        a = pm.Normal("a", [-2, 1], 1, dims="k")
        b = pm.Normal("b", 0, 2, dims="k")
        sigma = pm.HalfNormal("sigma", 1)
        w = pm.Dirichlet("w", [1, 1])
        pm.NormalMixture("y", w=w, mu=a + b * x[:, None], sigma=sigma, observed=d["y"])
    return model


def hogg(rng: np.random.Generator) -> Columns:
    x, bad, sd = rng.normal(0, 1, 240), rng.binomial(1, 0.12, 240), rng.uniform(0.1, 0.5, 240)
    return {"x": x, "sigma_y": sd, "y": np.where(bad, rng.normal(1, 3, 240), 0.3 + 1.1 * x + rng.normal(0, sd))}


@entry(PYMC, hogg, bounds={"x": (-4, 4), "y": (-12, 12), "sigma_y": (0.05, 1)}, locations="beta", scales="sigma_out")
def hogg_outliers(d: Table) -> pm.Model:
    with pm.Model() as model:
        x, sigma_y = pm.Data("x", d["x"]), pm.Data("sigma_y", d["sigma_y"])
        beta = pm.Normal("beta", 0, 5, shape=2)
        y_out, sigma_out = pm.Normal("y_out", 0, 2), pm.HalfNormal("sigma_out", 5)
        frac = pm.Uniform("frac_outliers", 0, 0.5)
        inlier = pm.Normal.dist(beta[0] + beta[1] * x, sigma_y)
        outlier = pm.Normal.dist(y_out, pt.sqrt(sigma_y**2 + sigma_out**2))
        pm.Mixture("y", w=pt.stack([1 - frac, frac]), comp_dists=[inlier, outlier], observed=d["y"])
    return model


# Measured, missing, cut ----------------------------------------------------------------------------------------------


def measured(rng: np.random.Generator) -> Columns:
    age, se = rng.normal(0, 1, 220), rng.uniform(0.1, 0.5, 220)
    return {"A": age, "D_sd": se, "D_obs": rng.normal(-0.6 * age + rng.normal(0, 0.7, 220), se)}


@entry(
    RETHINKING, measured, bounds={"A": (-4, 4), "D_sd": (0.05, 1), "D_obs": (-6, 6)}, locations="a bA", scales="sigma"
)
def divorce_measured(d: Table) -> pm.Model:
    with pm.Model() as m15_1:
        a, bA = pm.Normal("a", 0, 0.2), pm.Normal("bA", 0, 0.5)
        sigma = pm.Exponential("sigma", 1)
        D_true = pm.Normal("D_true", a + bA * d.A, sigma, shape=220)
        pm.Normal("D_obs", D_true, d.D_sd, observed=d["D_obs"])
    return m15_1


def gaps(rng: np.random.Generator) -> Columns:
    mass = rng.normal(0, 1, 240)
    cortex = standardize(0.7 * mass + rng.normal(0, 0.7, 240))
    kcal = 0.5 * cortex - 0.6 * mass + rng.normal(0, 0.8, 240)
    return {"M": mass, "K": kcal, "B": np.ma.masked_array(cortex, rng.binomial(1, 0.3, 240)).filled(np.nan)}


@entry(RETHINKING, gaps, bounds={"M": (-4, 4), "K": (-5, 5), "B": (-4, 4)}, locations="a bB bM", scales="sigma")
def milk_missing(d: Table) -> pm.Model:
    with pm.Model() as m15_5:
        nu = pm.Normal("nu", 0, 0.5)
        sigma_B = pm.Exponential("sigma_B", 1)
        Bi = pm.Normal("Bi", nu, sigma_B, observed=d["B"])
        a, bB, bM = pm.Normal("a", 0, 0.5), pm.Normal("bB", 0, 0.5), pm.Normal("bM", 0, 0.5)
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("K", a + bB * Bi + bM * d.M, sigma, observed=d["K"])
    return m15_5


def cut(rng: np.random.Generator) -> Columns:
    x = rng.uniform(-10, 10, 400)
    y = x + rng.normal(0, 2, 400)
    kept = (y > -5) & (y < 5)
    return {"x": x, "y": np.clip(y, -5, 5), "xt": x[kept], "yt": y[kept]}


@entry(PYMC, cut, bounds={"x": (-10, 10), "y": (-5, 5)}, locations="slope intercept", scales="sigma")
def censored_regression(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", d["x"])
        slope, intercept = pm.Normal("slope", 0, 1), pm.Normal("intercept", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        y_latent = pm.Normal.dist(mu=slope * x + intercept, sigma=sigma)
        pm.Censored("y", y_latent, lower=-5, upper=5, observed=d["y"])
    return model


@entry(PYMC, cut, bounds={"x": (-10, 10), "xt": (-10, 10), "y": (-5, 5)}, locations="slope intercept", scales="sigma")
def truncated_regression(d: Table) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", d["xt"])
        slope, intercept = pm.Normal("slope", 0, 1), pm.Normal("intercept", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        normal_dist = pm.Normal.dist(mu=slope * x + intercept, sigma=sigma)
        pm.Truncated("y", normal_dist, lower=-5, upper=5, observed=d["yt"])
    return model


@entry("Stan user's guide", cut, bounds={"y": (-5, 5)}, locations="mu", scales="sigma")
def rounded_values(d: Table) -> pm.Model:
    def logp(value, mu, sigma):
        up, down = pm.logcdf(pm.Normal.dist(mu, sigma), value + 0.5), pm.logcdf(pm.Normal.dist(mu, sigma), value - 0.5)
        return pm.math.logdiffexp(up, down)

    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 10)
        pm.CustomDist("y", mu, sigma, logp=logp, observed=np.round(d["yt"]))
    return model


def wages(rng: np.random.Generator) -> Columns:
    u, quarter = rng.normal(size=500), rng.integers(1, 5, 500)
    education = rng.normal(u + quarter)
    wage = rng.normal(u + 0 * education)
    return {
        "Q": standardize(quarter),
        "WE": np.column_stack([standardize(wage), standardize(education)]),
        "E": standardize(education),
    }


@entry(RETHINKING, wages, bounds={"Q": (-2, 2), "E": (-5, 5), "WE": (-5, 5)}, locations="aE aW bEW bQE")
def instrument(d: Table) -> pm.Model:
    with pm.Model() as m14_6:
        aE, aW = pm.Normal("aE", 0, 0.2), pm.Normal("aW", 0, 0.2)
        bQE, bEW = pm.Normal("bQE", 0, 0.5), pm.Normal("bEW", 0, 0.5)
        Q, E = pm.Data("Q", d["Q"]), pm.Data("E", d["E"])
        muE = aE + bQE * Q
        muW = aW + bEW * E
        chol, _, _ = pm.LKJCholeskyCov("chol_cov", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0), compute_corr=True)
        pm.MvNormal("WE", mu=pt.stack([muW, muE]).T, chol=chol, observed=d["WE"])
    return m14_6


def two_outcomes(rng: np.random.Generator) -> Columns:
    dose = rng.normal(0, 1, 500)
    noise = rng.multivariate_normal([0, 0], [[1.0, 0.5], [0.5, 0.6]], 500)
    return {"dose": dose, "Y": np.array([0.3, -0.2]) + np.outer(dose, [0.8, 0.3]) + noise}


@entry(PYMC, two_outcomes, bounds={"dose": (-4, 4), "Y": (-6, 6)}, locations="a b")
def two_outcomes_of_a_dose(d: Table) -> pm.Model:
    with pm.Model() as model:
        dose = pm.Data("dose", d["dose"])
        a, b = pm.Normal("a", 0, 1, shape=2), pm.Normal("b", 0, 1, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=2))
        pm.MvNormal("Y", mu=a + b * dose[:, None], chol=chol, observed=d["Y"])
    return model


def sediments(rng: np.random.Generator) -> Columns:
    depth = rng.uniform(0, 1, 400)
    numbers = np.exp(np.array([1.0, 1.5, 0.5]) + np.outer(depth, [1.0, 0.0, -0.5]))
    return {"depth": depth, "shares": np.array([rng.dirichlet(one) for one in numbers])}


@entry("Bayesian Data Analysis", sediments, bounds={"depth": (0, 1), "shares": (0, 1)}, locations="b0 b1")
def shares_by_depth(d: Table) -> pm.Model:
    with pm.Model() as model:
        depth = pm.Data("depth", d["depth"])
        b0, b1 = pm.Normal("b0", 0, 2, shape=3), pm.Normal("b1", 0, 2, shape=3)
        pm.Dirichlet("shares", a=pm.math.exp(b0 + b1 * depth[:, None]), observed=d["shares"])
    return model


@entry(PYMC, wages, bounds={"WE": (-5, 5)}, locations="mu")
def lkj_covariance(d: Table) -> pm.Model:
    with pm.Model(coords={"axis": ["y", "z"], "obs_id": np.arange(500)}) as model:
        chol, _corr, _stds = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0, shape=2))
        pm.Deterministic("cov", chol.dot(chol.T))
        mu = pm.Normal("mu", 0.0, sigma=1.5, dims="axis")
        pm.MvNormal("WE", mu, chol=chol, observed=d["WE"], dims=("obs_id", "axis"))
    return model


def scales_rows(rng: np.random.Generator) -> Columns:
    load = np.array([[1, 0.8, 0.7, 0, 0], [0, 0, 0, 1, 0.6]])
    return {"Y": rng.normal(size=(250, 2)) @ load + rng.normal(0, 0.5, (250, 5))}


@entry(PYMC, scales_rows, bounds={"Y": (-6, 6)}, locations="", scales="psi")
def factor_analysis_marginal(d: Table) -> pm.Model:
    with pm.Model() as model:
        W = pm.Normal("W", 0, 1, shape=(5, 2))
        psi = pm.HalfNormal("psi", 1.0, shape=5)
        cov = W @ W.T + pt.diag(psi**2)
        pm.MvNormal("Y", 0.0, cov=cov, shape=(250, 5), observed=d["Y"])
    return model


@entry(PYMC, scales_rows, bounds={"Y": (-6, 6)}, locations="", scales="psi")
def factor_analysis_scores(d: Table) -> pm.Model:
    with pm.Model() as model:
        W = pm.Normal("W", 0, 1, shape=(2, 5))
        F = pm.Normal("F", 0, 1, shape=(250, 2))
        psi = pm.HalfNormal("psi", 1.0)
        pm.Normal("Y", mu=pt.dot(F, W), sigma=psi, observed=d["Y"])
    return model


def mediated(rng: np.random.Generator) -> Columns:
    x = rng.normal(0, 1, 400)
    m = 0.5 * x + rng.normal(0, 0.8, 400)
    return {"x": x, "m": m, "y": 0.3 * x + 0.6 * m + rng.normal(0, 0.7, 400)}


@entry(
    PYMC,
    mediated,
    bounds={"x": (-4, 4), "m": (-5, 5), "mediator": (-5, 5), "y": (-6, 6)},
    locations="a b cprime",
    scales="sigma_m sigma_y",
)
def mediation(d: Table) -> pm.Model:
    with pm.Model() as model:
        x, m = pm.Data("x", d["x"], dims="obs_id"), pm.Data("m", d["m"], dims="obs_id")
        im, iy = pm.Normal("im", 0, 10), pm.Normal("iy", 0, 10)
        a, b, cprime = pm.Normal("a", 0, 10), pm.Normal("b", 0, 10), pm.Normal("cprime", 0, 10)
        sigma_m, sigma_y = pm.HalfCauchy("sigma_m", 1), pm.HalfCauchy("sigma_y", 1)
        pm.Normal("mediator", mu=im + a * x, sigma=sigma_m, observed=m, dims="obs_id")
        pm.Normal("y", mu=iy + b * m + cprime * x, sigma=sigma_y, observed=d["y"], dims="obs_id")
        pm.Deterministic("indirect effect", a * b)
    return model


def proportions(rng: np.random.Generator) -> Columns:
    temp, batch = rng.uniform(-1.5, 1.5, 320), rng.integers(0, 10, 320)
    mu = expit(-1.4 + 0.7 * temp + rng.normal(0, 0.3, 10)[batch])
    return {"temp": temp, "batch": batch, "yield_": rng.beta(mu * 60, (1 - mu) * 60)}


@entry(
    "bambi examples",
    proportions,
    bounds={"temp": (-1.5, 1.5), "share": (0.001, 0.999)},
    locations="a b",
    scales="kappa",
)
def gasoline_beta(d: Table) -> pm.Model:
    with pm.Model(coords={"batch": range(10)}) as model:
        temp = pm.Data("temp", d["temp"])
        a, b = pm.Normal("a", 0, 2), pm.Normal("b", 0, 1)
        effect = pm.Normal("effect", 0, 0.5, dims="batch")
        kappa = pm.HalfNormal("kappa", 100)
        pm.Beta("share", mu=pm.math.invlogit(a + b * temp + effect[d.batch]), nu=kappa, observed=d["yield_"])
    return model
