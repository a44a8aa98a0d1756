"""Curves and time: splines, seasons, Gaussian processes, and series whose rows depend on each other."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.interpolate import BSpline

from tests.gallery.entry import Columns, Table, entry, standardize
from tests.gallery.linear import PYMC, RETHINKING


def spline_basis(x: np.ndarray, knots: int, degree: int = 3) -> np.ndarray:
    inner = np.quantile(x, np.linspace(0, 1, knots))
    whole = np.concatenate([[inner[0]] * degree, inner, [inner[-1]] * degree])
    return BSpline.design_matrix(np.clip(x, inner[0], inner[-1]), whole, degree).toarray()


def blossoms(rng: np.random.Generator) -> Columns:
    year = np.arange(827) + 1189
    doy = 104 + 3 * np.sin(year / 120) + rng.normal(0, 5.5, 827)
    return {"year": year, "B": spline_basis(year.astype(float), 10), "doy": doy}


@entry(RETHINKING, blossoms, bounds={"D": (70, 140), "B": (0, 1)}, locations="a w", scales="sigma")
def cherry_blossoms(d: Table) -> pm.Model:
    with pm.Model() as m4_7:
        a = pm.Normal("a", 100, 10)
        w = pm.Normal("w", mu=0, sigma=10, shape=d["B"].shape[1])
        mu = pm.Deterministic("mu", a + pm.math.dot(d.B, w.T))
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("D", mu=mu, sigma=sigma, observed=d["doy"])
    return m4_7


@entry(
    "Bayesian Modeling and Computation in Python",
    blossoms,
    bounds={"doy": (70, 140), "B": (0, 1)},
    public=("B",),
    locations="a",
    scales="sigma tau",
)
def blossoms_public_years(d: Table) -> pm.Model:
    with pm.Model(coords={"spline": range(d["B"].shape[1]), "year": d["year"]}) as model:
        B = pm.Data("B", d["B"], dims=("year", "spline"))
        a = pm.Normal("a", 100, 5)
        tau = pm.HalfNormal("tau", 5)
        w = pm.Normal("w", mu=0, sigma=tau, dims="spline")
        pm.Normal("doy", a + pm.math.dot(B, w), pm.HalfNormal("sigma", 10), observed=d["doy"], dims="year")
    return model


def births(rng: np.random.Generator) -> Columns:
    t = np.linspace(0, 1, 400)
    return {
        "t": t,
        "weekday": np.arange(400) % 7,
        "y": np.sin(6 * t) + 0.3 * np.cos(2 * np.pi * 8 * t) + rng.normal(0, 0.3, 400),
    }


BIRTHS = {"t": (0, 1), "y": (-4, 4), "X": (0, 1)}


@entry(PYMC, births, bounds=BIRTHS, locations="", scales="sigma")
def hsgp_curve(d: Table) -> pm.Model:
    with pm.Model() as model:
        X = pm.Data("X", d["t"][:, None])
        ell = pm.InverseGamma("ell", mu=0.3, sigma=0.2)
        eta = pm.Exponential("eta", 1)
        cov_func = eta**2 * pm.gp.cov.Matern52(input_dim=1, ls=ell)
        gp = pm.gp.HSGP(m=[15], c=1.5, cov_func=cov_func)
        f = gp.prior("f", X=X)
        pm.Normal("y", mu=f, sigma=pm.HalfNormal("sigma", 1), observed=d["y"])
    return model


@entry(PYMC, births, bounds=BIRTHS, locations="week", scales="sigma")
def hsgp_linearized(d: Table) -> pm.Model:
    with pm.Model(coords={"weekday": range(7)}) as model:
        X = pm.Data("X", d["t"][:, None])
        weekday = pm.Data("weekday_idx", d["weekday"])
        ell = pm.LogNormal("ell", np.log(0.3), 0.5)
        eta = pm.HalfNormal("eta", 1)
        gp = pm.gp.HSGP(m=[12], L=[1.0], cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ls=ell))
        phi, sqrt_psd = gp.prior_linearized(X)
        beta = pm.Normal("beta", size=gp.n_basis_vectors)
        f = phi @ (beta * sqrt_psd)
        week = pm.ZeroSumNormal("week", sigma=1, dims="weekday")
        pm.Normal("y", f + week[weekday], pm.HalfNormal("sigma", 1), observed=d["y"])
    return model


@entry(PYMC, births, bounds=BIRTHS, locations="", scales="sigma")
def gp_marginal(d: Table) -> pm.Model:
    with pm.Model() as model:
        ell, eta = pm.Gamma("ell", 2, 4), pm.HalfCauchy("eta", 5)
        gp = pm.gp.Marginal(cov_func=eta**2 * pm.gp.cov.Matern52(1, ell))
        gp.marginal_likelihood("y", X=d["t"][:, None], y=d["y"], sigma=pm.HalfCauchy("sigma", 5))
    return model


@entry(PYMC, births, bounds=BIRTHS, locations="", scales="sigma")
def gp_latent(d: Table) -> pm.Model:
    with pm.Model() as model:
        ell, eta = pm.Gamma("ell", 2, 4), pm.HalfCauchy("eta", 5)
        gp = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ell))
        f = gp.prior("f", X=d["t"][:, None])
        pm.Normal("y", f, pm.HalfCauchy("sigma", 5), observed=d["y"])
    return model


def passengers(rng: np.random.Generator) -> Columns:
    t = np.linspace(0, 1, 240)
    months = np.arange(240) / 12
    season = np.column_stack([f(2 * np.pi * k * months) for k in (1, 2, 3) for f in (np.sin, np.cos)])
    return {
        "t": t,
        "season": season,
        "y": 0.3 + 0.7 * t + season @ [0.1, 0.05, -0.05, 0.02, 0, 0.03] + rng.normal(0, 0.05, 240),
    }


@entry(
    PYMC, passengers, bounds={"t": (0, 1), "season": (-1, 1), "y": (-1, 3)}, locations="alpha beta b", scales="sigma"
)
def prophet_season(d: Table) -> pm.Model:
    with pm.Model(coords={"fourier_features": range(6)}) as model:
        alpha, beta = pm.Normal("alpha", mu=0, sigma=0.5), pm.Normal("beta", mu=0, sigma=0.5)
        t = pm.Data("t", d["t"])
        season = pm.Data("season", d["season"])
        b = pm.Normal("b", mu=0, sigma=0.1, dims="fourier_features")
        trend = pm.Deterministic("trend", alpha + beta * t)
        mu = trend + pm.math.dot(season, b)
        pm.Normal("y", mu=mu, sigma=pm.HalfNormal("sigma", sigma=0.1), observed=d["y"])
    return model


@entry(PYMC, passengers, bounds={"t": (0, 1), "y": (-1, 3)}, locations="k m", scales="sigma")
def prophet_trend(d: Table) -> pm.Model:
    s = np.linspace(0, 1, 8)[1:-1]
    with pm.Model() as model:
        t = pm.Data("t", d["t"])
        k, m = pm.Normal("k", 0, 2), pm.Normal("m", 0, 2)
        delta = pm.Laplace("delta", 0, 0.3, shape=6)
        A = (t[:, None] > s) * 1.0
        growth = k + pm.math.dot(A, delta)
        offset = m + pm.math.dot(A, -s * delta)
        pm.Normal("y", growth * t + offset, pm.HalfNormal("sigma", 0.5), observed=d["y"])
    return model


def islands(rng: np.random.Generator) -> Columns:
    society, log_pop = rng.integers(0, 10, 200), rng.normal(0, 1, 200)
    place = rng.uniform(0, 4, (10, 2))
    Dmat = np.sqrt(((place[:, None] - place) ** 2).sum(-1))
    return {
        "society": society,
        "P": log_pop,
        "Dmat": Dmat,
        "total": rng.poisson(np.exp(3 + 0.3 * log_pop + rng.normal(0, 0.3, 10)[society])),
    }


@entry(RETHINKING, islands, bounds={"P": (-4, 4), "total_tools": (0, 300)}, locations="a b")
def island_gp(d: Table) -> pm.Model:
    Dmat2 = d["Dmat"] ** 2
    with pm.Model() as m14_8:
        a, b = pm.Normal("a", 3, 0.5), pm.Normal("b", 0, 0.5)
        etasq, rhosq = pm.Exponential("etasq", 2), pm.Exponential("rhosq", 0.5)
        K = etasq * pt.exp(-rhosq * Dmat2) + 0.01 * np.eye(10)
        k = pm.MvNormal("k", mu=np.zeros(10), cov=K)
        pm.Poisson("total_tools", pm.math.exp(a + k[d.society] + b * d.P), observed=d["total"])
    return m14_8


def returns(rng: np.random.Generator) -> Columns:
    y = np.zeros(300)
    for i in range(1, 300):
        y[i] = 0.6 * y[i - 1] + rng.normal(0, 0.5)
    return {"y": y, "lagged": np.concatenate([[0], y[:-1]])}


@entry(PYMC, returns, bounds={"y": (-5, 5)}, locations="rho", scales="sigma")
def autoregression(d: Table) -> pm.Model:
    with pm.Model() as ar1:
        rho = pm.Normal("rho", mu=0.0, sigma=1.0)
        sigma = pm.HalfNormal("sigma", 3)
        pm.AR("y", rho=rho, sigma=sigma, init_dist=pm.Normal.dist(0, 5), observed=d["y"])
    return ar1


@entry("Stan user's guide", returns, bounds={"y": (-5, 5), "lagged": (-5, 5)}, locations="alpha beta", scales="sigma")
def autoregression_by_lag(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha, beta, sigma = pm.Normal("alpha", 0, 10), pm.Normal("beta", 0, 10), pm.HalfCauchy("sigma", 2.5)
        pm.Normal("y", alpha + beta * d["y"][:-1], sigma, observed=d["y"][1:])
    return model


@entry(PYMC, returns, bounds={"y": (-5, 5)}, locations="")
def stochastic_volatility(d: Table) -> pm.Model:
    with pm.Model() as model:
        step_size = pm.Exponential("step_size", 10)
        volatility = pm.GaussianRandomWalk("volatility", sigma=step_size, init_dist=pm.Normal.dist(0, 100), shape=300)
        nu = pm.Exponential("nu", 0.1)
        pm.StudentT("y", nu=nu, lam=pt.exp(-2 * volatility), observed=d["y"])
    return model


def seasons(rng: np.random.Generator) -> Columns:
    month = np.arange(360) % 12
    walk = np.cumsum(rng.normal(0, 0.2, 12))
    return {"month": month, "x": standardize(rng.normal(size=360)), "sales": 5 + walk[month] + rng.normal(0, 0.5, 360)}


@entry(PYMC, seasons, bounds={"sales": (0, 12)}, locations="level", scales="sigma")
def monthly_walk(d: Table) -> pm.Model:
    with pm.Model(coords={"month": range(12)}) as model:
        level = pm.GaussianRandomWalk(
            "level", mu=0, sigma=pm.HalfNormal("drift", 1), init_dist=pm.Normal.dist(5, 3), dims="month"
        )
        pm.Normal("sales", level[d.month], pm.HalfNormal("sigma", 1), observed=d["sales"])
    return model
