"""Models in which rows, or how many there are, reach more than a likelihood: shapes, labels, priors, constants."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.kind import Table, entry, kind


@kind()
def one_probability_repeated(table: Table) -> pm.Model:
    """A probability that is written once per row, as a deterministic variable with the dims of the rows."""
    n = len(table["yes"])
    with pm.Model(coords={"person": np.arange(n)}) as model:
        p = pm.Beta("p", 1, 1)
        mu = pm.Deterministic("mu", p * pt.ones(n), dims="person")
        pm.Bernoulli("yes", mu, observed=table["yes"], dims="person")
    return model


@kind()
def one_probability_repeated_beside(table: Table) -> pm.Model:
    """A deterministic variable with a value per row, beside the likelihood."""
    n = len(table["yes"])
    with pm.Model(coords={"person": np.arange(n)}) as model:
        p = pm.Beta("p", 1, 1)
        pm.Deterministic("mu", p * pt.ones(n), dims="person")
        pm.Bernoulli("yes", p, observed=table["yes"], dims="person")
    return model


@kind(delta=1e-6)
def one_probability_repeated_at_delta(table: Table) -> pm.Model:
    """A probability that is written once per row, where δ is above 0."""
    return one_probability_repeated(table)


@kind(delta=1e-6)
def one_probability_repeated_beside_at_delta(table: Table) -> pm.Model:
    """A deterministic variable with a value per row beside the likelihood, where δ is above 0."""
    return one_probability_repeated_beside(table)


@entry("g")
def deterministic_of_parameters(table: Table) -> None:
    """A difference of two groups, as a deterministic variable."""
    p = pm.Beta("p", 1, 1, shape=3)
    pm.Deterministic("uplift", p[1] - p[0])
    pm.Bernoulli("yes", p[pm.Data("g", table["g"])], observed=table["yes"])


@entry("x y")
def deterministic_of_rows(table: Table) -> None:
    """A regression line at every row, as a deterministic variable."""
    mu = pm.Deterministic("mu", pm.Normal("a") + pm.Normal("b") * pm.Data("x", table["x"]))
    pm.Normal("y", mu, 1, observed=table["y"])


@entry("y", careless=True)
def number_of_rows_as_a_variable(table: Table) -> None:
    """The number of rows as a deterministic variable."""
    mu = pm.Normal("mu")
    pm.Deterministic("total", mu * len(table["y"]))
    pm.Normal("y", mu, 1, observed=table["y"])


@entry()
def tiled(table: Table) -> None:
    """A vector of one probability that is tiled to the number of rows."""
    pm.Bernoulli("yes", pt.tile(pm.Beta("p", 1, 1, shape=1), len(table["yes"])), observed=table["yes"])


@entry()
def repeated(table: Table) -> None:
    """Two probabilities, each repeated for half of the rows."""
    n = len(table["yes"])
    p = pt.repeat(pm.Beta("p", 1, 1, shape=2), (n + 1) // 2)[:n]
    pm.Bernoulli("yes", p, observed=table["yes"])


@entry()
def full_of_one_number(table: Table) -> None:
    """A probability per row, made by ``pt.full``."""
    pm.Bernoulli("yes", pt.full((len(table["yes"]),), pm.Beta("p", 1, 1)), observed=table["yes"])


@entry("y")
def latent_per_row(table: Table) -> None:
    """A latent variable for every row."""
    a = pm.Normal("a", 0, 1, shape=len(table["y"]))
    pm.Normal("y", a, 1, observed=table["y"])


@kind("y")
def latent_per_row_with_dims(table: Table) -> pm.Model:
    """A latent variable for every row, with the names of persons as labels."""
    with pm.Model(coords={"person": table["name"]}) as model:
        a = pm.Normal("a", 0, pm.HalfNormal("spread"), dims="person")
        pm.Normal("y", a, 1, observed=table["y"], dims="person")
    return model


@entry("y")
def latent_per_row_by_index(table: Table) -> None:
    """A latent variable for every row, indexed by a column that counts the rows."""
    n = len(table["y"])
    a = pm.Normal("a", shape=n)
    pm.Normal("y", a[pm.Data("who", np.arange(n))], 1, observed=table["y"])


@entry("y")
def latent_per_row_by_index_without_a_name(table: Table) -> None:
    """A latent variable for every row, indexed by an array without a name that counts the rows."""
    n = len(table["y"])
    pm.Normal("y", pm.Normal("a", shape=n)[np.arange(n)], 1, observed=table["y"])


@kind("y")
def labels_of_rows(table: Table) -> pm.Model:
    """A normal outcome whose rows have the names of persons as labels."""
    with pm.Model(coords={"person": table["name"]}) as model:
        pm.Normal("y", pm.Normal("mu"), 1, observed=table["y"], dims="person")
    return model


@kind("y x")
def labels_of_a_column(table: Table) -> pm.Model:
    """A straight line through a column whose rows have the names of persons as labels."""
    with pm.Model(coords={"person": table["name"]}) as model:
        x = pm.Data("x", table["x"], dims="person")
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1, observed=table["y"], dims="person")
    return model


@kind("y x")
def rows_of_two_names(table: Table) -> pm.Model:
    """A column with the dims of persons, and an outcome with dims of another name, as long."""
    n = len(table["y"])
    with pm.Model(coords={"person": table["name"], "obs": np.arange(n)}) as model:
        x = pm.Data("x", table["x"], dims="person")
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1, observed=table["y"], dims="obs")
    return model


@kind("y x")
def prior_at_the_first_row(table: Table) -> pm.Model:
    """A prior whose mean is the first value of a column, with dims other than those of the outcome."""
    n = len(table["y"])
    with pm.Model(coords={"person": np.arange(n), "obs": np.arange(n)}) as model:
        x = pm.Data("x", table["x"], dims="person")
        pm.Normal("y", pm.Normal("a", x[0], 1), 1, observed=table["y"], dims="obs")
    return model


@kind("y x")
def prior_around_a_column(table: Table) -> pm.Model:
    """A parameter per person whose prior means are a column, beside the outcomes."""
    n = len(table["y"])
    with pm.Model(coords={"person": np.arange(n), "obs": np.arange(n)}) as model:
        x = pm.Data("x", table["x"], dims="person")
        a = pm.Normal("a", x, 1, dims="person")
        pm.Normal("y", a.mean(), 1, observed=table["y"], dims="obs")
    return model


@entry("y")
def prior_around_an_array(table: Table) -> None:
    """A prior whose means are an array without a name, with a number per row."""
    pm.Normal("a", table["x"], 1, shape=len(table["x"]))
    pm.Normal("y", pm.Normal("mu"), 1, observed=table["y"])


@entry("y")
def prior_from_named_numbers(table: Table) -> None:
    """A prior whose mean and standard deviation are named data of a fixed length."""
    known = pm.Data("known", [0.1, 2.0])
    pm.Normal("y", pm.Normal("mu", known[0], known[1]), 1, observed=table["y"])


@entry("y", arrays="known")
def prior_from_public_numbers(table: Table) -> None:
    """A prior whose mean and standard deviation are public named data."""
    known = pm.Data("known", [0.1, 2.0])
    pm.Normal("y", pm.Normal("mu", known[0], known[1]), 1, observed=table["y"])


@entry("y", careless=True)
def prior_fitted_to_rows(table: Table) -> None:
    """A prior whose mean its user computed from the rows."""
    pm.Normal("y", pm.Normal("mu", float(np.mean(table["y"])), 1), 1, observed=table["y"])


@entry("h")
def prior_of_ones(table: Table) -> None:
    """Shares of two kinds in four houses: a Dirichlet prior of a matrix of ones."""
    share = pm.Dirichlet("share", np.ones((2, 4)))
    pm.Bernoulli("yes", share[0][pm.Data("h", table["h"])], observed=table["yes"])


@entry("month y")
def prior_with_a_unit_matrix(table: Table) -> None:
    """Effects of twelve months with a unit matrix as covariance."""
    effects = pm.MvNormal("effects", np.zeros(12), np.eye(12))
    pm.Normal("y", effects[pm.Data("month", table["month"])], 1, observed=table["y"])


@entry("y")
def prior_of_forty_numbers(table: Table) -> None:
    """A prior with forty means, in an array without a name."""
    a = pm.Normal("a", np.linspace(-1, 1, 40), 1, shape=40)
    pm.Normal("y", a.mean(), 1, observed=table["y"])


@entry("y month")
def prior_of_zeros_made_by_pytensor(table: Table) -> None:
    """Effects of twelve months whose means are made by ``pt.zeros``."""
    effects = pm.MvNormal("effects", pt.zeros(12), pt.eye(12))
    pm.Normal("y", effects[pm.Data("month", table["month"])], 1, observed=table["y"])


@entry("g y")
def sizes_of_groups(table: Table) -> None:
    """Means of groups whose spread depends on the numbers of their rows, in an array without a name."""
    sizes = np.array([(table["g"] == group).sum() for group in range(3)])
    g = pm.Data("g", table["g"])
    pm.Normal("y", pm.Normal("mu", shape=3)[g], 1 / pt.sqrt(1 + pt.as_tensor(sizes)[g]), observed=table["y"])


@entry("g y")
def groups_that_occur(table: Table) -> None:
    """Means of groups, set to 0 where a group does not occur, by an array without a name."""
    seen = np.isin(range(3), table["g"]).astype(int)
    pm.Normal("y", (pm.Normal("mu", shape=3) * seen)[pm.Data("g", table["g"])], 1, observed=table["y"])


@entry("y")
def column_that_counts_rows(table: Table) -> None:
    """A trend in an array without a name that counts the rows, all but one."""
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * table["order"], 1, observed=table["y"])


@entry("y", bounds={"order": (0, 40), "y": (-2, 2)})
def index_that_counts_rows(table: Table) -> None:
    """A parameter of a public number of places, indexed by a column that counts the rows, all but one."""
    a = pm.Normal("a", shape=41)
    pm.Normal("y", a[pm.Data("order", table["order"])], 1, observed=table["y"])


@entry("y")
def index_without_a_name_that_counts_rows(table: Table) -> None:
    """A parameter of a public number of places, indexed by an array without a name that counts the rows."""
    pm.Normal("y", pm.Normal("a", shape=41)[table["order"]], 1, observed=table["y"])


@entry("y")
def column_that_is_nearly_constant(table: Table) -> None:
    """A term in an array without a name that is 0 for all rows but one."""
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * table["flat"], 1, observed=table["y"])


@entry()
def index_that_is_nearly_constant(table: Table) -> None:
    """A probability that is indexed by an array without a name that is 0 for all rows but one."""
    pm.Bernoulli("yes", pm.Beta("p", 1, 1, shape=2)[table["flat"]], observed=table["yes"])


@entry("y", relations=("add_remove",))
def boolean_mask(table: Table) -> None:
    """Outcomes of one group alone, which their user has selected."""
    pm.Normal("y", pm.Normal("mu"), 1, observed=table["y"][table["g"] < 2])


@kind("y")
def several_rows_in_one_array(table: Table) -> pm.Model:
    """Pairs of rows as a matrix of outcomes."""
    pairs = len(table["y"]) // 2
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", shape=2), 1, observed=table["y"][: 2 * pairs].reshape(pairs, 2))
    return model


@entry("y")
def total_of_the_rows(table: Table) -> None:
    """One observed number: the sum of all rows."""
    pm.Normal("y", len(table["y"]) * pm.Normal("mu"), 1, observed=table["y"].sum())


@kind("y", careless=True)
def start_value_from_rows(table: Table) -> pm.Model:
    """A start value that its user computed from the rows."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", initval=float(np.mean(table["y"]))), 1, observed=table["y"])
    return model


@entry("y", careless=True)
def bounds_from_rows(table: Table) -> None:
    """A uniform prior between the least and the largest outcome."""
    y = table["y"]
    low, high = np.clip([np.min(y), np.max(y)], -100, 100)  # a uniform prior without an end cannot be drawn from
    pm.Normal("y", pm.Uniform("mu", float(low), float(high) + 1e-9), 1, observed=y)
