"""Scans over blocks: only a block moves, each move pays its own range, and blocks share what is left."""

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.arguments import blocks_of
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import held, normal, sample


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


def test_wrong_blocks_are_named():
    for wrong in ("all", 3, ["mu", "sigma"], [["mu"], []], []):
        with pytest.raises(ArgumentError, match="blocks"):
            blocks_of(wrong)
    for wrong in ([["mu"]], [["mu"], ["sigma"], ["mu"]], [["mu", "nu"]]):
        with pytest.raises(ArgumentError, match="once"):
            sample(normal([0.0, 1.0]), 5, epsilon=1.0, step=BarkerMetropolis(blocks=wrong))
    assert repr(BarkerMetropolis(blocks=[["mu"], ("sigma",)])) == "BarkerMetropolis(blocks=(('mu',), ('sigma',)))"
