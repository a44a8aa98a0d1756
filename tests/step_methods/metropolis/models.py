"""Models whose posteriors are known, and steps that hold them, without a chain around."""

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.domain import Domain
from pymc_dp.release.paid import forget_releases
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.metropolis import BarkerMetropolis

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
BOUNDS = {"count": (0, 20), "value": (-4.0, 4.0)}
GROUPS = (0, 1, 1, 0, 1, 0)


def domain(relation="replace", public=(), bounds=None):
    n_max = 1000 if relation == "add_remove" else None
    return Domain(neighbours=relation, n_max=n_max, public=public, bounds=bounds)


def bernoulli(answers):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("binary", p, observed=pm.Data("rows", np.asarray(answers, dtype=int)))
    return model


def categorical(levels):
    with pm.Model(coords={"four": range(4)}) as model:
        q = pm.Dirichlet("q", np.ones(4), dims="four")
        pm.Categorical("level", q, observed=pm.Data("rows", np.asarray(levels, dtype=int)))
    return model


def poisson(counts):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("count", rate, observed=pm.Data("rows", np.asarray(counts, dtype=int)))
    return model


def normal(values):
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Normal("value", mu, sigma, observed=pm.Data("rows", np.asarray(values, dtype=float)))
    return model


def grouped(answers, groups=GROUPS):
    """A hierarchy: what no conjugate or truncated method takes."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        z = pm.Normal("z", shape=2)
        index = pm.Data("group", np.asarray(groups))
        rows = pm.Data("rows", np.asarray(answers, dtype=int))
        pm.Bernoulli("binary", logit_p=(mu + tau * z)[index], observed=rows)
    return model


MODELS = {"bernoulli": bernoulli, "categorical": categorical, "poisson": poisson, "normal": normal, "grouped": grouped}
# Data sets whose last row may be anything: extremes, and the middle.
WORST = {
    "bernoulli": [0, 1],
    "categorical": [0, 1, 2, 3],
    "poisson": [0, 20, 3, 10**6],
    "normal": [-4.0, 4.0, 0.0, 0.7, np.nan, np.inf, -1e300],
    "grouped": [0, 1],
}


def held(name, rows, relation="replace", public=(), method=BarkerMetropolis, **options):
    """A funded step that holds `rows`, and the model, whose data may be set anew."""
    model = MODELS[name](rows, **({"groups": np.resize(GROUPS, len(rows))} if name == "grouped" else {}))
    bounds = {key: value for key, value in BOUNDS.items() if key in model.named_vars}
    forget_releases()
    with model:
        step = method(
            epsilon=options.pop("epsilon", 1e4),
            delta=options.pop("delta", 1e-6),
            chains=options.pop("chains", 1),
            domain=domain(relation, public, bounds),
            **options,
        )
    return model, step


class Probe:
    """Randomness that is chosen: fixed normal numbers, and a uniform one that notes what it is compared with."""

    def __init__(self, normal=0.0):
        self.normal, self.seen = normal, []

    def standard_normal(self):
        return self.normal

    def random(self):
        return self

    def __lt__(self, probability):
        self.seen.append(probability)
        return True


def chance(step, here, there, normal=0.0):
    """Chance that a step accepts, by its own arithmetic, given its normal noise."""
    step.generator = Probe(normal)
    step._accepts(here, there, step._between(here, there))
    return step.generator.seen[-1]


def take(step, model, rows, groups=None):
    """Let the step hold other rows."""
    with model:
        new = {"rows": np.asarray(rows, dtype=model["rows"].type.dtype)}
        pm.set_data(new | ({} if groups is None else {"group": np.asarray(groups, dtype=np.int32)}))
    with opened_gate():
        step.load()


def places(step, rng, count=4, width=0.7, shift=0.0):
    """Scattered places a chain may come to."""
    start = step.coefficients.start.values + shift
    return [step.coefficients.at(start + width * rng.normal(size=start.shape)) for _ in range(count)]


def sample(model, draws, relation="replace", **options):
    bounds = {key: value for key, value in BOUNDS.items() if key in model.named_vars}
    forget_releases()
    return dp.sample(draws, model=model, domain=domain(relation, bounds=bounds), **(QUIET | options))
