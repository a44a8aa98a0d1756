"""Models with candidates, their log joint densities written out once more, and steps that hold their rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
from scipy import special, stats

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.mode import CandidateMode, Points

N_MAX = 1000


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model.

    Attributes
    ----------
    model : callable
        Makes it of rows.
    joint : callable
        (n_candidates,) log joint densities of rows.
    places : dict
        Candidates.
    corners : list
        Rows at the ends of what a row can be.
    """

    model: Callable[[Any], pm.Model]
    joint: Callable[[Any], np.ndarray]
    places: dict
    corners: list
    bounds: dict = field(default_factory=dict)

    def tables(self, sizes):
        """Rows of which each is a corner: all the same, or half of one and half of another."""
        for size in sizes:
            for one in self.corners:
                yield [one] * size
                yield from ([one] * (size // 2) + [two] * (size - size // 2) for two in self.corners if two != one)

    def pairs(self, relation, sizes):
        """Neighbouring tables."""
        for table in self.tables(sizes):
            if relation == "add_remove":
                yield from ((table, [*table, row]) for row in self.corners)
            elif table:
                yield from ((table, [*table[:-1], row]) for row in self.corners if row != table[-1])


def domain(relation="replace", **options):
    return Domain(neighbours=relation, n_max=N_MAX if relation == "add_remove" else None, **options)


def bound(model, given, public, epsilon=1.0, delta=0.0, *, read=True, make=CandidateMode):
    """A step with a budget that holds the rows, and what it is charged."""
    specification = make(given)
    step, event = specification.bound(specification.inspect(model, public), Budget(epsilon, delta), chains=1, steps=1)
    if read:
        with opened_gate():
            step.load()
    return step, event.event


@cache
def planned(name, relation, epsilon=1.0, delta=0.0):
    """A step without rows, and what one choice of it is charged."""
    case = CASES[name]
    public = domain(relation, bounds=case.bounds)
    return bound(case.model(case.corners[:1] * 4), Points(values=case.places), public, epsilon, delta, read=False)


def log_probabilities(case, rows, sharpness):
    weights = sharpness * case.joint(rows)
    return weights - special.logsumexp(weights)


# --- a coin -----------------------------------------------------------------------------------------------------------

SHARES = np.linspace(0.05, 0.95, 19)


def coin(rows):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 2, 3), observed=np.asarray(rows, dtype=int))
    return model


def coin_joint(rows):
    ones = sum(rows)
    return stats.beta.logpdf(SHARES, 2, 3) + ones * np.log(SHARES) + (len(rows) - ones) * np.log1p(-SHARES)


# --- a die ------------------------------------------------------------------------------------------------------------

FACES = np.array([[0.1, 0.3, 0.6], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25], [0.2, 0.7, 0.1]])


def die(rows):
    with pm.Model(coords={"face": range(3)}) as model:
        pm.Categorical("y", pm.Dirichlet("w", [1.0, 2.0, 3.0], dims="face"), observed=np.asarray(rows, dtype=int))
    return model


def die_joint(rows):
    counts = np.bincount(np.asarray(rows, dtype=int), minlength=3)
    return np.log(FACES) @ (counts + np.array([0.0, 1.0, 2.0]))


# --- a line through logits, whose parameters have no bounds -----------------------------------------------------------

LINES = {"a": [-1.0, 0.0, 1.0, 0.5], "b": [0.0, 1.0, -1.0, 0.5]}


def line(rows):
    x, y = np.array(rows, dtype=float).reshape(-1, 2).T
    with pm.Model() as model:
        logit = pm.Normal("a", 0, 2) + pm.Normal("b", 0, 2) * pm.Data("x", x)
        pm.Bernoulli("y", logit_p=logit, observed=y.astype(int))
    return model


def line_joint(rows):
    x, y = np.array(rows, dtype=float).reshape(-1, 2).T
    a, b = (np.array(LINES[name])[:, None] for name in "ab")
    logits = (2 * y - 1) * (a + b * x)
    prior = stats.norm.logpdf(np.concatenate([a, b], axis=1), 0, 2).sum(axis=1)
    return prior - np.logaddexp(0, -logits).sum(axis=1)


# --- two nodes --------------------------------------------------------------------------------------------------------

NODES = {"p": [0.1, 0.9, 0.5, 0.9, 0.3], "q": [[0.1, 0.1], [0.9, 0.9], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]}


def nodes(rows):
    a, b = np.array(rows, dtype=int).reshape(-1, 2).T
    with pm.Model() as model:
        held = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=a)
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[held], observed=b)
    return model


def nodes_joint(rows):
    a, b = np.array(rows, dtype=int).reshape(-1, 2).T
    p, q = (np.array(NODES[name]) for name in "pq")
    return stats.bernoulli.logpmf(a, p[:, None]).sum(axis=1) + stats.bernoulli.logpmf(b, q[:, a]).sum(axis=1)


CASES = {
    "coin": Case(model=coin, joint=coin_joint, places={"p": SHARES}, corners=[0, 1]),
    "die": Case(model=die, joint=die_joint, places={"w": FACES}, corners=[0, 1, 2]),
    "nodes": Case(model=nodes, joint=nodes_joint, places=NODES, corners=[(0, 0), (0, 1), (1, 0), (1, 1)]),
    "line": Case(
        model=line,
        joint=line_joint,
        places=LINES,
        corners=[(x, y) for x in (-1.0, 1.0) for y in (0, 1)],
        bounds={"x": (-1, 1)},
    ),
}
