"""Groups that learn from each other: varying intercepts and slopes, centred, not centred, correlated."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry, expit
from tests.gallery.linear import ARM, POSTERIORDB, PYMC, RETHINKING


def pupils(rng: np.random.Generator) -> Columns:
    school = np.repeat(np.arange(8), 60)
    effect = np.array([28, 8, -3, 7, -1, 1, 18, 12]) / 2
    coached = rng.integers(0, 2, 480)
    return {"school": school, "coached": coached, "score": 500 + effect[school] * coached + rng.normal(0, 40, 480)}


@entry(
    POSTERIORDB,
    pupils,
    bounds={"score": (200, 800), "coached": (0, 1)},
    locations="base mu theta_tilde",
    scales="sigma",
)
def eight_schools_pupils(d: Table) -> pm.Model:
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        base = pm.Normal("base", 500, 50)
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        theta_tilde = pm.Normal("theta_tilde", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * theta_tilde, dims="school")
        sigma = pm.HalfNormal("sigma", 50)
        pm.Normal("score", base + theta[d.school] * d.coached, sigma, observed=d["score"])
    return model


def radon(rng: np.random.Generator) -> Columns:
    county, floor = rng.integers(0, 30, 919), rng.binomial(1, 0.17, 919)
    uranium = rng.normal(0, 0.4, 30)
    a = 1.5 + 0.7 * uranium + rng.normal(0, 0.2, 30)
    y = a[county] + rng.normal(-0.65, 0.3, 30)[county] * floor + rng.normal(0, 0.75, 919)
    return {
        "county": county,
        "floor": floor,
        "floor_x": floor.astype(float),
        "log_radon": y,
        "u": uranium,
        "u_row": uranium[county],
    }


RADON = {"log_radon": (-4, 6), "floor_ind": (0, 1), "floor": (0, 1), "floor_x": (0, 1), "u_row": (-2, 2)}


@entry(PYMC, radon, bounds=RADON, locations="alpha beta", scales="sigma")
def radon_pooled(d: Table) -> pm.Model:
    with pm.Model() as pooled_model:
        floor_ind = pm.Data("floor_ind", d["floor"], dims="obs_id")
        alpha = pm.Normal("alpha", 0, sigma=10)
        beta = pm.Normal("beta", mu=0, sigma=10)
        sigma = pm.Exponential("sigma", 5)
        theta = alpha + beta * floor_ind
        pm.Normal("log_radon", theta, sigma=sigma, observed=d["log_radon"], dims="obs_id")
    return pooled_model


@entry(PYMC, radon, bounds=RADON, locations="beta mu_a", scales="sigma_a sigma_y")
def radon_varying_intercept(d: Table) -> pm.Model:
    with pm.Model(coords={"county": range(30)}) as model:
        floor_idx = pm.Data("floor_ind", d["floor"], dims="obs_id")
        county_idx = pm.Data("county_idx", d["county"], dims="obs_id")
        mu_a = pm.Normal("mu_a", mu=0.0, sigma=10.0)
        sigma_a = pm.Exponential("sigma_a", 1)
        alpha = pm.Normal("alpha", mu=mu_a, sigma=sigma_a, dims="county")
        beta = pm.Normal("beta", mu=0, sigma=10)
        sd_y = pm.Exponential("sigma_y", 1)
        y_hat = alpha[county_idx] + beta * floor_idx
        pm.Normal("log_radon", mu=y_hat, sigma=sd_y, observed=d["log_radon"], dims="obs_id")
    return model


@entry(PYMC, radon, bounds=RADON, locations="mu_a mu_b", scales="sigma_a sigma_y")
def radon_varying_slopes(d: Table) -> pm.Model:
    with pm.Model(coords={"county": range(30)}) as model:
        mu_a, mu_b = pm.Normal("mu_a", 0, 5), pm.Normal("mu_b", 0, 1)
        sigma_a, sigma_b = pm.Exponential("sigma_a", 1), pm.Exponential("sigma_b", 1)
        z_a, z_b = pm.Normal("z_a", 0, 1, dims="county"), pm.Normal("z_b", 0, 1, dims="county")
        alpha = pm.Deterministic("alpha", mu_a + z_a * sigma_a, dims="county")
        beta = pm.Deterministic("beta", mu_b + z_b * sigma_b, dims="county")
        y = alpha[d.county] + beta[d.county] * d.floor
        pm.Normal("log_radon", mu=y, sigma=pm.Exponential("sigma_y", 1), observed=d["log_radon"])
    return model


@entry(PYMC, radon, bounds=RADON, locations="mu_alpha_beta", scales="sigma_y")
def radon_covariation(d: Table) -> pm.Model:
    with pm.Model(coords={"param": ["alpha", "beta"], "county": range(30)}) as model:
        floor_idx = pm.Data("floor_ind", d["floor"], dims="obs_id")
        county_idx = pm.Data("county_idx", d["county"], dims="obs_id")
        sd_dist = pm.Exponential.dist(0.5, shape=(2,))
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=sd_dist)
        mu_alpha_beta = pm.Normal("mu_alpha_beta", mu=0.0, sigma=5.0, shape=2)
        z = pm.Normal("z", 0.0, 1.0, dims=("param", "county"))
        alpha_beta_county = pm.Deterministic("alpha_beta_county", pt.dot(chol, z).T, dims=("county", "param"))
        theta = (
            mu_alpha_beta[0]
            + alpha_beta_county[county_idx, 0]
            + (mu_alpha_beta[1] + alpha_beta_county[county_idx, 1]) * floor_idx
        )
        pm.Normal("log_radon", mu=theta, sigma=pm.Exponential("sigma_y", 1.0), observed=d["log_radon"], dims="obs_id")
    return model


@entry(ARM, radon, bounds=RADON, locations="gamma b", scales="sigma_a sigma_y")
def radon_group_predictor(d: Table) -> pm.Model:
    with pm.Model() as model:
        gamma = pm.Normal("gamma", 0, 5, shape=2)
        sigma_a = pm.Exponential("sigma_a", 1)
        mu_a = pm.Deterministic("mu_a", gamma[0] + gamma[1] * d.u)
        eps_a = pm.Normal("eps_a", 0, sigma_a, shape=30)
        a = mu_a + eps_a
        b = pm.Normal("b", 0, 1)
        pm.Normal("log_radon", a[d["county"]] + b * d.floor_x, pm.Exponential("sigma_y", 1), observed=d["log_radon"])
    return model


@entry(ARM, radon, bounds=RADON, locations="g0 g1 b", scales="sigma_a sigma_y")
def radon_predictor_by_row(d: Table) -> pm.Model:
    with pm.Model(coords={"county": range(30)}) as model:
        u_row = pm.Data("u_row", d["u_row"])
        floor = pm.Data("floor", d["floor"])
        g0, g1, b = pm.Normal("g0", 0, 5), pm.Normal("g1", 0, 5), pm.Normal("b", 0, 5)
        sigma_a = pm.HalfNormal("sigma_a", 1)
        eps = pm.ZeroSumNormal("eps", sigma=sigma_a, dims="county")
        mu = g0 + g1 * u_row + eps[d.county] + b * floor
        pm.Normal("log_radon", mu, pm.HalfNormal("sigma_y", 2), observed=d["log_radon"])
    return model


def cafes_rows(rng: np.random.Generator) -> Columns:
    cafe, afternoon = np.repeat(np.arange(20), 20), np.tile([0, 1], 200)
    ab = rng.multivariate_normal([3.5, -1], [[1, -0.35], [-0.35, 0.25]], 20)
    return {
        "cafe": cafe,
        "afternoon": afternoon,
        "wait": ab[cafe, 0] + ab[cafe, 1] * afternoon + rng.normal(0, 0.5, 400),
    }


CAFES = {"wait": (-4, 12), "afternoon": (0, 1)}


@entry(RETHINKING, cafes_rows, bounds=CAFES, locations="ab", scales="sigma_within")
def cafes(d: Table) -> pm.Model:
    with pm.Model() as m14_1:
        sd_dist = pm.Exponential.dist(1.0)
        chol, _corr, _stds = pm.LKJCholeskyCov("chol_cov", n=2, eta=2, sd_dist=sd_dist, compute_corr=True)
        a_bar = pm.Normal("a_bar", mu=5.0, sigma=2.0)
        b_bar = pm.Normal("b_bar", mu=-1.0, sigma=0.5)
        ab = pm.MvNormal("ab", mu=pt.stack([a_bar, b_bar]), chol=chol, shape=(20, 2))
        mu = ab[d.cafe, 0] + ab[d.cafe, 1] * d.afternoon
        sigma_within = pm.Exponential("sigma_within", 1.0)
        pm.Normal("wait", mu=mu, sigma=sigma_within, observed=d["wait"])
    return m14_1


@entry(RETHINKING, cafes_rows, bounds=CAFES, locations="bar", scales="sigma")
def cafes_packed(d: Table) -> pm.Model:
    with pm.Model() as model:
        packed = pm.LKJCholeskyCov("packed", n=2, eta=2, sd_dist=pm.HalfCauchy.dist(2), compute_corr=False)
        L = pm.expand_packed_triangular(2, packed)
        bar = pm.Normal("bar", 0, 5, shape=2)
        z = pm.Normal("z", 0, 1, shape=(20, 2))
        ab = bar + pt.dot(z, L.T)
        afternoon = pm.Data("afternoon", d["afternoon"])
        mu = ab[d.cafe, 0] + ab[d.cafe, 1] * afternoon
        pm.Normal("wait", mu, pm.HalfCauchy("sigma", 2), observed=d["wait"])
    return model


def rats_rows(rng: np.random.Generator) -> Columns:
    rat, x = np.repeat(np.arange(40), 5), np.tile([8.0, 15, 22, 29, 36], 40)
    return {
        "rat": rat,
        "x": x - 22,
        "y": rng.normal(242, 14, 40)[rat] + rng.normal(6.2, 0.5, 40)[rat] * (x - 22) + rng.normal(0, 6, 200),
    }


@entry(
    "BUGS examples",
    rats_rows,
    bounds={"x": (-14, 14), "y": (80, 420)},
    locations="alpha_c beta_c",
    scales="sigma_y sigma_alpha",
)
def rats(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha_c, beta_c = pm.Normal("alpha_c", 0, 1000), pm.Normal("beta_c", 0, 100)
        sigma_alpha, sigma_beta = pm.HalfCauchy("sigma_alpha", 10), pm.HalfCauchy("sigma_beta", 2)
        alpha = pm.Normal("alpha", alpha_c, sigma_alpha, shape=40)
        beta = pm.Normal("beta", beta_c, sigma_beta, shape=40)
        sigma_y = pm.HalfCauchy("sigma_y", 10)
        pm.Normal("y", alpha[d.rat] + beta[d.rat] * d.x, sigma_y, observed=d["y"])
    return model


def pilots_rows(rng: np.random.Generator) -> Columns:
    group, scenario = rng.integers(0, 5, 240), rng.integers(0, 8, 240)
    y = 0.44 + rng.normal(0, 0.05, 5)[group] + rng.normal(0, 0.3, 8)[scenario] + rng.normal(0, 0.2, 240)
    return {"group_id": group, "scenario_id": scenario, "y": y}


@entry(POSTERIORDB, pilots_rows, bounds={"y": (-2, 3)}, locations="a b", scales="sigma_y")
def pilots(d: Table) -> pm.Model:
    with pm.Model() as model:
        mu_a, mu_b = pm.Normal("mu_a", 0, 1), pm.Normal("mu_b", 0, 1)
        sigma_a, sigma_b, sigma_y = (
            pm.Uniform("sigma_a", 0, 100),
            pm.Uniform("sigma_b", 0, 100),
            pm.Uniform("sigma_y", 0, 100),
        )
        a = pm.Normal("a", 10 * mu_a, sigma_a, shape=5)
        b = pm.Normal("b", 10 * mu_b, sigma_b, shape=8)
        pm.Normal("y", a[d.group_id] + b[d.scenario_id], sigma_y, observed=d["y"])
    return model


def poll(rng: np.random.Generator) -> Columns:
    n = 2015
    state, age, edu = rng.integers(0, 49, n), rng.integers(0, 4, n), rng.integers(0, 4, n)
    female, black = rng.integers(0, 2, n), rng.binomial(1, 0.1, n)
    prev = rng.normal(0.55, 0.05, 49)
    logit = -0.2 + 6 * (prev[state] - 0.55) - 0.1 * female - 1.6 * black + np.array([0.2, 0, -0.1, 0])[age]
    return {
        "state": state,
        "age": age,
        "edu": edu,
        "female": female,
        "black": black,
        "v_prev": prev - 0.55,
        "y": rng.binomial(1, expit(logit)),
    }


@entry(ARM, poll, bounds={"female": (0, 1), "black": (0, 1)}, locations="b0 b_female b_black", scales="sigma_state")
def election_mrp(d: Table) -> pm.Model:
    with pm.Model(coords={"state": range(49), "age": range(4), "edu": range(4)}) as model:
        b0, b_female, b_black = pm.Normal("b0", 0, 5), pm.Normal("b_female", 0, 5), pm.Normal("b_black", 0, 5)
        v_prev = pm.Data("v_prev", d["v_prev"], dims="state")
        b_v = pm.Normal("b_v", 0, 10)
        sigma_state, sigma_age = pm.HalfNormal("sigma_state", 1), pm.HalfNormal("sigma_age", 1)
        state = b_v * v_prev + sigma_state * pm.Normal("z_state", 0, 1, dims="state")
        age = sigma_age * pm.Normal("z_age", 0, 1, dims="age")
        cell = pm.Normal("cell", 0, pm.HalfNormal("sigma_cell", 1), dims=("age", "edu"))
        eta = b0 + b_female * d.female + b_black * d.black + state[d.state] + age[d.age] + cell[d.age, d.edu]
        pm.Bernoulli("y", logit_p=eta, observed=d["y"])
    return model


def sleep_rows(rng: np.random.Generator) -> Columns:
    subject, days = np.repeat(np.arange(24), 10), np.tile(np.arange(10.0), 24)
    return {
        "subject": subject,
        "days": days,
        "reaction": rng.normal(251, 25, 24)[subject] + rng.normal(10.5, 6, 24)[subject] * days + rng.normal(0, 25, 240),
    }


@entry(
    "bambi examples",
    sleep_rows,
    bounds={"days": (0, 9), "reaction": (100, 600)},
    locations="mu",
    scales="sigma_intercept sigma",
)
def sleep_study(d: Table) -> pm.Model:
    with pm.Model(coords={"subject": range(24), "effect": ["intercept", "days"]}) as model:
        days = pm.Data("days", d["days"], dims="obs")
        subject = pm.Data("subject_idx", d["subject"], dims="obs")
        mu = pm.Normal("mu", [250, 10], [100, 20], dims="effect")
        sigma_intercept, sigma_slope = pm.HalfNormal("sigma_intercept", 50), pm.HalfNormal("sigma_slope", 20)
        offset = pm.Normal("offset", 0, 1, dims=("subject", "effect"))
        effects = mu + offset * pt.stack([sigma_intercept, sigma_slope])
        mean = effects[subject, 0] + effects[subject, 1] * days
        pm.Normal("reaction", mean, pm.HalfNormal("sigma", 50), observed=d["reaction"], dims="obs")
    return model


def women(rng: np.random.Generator) -> Columns:
    district, urban, age = rng.integers(0, 60, 1934), rng.binomial(1, 0.3, 1934), rng.normal(0, 9, 1934).clip(-14, 20)
    kids = rng.integers(0, 4, 1934)
    logit = rng.normal(-0.7, 0.5, 60)[district] + 0.7 * urban + 0.3 * kids - 0.02 * age
    return {"district": district, "urban": urban, "age": age / 10, "kids": kids, "use": rng.binomial(1, expit(logit))}


@entry(
    RETHINKING, women, bounds={"age": (-2, 2), "kids": (0, 3), "urban": (0, 1)}, locations="a_bar b_bar b_age b_kids"
)
def bangladesh(d: Table) -> pm.Model:
    with pm.Model() as model:
        chol, _corr, _stds = pm.LKJCholeskyCov("chol", n=2, eta=4, sd_dist=pm.Exponential.dist(1.0, size=2))
        a_bar, b_bar = pm.Normal("a_bar", 0, 1), pm.Normal("b_bar", 0, 0.5)
        z = pm.Normal("z", 0, 1, size=(2, 60))
        v = pm.Deterministic("v", (chol @ z).T)
        b_age, b_kids = pm.Normal("b_age", 0, 0.5), pm.Normal("b_kids", 0, 0.5)
        age, kids, urban = pm.Data("age", d["age"]), pm.Data("kids", d["kids"]), pm.Data("urban", d["urban"])
        logit = a_bar + v[d.district, 0] + (b_bar + v[d.district, 1]) * urban + b_age * age + b_kids * kids
        pm.Bernoulli("use", logit_p=logit, observed=d["use"])
    return model


def players(rng: np.random.Generator) -> Columns:
    at_bats = rng.integers(40, 500, 300)
    return {"at_bats": at_bats, "hits": rng.binomial(at_bats, rng.beta(27, 75, 300))}


@entry(
    PYMC, players, bounds={"hits": (0, 500), "at_bats": (1, 500)}, public=("at_bats",), locations="phi", scales="kappa"
)
def baseball(d: Table) -> pm.Model:
    with pm.Model(coords={"player": range(300)}) as model:
        phi = pm.Uniform("phi", lower=0.0, upper=1.0)
        kappa_log = pm.Exponential("kappa_log", lam=1.5)
        kappa = pm.Deterministic("kappa", pt.exp(kappa_log))
        theta = pm.Beta("theta", alpha=phi * kappa, beta=(1.0 - phi) * kappa, dims="player")
        pm.Binomial("hits", n=d.at_bats, p=theta, dims="player", observed=d["hits"])
    return model


def trees(rng: np.random.Generator) -> Columns:
    tree, age = np.repeat(np.arange(10), 24), np.tile(np.linspace(1, 16, 24), 10)
    top = rng.normal(190, 20, 10)[tree]
    return {"tree": tree, "age": age, "size": top / (1 + np.exp(-(age - 7.2) / 3.2)) + rng.normal(0, 7, 240)}


@entry("nlme", trees, bounds={"age": (0, 20), "size": (-30, 300)}, locations="top_bar middle", scales="rate sigma")
def orange_trees(d: Table) -> pm.Model:
    with pm.Model() as model:
        age = pm.Data("age", d["age"])
        top_bar, top_sd = pm.Normal("top_bar", 180, 40), pm.HalfNormal("top_sd", 30)
        top = pm.Normal("top", top_bar, top_sd, shape=10)
        middle, rate = pm.Normal("middle", 7, 2), pm.Gamma("rate", 6, 2)
        pm.Normal(
            "size",
            top[d["tree"]] / (1 + pm.math.exp(-(age - middle) / rate)),
            pm.HalfNormal("sigma", 15),
            observed=d["size"],
        )
    return model
