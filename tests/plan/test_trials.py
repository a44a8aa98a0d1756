"""Which settings are tried, and how chains are judged."""

import math

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.plan.posteriors import Moments
from pymc_dp.plan.sampler import Cell, cells, judge
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import base
from pymc_dp.step_methods.langevin.rehearsal import limits


@pytest.fixture(autouse=True)
def _priced(monkeypatch):
    """A noise multiplier of 40 at ε = 1, more below and less above."""
    monkeypatch.setattr(base, "noise_multiplier", lambda epsilon, *_, **__: max(40 / epsilon, 2))
    monkeypatch.setattr(cost, "some_of", lambda steps: [])


def looked_at(epsilon=1.0, **settings):
    """A priced step that was never compiled."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(1000))
    return dp.SGLD(batch_size=100, **settings).preview(model, None, Budget(epsilon, 1e-6)).bound


@pytest.mark.parametrize("epsilon", [0.05, 50.0])
def test_step_sizes_that_are_tried_are_paid_for(epsilon):
    step = looked_at(epsilon)
    for norm in (0.1, 4.0):
        own = [cell for cell in cells(step, [0.1, 4.0]) if cell.clip_norm == norm]
        assert 3 <= len(own) <= 5 and all(cell.step.clip_norm == norm for cell in own)
        for cell in own:
            assert cell.step_size <= limits(cell.step).natural and cell.step.step_size == cell.step_size
            noise = cell.step.multiplier
            assert noise >= step._least * (1 - 1e-9), "never less noise than what was priced"
        assert max(cell.step_size for cell in own) >= 0.9 * min(limits(own[0].step))


def test_a_chain_is_judged_by_its_moments():
    step, rng = looked_at(), np.random.default_rng(1)
    cell = Cell(step=step, clip_norm=1.0, step_size=1e-4)
    of = [Moments(mean=np.array([5.0, 0.0]), sd=np.array([2.0, 0.1]))] * 2
    draws = [rng.normal([5.0, 0.0], [2.0, 0.1], (20_000, 2)) for _ in range(2)]
    norms = [np.array([0.5, 1.0, 2.0, np.nan]), np.array([3.0, 3.0, 3.0, 3.0])]
    good = judge(cell, draws, of, norms, "call")
    assert good.clipped == 0.75 and good.distance < 0.03 and good.call == "call"
    wide = judge(cell, [3 * chain - 2 * one.mean for chain, one in zip(draws, of, strict=True)], of, norms, "call")
    assert wide.sd_ratio == pytest.approx(3, rel=0.02) and wide.distance == pytest.approx(2, rel=0.03)
    moved = judge(cell, [chain + one.sd for chain, one in zip(draws, of, strict=True)], of, norms, "call")
    assert moved.mean_error == pytest.approx(1, rel=0.03) and moved.distance == pytest.approx(1, rel=0.03)
    assert judge(cell, [np.full((9, 2), np.nan)] * 2, of, norms, "call").distance == math.inf
