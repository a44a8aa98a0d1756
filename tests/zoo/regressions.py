"""Regressions: of every family, on columns with and without names, and multilevel ones."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.sparse as ps
import pytensor.tensor as pt
import scipy.sparse

import pymc_dp as dp
from tests.zoo.kind import Table, entry, kind


@entry("x y")
def linear(table: Table) -> None:
    """A straight line through a named column."""
    x = pm.Data("x", table["x"])
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sigma"), observed=table["y"])


@entry("y")
def linear_without_a_name(table: Table) -> None:
    """A straight line through an array without a name."""
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * table["x"], pm.HalfNormal("sigma"), observed=table["y"])


@entry("X y")
def linear_by_a_matrix(table: Table) -> None:
    """A linear regression on a design matrix."""
    X = pm.Data("X", table["X"])
    pm.Normal("y", pm.Normal("a") + X @ pm.Normal("b", shape=3), pm.HalfNormal("sigma"), observed=table["y"])


@entry("y")
def linear_by_a_matrix_without_a_name(table: Table) -> None:
    """A linear regression on a matrix without a name."""
    pm.Normal("y", table["X"] @ pm.Normal("b", shape=3), pm.HalfNormal("sigma"), observed=table["y"])


@entry("y", public="x")
def linear_in_a_public_column(table: Table) -> None:
    """A straight line through a public column."""
    x = pm.Data("x", table["x"])
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sigma"), observed=table["y"])


@entry("x g y")
def linear_with_interaction(table: Table) -> None:
    """An intercept and a slope per group."""
    x, g = pm.Data("x", table["x"]), pm.Data("g", table["g"])
    mu = pm.Normal("a", shape=3)[g] + pm.Normal("b", shape=3)[g] * x
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=table["y"])


@entry("x y")
def parabola(table: Table) -> None:
    """A parabola in a named column."""
    x = pm.Data("x", table["x"])
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x + pm.Normal("c") * x**2, 1, observed=table["y"])


@entry("y")
def standardised_outside(table: Table) -> None:
    """A predictor that was standardised outside the model, without a name."""
    x = table["x"]
    standardised = (x - x.mean()) / x.std()
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * standardised, 1, observed=table["y"])


@entry("y", bounds={"x": (-3, 3), "y": (-2, 2)})
def standardised_outside_and_named(table: Table) -> None:
    """A predictor that was standardised outside the model, as a named column."""
    x = pm.Data("x", (table["x"] - table["x"].mean()) / table["x"].std())
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1, observed=table["y"])


@entry("x y")
def standardised_by_numbers(table: Table) -> None:
    """A named predictor from which the model takes a mean that its user computed."""
    x, mean = pm.Data("x", table["x"]), float(np.float64(0.5))
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * (x - mean), 1, observed=table["y"])


@entry("x y")
def centred_within_the_model(table: Table) -> None:
    """A predictor that is centred within the model."""
    x = pm.Data("x", table["x"])
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * (x - x.mean()), 1, observed=table["y"])


@entry("x z", delta=1e-6)
def logistic(table: Table) -> None:
    """A logistic regression on two named columns."""
    x, z = pm.Data("x", table["x"]), pm.Data("z", table["z"])
    pm.Bernoulli("yes", logit_p=pm.Normal("a") + pm.Normal("b") * x + pm.Normal("c") * z, observed=table["yes"])


@entry("x")
def logistic_at_delta_zero(table: Table) -> None:
    """A logistic regression at δ = 0, by a polynomial."""
    x = pm.Data("x", table["x"])
    pm.Bernoulli("yes", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=table["yes"])


@entry(delta=1e-6)
def logistic_without_a_name(table: Table) -> None:
    """A logistic regression on a matrix without a name."""
    pm.Bernoulli("yes", logit_p=table["X"] @ pm.Normal("b", shape=3), observed=table["yes"])


@entry("x count hours", delta=1e-6)
def poisson_with_exposure(table: Table) -> None:
    """A Poisson regression on a named column, with hours as exposure."""
    x, hours = pm.Data("x", table["x"]), pm.Data("hours", table["hours"])
    rate = hours * pm.math.exp(pm.Normal("a") + pm.Normal("b") * x)
    pm.Poisson("count", rate, observed=table["count"])


@entry("count g hours")
def exposure_per_group(table: Table) -> None:
    """A rate per group, with hours as exposure."""
    g, hours = pm.Data("g", table["g"]), pm.Data("hours", table["hours"])
    pm.Poisson("count", pm.Gamma("rate", 2, 1, shape=3)[g] * hours, observed=table["count"])


@entry("count", delta=1e-6)
def offset_without_a_name(table: Table) -> None:
    """A Poisson rate with an offset that is an array without a name."""
    offset = np.log(np.maximum(table["hours"], 1))
    pm.Poisson("count", pm.math.exp(pm.Normal("a") + offset), observed=table["count"])


@entry("x count", delta=1e-6)
def negative_binomial(table: Table) -> None:
    """A negative binomial regression."""
    mean = pm.math.exp(pm.Normal("a") + pm.Normal("b") * pm.Data("x", table["x"]))
    pm.NegativeBinomial("count", mu=mean, alpha=pm.Gamma("alpha", 2, 1), observed=table["count"])


@entry("x y", delta=1e-6)
def robust(table: Table) -> None:
    """A Student-t regression."""
    mean = pm.Normal("a") + pm.Normal("b") * pm.Data("x", table["x"])
    pm.StudentT("y", pm.Gamma("nu", 2, 0.1), mu=mean, sigma=pm.HalfNormal("sigma"), observed=table["y"])


@entry("x", delta=1e-6)
def ordinal_regression(table: Table) -> None:
    """Ordered ratings that depend on a named column."""
    transform = pm.distributions.transforms.ordered
    cuts = pm.Normal("cuts", [-1, 0, 1], 1, shape=3, transform=transform, initval=[-1, 0, 1])
    pm.OrderedLogistic("rating", pm.Normal("b") * pm.Data("x", table["x"]), cuts, observed=table["rating"])


@entry("x", delta=1e-6)
def multinomial_regression(table: Table) -> None:
    """One choice of three, by a softmax of linear predictors."""
    x = pm.Data("x", table["x"])
    logits = pm.Normal("a", shape=3) + x[:, None] * pm.Normal("b", shape=3)
    pm.Categorical("choice", logit_p=logits, observed=table["choice"])


@entry("y", delta=1e-6)
def sparse_design(table: Table) -> None:
    """A linear regression on a sparse matrix of indicators."""
    rows = np.arange(len(table["y"]))
    design = scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, table["h"])), shape=(len(rows), 4))
    mean = ps.dot(ps.as_sparse_variable(design), pm.Normal("b", shape=(4, 1))).flatten()
    pm.Normal("y", mean, 1, observed=table["y"])


@entry("y", delta=1e-6)
def minibatches(table: Table) -> None:
    """A straight line through minibatches of the rows."""
    x, y = pm.Minibatch(table["x"], table["y"], batch_size=8)
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1, observed=y, total_size=len(table["y"]))


@kind("x", delta=1e-6)
def missing_values(table: Table) -> pm.Model:
    """A logistic regression on a column with missing values, which are filled."""
    missing = np.isnan(table["x"])
    with pm.Model() as model:
        x = pm.Data("x", np.where(missing, 0, table["x"]))
        pm.Bernoulli("yes", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=table["yes"])
    filled = dp.fill(model, {"x": pm.Normal.dist(0.5, 1)})
    filled.set_data("x_missing", missing.astype(filled["x_missing"].dtype))
    return filled


@kind("count", delta=1e-6)
def latent_per_row_integrated_out(table: Table) -> pm.Model:
    """Overdispersed counts: the latent variable of each row is integrated out."""
    n = len(table["count"])
    with pm.Model() as model:
        excess = pm.Normal("excess", 0, pm.HalfNormal("spread"), shape=n)
        pm.Poisson("count", pm.math.exp(pm.Normal("rate") + excess), observed=table["count"])
    return dp.integrate(model, "excess")


@entry("y g")
def multilevel_centred(table: Table) -> None:
    """Means of groups that share a prior, centred."""
    mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
    means = pm.Normal("means", mu, tau, shape=3)
    pm.Normal("y", means[pm.Data("g", table["g"])], pm.HalfNormal("sigma"), observed=table["y"])


@entry("y g x")
def multilevel_non_centred(table: Table) -> None:
    """Intercepts of groups that share a prior, not centred, and a common slope."""
    mu, tau, offsets = pm.Normal("mu"), pm.HalfNormal("tau"), pm.Normal("offsets", shape=3)
    mean = (mu + tau * offsets)[pm.Data("g", table["g"])] + pm.Normal("b") * pm.Data("x", table["x"])
    pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=table["y"])


@entry("g x", delta=1e-6)
def multilevel_correlated(table: Table) -> None:
    """Correlated intercepts and slopes of groups, with an LKJ prior, in a logistic regression."""
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1), compute_corr=True)
    effects = pt.dot(pm.Normal("offsets", shape=(3, 2)), chol.T)
    g, x = pm.Data("g", table["g"]), pm.Data("x", table["x"])
    pm.Bernoulli("yes", logit_p=effects[g, 0] + effects[g, 1] * x, observed=table["yes"])


@entry("y g")
def multilevel_with_group_predictor(table: Table) -> None:
    """Means of groups that depend on a public number of each group, without a name."""
    means = pm.Normal("means", pm.Normal("a") + pm.Normal("b") * np.array([0.2, -0.4, 1.1]), 1, shape=3)
    pm.Normal("y", means[pm.Data("g", table["g"])], 1, observed=table["y"])


@entry("y g", arrays="uranium")
def multilevel_with_named_group_predictor(table: Table) -> None:
    """Means of groups that depend on a public number of each group, as named data."""
    uranium = pm.Data("uranium", [0.2, -0.4, 1.1])
    means = pm.Normal("means", pm.Normal("a") + pm.Normal("b") * uranium, 1, shape=3)
    pm.Normal("y", means[pm.Data("g", table["g"])], 1, observed=table["y"])


@entry("y g x", careless=True)
def multilevel_with_means_of_rows(table: Table) -> None:
    """Means of groups that depend on averages of the rows of each group, without a name."""
    groups = [table["x"][table["g"] == group] for group in range(3)]
    averages = np.array([x.sum() / max(len(x), 1) for x in groups])
    means = pm.Normal("means", pm.Normal("b") * averages, 1, shape=3)
    mean = means[pm.Data("g", table["g"])] + pm.Normal("c") * pm.Data("x", table["x"])
    pm.Normal("y", mean, 1, observed=table["y"])


UNIT = {"unit": dp.Unit("who", max_rows=2), "relations": ("add_remove",)}


@entry("y", **UNIT)
def persons(table: Table) -> None:
    """A mean, private for persons with several rows."""
    pm.Data("who", table["who"])
    pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=table["y"])


@entry("x", delta=1e-6, **UNIT)
def persons_in_a_logistic_regression(table: Table) -> None:
    """A logistic regression, private for persons with several rows."""
    pm.Data("who", table["who"])
    x = pm.Data("x", table["x"])
    pm.Bernoulli("yes", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=table["yes"])


@entry("y", bounds={"person": (0, 15), "y": (-2, 2)}, **UNIT)
def persons_with_a_parameter_each(table: Table) -> None:
    """A mean per person, private for persons, with the same ids in a second column."""
    pm.Data("who", table["who"])
    means = pm.Normal("means", shape=16)
    pm.Normal("y", means[pm.Data("person", table["who"])], 1, observed=table["y"])


@entry("y", **UNIT)
def persons_with_an_effect_each(table: Table) -> None:
    """A mean per person, indexed by the column of persons itself."""
    means = pm.Normal("means", shape=16)
    pm.Normal("y", means[pm.Data("who", table["who"])], 1, observed=table["y"])
