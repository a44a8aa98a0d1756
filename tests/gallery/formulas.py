"""Models as formulas, by bambi, as its examples write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.gallery.entry import Columns, Table, entry, expit

BAMBI = "bambi examples"


def survey(rng: np.random.Generator) -> Columns:
    x, w, g = rng.normal(0, 1, 500), rng.uniform(0, 1, 500), rng.integers(0, 8, 500)
    eta = 0.4 + 0.6 * x - 0.5 * w + rng.normal(0, 0.4, 8)[g]
    mu = expit(eta)
    return {
        "x": x,
        "w": w,
        "g": g,
        "sex": rng.integers(0, 2, 500),
        "y": 1 + eta + rng.normal(0, 0.7, 500),
        "t": 1 + eta + 0.6 * rng.standard_t(4, 500),
        "yes": rng.binomial(1, mu),
        "k": rng.poisson(np.exp(eta)),
        "nb": rng.negative_binomial(3, 3 / (3 + np.exp(eta))),
        "share": rng.beta(20 * mu, 20 * (1 - mu)),
        "cost": rng.gamma(3, np.exp(eta) / 3),
        "grade": ((eta + rng.logistic(size=500))[:, None] > [-0.5, 0.7, 1.8]).sum(1),
        "kind": (eta[:, None] * [0, 1, -1] + rng.gumbel(size=(500, 3))).argmax(1),
        "trials": rng.integers(1, 20, 500),
    } | more(rng, x, w, eta)


def more(rng: np.random.Generator, x: np.ndarray, w: np.ndarray, eta: np.ndarray) -> Columns:
    """Columns of later models."""
    shares = np.exp(eta[:, None] * [0, 0.5, -0.5])
    spent, zero, dead = np.exp(eta / 2 + rng.normal(0, 0.5, 500)), rng.binomial(1, 0.3, 500), 2 * rng.weibull(1.5, 500)
    time, end = dead * np.exp(0.5 * x), rng.uniform(1, 8, 500)
    votes = np.array([rng.multinomial(9, share) for share in shares / shares.sum(axis=1, keepdims=True)])
    return {
        "fish": np.where(zero, 0, rng.poisson(np.exp(0.5 + 0.6 * x))),
        "spent": np.where(zero, 0, spent),
        "varied": 0.5 * x + np.exp(-0.5 + w) * rng.normal(size=500),
        "time": np.minimum(time, end),
        "late": (time > end).astype(int),
        "angle": rng.vonmises(0.5 * np.tanh(x), 3),
        "curve": np.sin(2 * x) + rng.normal(0, 0.3, 500),
        "red": votes[:, 0],
        "green": votes[:, 1],
        "blue": votes[:, 2],
        "right": rng.beta(0.4 * 9, 0.6 * 9, 500),
    }


BOUNDS = {
    "x": (-4, 4), "w": (0, 1), "y": (-5, 7), "t": (-8, 10), "k": (0, 60), "nb": (0, 90), "share": (0.001, 0.999),
    "cost": (0.01, 60), "trials": (1, 20), "wins": (0, 20), "fish": (0, 30), "spent": (0, 20), "varied": (-10, 10),
    "time": (0.01, 8), "angle": (-3.142, 3.142), "curve": (-3, 3), "red": (0, 9), "green": (0, 9), "blue": (0, 9),
    "solved": (0, 20),
}  # fmt: skip


def frame(d: Table) -> pd.DataFrame:
    """The table as bambi takes it, with declared labels."""
    columns = {name: d[name] for name in ("x", "w", "y", "t", "yes", "k", "nb", "share", "cost", "trials")}
    table = pd.DataFrame(columns)
    for name, labels in (("g", "abcdefgh"), ("sex", "fm"), ("grade", "abcd"), ("kind", "abc")):
        table[name] = pd.Categorical.from_codes(d[name], list(labels), ordered=True)
    table["wins"] = np.minimum(d["k"], d["trials"])
    for name in ("fish", "spent", "varied", "time", "angle", "curve", "red", "green", "blue"):
        table[name] = d[name]
    table["status"] = pd.Categorical.from_codes(d["late"], ["none", "right"], ordered=True)
    table["solved"] = np.rint(d["trials"] * d["right"]).astype(int)
    return table


def formula(name: str, text: str | tuple[str, ...], locations: str, scales: str = "", **options: Any) -> None:
    def build(d: Table) -> Any:
        import bambi as bmb

        return bmb.Model(text if isinstance(text, str) else bmb.Formula(*text), frame(d), **options)

    build.__name__ = name
    entry(BAMBI, survey, bounds=BOUNDS, locations=locations, scales=scales)(build)


formula("bambi_linear", "y ~ x + w", "Intercept x w", "sigma")
formula("bambi_interaction", "y ~ x * sex", "Intercept x sex x:sex", "sigma")
formula("bambi_logistic", "yes ~ x + w", "Intercept x w", family="bernoulli")
formula("bambi_poisson", "k ~ x + w", "Intercept x w", family="poisson")
formula("bambi_negative_binomial", "nb ~ x + sex", "Intercept x sex", "alpha", family="negativebinomial")
formula("bambi_groups", "y ~ x + (1|g)", "Intercept x", "sigma")
formula("bambi_slopes", "y ~ x + (x|g)", "Intercept x", "sigma")
formula("bambi_logistic_groups", "yes ~ x + (1|g)", "Intercept x", family="bernoulli")
formula("bambi_robust", "t ~ x + w", "Intercept x w", "sigma", family="t")
formula("bambi_beta", "share ~ x", "Intercept x", "kappa", family="beta")
formula("bambi_gamma", "cost ~ x", "Intercept x", "alpha", family="gamma", link="log")
formula("bambi_cumulative", "grade ~ 0 + x", "x", family="cumulative")
formula("bambi_categorical", "kind ~ x", "Intercept x", family="categorical")
formula("bambi_binomial", "p(wins, trials) ~ x", "Intercept x", family="binomial")
formula("bambi_spline", "y ~ bs(x, df=6)", "Intercept", "sigma")
formula("bambi_scaled", "y ~ scale(x) + I(w**2)", "Intercept", "sigma")
formula("bambi_polynomial", "y ~ poly(x, 2)", "Intercept", "sigma")
formula("bambi_offset", "k ~ x + offset(log(trials))", "Intercept x", family="poisson")
formula("bambi_no_intercept", "y ~ 0 + g + x", "g x", "sigma")
formula("bambi_stopping_ratio", "grade ~ 0 + x", "x", family="sratio")
formula("bambi_beta_binomial", "p(solved, trials) ~ 1", "Intercept", "kappa", family="beta_binomial")
formula("bambi_multinomial", "counts(red, green, blue) ~ x", "Intercept x", family="multinomial")
formula("bambi_zero_inflated", ("fish ~ x", "psi ~ w"), "Intercept x psi_Intercept", family="zero_inflated_poisson")
formula("bambi_hurdle", "spent ~ x", "Intercept x psi", "alpha", family="hurdle_gamma")
formula("bambi_hurdle_counts", "fish ~ x", "Intercept x psi", family="hurdle_negativebinomial")
formula("bambi_distributional", ("varied ~ x", "sigma ~ w"), "Intercept x sigma_Intercept sigma_w")
formula("bambi_wald", "cost ~ x", "Intercept x", "lam", family="wald", link="log")
formula("bambi_circular", "angle ~ x", "Intercept x", "kappa", family="vonmises")
formula("bambi_quantile", "y ~ x", "Intercept x", "b", family="asymmetriclaplace", priors={"kappa": 2})
formula("bambi_censored", "censored(time, status) ~ x", "Intercept x", "alpha", family="weibull")
formula("bambi_process", "curve ~ hsgp(x, m=10, c=1.5)", "Intercept", "sigma")
