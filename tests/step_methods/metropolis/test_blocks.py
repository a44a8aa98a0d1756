"""Scans over blocks: only a block moves, each move pays its own range, and blocks share what is left."""

import numpy as np
import pymc as pm
import pytest
import scipy.stats as st

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.arguments import blocks_of
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import held, normal, sample
from tests.step_methods.metropolis.test_barker import mcmc_agrees


def begun(step, tune, draws, seed=1):
    with insecure_randomness(seed):
        step.setup_chain(np.random.default_rng(0), tune, draws)
    return step


def noted(step):
    """Note every place that is proposed, by what a move is asked for."""
    moves, right = [], step._between

    def between(here, there):
        moves.append((here.values, there.values, right(here, there)))
        return moves[-1][2]

    step._between = between
    return moves


def test_each_move_is_of_its_block_and_is_charged_its_own_range():
    _, step = held("grouped", [0, 1, 1, 0, 1], epsilon=1e4, scale=0.3, blocks=[["mu"], ["z", "tau"]])
    begun(step, 0, 30)
    assert [block.places.tolist() for block in step.blocks] == [[0], [1, 2, 3]]
    moves, point, charged = noted(step), step.prior_model.initial_point(), 0.0
    for _ in range(30):
        moves.clear()
        point, _ = step.step(point)
        assert len(moves) == 2
        for block, (here, there, reach) in zip(step.blocks, moves, strict=True):
            assert set(np.flatnonzero(here != there)) == set(block.places)
            charged += step.spending.loss(reach)
        flat = step.coefficients.flatten(point)
        assert np.array_equal(moves[1][0], moves[0][0]) or np.array_equal(moves[1][0], moves[0][1])
        assert np.array_equal(flat, moves[1][0]) or np.array_equal(flat, moves[1][1])
    assert step.spending.spent == pytest.approx(charged, rel=1e-9)


@pytest.mark.slow
def test_scans_sample_every_block_right(seed):
    """Independent posteriors, in one model."""
    with pm.Model() as model:
        pm.Bernoulli("binary", pm.Beta("p", 1, 1), observed=np.array([0, 1, 0, 0]))
        pm.Poisson("count", pm.Gamma("rate", 2, 1), observed=np.array([1, 0, 2, 0]))
    with insecure_randomness(seed):
        step = BarkerMetropolis(blocks="each", scale={"p": 2.0, "rate": 1.2})
        tree = sample(model, 1500, tune=0, epsilon=1e7, delta=1e-6, step=step)
    mcmc_agrees(tree["posterior"]["p"].values[0], st.beta(2, 4), 100)
    mcmc_agrees(tree["posterior"]["rate"].values[0], st.gamma(5, scale=1 / 5), 100)
    assert "a scan over 2 blocks" in str(tree.dp.report())


@pytest.mark.parametrize("delta", [pytest.param(0.0, marks=pytest.mark.slow), 1e-6])
def test_blocks_share_the_budget_and_a_free_one_leaves_its_share_to_the_others(delta, seed):
    """The spread of a hierarchy costs nothing: nothing of the rows depends on it given the effects."""
    rows = np.arange(60) % 3 == 0
    with pm.Model() as model:
        tau, mu = pm.HalfNormal("tau"), pm.Normal("mu")
        z = pm.Normal("z", mu, tau, shape=2)
        pm.Bernoulli("binary", logit_p=z[pm.Data("group", np.arange(60) % 2)], observed=rows)
    with insecure_randomness(seed):
        tree = sample(model, 400, tune=200, epsilon=1.0, delta=delta, step=BarkerMetropolis(blocks="each"))
    assert tree["posterior"].sizes["draw"] == 400
    spent = tree["sample_stats"][SPENT].values[0]
    assert 0.6 < spent[-1] <= 1.0
    assert (np.diff(spent) >= 0).all()
    assert (np.diff(tree["posterior"]["tau"].values[0]) != 0).mean() > 0.1


def test_a_chain_ends_within_a_scan_and_keeps_within_its_budget():
    _, step = held("normal", [0.0, 1.0], epsilon=0.5, scale=0.2, blocks="each")
    begun(step, 0, 500)
    point = step.prior_model.initial_point()
    for _ in range(500):
        point, [stats] = step.step(point)
        assert stats[SPENT] <= 0.5
    assert not stats["active"] and step.spending.spent <= step.spending.reserved


def test_wrong_blocks_are_named():
    for wrong in ("all", 3, ["mu", "sigma"], [["mu"], []], []):
        with pytest.raises(ArgumentError, match="blocks"):
            blocks_of(wrong)
    for wrong in ([["mu"]], [["mu"], ["sigma"], ["mu"]], [["mu", "nu"]]):
        with pytest.raises(ArgumentError, match="once"):
            sample(normal([0.0, 1.0]), 5, epsilon=1.0, step=BarkerMetropolis(blocks=wrong))
    assert repr(BarkerMetropolis(blocks=[["mu"], ("sigma",)])) == "BarkerMetropolis(blocks=(('mu',), ('sigma',)))"
