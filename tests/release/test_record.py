"""What a record says of the likelihood: what is exact goes unmentioned, what is not is said."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.release.record import describe

ZEROS = np.zeros(60, dtype=int)
GROUPS = np.arange(60) % 3
BOUNDS = {"bounds": {"y": (-3.0, 3.0)}}


def coin(groups):
    p = pm.Beta("p", 1, 1, shape=3)
    pm.Bernoulli("y", p[pm.Data("g", groups)], observed=ZEROS)


def levels(groups):
    p = pm.Dirichlet("p", np.ones(4), shape=(3, 4))
    pm.Categorical("y", p[pm.Data("g", groups)], observed=ZEROS)


def naive_bayes(groups):
    g = pm.Data("g", groups)
    pm.Categorical("kind", pm.Dirichlet("q", np.ones(3)), observed=g)
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[g], observed=ZEROS)


def number(groups):
    pm.Normal("y", pm.Normal("mu", 0, 1), 1, observed=np.zeros(60))


@pytest.mark.parametrize(
    ("build", "public", "options", "noise_aware", "said"),
    [
        (coin, (), {}, True, None),
        (coin, ("g",), {}, True, None),
        (levels, (), {}, True, None),
        (levels, ("g",), {}, True, "add up to the public size"),
        (levels, ("g",), {}, False, None),
        (naive_bayes, (), {}, True, "Poisson given the sizes of groups that the release of kind shows"),
        (number, (), BOUNDS, True, "normal given the size of their cell"),
        (number, (), BOUNDS, False, None),
    ],
)
def test_a_record_says_what_of_the_likelihood_is_approximate(build, public, options, noise_aware, said):
    with pm.Model() as model:
        build(GROUPS)
    found = inspect(model, dp.Domain(public=public, **options)).sums
    statistics = dp.Statistics(noise_aware=noise_aware)
    record = describe(found, plan_release(found, statistics, epsilon=1.0, delta=0.0))
    texts = {table.name: table.approximations for table in record.tables}
    if said is None:
        assert texts["y"] == ()
    else:
        (text,) = texts["y"]
        assert said in text and text.startswith("y: ")
