"""What one row moves the weights of particles by, at most: against tables that are as hostile as can be."""

import itertools
import math

import numpy as np
import pymc as pm
import pytest

from pymc_dp.errors import UnsupportedModelError
from tests.step_methods.annealing.conftest import annealing, counts, domain, grouped, normal, poisson, reread, student

pytestmark = pytest.mark.usefixtures("paid")

NAN, INF = np.nan, np.inf
CASES = {
    "bernoulli": (counts, [0, 1, 7], None),
    "grouped": (grouped, [0, 1, 2, 3], None),
    "poisson": (poisson, [0, 2, 8, 99], (0, 8)),
    "normal": (normal, [-INF, -2.0, 0.1, 3.0, NAN], (-2.0, 3.0)),
    "rows": (student, [-INF, -4.0, 0.1, 3.0, NAN], (-4.0, 3.0)),
}


def hostile_states(run, rng):
    """Paths of particles that stay at corners of the parameter space, jump between them, or go anywhere."""
    states = {}
    for name, low in run.scan.points.low.items():
        high = run.scan.points.high[name]
        share = rng.random((run.settings.particles, len(run.settings.path) + 1, *low.shape))
        share[: len(share) // 2] = np.rint(share[: len(share) // 2])
        share[:2] = np.array([0.0, 1.0]).reshape(2, *(1,) * (share.ndim - 1))
        states[name] = low + (high - low) * share
    return states


def logs_of(run, states):
    """Log weights with what they have in common, on the rows of a run."""
    return run.weigh(states) + run.beta * (run.likelihood.constant(run.sums) + run.likelihood.public_constant())


def mean_of(logs):
    return np.logaddexp.reduce(logs) - math.log(len(logs))


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", CASES)
def test_no_neighbour_moves_log_weights_by_more_than_is_paid_for(name, relation, rng):
    """Range over particles <= β R, and each, so that also the log of the mean, by <= β Δl; both are nearly met."""
    build, values, bounds = CASES[name]
    public = domain(relation, **({} if bounds is None else {"bounds": {"y": bounds}}))
    base = [values[0], values[-1], values[1]]
    tables = [base, *([*base[:2], value] for value in values)]
    if relation == "add_remove":
        tables = [base, base[:2], *([*base, value] for value in values)]
    model = build(np.zeros(3, dtype=int))
    run = annealing(model, public, epsilon=50.0, particles=24, evidence=True)
    states, found = hostile_states(run, rng), []
    assert run.beta < 1
    for rows in tables:
        reread(run, model, rows)
        found.append(logs_of(run, states))
    pairs = itertools.combinations(found, 2) if relation == "replace" else [(found[0], one) for one in found[1:]]
    ranges, moves, means = zip(
        *((np.ptp(a - b), abs(a - b).max(), abs(mean_of(a) - mean_of(b))) for a, b in pairs), strict=True
    )
    limit, size = run.beta * run.sensitivity.value, run.beta * run.sensitivity.sensitivity
    assert 0.6 * limit < max(ranges) <= limit * (1 + 1e-9)
    assert 0.45 * size < max(moves) <= size * (1 + 1e-9)
    assert 0 < max(means) <= size * (1 + 1e-9)


def test_parameters_without_bounds_are_refused_with_a_remedy():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=np.array([0, 1]))
    with pytest.raises(UnsupportedModelError, match=r"dp.truncate\(model, \{'p': \(0.01, 0.99\)\}\)"):
        annealing(model, read=False)
