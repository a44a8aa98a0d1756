"""Models of one outcome: conjugate families, cells of a table, mixtures, and outcomes that are cut off."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp
from tests.zoo.kind import Table, entry, kind


@entry()
def coin(table: Table) -> None:
    """A coin: Bernoulli outcomes with a beta prior."""
    pm.Bernoulli("yes", pm.Beta("p", 1, 1), observed=table["yes"])


@entry("count")
def counts(table: Table) -> None:
    """Poisson counts with a gamma prior."""
    pm.Poisson("count", pm.Gamma("rate", 2, 1), observed=table["count"])


@entry("wait")
def waiting_times(table: Table) -> None:
    """Exponential waiting times."""
    pm.Exponential("wait", pm.Gamma("rate", 2, 1), observed=table["wait"])


@entry("y")
def normal_mean_and_spread(table: Table) -> None:
    """A normal outcome whose mean and standard deviation are unknown."""
    pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=table["y"])


@entry("y")
def normal_mean(table: Table) -> None:
    """A normal outcome whose standard deviation is known."""
    pm.Normal("y", pm.Uniform("mu", -1, 1), 1, observed=table["y"])


@entry("choice")
def choices(table: Table) -> None:
    """One choice of three, with a Dirichlet prior."""
    p = pm.Dirichlet("p", np.ones(3))
    pm.Categorical("choice", p, observed=table["choice"])


@entry()
def votes_of_a_row(table: Table) -> None:
    """Ten votes per row for three parties: multinomial vectors."""
    p = pm.Dirichlet("p", np.ones(3))
    pm.Multinomial("votes", 10, p, observed=table["votes"])


@entry("vector")
def pairs_of_measurements(table: Table) -> None:
    """Two correlated measurements per row, with an LKJ prior of their covariance."""
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1), compute_corr=True)
    pm.MvNormal("vector", pm.Normal("mu", shape=2), chol=chol, observed=table["vector"])


@entry("count")
def successes_of_nine(table: Table) -> None:
    """Successes among nine trials per row."""
    pm.Binomial("count", 9, pm.Beta("p", 2, 2), observed=table["count"])


@entry("share")
def shares(table: Table) -> None:
    """Shares between 0 and 1: a beta likelihood."""
    pm.Beta("share", pm.HalfNormal("a", 2), pm.HalfNormal("b", 2), observed=table["share"])


@entry("wait", delta=1e-6)
def gamma_waiting_times(table: Table) -> None:
    """Gamma waiting times, both parameters unknown."""
    pm.Gamma("wait", pm.HalfNormal("shape_of_it", 2), pm.HalfNormal("rate", 2), observed=table["wait"])


@entry("count g")
def a_rate_per_group(table: Table) -> None:
    """A rate per group, indexed by a named column of groups."""
    g = pm.Data("g", table["g"])
    pm.Poisson("count", pm.Gamma("rate", 2, 1, shape=3)[g], observed=table["count"])


@entry("h", levels={"g": ("a", "b", "c")})
def a_probability_per_cell(table: Table) -> None:
    """A probability per cell of two columns, with named groups."""
    model = pm.modelcontext(None)
    model.add_coords({"group": ["a", "b", "c"], "house": list("wxyz")})
    g, h = pm.Data("g", table["g"]), pm.Data("h", table["h"])
    p = pm.Beta("p", 1, 1, dims=("group", "house"))
    pm.Bernoulli("yes", p[g, h], observed=table["yes"])


@entry("g1")
def groups_counted_from_one(table: Table) -> None:
    """A probability per group, where groups are counted from 1."""
    p = pm.Beta("p", 1, 1, shape=3)
    pm.Bernoulli("yes", p[pm.Data("g1", table["g1"]) - 1], observed=table["yes"])


@entry()
def groups_without_a_name(table: Table) -> None:
    """A probability per group, indexed by an array without a name."""
    pm.Bernoulli("yes", pm.Beta("p", 1, 1, shape=3)[table["g"]], observed=table["yes"])


@kind(careless=True)
def as_many_groups_as_occur(table: Table) -> pm.Model:
    """A probability per group; the user counts the groups that occur, and labels them."""
    labels, index = np.unique(table["g"], return_inverse=True)
    with pm.Model(coords={"group": labels}) as model:
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Bernoulli("yes", p[pm.Data("g", index)], observed=table["yes"])
    return model


@entry("x")
def two_sides_of_a_threshold(table: Table) -> None:
    """A probability on each side of a threshold in a private column."""
    x, p = pm.Data("x", table["x"]), pm.Beta("p", 1, 1, shape=2)
    pm.Bernoulli("yes", pt.switch(x > 0.5, p[1], p[0]), observed=table["yes"])


@entry("y", delta=1e-6)
def normal_mixture(table: Table) -> None:
    """A mixture of two normal distributions."""
    w = pm.Dirichlet("w", np.ones(2))
    mu = pm.Normal("mu", [-1, 1], 1, shape=2)
    pm.NormalMixture("y", w, mu, pm.HalfNormal("sigma"), observed=table["y"])


@entry("count", delta=1e-6)
def poisson_mixture(table: Table) -> None:
    """A mixture of two Poisson distributions."""
    w, rates = pm.Dirichlet("w", np.ones(2)), pm.Gamma("rate", 2, 1, shape=2)
    pm.Mixture("count", w, [pm.Poisson.dist(rates[0]), pm.Poisson.dist(rates[1])], observed=table["count"])


@entry()
def ordinal(table: Table) -> None:
    """Ordered ratings with cutpoints."""
    transform = pm.distributions.transforms.ordered
    cuts = pm.Normal("cuts", [-1, 0, 1], 1, shape=3, transform=transform, initval=[-1, 0, 1])
    pm.OrderedLogistic("rating", 0.0, cuts, observed=table["rating"])


@entry("wait x", delta=1e-6)
def censored(table: Table) -> None:
    """Waiting times that were cut off at 3, in a regression."""
    mean = pm.math.exp(pm.Normal("a") + pm.Normal("b") * pm.Data("x", table["x"]))
    pm.Censored("wait", pm.Exponential.dist(1 / mean), lower=None, upper=3.0, observed=np.minimum(table["wait"], 3))


@entry("y", delta=1e-6)
def truncated(table: Table) -> None:
    """A normal outcome of which only values between -2 and 2 were recorded."""
    pm.Truncated("y", pm.Normal.dist(pm.Normal("mu"), pm.HalfNormal("sigma")), lower=-2, upper=2, observed=table["y"])


@entry("count")
def zero_inflated(table: Table) -> None:
    """Counts with more zeros than a Poisson distribution has."""
    pm.ZeroInflatedPoisson("count", pm.Beta("psi", 2, 2), pm.Gamma("rate", 2, 1), observed=table["count"])


@entry("count y yes")
def several_outcomes(table: Table) -> None:
    """Three outcomes of each row, of three families."""
    p = pm.Beta("p", 2, 2)
    pm.Bernoulli("yes", p, observed=table["yes"])
    pm.Poisson("count", 5 * p, observed=table["count"])
    pm.Normal("y", p, 1, observed=table["y"])


@kind("y", delta=1e-6)
def clamped(table: Table) -> pm.Model:
    """A Student-t outcome whose log-likelihood per row is clamped."""
    with pm.Model() as model:
        pm.StudentT("y", 4, mu=pm.Normal("mu"), sigma=1, observed=table["y"])
    return dp.clamp(model, low=-6, high=0)


@kind()
def truncated_prior(table: Table) -> pm.Model:
    """A coin whose probability is truncated to a public interval."""
    with pm.Model() as model:
        pm.Bernoulli("yes", pm.Beta("p", 1, 1), observed=table["yes"])
    return dp.truncate(model, {"p": (0.05, 0.95)})


@entry("y")
def interpolated_prior(table: Table) -> None:
    """A prior that is interpolated between public points."""
    points = np.linspace(-2, 2, 21)
    mu = pm.Interpolated("mu", points, np.exp(-(points**2)))
    pm.Normal("y", mu, 1, observed=table["y"])


@entry("y", delta=1e-6)
def likelihood_as_a_potential(table: Table) -> None:
    """A likelihood that is written as a potential, beside an observed outcome."""
    mu = pm.Normal("mu")
    pm.Bernoulli("yes", pm.math.invlogit(mu), observed=table["yes"])
    pm.Potential("other", pm.logp(pm.Normal.dist(mu, 1), pm.Data("y", table["y"])).sum())


@entry("y", delta=1e-6)
def density_by_hand(table: Table) -> None:
    """An outcome whose log-density is written by hand."""
    pm.CustomDist("y", pm.Normal("mu"), logp=lambda value, mu: -pt.abs(value - mu) - pt.log(2.0), observed=table["y"])


@entry("y", delta=1e-6)
def distribution_by_hand(table: Table) -> None:
    """An outcome that is a transformed normal variable, as a custom distribution."""
    pm.CustomDist("y", pm.Normal("mu"), dist=lambda mu, size: mu + 2 * pm.Normal.dist(size=size), observed=table["y"])


@entry("y g weight", weights={"y": "weight"})
def survey_weights(table: Table) -> None:
    """A mean per group, where rows have survey weights."""
    g = pm.Data("g", table["g"])
    pm.Data("weight", table["weight"])
    pm.Normal("y", pm.Normal("mu", shape=3)[g], pm.HalfNormal("sigma"), observed=table["y"])


def _of_one_row() -> Table:
    from tests.zoo.kind import people

    return people(1)


@entry("y", table=_of_one_row, relations=("replace",))
def a_single_row(table: Table) -> None:
    """A table of one row."""
    pm.Normal("y", pm.Normal("mu"), 1, observed=table["y"])


def _of_no_row() -> Table:
    from tests.zoo.kind import people

    return {name: column[:0] for name, column in people().items()}


@entry("y", table=_of_no_row, relations=("add_remove",))
def no_row_at_all(table: Table) -> None:
    """A table without rows."""
    pm.Normal("y", pm.Normal("mu"), 1, observed=table["y"])
