"""What a private model holds of its release is data of the compiled density, and no part of its program."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

import pymc_dp as dp
from pymc_dp.transforms.released_logp import held

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


def program(model: pm.Model) -> str:
    """What PyTensor keeps the compiled density and its gradient by; nothing is compiled for it, or simplified."""
    function = model.logp_dlogp_function(ravel_inputs=True, mode=Mode(linker="numba", optimizer=None))
    return CACHED_SRC_FUNCTIONS[function._pytensor_function.vm.jit_fn.py_func]


def shares(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        group = pm.Data("group", rng.integers(0, 3, N))
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[group], observed=rng.integers(0, 2, N))
    return model


def rates(rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        group = pm.Data("group", rng.integers(0, 3, N))
        pm.Poisson("y", pm.Gamma("rate", 2, 2, shape=3)[group], observed=rng.integers(0, 4, N))
    return model


DOMAINS = {
    "shares": dp.Domain(),
    "counts": dp.Domain(),
    "rates": dp.Domain(bounds={"y": (0, 9)}),
    "groups": dp.Domain(bounds={"y": (-1, 1)}),
    "linear": dp.Domain(bounds={"x": (-1, 1), "y": (-1, 1)}),
}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("make", [shares, counts, rates, groups, linear])
def test_another_epsilon_compiles_nothing(make, noise, rng):
    model, delta = make(rng), 0.0 if noise == "laplace" else 1e-5
    paid = {"delta": delta, "domain": DOMAINS[make.__name__], "statistics": dp.Statistics(noise=noise)}
    one, other = map(program, released(model, 1.0, 0.7, **paid))
    assert one == other


@pytest.mark.slow
def test_another_epsilon_of_noised_gradients_compiles_nothing(rng):
    model = logistic(rng)
    paid = {"delta": 1e-5, "domain": dp.Domain(bounds={"x": (-1, 1)}), "statistics": dp.Gradients(steps=10)}
    one, other = map(program, released(model, 1.0, 0.7, **paid))
    assert one == other


def test_another_number_of_levels_is_another_program(rng):
    with pm.Model() as fewer:
        share = pm.Dirichlet("share", np.ones((3, 3)))
        pm.Categorical("y", share[pm.Data("group", rng.integers(0, 3, N))], observed=rng.integers(0, 3, N))
    one, other = (program(*released(model, 1.0)) for model in (counts(rng), fewer))
    assert one != other


def test_a_number_is_held_with_its_shape():
    assert [held(value).type.shape for value in (1.5, np.zeros(3), np.zeros((2, 1)))] == [(), (3,), (2, 1)]


def test_what_is_held_already_is_held_once():
    value = held(np.zeros(3))
    assert held(value) is value
