"""What a private model holds of its release is data of the compiled density, and no part of its program."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

import pymc_dp as dp

N = 400


def linear(rng: np.random.Generator) -> pm.Model:
    x = rng.uniform(-1, 1, (N, 3))
    with pm.Model() as model:
        w, sd = pm.Normal("w", 0, 1, shape=3), pm.HalfNormal("sd", 1)
        y = np.clip(x @ [0.2, 0.3, 0.1] + rng.normal(0, 0.1, N), -1, 1)
        pm.Normal("y", pm.Normal("base", 0, 1) + pm.Data("x", x) @ w, sd, observed=y)
    return model


def logistic(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", rng.uniform(-1, 1, (N, 3)))
        pm.Bernoulli("y", logit_p=x @ pm.Normal("w", 0, 2, shape=3), observed=rng.integers(0, 2, N))
    return model


def groups(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        group = pm.Data("group", rng.integers(0, 3, N))
        mean, sd = pm.Normal("mean", 0, 1, shape=3), pm.HalfNormal("sd", 1, shape=3)
        pm.Normal("y", mean[group], sd[group], observed=rng.uniform(-1, 1, N))
    return model


def counts(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones((3, 4)))
        pm.Categorical("y", share[pm.Data("group", rng.integers(0, 3, N))], observed=rng.integers(0, 4, N))
    return model


def network(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=rng.integers(0, 2, N))
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=rng.integers(0, 2, N))
    return model


def heavy_tails(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Normal("mu", 0, 1), sigma=0.2, observed=rng.uniform(-1, 1, N))
    return model


def constants(model: pm.Model) -> Counter[bytes]:
    values = [np.asarray(var.data) for var in ancestors([model.logp()]) if isinstance(var, Constant)]
    return Counter(item.tobytes() for item in values if item.dtype.kind in "iufb")


EDGES = np.linspace(-0.9, 0.9, 19)
MAKERS = (linear, logistic, groups, counts, network, heavy_tails)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("make", "noise"),
    [(make, noise) for make in MAKERS for noise in ("laplace", "gaussian") if (make, noise) != (logistic, "gaussian")],
)
def test_one_compiled_density_serves_all_releases_of_a_shape(make, noise, rng):
    # PyTensor keeps what it compiled by the graph and the constants in it.
    model = make(rng)
    domain = {
        linear: dp.Domain(bounds={"x": (-1, 1), "y": (-1, 1)}),
        logistic: dp.Domain(bounds={"x": (-1, 1)}),
        **dict.fromkeys((groups, heavy_tails), dp.Domain(bounds={"y": (-1, 1)})),
    }.get(make, dp.Domain())
    bins = dp.Histogram(EDGES) if make is heavy_tails else None  # by default, less noise gives more of them
    paid = {
        "delta": 0.0 if noise == "laplace" else 1e-5,
        "domain": domain,
        "statistics": dp.Statistics(noise=noise, mechanism=bins),
    }
    first, second = released(model, 1.0, 0.7, **paid)
    assert constants(first) == constants(second)


def released(model: pm.Model, *epsilons: float, **paid: Any) -> Iterator[pm.Model]:
    ledger = dp.Ledger(10.0, 10 * paid.get("delta", 0.0))
    return (dp.privatize(model, epsilon=epsilon, ledger=ledger, **paid) for epsilon in epsilons)
