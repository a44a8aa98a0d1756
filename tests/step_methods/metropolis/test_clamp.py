"""With a clamp any model will do whose rows separate: each row's log-likelihood ratio is cut before it is added."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from tests.step_methods.metropolis.models import domain, places

WIDE = [0.0, 1.0, -1e6, 1e300, 1.7e308, np.nan, np.inf, -np.inf]


def logistic(x, y):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=2)
        covariates = pm.Data("x", np.asarray(x, dtype=float))
        pm.Bernoulli("y", logit_p=a + covariates @ b, observed=np.asarray(y, dtype=int))
    return model


def held(model, clamp, relation="replace"):
    forget_releases()
    with model:
        return BarkerMetropolis(epsilon=1e4, delta=1e-6, clamp=clamp, domain=domain(relation))


def take(step, x, y):
    """Let the step hold other rows, clamped as it clamps those that it reads."""
    columns = {"x": np.asarray(x, dtype=float).reshape(-1, 2), "y": np.asarray(y, dtype=int)}
    rows = step.ratio.rows
    rows.hold([column.clamped(columns[column.name]) for column in rows._columns])


def worst_share(relation, rng):
    """Largest sensitivity of log odds between neighbours over the claimed range."""
    step = held(logistic(np.zeros((3, 2)), [0, 1, 1]), 0.5, relation)
    spots = places(step, rng, 3)
    rows = [(x0, x1, y) for x0 in WIDE for x1 in (0.0, np.nan, -3.0) for y in (0, 1, 7)]
    shares = []
    for others in ([], [(1.0, -1.0, 1)] * 5):
        tables = [[*others, row] for row in rows] + ([others] if relation == "add_remove" else [])
        odds = []
        for table in tables:
            take(step, [row[:2] for row in table], [row[2] for row in table])
            odds.append([step._odds(here, there) for here in spots for there in spots if here is not there])
        claimed = np.array([step._between(here, there) for here in spots for there in spots if here is not there])
        base = np.array(odds[-1:]) if relation == "add_remove" else np.array(odds)
        moved = np.abs(np.array(odds)[:, None] - base[None]).max(axis=(0, 1))
        assert np.isfinite(odds).all()
        shares.append((moved / claimed).max())
    return max(shares)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_no_row_moves_the_odds_by_more_than_is_claimed(relation, rng):
    assert 0.99 < worst_share(relation, rng) <= 1 + 1e-9
