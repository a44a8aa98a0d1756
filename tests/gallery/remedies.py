"""What texts of refusals tell to do, done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp
from tests.gallery.entry import GALLERY, Table, remedied

NAME_IT = "x = pm.Data('x', x)"
NAMELESS = (
    "howell_line waffle_divorce milk_masked fungus_post_treatment ruggedness_interaction tulips_interaction lasso",
    "gamma_costs nes_logit beetles_cloglog kline_tools monks_exposure sneezes_poisson hurricanes iris_softmax",
    "cherry_blossoms radon_varying_slopes coal_mining_change_point text_messages reedfrogs_tanks",
    "eight_schools_pupils cafes rats trolley_education graduate_school discrete_hazard",
)
for name in " ".join(NAMELESS).split():
    remedied(name, says=NAME_IT)


def kidscore_with_a_name(d: Table) -> pm.Model:
    with pm.Model() as model:
        X = pm.Data("X", np.column_stack([np.ones(434), d["mom_hs"], (d["mom_iq"] - 100) / 15]))
        beta = pm.Flat("beta", shape=3)
        sigma = pm.HalfFlat("sigma")
        pm.Normal("kid_score", X @ beta, sigma, observed=d["kid_score"])
    return model


remedied(
    "kidscore_mom_work",
    says=NAME_IT,
    build=kidscore_with_a_name,
    bounds={"X": [(1, 1), (0, 1), (-4, 4)], "kid_score": (0, 200)},
)


def lag_with_a_name(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha, beta, sigma = pm.Normal("alpha", 0, 10), pm.Normal("beta", 0, 10), pm.HalfCauchy("sigma", 2.5)
        lagged = pm.Data("lagged", d["y"][:-1])
        pm.Normal("y", alpha + beta * lagged, sigma, observed=d["y"][1:])
    return model


remedied("autoregression_by_lag", says=NAME_IT, build=lag_with_a_name)


def hsgp_by_bounds(d: Table) -> pm.Model:
    with pm.Model() as model:
        X = pm.Data("X", d["t"][:, None])
        ell = pm.InverseGamma("ell", mu=0.3, sigma=0.2)
        eta = pm.Exponential("eta", 1)
        cov_func = eta**2 * pm.gp.cov.Matern52(input_dim=1, ls=ell)
        gp = dp.models.HSGP(m=[15], c=1.5, bounds=[(0, 1)], cov_func=cov_func)
        f = gp.prior("f", X=X)
        pm.Normal("y", mu=f, sigma=pm.HalfNormal("sigma", 1), observed=d["y"])
    return model


def linearized_by_bounds(d: Table) -> pm.Model:
    with pm.Model(coords={"weekday": range(7)}) as model:
        X = pm.Data("X", d["t"][:, None])
        weekday = pm.Data("weekday_idx", d["weekday"])
        ell = pm.LogNormal("ell", np.log(0.3), 0.5)
        eta = pm.HalfNormal("eta", 1)
        cov_func = eta**2 * pm.gp.cov.ExpQuad(1, ls=ell)
        gp = dp.models.HSGP(m=[12], L=[1.0], bounds=[(0, 1)], cov_func=cov_func)
        phi, sqrt_psd = gp.prior_linearized(X)
        beta = pm.Normal("beta", size=gp.n_basis_vectors)
        f = phi @ (beta * sqrt_psd)
        week = pm.ZeroSumNormal("week", sigma=1, dims="weekday")
        pm.Normal("y", f + week[weekday], pm.HalfNormal("sigma", 1), observed=d["y"])
    return model


remedied("island_gp", says=NAME_IT, public=("k",))
remedied("areas_that_touch", says=NAME_IT, public=("phi",))
remedied("hsgp_curve", says="dp.models.HSGP", build=hsgp_by_bounds)
remedied("hsgp_linearized", says="dp.models.HSGP", build=linearized_by_bounds)
remedied("radon_group_predictor", says="public=['x']", public=("u",))
remedied("election_mrp", says="dp.Domain(public=['v_prev'])", public=("v_prev",))
remedied("movie_ratings", says="dp.Domain(public=['thresholds'])", public=("thresholds",), bounds={"rating": (0, 4)})


def cats_that_leave(d: Table) -> pm.Model:
    with pm.Model() as m11_15:
        a = pm.Normal("a", 0, 1, shape=2)
        end = pm.Data("end", np.where(d["adopted"] == 1, 25.0, d["days"]))
        waits = pm.Exponential.dist(1 / pm.math.exp(a[d.black]))
        pm.Censored("days", waits, lower=None, upper=end, observed=d["days"])
    return m11_15


remedied(
    "adopted_cats",
    says="pm.Censored('days', dist, lower=None, upper=end)",
    build=cats_that_leave,
    bounds={"days": (0.1, 25), "end": (0.1, 25)},
)


def milk_filled(d: Table) -> pm.Model:
    with pm.Model() as model:
        # pm.Data takes no NaN: a table in rows= has them.
        Bi, M = pm.Data("Bi", np.nan_to_num(d["B"])), pm.Data("M", d["M"])
        a, bB, bM = pm.Normal("a", 0, 0.5), pm.Normal("bB", 0, 0.5), pm.Normal("bM", 0, 0.5)
        pm.Normal("K", a + bB * Bi + bM * M, pm.Exponential("sigma", 1), observed=d["K"])
    return dp.fill(model, {"Bi": 0.0})


remedied(
    "milk_missing",
    says="A missing covariate is dp.fill(model, {'Bi': 0.0}), with 'Bi' as pm.Data",
    build=milk_filled,
    bounds={"M": (-4, 4), "K": (-5, 5), "Bi": (-4, 4)},
)


def categories_summed_out(d: Table) -> pm.Model:
    with pm.Model() as model:
        p = pm.Dirichlet("p", a=np.ones(3), shape=3)
        mu = pm.Normal("mu", mu=[-5, 0, 5], sigma=2, shape=3)
        sd = pm.Uniform("sd", lower=0, upper=5)
        pm.Mixture("x", w=p, comp_dists=pm.Normal.dist(mu, sd), observed=d["x"])
    return model


remedied("mixture_of_categories", says="Sum it out: pm.Mixture('y', w=p", build=categories_summed_out)


def integrated(name: str, latent: str, **given: Any) -> None:
    """Do as a text says of a latent of rows."""
    build = GALLERY[name].build
    says = f"model = dp.integrate(model, '{latent}')"
    remedied(name, says=says, build=lambda d: dp.integrate(build(d), latent), **given)


integrated("seeds", "b", bounds={"x1": (0, 1), "x2": (0, 1), "n": (1, 80), "r": (0, 80)})
integrated("epilepsy_overdispersed", "b", bounds={**GALLERY["epilepsy_overdispersed"].given["bounds"], "trt": (0, 1)})
integrated("divorce_measured", "D_true")
integrated("irt_wide", "ability")


def players_without_latents(d: Table) -> pm.Model:
    with pm.Model(coords={"player": range(300)}) as model:
        phi = pm.Uniform("phi", lower=0.0, upper=1.0)
        kappa_log = pm.Exponential("kappa_log", lam=1.5)
        kappa = pm.Deterministic("kappa", pt.exp(kappa_log))
        alpha, beta = phi * kappa, (1.0 - phi) * kappa
        pm.BetaBinomial("hits", n=d.at_bats, alpha=alpha, beta=beta, dims="player", observed=d["hits"])
    return model


remedied("baseball", says="pm.BetaBinomial('hits', n=n, alpha=alpha, beta=beta", build=players_without_latents)


def rates_without_latents(d: Table) -> pm.Model:
    with pm.Model() as model:
        alpha, beta = pm.Exponential("alpha", 0.1), pm.Exponential("beta", 0.1)
        pm.NegativeBinomial("cases", mu=d.expected * alpha / beta, alpha=alpha, observed=d["cases"])
    return model


remedied(
    "rates_of_places",
    says="pm.NegativeBinomial('cases', mu=m * alpha / beta, alpha=alpha",
    build=rates_without_latents,
)


def scores_in_the_covariance(d: Table) -> pm.Model:
    with pm.Model() as model:
        W = pm.Normal("W", 0, 1, shape=(2, 5))
        psi = pm.HalfNormal("psi", 1.0)
        pm.MvNormal("Y", np.zeros(5), cov=W.T @ W + psi**2 * pt.eye(5), observed=d["Y"])
    return model


remedied(
    "factor_analysis_scores",
    says="pm.MvNormal('Y', mu, cov=W.T @ W + sigma**2 * pt.eye(k))",
    build=scores_in_the_covariance,
)


def process_over_cells(d: Table) -> pm.Model:
    with pm.Model() as model:
        ell, eta = pm.Gamma("ell", 2, 4), pm.HalfCauchy("eta", 5)
        gp = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ell))
        grid = pm.Data("grid", np.linspace(0, 1, 20)[:, None])
        f = gp.prior("f", X=grid)
        cell = pm.Data("cell", (d["t"] * 20).astype(int).clip(0, 19))
        pm.Normal("y", f[cell], pm.HalfCauchy("sigma", 5), observed=d["y"])
    return model


for name in ("gp_latent", "gp_marginal"):
    remedied(name, says="f = gp.prior('f', X=grid); f[cell]", build=process_over_cells, public=("grid",))


def censored_times(d: Table) -> pm.Model:
    with pm.Model() as model:
        end = pm.Data("end", np.where(d["event"] == 1, 10, d["time"]))
        alpha = pm.HalfNormal("alpha", 2)
        beta = pm.Normal("beta", 0, 2, shape=2)
        dist = pm.Weibull.dist(alpha=alpha, beta=pm.math.exp(beta[0] + beta[1] * d.metastasized))
        pm.Censored("time", dist, lower=None, upper=end, observed=d["time"])
    return model


remedied(
    "weibull_aft_potential", says="pm.Censored('y', dist, lower=None, upper=end, observed=y)", build=censored_times
)
