"""With a clamp any model will do whose rows separate: each row's log-likelihood ratio is cut before it is added."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from tests.step_methods.metropolis.models import domain, places, sample

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


@pytest.mark.slow
def test_the_sum_is_that_of_clamped_rows(rng):
    x, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    step = held(logistic(x, y), 0.4)
    here, there = places(step, rng, 2)

    def rows(values):
        odds = values[0] + x @ values[1:]
        return np.where(y == 1, -np.logaddexp(0, -odds), -np.logaddexp(0, odds))

    limit = 0.4 * np.linalg.norm(there.values - here.values)
    ratio = rows(there.values) - rows(here.values)
    assert 0 < (np.abs(ratio) > limit).sum() < 30
    expected = np.clip(ratio, -limit, limit).sum() + there.prior - here.prior
    assert step._odds(here, there) == pytest.approx(expected, rel=1e-9)
    assert step._odds(there, here) == pytest.approx(-expected, rel=1e-12)


def test_a_clamp_above_every_gradient_leaves_the_target_alone(rng):
    x, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    model = logistic(x, y)
    step = held(model, np.sqrt(1 + (x**2).sum(axis=1).max()))
    here, there = places(step, rng, 2)
    logp = model.compile_logp(mode="FAST_COMPILE")
    at = [float(logp(step.coefficients.point(spot.values, model.initial_point()))) for spot in (here, there)]
    assert step._odds(here, there) == pytest.approx(at[1] - at[0], rel=1e-9)


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


def test_mutant_without_the_clamp(monkeypatch, rng):
    right = RowRatios.total

    def wide(self, there, here, limit, **options):
        return right(self, there, here, replace(limit, low=100 * limit.low, high=100 * limit.high), **options)

    monkeypatch.setattr(RowRatios, "total", wide)
    assert worst_share("add_remove", rng) > 1.1


@pytest.mark.slow
def test_the_trace_says_that_the_target_has_changed(rng):
    planted = plant(rng.normal(size=12), rows=(2, 7), low=-4, high=4)
    model = logistic(planted.values.reshape(6, 2), [0, 1, 1, 0, 1, 1])
    tree = sample(model, 20, tune=20, epsilon=5.0, delta=1e-6, step=BarkerMetropolis(clamp=2.0))
    assert not contains_canary(tree, planted.canaries)
    assert "not the posterior" in str(tree.dp.report()) and tree.dp.guarantee == "stepwise"
    assert tree["sample_stats"]["epsilon_spent"].values.max() <= 5.0


def test_rows_without_bounds_or_that_do_not_separate_are_refused(rng):
    with pytest.raises(UnsupportedModelError, match="'x' has no bounds"):
        sample(logistic(rng.normal(size=(4, 2)), [0, 1, 1, 0]), 5, epsilon=1.0, step=BarkerMetropolis())
    with pm.Model() as model:
        x = pm.Data("x", np.arange(4.0))
        pm.Normal("value", pm.Normal("mu") + x - x.mean(), 1.0, observed=np.ones(4))
    with pytest.raises(UnsupportedModelError, match="row"):
        sample(model, 5, epsilon=1.0, step=BarkerMetropolis(clamp=1.0))
