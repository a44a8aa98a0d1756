"""Which models have a log-likelihood that is a sum over rows."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect

N = 30
RNG = np.random.default_rng(5)
X, G, Y = RNG.normal(size=(N, 3)), RNG.integers(0, 4, size=N), RNG.integers(0, 2, size=N)


def regression():
    b = pm.Normal("b", shape=3)
    pm.Bernoulli("y", logit_p=pm.Data("x", X) @ b, observed=Y)


def held_in_data():
    y, x = pm.Data("answers", Y), pm.Data("x", X)
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", shape=3), observed=y)


def normal_held_in_data():
    pm.Normal("y", pm.Data("x", X) @ pm.Normal("b", shape=3), pm.HalfNormal("s"), observed=pm.Data("v", X[:, 0]))


def counts_held_in_data():
    pm.Poisson("y", pt.exp(pm.Normal("b", shape=4))[pm.Data("g", G)], observed=pm.Data("v", G))


def closure():
    pm.Normal("y", pm.math.dot(X, pm.Normal("b", shape=3)), pm.HalfNormal("s"), observed=X[:, 0])


def hierarchy():
    b = pm.Normal("b", pm.Normal("m"), pm.HalfNormal("t"), dims="level")
    pm.Normal("y", b[pm.Data("g", G)], 1.0, observed=X[:, 0])


def sums():
    pm.StudentT("y", nu=4, mu=(pm.Data("x", X) * pm.Normal("b", shape=3)).sum(-1), sigma=1.0, observed=X[:, 0])


def mixture():
    w, m = pm.Dirichlet("w", np.ones(2)), pm.Normal("m", [-1.0, 1.0], 1.0, shape=2)
    pm.NormalMixture("y", w, m, 1.0, observed=X[:, 0])


def censored():
    pm.Censored("y", pm.Normal.dist(pm.Normal("m"), 1.0), -1, 1, observed=np.clip(X[:, 0], -1, 1))


def softmax():
    pm.Categorical("y", logit_p=pm.Data("x", X) @ pm.Normal("w", shape=(3, 4)), observed=G)


def ordered():
    cuts = pm.Normal("c", [-1.0, 0.0, 1.0], 1.0, shape=3, transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("y", eta=pm.Data("x", X) @ pm.Normal("b", shape=3), cutpoints=cuts, observed=G)


def counts():
    mean = pt.exp(pm.Data("x", X) @ pm.Normal("b", shape=3))
    pm.NegativeBinomial("y", mu=mean, alpha=pm.Exponential("a", 1.0), observed=G)


def wide():
    pm.Normal("y", pm.Normal("m", shape=3), 1.0, observed=X)


def multinomial():
    draws = RNG.multinomial(5, np.full(4, 0.25), size=N)
    pm.Multinomial("y", 5, pm.Dirichlet("p", np.ones(4)), observed=draws)


def chained():
    first = pm.Normal("y", pm.Normal("a"), 1.0, observed=X[:, 0])
    pm.Normal("z", first * pm.Normal("b"), 1.0, observed=X[:, 1])


def shaped():
    pm.Exponential("y", pm.Gamma("r", 2.0, 1.0), observed=np.abs(X[:, 0]))


def custom():
    def logp(value, m):
        return -pt.log1p((value - m) ** 2)

    pm.CustomDist("y", pm.Normal("m"), logp=logp, observed=X[:, 0])


FINE = (
    *(regression, closure, hierarchy, sums, mixture, censored, softmax),
    *(ordered, counts, wide, multinomial, chained, shaped, custom),
    *(held_in_data, normal_held_in_data, counts_held_in_data),
)


def build(write):
    with pm.Model(coords={"level": range(4)}) as model:
        write()
    return model


@pytest.mark.few(15)
@pytest.mark.parametrize("write", FINE)
def test_rows_of_ordinary_models_separate(write):
    found = inspect(build(write)).rows
    assert found.problems == ()
    assert all(term.logp.type.ndim >= 1 for term in found.terms)


def centred():
    x = pm.Data("x", X)
    pm.Normal("y", (x - x.mean(0)) @ pm.Normal("b", shape=3), 1.0, observed=X[:, 0])


def overdispersed_of(m):
    with pm.Model() as model:
        excess = pm.Normal("excess", 0, pm.HalfNormal("spread"), shape=m)
        pm.Poisson("y", pt.exp(pm.Normal("rate") + excess), observed=np.zeros(m, dtype=int))
    return dp.integrate(model, "excess", nodes=5)


def mixture_of(m):
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), pm.Normal("mu", shape=2), 1.0, observed=np.zeros(m))
    return model


def censored_of(m):
    with pm.Model() as model:
        pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1.0), lower=None, upper=2.0, observed=np.zeros(m))
    return model


@pytest.mark.parametrize("build", [overdispersed_of, mixture_of, censored_of])
def test_a_table_of_one_row_is_read_as_one_of_two(build):
    """Numbers of one element that PyMC writes a density with counted as columns: one row was refused, and two not."""
    domain = dp.Domain(bounds={"y": (0, 9)}, neighbours="add_remove", n_max=9)
    one, two = (inspect(build(m), domain).rows for m in (1, 2))
    assert one.problems == two.problems == ()
    assert [column.name for column in one.columns] == [column.name for column in two.columns] == ["y"]
    assert one.assumptions == two.assumptions


@pytest.mark.parametrize("held", ["density", "distribution"])
def test_the_only_row_within_a_function_is_a_column_still(held):
    """A function in Python holds it, and the graph of the variable does not show it."""

    def columns(x):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            if held == "density":
                written = {"logp": lambda value, mean: -((value - mean - x) ** 2)}
            else:
                written = {"dist": lambda mean, size: pm.Normal.dist(mean + pt.constant(x) * 2, 1.0, size=size)}
            pm.CustomDist("y", mu, **written, observed=np.zeros(len(x)))
        found = inspect(model, dp.Domain(bounds={"y": (-5, 5)}, neighbours="add_remove", n_max=9)).rows
        assert not found.problems
        return [float(np.ravel(column.leaf.data)[0]) for column in found.columns]

    for x in (np.array([0.3]), np.array([0.3, 0.4])):
        assert set(columns(x)) & {0.3, 0.6}
