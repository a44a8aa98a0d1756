"""Chains whose ranges are proved: the right target, no row beyond the claim, and what is refused or said."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from tests.step_methods.metropolis.models import QUIET, places

NORM = {"x": 1.5}
WILD = [0.0, 1.0, -0.6, -1e6, 1e300, np.nan, np.inf, -np.inf]


def logistic(x, y):
    with pm.Model() as model:
        eta = pm.Data("x", np.asarray(x, dtype=float)) @ pm.Normal("b", 0, 2, shape=2)
        pm.Bernoulli("y", logit_p=eta, observed=np.asarray(y, dtype=int))
    return model


def proved(model, relation="replace", **options):
    forget_releases()
    given = dp.Domain(norms=NORM, neighbours=relation, n_max=1000 if relation == "add_remove" else None)
    with model:
        return BarkerMetropolis(epsilon=options.pop("epsilon", 1e4), delta=1e-6, domain=given, **options)


# The range.


def worst_share(relation, rng):
    """Largest sensitivity of log odds between neighbours over the claimed range, whatever a row holds."""
    step = proved(logistic(np.zeros((3, 2)), [0, 1, 1]), relation)
    spots = [*places(step, rng, 2, 1.0), *places(step, rng, 2, 0.05)]
    pairs = [(here, there) for here in spots for there in spots if here is not there]
    rows = [(x0, x1, y) for x0 in WILD for x1 in (0.0, np.nan, -3.0, 0.7) for y in (0, 1, 7)]
    rows += [(*x, y) for x in rng.normal(size=(40, 2)) * 9 for y in (0, 1)]
    shares = []
    for others in ([], [(1.0, -1.0, 1)] * 5):
        tables = [clamped_table(step, [*others, row]) for row in rows]
        tables += [clamped_table(step, others)] if relation == "add_remove" else []
        for pair in pairs:
            odds = np.array([odds_of(step, pair, columns) for columns in tables])
            base = odds[-1:] if relation == "add_remove" else odds
            assert np.isfinite(odds).all()
            shares.append(np.abs(odds[:, None] - base).max() / step._between(*pair))
    return max(shares)


def clamped_table(step, rows):
    """Columns as the step reads them."""
    values = {"x": np.array([row[:2] for row in rows], dtype=float).reshape(-1, 2)}
    values["y"] = np.array([row[2] for row in rows], dtype=int)
    return [column.clamped(values[column.name]) for column in step.ratio.rows._columns]


def odds_of(step, pair, columns):
    step.ratio.rows.hold(columns)
    return step._odds(*pair)


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_no_row_moves_the_odds_by_more_than_is_claimed(relation, rng):
    assert 0.9 < worst_share(relation, rng) <= 1 + 1e-9


# What is said.


def preview(model, given=None):
    return BarkerMetropolis().preview(model, given, Budget(1.0, 1e-6))


def test_what_has_no_rule_or_no_bound_is_named():
    with pm.Model() as model:
        sd = pm.Normal("sd", initval=0.0)
        pm.Normal("y", 0.0, pm.math.abs(sd), observed=np.zeros(4))
    found = preview(model, dp.Domain(bounds={"y": (-1.0, 1.0)}))
    assert not found.fits and ("initial point" in found.problem or "dp.truncate(model, {'sd'" in found.problem)
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.CustomDist("y", mu, logp=lambda value, mu: pm.math.sin(value - mu) * value, observed=np.zeros(4))
    forget_releases()
    with pytest.raises(UnsupportedModelError, match="dp.Domain\\(bounds"):
        dp.sample(5, model=model, epsilon=1.0, step=BarkerMetropolis(), **QUIET)
