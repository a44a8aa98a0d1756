from collections.abc import Iterator

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.langevin import SGLD, walk

N_ROWS, BATCH, CLIP = 200, 40, 0.8
BUDGET = {"epsilon": 3.0, "delta": 1e-5}


@pytest.fixture(autouse=True)
def _no_history() -> Iterator[None]:
    forget_releases()
    yield
    forget_releases()


def table(n_rows=N_ROWS, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    group = rng.integers(0, 2, size=n_rows)
    return x, group, (rng.random(n_rows) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.2]))).astype(int)


def logistic(x, group, y):
    """Logistic regression on a private matrix and a private group: one graph for all tests that compile."""
    with pm.Model() as model:
        coefficients = pm.Normal("coefficients", 0, 2, shape=3)
        scale = pm.HalfNormal("scale", 1)
        offset = pm.Normal("offset", 0, scale)
        score = pm.Data("x", x) @ coefficients + offset * pm.Data("g", group)
        pm.Bernoulli("y", logit_p=score, observed=y)
    return model


@pytest.fixture(scope="session")
def model():
    return logistic(*table())


def relation(name="replace", **options):
    return dp.Domain(neighbours=name, n_max=250 if name == "add_remove" else None, **options)


def funded(model, neighbours="replace", steps=50, domain=None, method=SGLD, tune=0, **settings):
    """A funded step whose chain has begun."""
    settings = {"batch_size": BATCH, "clip_norm": CLIP, **BUDGET, **settings}
    forget_releases()
    with model:
        step = method(domain=domain or relation(neighbours), **settings)
    with dp.testing.insecure_randomness(1):
        step.setup_chain(None, tune, steps)
    return step


@pytest.fixture(scope="session")
def compiled(model):
    """Compiles the loop once."""
    return funded(model)


@pytest.fixture
def shared(compiled, monkeypatch):
    """Steps of the logistic model take the graphs that were made once."""
    monkeypatch.setattr(walk, "BatchGradients", lambda inspection, prior_model: compiled.gradients)


@pytest.fixture
def begin(shared, model):
    """Make funded steps of the logistic model whose chain has begun."""

    def make(neighbours="replace", **settings):
        return funded(settings.pop("model", model), neighbours, **settings)

    return make


def start(step):
    return {name: np.asarray(value) for name, value in step.prior_model.initial_point().items()}


def flat(step, point):
    return step.gradients.flat(point)
