"""Counts: Poisson and its wider relatives, with exposures, zeros and change points; choices among several."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.gallery.entry import Columns, Table, entry, expit, standardize
from tests.gallery.linear import ARM, PYMC, RETHINKING


def tools(rng: np.random.Generator) -> Columns:
    log_pop, contact = rng.normal(8.9, 1.4, 220), rng.integers(0, 2, 220)
    P = standardize(log_pop)
    return {
        "P": P,
        "contact_id": contact,
        "population": np.exp(log_pop),
        "total": rng.poisson(np.exp(3.2 + 0.3 * contact + 0.3 * P)),
    }


@entry(RETHINKING, tools, bounds={"P": (-4, 4), "total_tools": (0, 200)}, locations="a b")
def kline_tools(d: Table) -> pm.Model:
    with pm.Model() as m11_10:
        a = pm.Normal("a", 3, 0.5, shape=2)
        b = pm.Normal("b", 0, 0.2, shape=2)
        lam = pm.math.exp(a[d.contact_id] + b[d.contact_id] * d.P)
        pm.Poisson("total_tools", lam, observed=d["total"])
    return m11_10


@entry(RETHINKING, tools, bounds={"population": (50, 1e6), "total_tools": (0, 200)}, locations="a", scales="b g")
def kline_mechanistic(d: Table) -> pm.Model:
    with pm.Model() as m11_11:
        P = pm.Data("population", d["population"])
        a = pm.Normal("a", 1, 1, shape=2)
        b = pm.Exponential("b", 1, shape=2)
        g = pm.Exponential("g", 1)
        lam = pm.math.exp(a[d.contact_id]) * P ** b[d.contact_id] / g
        pm.Poisson("total_tools", lam, observed=d["total"])
    return m11_11


def monks(rng: np.random.Generator) -> Columns:
    drunk = rng.binomial(1, 0.2, 365)
    days, monastery = np.where(np.arange(365) < 215, 1, 7), (np.arange(365) >= 215).astype(int)
    rate = np.where(monastery, 0.5, 1.5)
    return {
        "log_days": np.log(days),
        "monastery": monastery,
        "manuscripts": rng.poisson(rate * days),
        "y": (1 - drunk) * rng.poisson(1, 365),
    }


@entry(RETHINKING, monks, bounds={"y": (0, 30), "log_days": (0, 2), "monastery": (0, 1)}, locations="alpha beta")
def monks_exposure(d: Table) -> pm.Model:
    with pm.Model() as m11_12:
        alpha, beta = pm.Normal("alpha", 0, 1), pm.Normal("beta", 0, 1)
        lam = pm.math.exp(d.log_days + alpha + beta * d.monastery)
        pm.Poisson("y", lam, observed=d["manuscripts"])
    return m11_12


@entry(RETHINKING, monks, bounds={"y": (0, 15)}, locations="ap al")
def monks_zero_inflated(d: Table) -> pm.Model:
    with pm.Model() as m12_3:
        ap = pm.Normal("ap", -1.5, 1.0)
        al = pm.Normal("al", 1.0, 0.5)
        p = pm.math.invlogit(ap)
        lam = pm.math.exp(al)
        pm.ZeroInflatedPoisson("y", 1 - p, lam, observed=d["y"])
    return m12_3


def sneezes(rng: np.random.Generator) -> Columns:
    alcohol, nomeds = np.tile([0, 1], 1000), np.repeat([0, 1], 1000)
    mean = np.exp(0 + 1.1 * alcohol + 1.8 * nomeds + 0.7 * alcohol * nomeds)
    return {
        "alcohol": alcohol,
        "nomeds": nomeds,
        "nsneeze": rng.poisson(mean),
        "overdispersed": rng.negative_binomial(5, 5 / (5 + mean)),
    }


@entry(PYMC, sneezes, bounds={"y": (0, 120), "alcohol": (0, 1), "nomeds": (0, 1)}, locations="b0 b1 b2 b3")
def sneezes_poisson(d: Table) -> pm.Model:
    with pm.Model() as mdl_fish:
        b0, b1 = pm.Normal("b0", mu=0, sigma=10), pm.Normal("b1", mu=0, sigma=10)
        b2, b3 = pm.Normal("b2", mu=0, sigma=10), pm.Normal("b3", mu=0, sigma=10)
        theta = b0 + b1 * d.alcohol + b2 * d.nomeds + b3 * d.alcohol * d.nomeds
        pm.Poisson("y", mu=pm.math.exp(theta), observed=d["nsneeze"])
    return mdl_fish


@entry(PYMC, sneezes, bounds={"y": (0, 250), "alcohol": (0, 1), "nomeds": (0, 1)}, locations="b", scales="alpha")
def sneezes_negative_binomial(d: Table) -> pm.Model:
    coords = {"regressor": ["1", "alcohol", "nomeds", "both"], "obs_idx": np.arange(2000)}
    with pm.Model(coords=coords) as model:
        alcohol = pm.Data("alcohol", d["alcohol"], dims="obs_idx")
        nomeds = pm.Data("nomeds", d["nomeds"], dims="obs_idx")
        b = pm.Normal("b", mu=0, sigma=1, dims="regressor")
        alpha = pm.Exponential("alpha", 0.5)
        mu = pm.math.exp(b[0] + b[1] * alcohol + b[2] * nomeds + b[3] * alcohol * nomeds)
        pm.NegativeBinomial("y", mu=mu, alpha=alpha, observed=d["overdispersed"], dims="obs_idx")
    return model


def roaches_rows(rng: np.random.Generator) -> Columns:
    roach1, treatment, senior = (
        rng.exponential(0.42, 262).clip(0, 4),
        rng.integers(0, 2, 262),
        rng.binomial(1, 0.3, 262),
    )
    exposure = rng.uniform(0.5, 2, 262)
    mean = exposure * np.exp(2.8 + 1.3 * roach1 - 0.8 * treatment - 0.3 * senior)
    return {
        "roach1": roach1,
        "treatment": treatment,
        "senior": senior,
        "exposure2": exposure,
        "y": rng.negative_binomial(0.6, 0.6 / (0.6 + mean)),
    }


@entry(
    ARM,
    roaches_rows,
    bounds={"roach1": (0, 4), "exposure2": (0.2, 4), "y": (0, 2000), "treatment": (0, 1), "senior": (0, 1)},
    locations="intercept b",
    scales="phi",
)
def roaches(d: Table) -> pm.Model:
    with pm.Model() as model:
        roach1, treatment, senior = (
            pm.Data("roach1", d["roach1"]),
            pm.Data("treatment", d["treatment"]),
            pm.Data("senior", d["senior"]),
        )
        exposure = pm.Data("exposure2", d["exposure2"])
        intercept, b = pm.Normal("intercept", 0, 5), pm.Normal("b", 0, 2.5, shape=3)
        phi = pm.Exponential("phi", 1)
        eta = intercept + b[0] * roach1 + b[1] * treatment + b[2] * senior + pm.math.log(exposure)
        pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=phi, observed=d["y"])
    return model


def strokes(rng: np.random.Generator) -> Columns:
    age, state, year = np.tile(np.arange(8), 50), rng.integers(0, 10, 400), rng.integers(0, 5, 400)
    population = rng.uniform(1000, 60_000, 400)
    rate = np.exp(-7 + 0.6 * age + rng.normal(0, 0.2, 10)[state])
    return {
        "age": age,
        "state": state,
        "year": year,
        "population": population,
        "deaths": rng.poisson(population * rate),
    }


@entry(
    "mortality tables",
    strokes,
    bounds={"population": (500, 100_000), "deaths": (0, 10_000)},
    locations="base age_effect",
    scales="sigma",
)
def mortality_offset(d: Table) -> pm.Model:
    coords = {"age": range(8), "state": range(10)}
    with pm.Model(coords=coords) as model:
        population = pm.Data("population", d["population"])
        base = pm.Normal("base", -5, 3)
        age_effect = pm.ZeroSumNormal("age_effect", sigma=2, dims="age")
        sigma = pm.HalfNormal("sigma", 0.5)
        state = pm.Normal("state_raw", 0, 1, dims="state") * sigma
        rate = pm.math.exp(base + age_effect[d["age"]] + state[d["state"]])
        pm.Poisson("deaths", mu=population * rate, observed=d["deaths"])
    return model


def whole_country(rng: np.random.Generator) -> Columns:
    age, population = np.tile(np.arange(8), 50), rng.uniform(1000, 60_000, 400)
    return {"age": age, "population": population, "deaths": rng.poisson(population * np.exp(-7 + 0.6 * age))}


@entry(
    "mortality tables",
    whole_country,
    bounds={"population": (500, 100_000), "deaths": (0, 10_000)},
    public=("population",),
    locations="base walk",
)
def mortality_walk(d: Table) -> pm.Model:
    with pm.Model(coords={"age": range(8)}) as model:
        population = pm.Data("population", d["population"])
        base = pm.Normal("base", -5, 3)
        step = pm.HalfNormal("step", 1)
        walk = pm.GaussianRandomWalk("walk", sigma=step, init_dist=pm.Normal.dist(0, 0.01), dims="age")
        pm.Poisson("deaths", mu=population * pm.math.exp(base + walk[d["age"]]), observed=d["deaths"])
    return model


def hurricane_rows(rng: np.random.Generator) -> Columns:
    fem, damage = standardize(rng.uniform(1, 11, 220)), standardize(rng.exponential(1, 220))
    mean = np.exp(2.3 + 0.2 * fem + 0.6 * damage).clip(0, 200)
    return {"fem": fem, "damage": damage, "deaths": rng.negative_binomial(1.5, 1.5 / (1.5 + mean))}


@entry(
    RETHINKING,
    hurricane_rows,
    bounds={"fem": (-2, 2), "damage": (-2, 6), "deaths": (0, 1500)},
    locations="a bF bD",
    scales="phi",
)
def hurricanes(d: Table) -> pm.Model:
    with pm.Model() as m12_h1:
        a = pm.Normal("a", 1, 1)
        bF, bD = pm.Normal("bF", 0, 1), pm.Normal("bD", 0, 1)
        phi = pm.Exponential("phi", 1)
        lam = pm.math.exp(a + bF * d.fem + bD * d.damage)
        pm.NegativeBinomial("deaths", mu=lam, alpha=phi, observed=d["deaths"])
    return m12_h1


def anglers(rng: np.random.Generator) -> Columns:
    child, camper, persons = rng.integers(0, 4, 250), rng.integers(0, 2, 250), rng.integers(1, 5, 250)
    mean = np.exp(-0.8 + 0.7 * persons + 0.7 * camper - child)
    return {
        "child": child,
        "camper": camper,
        "persons": persons,
        "count": rng.binomial(1, 0.7, 250) * rng.poisson(mean),
    }


FISH = {"fish": (0, 150), "child": (0, 3), "camper": (0, 1), "persons": (1, 4)}


@entry("UCLA data analysis examples", anglers, bounds=FISH, locations="b g")
def fishing_zero_inflated(d: Table) -> pm.Model:
    with pm.Model() as model:
        child, camper, persons = (
            pm.Data("child", d["child"]),
            pm.Data("camper", d["camper"]),
            pm.Data("persons", d["persons"]),
        )
        b, g = pm.Normal("b", 0, 1, shape=3), pm.Normal("g", 0, 1, shape=2)
        mu = pm.math.exp(b[0] + b[1] * persons + b[2] * camper)
        psi = pm.math.sigmoid(g[0] + g[1] * child)
        pm.ZeroInflatedPoisson("fish", psi=psi, mu=mu, observed=d["count"])
    return model


@entry("UCLA data analysis examples", anglers, bounds=FISH, locations="b")
def fishing_hurdle(d: Table) -> pm.Model:
    with pm.Model() as model:
        persons = pm.Data("persons", d["persons"])
        psi = pm.Beta("psi", 2, 2)
        b = pm.Normal("b", 0, 1, shape=2)
        pm.HurdlePoisson("fish", psi=psi, mu=pm.math.exp(b[0] + b[1] * persons), observed=d["count"])
    return model


def mines(rng: np.random.Generator) -> Columns:
    years = np.arange(1851, 2071)
    return {"years": years, "disasters": rng.poisson(np.where(years < 1930, 3.1, 0.9))}


@entry(PYMC, mines, bounds={"disasters": (0, 20), "years": (1851, 2070)}, locations="early_rate late_rate")
def coal_mining_change_point(d: Table) -> pm.Model:
    with pm.Model() as disaster_model:
        switchpoint = pm.DiscreteUniform("switchpoint", lower=1851, upper=2070)
        early_rate, late_rate = pm.Exponential("early_rate", 1.0), pm.Exponential("late_rate", 1.0)
        rate = pm.math.switch(switchpoint >= d.years, early_rate, late_rate)
        pm.Poisson("disasters", rate, observed=d["disasters"])
    return disaster_model


@entry(
    PYMC,
    mines,
    bounds={"disasters": (0, 20), "years": (1851, 2070)},
    public=("years",),
    locations="early_rate late_rate",
)
def coal_mining_smooth(d: Table) -> pm.Model:
    with pm.Model() as model:
        years = pm.Data("years", d["years"])
        switchpoint = pm.Uniform("switchpoint", 1851, 2070)
        early_rate, late_rate = pm.Exponential("early_rate", 1.0), pm.Exponential("late_rate", 1.0)
        weight = pm.math.sigmoid(2 * (years - switchpoint))
        pm.Poisson("disasters", weight * late_rate + (1 - weight) * early_rate, observed=d["disasters"])
    return model


def matches(rng: np.random.Generator) -> Columns:
    home, away = rng.integers(0, 6, 300), rng.integers(0, 6, 300)
    attack, defence = rng.normal(0, 0.2, 6), rng.normal(0, 0.3, 6)
    mean_home = np.exp(2.9 + 0.25 + attack[home] - defence[away])
    return {
        "home": home,
        "away": away,
        "home_score": rng.poisson(mean_home),
        "away_score": rng.poisson(np.exp(2.9 + attack[away] - defence[home])),
    }


@entry(
    PYMC,
    matches,
    bounds={"home_points": (0, 120), "away_points": (0, 120)},
    locations="home intercept",
    scales="sd_att sd_def",
)
def rugby(d: Table) -> pm.Model:
    with pm.Model(coords={"team": ["Wales", "France", "Ireland", "Scotland", "Italy", "England"]}) as model:
        home_team, away_team = (
            pm.Data("home_team", d["home"], dims="match"),
            pm.Data("away_team", d["away"], dims="match"),
        )
        home = pm.Normal("home", mu=0, sigma=1)
        sd_att, sd_def = pm.HalfNormal("sd_att", sigma=2), pm.HalfNormal("sd_def", sigma=2)
        intercept = pm.Normal("intercept", mu=3, sigma=1)
        atts_star = pm.Normal("atts_star", mu=0, sigma=sd_att, dims="team")
        defs_star = pm.Normal("defs_star", mu=0, sigma=sd_def, dims="team")
        atts = pm.Deterministic("atts", atts_star - pt.mean(atts_star), dims="team")
        defs = pm.Deterministic("defs", defs_star - pt.mean(defs_star), dims="team")
        home_theta = pt.exp(intercept + home + atts[home_team] + defs[away_team])
        away_theta = pt.exp(intercept + atts[away_team] + defs[home_team])
        pm.Poisson("home_points", mu=home_theta, observed=d["home_score"], dims="match")
        pm.Poisson("away_points", mu=away_theta, observed=d["away_score"], dims="match")
    return model


def seizures(rng: np.random.Generator) -> Columns:
    trt, base = np.repeat([0, 1], 118), rng.normal(0, 1, 236)
    mean = np.exp(1.6 + 0.9 * base - 0.3 * trt + rng.normal(0, 0.4, 236))
    return {"trt": trt, "base": base, "y": rng.poisson(mean.clip(0, 200))}


@entry("BUGS examples", seizures, bounds={"y": (0, 250), "base": (-4, 4)}, locations="a0 a_base a_trt", scales="sigma")
def epilepsy_overdispersed(d: Table) -> pm.Model:
    with pm.Model() as model:
        a0, a_base, a_trt = pm.Normal("a0", 0, 5), pm.Normal("a_base", 0, 5), pm.Normal("a_trt", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        b = pm.Normal("b", 0, sigma, shape=len(d["y"]))
        pm.Poisson("y", pm.math.exp(a0 + a_base * d.base + a_trt * d.trt + b), observed=d["y"])
    return model


def sites(rng: np.random.Generator) -> Columns:
    elevation = rng.normal(0, 1, 260)
    present = rng.binomial(1, expit(0.3 - 0.8 * elevation))
    return {"elevation": elevation, "detections": present * rng.binomial(5, 0.4, 260)}


@entry("Applied Hierarchical Modeling", sites, bounds={"elevation": (-4, 4), "detections": (0, 5)}, locations="b0 b1")
def occupancy(d: Table) -> pm.Model:
    with pm.Model() as model:
        elevation = pm.Data("elevation", d["elevation"])
        b0, b1 = pm.Normal("b0", 0, 1.5), pm.Normal("b1", 0, 1.5)
        p = pm.Uniform("p", 0, 1)
        pm.ZeroInflatedBinomial(
            "detections", psi=pm.math.invlogit(b0 + b1 * elevation), n=5, p=p, observed=d["detections"]
        )
    return model


def captures(rng: np.random.Generator) -> Columns:
    return {"y": np.concatenate([rng.binomial(5, 0.35, 150), np.zeros(150, dtype=int)])}


@entry("Applied Hierarchical Modeling", captures, bounds={"y": (0, 5)}, locations="omega p")
def capture_recapture(d: Table) -> pm.Model:
    with pm.Model() as model:
        omega, p = pm.Beta("omega", 1, 1), pm.Beta("p", 1, 1)
        pm.ZeroInflatedBinomial("y", psi=omega, n=5, p=p, observed=d["y"])
        pm.Deterministic("N", 300 * omega)
    return model


def texts(rng: np.random.Generator) -> Columns:
    return {"day": np.arange(240), "messages": rng.poisson(np.where(np.arange(240) < 100, 18, 23))}


@entry(
    "Bayesian Methods for Hackers", texts, bounds={"count": (0, 100), "day": (0, 239)}, locations="lambda_1 lambda_2"
)
def text_messages(d: Table) -> pm.Model:
    with pm.Model() as model:
        lambda_1, lambda_2 = pm.Exponential("lambda_1", 1 / 20), pm.Exponential("lambda_2", 1 / 20)
        tau = pm.DiscreteUniform("tau", lower=0, upper=239)
        lambda_ = pm.math.switch(tau > d.day, lambda_1, lambda_2)
        pm.Poisson("count", lambda_, observed=d["messages"])
    return model


PLACES = np.diag(np.ones(7), 1) + np.diag(np.ones(7), -1)
"""Which of eight districts along a road touch each other."""


def districts(rng: np.random.Generator) -> Columns:
    district, expected = rng.integers(0, 8, 600), rng.uniform(3, 20, 600)
    rate = np.exp(0.1 + 0.25 * np.sin(district))
    return {"district": district, "expected": expected, "cases": rng.poisson(rate * expected)}


DISTRICTS = {"cases": (0, 100), "expected": (3, 20)}


@entry(PYMC, districts, bounds=DISTRICTS, locations="b0 phi")
def areas_that_touch(d: Table) -> pm.Model:
    with pm.Model() as model:
        b0, tau = pm.Normal("b0", 0, 1), pm.Gamma("tau", 2, 0.2)
        alpha = pm.Beta("alpha", 1, 1)
        phi = pm.CAR("phi", mu=np.zeros(8), tau=tau, alpha=alpha, W=PLACES)
        pm.Poisson("cases", pm.math.exp(b0 + phi[d.district]) * d.expected, observed=d["cases"])
    return model


@entry("Bayesian Data Analysis", districts, bounds=DISTRICTS, locations="", scales="alpha beta")
def rates_of_places(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha, beta = pm.Exponential("alpha", 0.1), pm.Exponential("beta", 0.1)
        theta = pm.Gamma("theta", alpha=alpha, beta=beta, shape=600)
        pm.Poisson("cases", mu=d.expected * theta, observed=d["cases"])
    return model
