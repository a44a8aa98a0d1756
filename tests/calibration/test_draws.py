"""Coverage of intervals from one and from five tempered draws, over tables simulated from the prior.

The posterior that is judged is the one of `dp.from_draws.draw_intervals`, by a sum over points; that of
`dp.condition` has the same density (tests/from_draws/test_private_model.py).
"""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.from_draws.given import GivenDraws
from pymc_dp.from_draws.mechanism import Mechanism, PublicModel
from pymc_dp.inspection.rows import unwrap
from tests.from_draws.conftest import BOUNDED

N_TABLES = 400
COVERED = (0.86, 0.94)
"""Of intervals of 90%; the binomial standard error is 0.015."""
COUNTS = (1, 5)
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("paid")]


def coin(n_rows):
    with pm.Model() as model:
        p = pm.Uniform("p", 0.05, 0.95)
        pm.Bernoulli("y", p, observed=pm.Data("rows", np.zeros(n_rows, dtype=int)))

    def simulate(rng):
        truth = rng.uniform(0.05, 0.95, size=1)
        return truth, {"rows": rng.random(n_rows) < truth[0]}

    return model, None, simulate


def regression(n_rows):
    with pm.Model() as model:
        x = pm.Data("x", np.zeros(n_rows))
        a, b = pm.Uniform("a", -3, 3), pm.Uniform("b", -3, 3)
        pm.Bernoulli("y", logit_p=a + b * x, observed=pm.Data("rows", np.zeros(n_rows, dtype=int)))

    def simulate(rng):
        truth, column = rng.uniform(-3, 3, size=2), rng.uniform(-1, 1, size=n_rows)
        return truth, {"x": column, "rows": rng.random(n_rows) < 1 / (1 + np.exp(-truth[0] - truth[1] * column))}

    return model, BOUNDED, simulate


def mechanisms(build, n_rows, epsilon, n_tables, rng):
    """Yield the number of draws, the truth and what the draws say of it, for every table."""
    model, domain, simulate = build(n_rows)
    public = PublicModel.of(model, domain, "dp.from_draws.draw_intervals")
    spec = dp.OPS(grid=48) if domain is not None else dp.OPS()
    inspection = spec.inspect(model, domain)
    steps = {count: spec.bound(inspection, dp.Budget(epsilon), chains=1, steps=count)[0] for count in COUNTS}
    for _ in range(n_tables):
        truth, columns = simulate(rng)
        for name, values in columns.items():
            leaf = unwrap(model[name])
            leaf.set_value(values.astype(leaf.type.dtype))
        rows = steps[1].posterior.read()
        for count, step in steps.items():
            inverse, prior = step.temperature.inverse, step.temperature.prior
            draws = [step.posterior.draw(rng, rows, inverse, prior) for _ in range(count)]
            flat = np.array([np.concatenate([np.ravel(one) for one in draw.values()]) for draw in draws])
            given = GivenDraws(flat=flat, power=inverse, prior_power=1.0, n_rows=n_rows)
            yield count, truth, Mechanism.of(public, given, {}, "dp.from_draws.draw_intervals")


def covered(found, weights, truth):
    below = weights @ (found.flat <= truth)
    return (below > 0.05) & (below < 0.95)


@pytest.mark.parametrize(("build", "n_rows"), [(coin, 1000), (regression, 1500)])
def test_intervals_cover_what_they_say(build, n_rows, rng):
    """Measured at ε = 1, T = 5.9 and 29 (coin), 12 and 60 (regression): see docs/papers/wang_2015.md."""
    hits = {count: [] for count in COUNTS}
    for count, truth, found in mechanisms(build, n_rows, 1.0, N_TABLES, rng):
        hits[count].append(covered(found, found.posterior, truth))
    for shares in hits.values():
        coverage = np.mean(shares, axis=0)
        assert np.all((coverage >= COVERED[0]) & (coverage <= COVERED[1])), coverage
