"""Likelihoods without parameters of their own are followed by their distribution function, or refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics

N = 6
CANARY = 987654.25
Y = np.array([CANARY, 1.0, 2.0, 3.0, 4.0, 5.0])
GROUP = np.array([0, 1, 2, 0, 1, 2])
DOMAIN = dp.Domain(bounds={"y": (0, 9)})
FAR = dp.Domain(bounds={"far": (0, 10**6)})


def problems_of(build, domain=DOMAIN, statistics=None):
    with pm.Model(coords={"row": range(N)}) as model:
        build()
    inspection = inspect(model, domain).sums
    with pytest.raises(UnsupportedModelError) as caught:
        plan_release(inspection, statistics or Statistics(), 1.0)
    text = str(caught.value)
    assert "987654" not in text
    assert all(problem.where and problem.remedy.endswith(".") for problem in caught.value.problems)
    return text


def logistic(value, mu):
    return pm.logp(pm.Logistic.dist(mu, 1.0), value)


def below(value, mu):
    return pm.logcdf(pm.Logistic.dist(mu, 1.0), value)


def custom(logp=logistic, logcdf=below, **given):
    return lambda: pm.CustomDist("y", pm.Normal("mu"), logp=logp, logcdf=logcdf, observed=Y, **given)


def latent_per_row():
    pm.Censored("y", pm.Normal.dist(pm.Normal("z", shape=N), 1), lower=0, upper=9, observed=Y)


def continuous_column():
    pm.Truncated("y", pm.StudentT.dist(3.0, mu=pm.Normal("b") * pm.Data("x", Y), sigma=1), lower=0, observed=Y)


def array_without_rows():
    pm.NormalMixture("y", np.full(40, 1 / 40), pm.Normal("mu", shape=40), 1.0, observed=Y)


def number_of_rows(model_length):
    def build():
        length = pm.modelcontext(None).dim_lengths["row"]
        scale = pt.cast(length, "float64") if model_length else 2.0
        pm.Censored("y", pm.Normal.dist(pm.Normal("mu") / scale, 1), lower=0, upper=9, observed=Y, dims="row")

    return build


def private_closure():
    offset = pt.as_tensor(np.resize(Y, 40)).sum()
    custom(logcdf=lambda value, mu: below(value, mu + offset))()


REFUSED = {
    "rows meet in the density": (
        custom(lambda value, mu: logistic(value - value.mean(), mu)),
        ["y", "Take numbers that anyone may know"],
    ),
    "rows meet in the distribution function": (
        custom(logcdf=lambda value, mu: below(value, mu) - pt.max(value)),
        ["y", "runs over the rows"],
    ),
    "no distribution function": (
        custom(logcdf=None),
        ["(CustomDist) is not a plain distribution", "logcdf", "give logcdf to pm.CustomDist"],
    ),
    "one of PyMC without": (
        lambda: pm.AsymmetricLaplace("y", kappa=1.0, mu=pm.Normal("mu"), b=1.0, observed=Y),
        ["(AsymmetricLaplace)", "Use a distribution with one"],
    ),
    "a plain one without": (
        lambda: pm.SkewNormal("y", mu=pm.Normal("mu"), sigma=1, alpha=1.0, observed=Y),
        ["SkewNormal likelihood", "PyMC has no distribution function (logcdf)", "StudentT, mixtures", "pm.CustomDist"],
    ),
    "a law of counts whose probabilities are added": (
        lambda: pm.BetaBinomial("far", 2.0, pm.HalfNormal("b"), 10**6, observed=GROUP),
        ["far", "reach beyond 2048", "BetaBinomial", "Give lower bounds"],
    ),
    "a latent per row": (latent_per_row, ["y", "'z'", "one latent per row"]),
    "a continuous column": (continuous_column, ["'x' is continuous", "public=['x']"]),
    "an array without rows": (array_without_rows, ["y", "does not have the row axis", "Domain(public=['x'])"]),
    "the number of rows": (number_of_rows(True), ["y", "the number of rows is used as a value"]),
    "an array in a closure": (private_closure, ["y", "does not have the row axis"]),
    "a clamped density": (
        lambda: dp.clamp(_normal(), -5, 0),
        ["clamped by dp.clamp", "not a plain distribution"],
    ),
    "values that no bins are known for": (
        lambda: pm.StudentT("z", 3.0, mu=pm.Normal("mu"), sigma=1, observed=Y),
        [
            "a StudentT likelihood is released as a histogram",
            "Domain(bounds={'z': (low, high)})",
            "dp.Histogram([...])",
        ],
    ),
}


def _normal():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1, observed=Y)
    return model


@pytest.mark.few(6)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_counted_in_bins_is_refused_with_a_way_out(name):
    build, texts = REFUSED[name]
    if name == "a clamped density":
        with pytest.raises(UnsupportedModelError) as caught:
            plan_release(inspect(dp.clamp(_normal(), -5, 0), DOMAIN).sums, Statistics(), 1.0)
        text = str(caught.value)
    else:
        domain = {"values that no bins are known for": dp.Domain()}.get(name, FAR if "added" in name else DOMAIN)
        text = problems_of(build, domain)
    for part in texts:
        assert part in text, text


def test_a_public_array_of_weights_is_kept():
    with pm.Model() as model:
        weights = pm.Data("weights", np.array([0.25, 0.75]))
        pm.NormalMixture("y", weights, pm.Normal("mu", shape=2), 1.0, observed=Y)
    inspection = inspect(model, dp.Domain(bounds={"y": (0, 9)}, public=["weights"])).sums
    assert (inspection.problems, inspection.kept_data) == ((), ("weights",))
    assert "pm.Data weights" in inspection.assumptions
    assert "weights" in dp.privatize(model, epsilon=1.0, domain=inspection.domain).named_vars


def test_columns_of_the_table_are_found_inside_of_components():
    with pm.Model(coords={"level": ["a", "b", "c"]}) as model:
        g = pm.Data("g", GROUP)
        mu = pm.Normal("mu", dims="level")
        parts = [pm.Normal.dist(mu[g], 1.0), pm.StudentT.dist(3.0, mu=0.0, sigma=2.0)]
        w = pm.Beta("w", 1, 1)
        pm.Mixture("y", pt.stack([w, 1 - w]), parts, observed=Y)
        pm.Censored("z", pm.Normal.dist(mu[GROUP], 1.0), lower=0.0, upper=5.0, observed=Y)
    first, second = inspect(model, dp.Domain(bounds={"y": (0, 9), "z": (0, 9)})).sums.observed
    assert [(column.name, column.labels) for column in first.columns] == [("g", ("level=a", "level=b", "level=c"))]
    assert [len(column.levels) for column in second.columns] == [3]
    assert (first.title, second.title) == ("Mixture", "Censored")


def test_numbers_in_composite_likelihoods_are_listed_as_assumed_public():
    with pm.Model() as model:
        pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1.5), lower=0.25, upper=7.75, observed=Y)
    (line,) = [line for line in inspect(model, DOMAIN).sums.assumptions if "likelihood of y" in line]
    assert {"1.5", "0.25", "7.75"} <= set(line.partition(": ")[2].split(", ")) and len(line.split(",")) <= 4
    hidden = inspect(model, dp.Domain(bounds={"y": (0, 9)}, neighbours="add_remove", n_max=50)).sums.assumptions
    assert not any(f" {N}" in line for line in hidden)


def test_mechanism_must_name_observed_variables_and_leaves_counted_ones_alone():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=GROUP % 2)
        pm.Poisson("visits", pm.Gamma("rate", 2, 1), observed=GROUP)
    inspection = inspect(model, dp.Domain(bounds={"visits": (0, 3)})).sums
    with pytest.raises(ArgumentError, match=r"mechanism names 'visit', .*Did you mean 'visits'\?"):
        plan_release(inspection, Statistics(mechanism={"visit": dp.Histogram()}), 1.0)
    with pytest.raises(UnsupportedModelError, match="its levels are already counted one by one"):
        plan_release(inspection, Statistics(mechanism={"y": dp.Histogram([0])}), 1.0)
    plan = plan_release(inspection, Statistics(mechanism=dp.Histogram()), 1.0)
    assert [table.labels for table in plan.tables] == [
        ("count of 1",),
        ("count of (-inf, 0]", "count of 1", "count of 2", "count of (2, inf)"),
    ]
    with pytest.raises(UnsupportedModelError, match="hold a single bin"):
        plan_release(
            inspect(model, dp.Domain(bounds={"visits": (1.2, 1.8)})).sums, Statistics(mechanism=dp.Histogram()), 1.0
        )
