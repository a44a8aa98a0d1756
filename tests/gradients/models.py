"""Models of all likelihoods that gradients are tested with, on small tables."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp

ROWS = 40
SLOPES = 3


def _table():
    rng = np.random.default_rng(3)
    return rng, rng.uniform(-1, 1, size=(ROWS, SLOPES)), rng.integers(0, 4, size=ROWS)


def bernoulli(x=None, y=None, neighbours="replace"):
    rng, table, _ = _table()
    with pm.Model(coords={"row": range(ROWS)} if x is None else None) as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=SLOPES)
        x = pm.Data("x", table if x is None else x)
        pm.Bernoulli("y", logit_p=a + x @ b, observed=rng.integers(0, 2, ROWS) if y is None else y)
    return model, dp.Domain(bounds={"x": (-1, 1)}, neighbours=neighbours)


def poisson():
    rng, x, _ = _table()
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", sigma=0.4, shape=SLOPES)
        pm.Poisson("y", pt.exp(a + pm.Data("x", x) @ b), observed=rng.poisson(2, ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (0, 60)})


def negative_binomial():
    rng, x, _ = _table()
    with pm.Model() as model:
        a, b = pm.Normal("a", sigma=0.7), pm.Normal("b", sigma=0.4, shape=SLOPES)
        alpha = pm.LogNormal("alpha", 0.5, 0.7)
        pm.NegativeBinomial("y", mu=pt.exp(a + pm.Data("x", x) @ b), alpha=alpha, observed=rng.poisson(2, ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (0, 100)})


def normal(y=None):
    rng, x, _ = _table()
    with pm.Model() as model:
        a, b = pm.Normal("a", sigma=2), pm.Normal("b", sigma=2, shape=SLOPES)
        sigma = pm.LogNormal("sigma")
        pm.Normal("y", a + pm.Data("x", x) @ b, sigma, observed=rng.normal(size=ROWS) if y is None else y)
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (-100, 100)})


def student_t():
    rng, x, _ = _table()
    with pm.Model() as model:
        a, b = pm.Normal("a", sigma=2), pm.Normal("b", sigma=2, shape=SLOPES)
        sigma = pm.HalfNormal("sigma")
        pm.StudentT("y", nu=4, mu=a + pm.Data("x", x) @ b, sigma=sigma, observed=rng.normal(size=ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (-100, 100)})


def tobit():
    rng, x, _ = _table()
    with pm.Model() as model:
        b, sigma = pm.Normal("b", shape=SLOPES), pm.LogNormal("sigma", 0, 0.6)
        whole = pm.Normal.dist(0.5 + pm.Data("x", x) @ b, sigma)
        pm.Censored("y", whole, lower=0, upper=None, observed=np.maximum(rng.normal(size=ROWS), 0))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (0, 30)})


def ordered():
    rng, x, _ = _table()
    with pm.Model() as model:
        b = pm.Normal("b", shape=SLOPES)
        cuts = pm.Normal(
            "cuts", [-1, 0, 1], 0.7, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0]
        )
        eta = pm.Data("x", x) @ b
        pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, compute_p=False, observed=rng.integers(0, 4, ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def softmax():
    rng, x, _ = _table()
    with pm.Model() as model:
        weights = pm.Normal("weights", shape=(SLOPES, 3))
        p = pm.math.softmax(pm.Data("x", x) @ weights, axis=-1)
        pm.Categorical("y", p=p, observed=rng.integers(0, 3, ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def groups():
    rng, x, group = _table()
    with pm.Model(coords={"group": range(4)}) as model:
        mu, tau, z = pm.Normal("mu"), pm.HalfNormal("tau"), pm.Normal("z", dims="group")
        alpha = pm.Deterministic("alpha", mu + tau * z, dims="group")
        b = pm.Normal("b", shape=SLOPES)
        eta = alpha[pm.Data("g", group)] + pm.Data("x", x) @ b
        pm.Bernoulli("y", logit_p=eta, observed=rng.integers(0, 2, ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def two():
    rng, x, _ = _table()
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=SLOPES)
        c, sigma = pm.Normal("c", sigma=2, shape=SLOPES), pm.LogNormal("sigma", 0, 0.8)
        x = pm.Data("x", x)
        pm.Bernoulli("y1", logit_p=a + x @ b, observed=rng.integers(0, 2, ROWS))
        pm.Normal("y2", x @ c, sigma, observed=rng.normal(size=ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1), "y2": (-100, 100)})


def in_turn():
    """Two observed variables, the second of which depends on the first."""
    rng, x, _ = _table()
    first = rng.integers(0, 2, ROWS)
    with pm.Model() as model:
        b, c = pm.Normal("b", shape=SLOPES), pm.Normal("c", shape=2)
        x, y1 = pm.Data("x", x), pm.Data("first", first)
        pm.Bernoulli("y1", logit_p=x @ b, observed=y1)
        pm.Normal("y2", c[0] + c[1] * y1, 1.0, observed=rng.normal(size=ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1), "y2": (-100, 100)})


def integrated():
    """Answers of persons to several items, whose latents are integrated out: of all rows the model says the same."""
    answers = np.random.default_rng(5).integers(0, 2, (ROWS, 3))
    with pm.Model() as model:
        log_a, b = pm.Normal("log_a", shape=3), pm.Normal("b", shape=3)
        theta = pm.Normal("theta", shape=ROWS)
        pm.Bernoulli("y", logit_p=pt.exp(log_a) * (theta[:, None] - b), observed=answers)
    return dp.integrate(model, "theta", nodes=9), dp.Domain()


ALL = (
    *(bernoulli, poisson, negative_binomial, normal, student_t, tobit),
    *(ordered, softmax, groups, two, in_turn),
)
