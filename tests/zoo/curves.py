"""Curves, fields and time: splines, Gaussian processes, random walks, neighbouring areas."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.kind import Table, entry, kind

MATERN = pm.gp.cov.Matern52
LINE = np.array([[0.0], [1.0]])


@entry("x y")
def spline(table: Table) -> None:
    """A broken line with four knots, in an array without a name."""
    knots = np.array([0.2, 0.4, 0.6, 0.8])
    x = pm.Data("x", table["x"])
    mean = pm.Normal("a") + pt.maximum(x[:, None] - knots, 0) @ pm.Normal("w", shape=4)
    pm.Normal("y", mean, 1, observed=table["y"])


@entry("x y")
def spline_with_many_knots(table: Table) -> None:
    """A broken line with forty knots, in an array without a name."""
    x = pm.Data("x", table["x"])
    mean = pt.maximum(x[:, None] - np.linspace(0, 0.97, 40), 0) @ pm.Normal("w", shape=40)
    pm.Normal("y", mean, 1, observed=table["y"])


@entry("x y", arrays="knots")
def spline_with_named_knots(table: Table) -> None:
    """A broken line with four knots that are public named data."""
    x, knots = pm.Data("x", table["x"]), pm.Data("knots", [0.2, 0.4, 0.6, 0.8])
    pm.Normal("y", pt.maximum(x[:, None] - knots, 0) @ pm.Normal("w", shape=4), 1, observed=table["y"])


@entry("x y", careless=True)
def spline_with_knots_at_quantiles(table: Table) -> None:
    """A broken line whose user puts knots at quantiles of the rows, in an array without a name."""
    knots = np.quantile(table["x"], [0.25, 0.5, 0.75])
    x = pm.Data("x", table["x"])
    pm.Normal("y", pt.maximum(x[:, None] - knots, 0) @ pm.Normal("w", shape=3), 1, observed=table["y"])


@entry("y")
def spline_made_outside(table: Table) -> None:
    """A spline whose basis was computed outside the model."""
    basis = np.maximum(table["x"][:, None] - np.array([0.0, 0.3, 0.6]), 0)
    pm.Normal("y", basis @ pm.Normal("w", shape=3), 1, observed=table["y"])


def _hsgp(**given):
    return pm.gp.HSGP(m=[5], cov_func=MATERN(1, ls=pm.InverseGamma("ell", 3, 1)), **given)


@entry("x y", delta=1e-6)
def hilbert_space_process(table: Table) -> None:
    """A Gaussian process in a private column, approximated, whose interval is a multiple of the rows' range."""
    f = _hsgp(c=1.5).prior("f", X=pm.Data("x", table["x"])[:, None])
    pm.Normal("y", f, 1, observed=table["y"])


@entry("x y", delta=1e-6)
def hilbert_space_process_of_given_length(table: Table) -> None:
    """A Gaussian process in a private column, approximated, on an interval of given length."""
    f = _hsgp(L=[1.5]).prior("f", X=pm.Data("x", table["x"])[:, None])
    pm.Normal("y", f, 1, observed=table["y"])


@entry("x y", delta=1e-6)
def hilbert_space_process_on_public_bounds(table: Table) -> None:
    """A Gaussian process in a private column, approximated, on an interval that is made of public bounds first."""
    gp = _hsgp(c=1.5)
    gp.prior_linearized(LINE)
    pm.Normal("y", gp.prior("f", X=pm.Data("x", table["x"])[:, None]), 1, observed=table["y"])


@entry("x y", delta=1e-6)
def hilbert_space_process_linearised(table: Table) -> None:
    """A Gaussian process in a private column, as basis functions and coefficients."""
    phi, root = _hsgp(c=1.5).prior_linearized(pm.Data("x", table["x"])[:, None])
    pm.Normal("y", phi @ (pm.Normal("w", shape=5) * root), 1, observed=table["y"])


@entry("y", delta=1e-6)
def hilbert_space_process_of_an_array(table: Table) -> None:
    """A Gaussian process in an array without a name, approximated."""
    pm.Normal("y", _hsgp(c=1.5).prior("f", X=table["x"][:, None]), 1, observed=table["y"])


@entry("x y", delta=1e-6)
def hilbert_space_process_periodic(table: Table) -> None:
    """A periodic Gaussian process in a private column, approximated."""
    cov = pm.gp.cov.Periodic(1, period=1, ls=pm.InverseGamma("ell", 3, 1))
    gp = pm.gp.HSGPPeriodic(m=5, scale=1.0, cov_func=cov)
    pm.Normal("y", gp.prior("f", X=pm.Data("x", table["x"])[:, None]), 1, observed=table["y"])


@entry("x y", delta=1e-6)
def latent_process(table: Table) -> None:
    """A Gaussian process with a value for every row."""
    gp = pm.gp.Latent(cov_func=MATERN(1, ls=0.3))
    pm.Normal("y", gp.prior("f", X=pm.Data("x", table["x"])[:, None]), 1, observed=table["y"])


@entry("x y", delta=1e-6)
def marginal_process(table: Table) -> None:
    """A Gaussian process that is integrated out."""
    gp = pm.gp.Marginal(cov_func=MATERN(1, ls=0.3))
    gp.marginal_likelihood("y", X=pm.Data("x", table["x"])[:, None], y=table["y"], sigma=1.0)


@entry("y month")
def process_on_a_public_grid(table: Table) -> None:
    """A Gaussian process at public months, indexed by a column of months."""
    f = pm.gp.Latent(cov_func=MATERN(1, ls=3.0)).prior("f", X=np.arange(12.0)[:, None])
    pm.Normal("y", f[pm.Data("month", table["month"])], 1, observed=table["y"])


@entry("count month")
def random_walk(table: Table) -> None:
    """A random walk over public months, indexed by a column of months."""
    level = pm.GaussianRandomWalk("level", sigma=0.3, init_dist=pm.Normal.dist(), shape=12)
    pm.Poisson("count", pm.math.exp(level[pm.Data("month", table["month"])]), observed=table["count"])


@entry("y month")
def autoregression(table: Table) -> None:
    """An autoregression over public months, indexed by a column of months."""
    level = pm.AR("level", rho=[0.5], sigma=0.3, init_dist=pm.Normal.dist(), shape=12)
    pm.Normal("y", level[pm.Data("month", table["month"])], 1, observed=table["y"])


@entry("y", delta=1e-6)
def random_walk_over_rows(table: Table) -> None:
    """A random walk with a step for every row."""
    level = pm.GaussianRandomWalk("level", sigma=0.3, init_dist=pm.Normal.dist(), shape=len(table["y"]))
    pm.Normal("y", level, 1, observed=table["y"])


ADJACENT = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])


@entry("count h")
def neighbouring_areas(table: Table) -> None:
    """Rates of four areas on a line, with a conditional autoregressive prior."""
    effects = pm.CAR("effects", mu=np.zeros(4), W=ADJACENT, alpha=0.9, tau=1.0)
    pm.Poisson("count", pm.math.exp(effects[pm.Data("h", table["h"])]), observed=table["count"])


@entry("count h")
def neighbouring_areas_intrinsic(table: Table) -> None:
    """Rates of four areas on a line, with an intrinsic autoregressive prior."""
    effects = pm.ICAR("effects", W=ADJACENT, sigma=pm.HalfNormal("spread"))
    pm.Poisson("count", pm.math.exp(effects[pm.Data("h", table["h"])]), observed=table["count"])


@kind("count month")
def months_with_labels(table: Table) -> pm.Model:
    """A rate per month, with the names of months as labels."""
    with pm.Model(coords={"month_name": [f"2026-{month:02d}" for month in range(1, 13)]}) as model:
        rate = pm.Gamma("rate", 2, 1, dims="month_name")
        pm.Poisson("count", rate[pm.Data("month", table["month"])], observed=table["count"])
    return model
