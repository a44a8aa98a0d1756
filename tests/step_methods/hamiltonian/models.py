"""Models whose posteriors are known, and steps that hold them."""

import copy
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor

from pymc_dp.domain import Domain
from pymc_dp.release.paid import forget_releases
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.funding import Claims
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.hamiltonian.settings import HamiltonianNoise
from pymc_dp.testing import insecure_randomness

BUDGET = {"epsilon": 3.0, "delta": 1e-5}
WIDE = [0.0, 1.0, -1e6, 1e-200, 1e300, 1.7e308, np.nan, np.inf, -np.inf]


def normal(values):
    """Posterior of the mean N(sum / (n + 1), 1 / (n + 1))."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), np.float64(1.0), observed=np.asarray(values, dtype=float))
    return model


def logistic(x, y):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=2)
        covariates = pm.Data("x", np.asarray(x, dtype=float))
        pm.Bernoulli("y", logit_p=a + covariates @ b, observed=np.asarray(y, dtype=int))
    return model


def table(n_rows=40, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.7, 0.7, size=(n_rows, 2))
    return x, (rng.random(n_rows) < 1 / (1 + np.exp(-x @ [2.0, -1.0]))).astype(int)


def domain(relation="replace", **options):
    return Domain(neighbours=relation, n_max=60 if relation == "add_remove" else None, **options)


UNIT_ROWS = {"norms": {"x": 1.0}}


def held(model, relation="replace", domain_options=None, **settings):
    """A funded step that holds the rows of a model."""
    forget_releases()
    with model:
        return PrivateHMC(domain=domain(relation, **(domain_options or {})), **{**BUDGET, **settings})


FAR = 1e3
"""A row of `normal` whose gradient is clipped and whose ratio is clamped; so is its negative, the other way."""
MODELS = {
    "far": lambda: normal([FAR]),
    "normal": lambda: normal(np.linspace(-1, 2, 7)),
    "logistic": lambda: logistic(*table()),
}
_planned = {}


def ready(kind, relation="replace", **settings):
    """A copy of a step that was made once, with chains of its own."""
    key = kind, relation, tuple(settings.items())
    if key not in _planned:
        with pytensor.config.change_flags(mode="FAST_COMPILE"):
            _planned[key] = held(MODELS[kind](), relation, **settings)
    step = copy.copy(_planned[key])
    step._binding, step.settings = replace(step.binding, claims=Claims(1)), dict(step.settings)
    with opened_gate():
        step.load()
    return step


def begun(step, tune=0, draws=50, seed=1, noise=None):
    """Begin a chain with repeatable randomness; `noise` replaces the multipliers that were paid for."""
    with insecure_randomness(seed):
        step.setup_chain(np.random.default_rng(0), tune, draws)
    if noise is not None:
        length = step.settings["n_leapfrog"]
        step.noise = HamiltonianNoise(gradient=noise[0], ratio=noise[1], n_leapfrog=length)
    return step


def walked(step, draws, name):
    """Values of one variable along a chain, and the share of accepted steps."""
    point, seen, accepted = step.prior_model.initial_point(), np.empty(draws), 0.0
    for i in range(draws):
        point, (stats,) = step.step(point)
        seen[i], accepted = point[name].item(), accepted + stats["acceptance_rate"]
    return seen, accepted / draws


def take(step, x, y):
    """Let the step hold other rows of `logistic`, clamped as it clamps those that it reads."""
    columns = {"x": np.asarray(x, dtype=float).reshape(-1, 2), "y": np.asarray(y, dtype=int)}
    rows = [column.clamped(columns[column.name]) for column in step._columns]
    step.gradient.hold(rows)
    step.limits.ratio.rows.hold(rows)
