"""Chains walk in the kernel: by what was paid, over rows as they are held, and with randomness that is not theirs."""

import dataclasses
from contextlib import nullcontext

import numba
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.kernel.batch_loops import _lasting
from pymc_dp.samplers.batch_gradients import BatchGradients
from pymc_dp.transforms.prior_model import shared_prior_model

from .conftest import BATCH, CLIP, N_ROWS, flat, start


@pytest.mark.usefixtures("begins")
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_less_noise_or_more_steps_than_were_paid_for_are_refused_by_the_kernel(begin, neighbours):
    step = begin(neighbours, steps=5)
    step.course = dataclasses.replace(step.course, sigma=0.999 * step.course.sigma)
    with pytest.raises(dp.errors.BudgetExceeded, match="more than was paid"):
        step.start_chain()
    other = begin(neighbours, steps=5)
    assert other._batch_walk.left == 5
    point = other._moved(start(other), 5)
    assert set(point) == set(start(other)) and other._batch_walk.left == 0
    with pytest.raises(dp.errors.BudgetExceeded, match="0 are left"):
        other._moved(point, 1)


def test_a_step_goes_uphill_by_the_clipped_gradients_of_all_rows_and_the_noise_that_is_charged(begin):
    """Of the whole table in one batch: the mean of many first states is that of plain gradient ascent."""
    step = begin(batch_size=N_ROWS, sampling="without_replacement", steps=400, clip_norm=CLIP)
    position = flat(step, start(step))
    rows = next(step.gradients.of_rows(step._rows, position))
    norms = np.linalg.norm(rows, axis=1)
    assert 0.05 < np.mean(norms > CLIP) < 0.95
    np.testing.assert_allclose(step.row_norms(position, step._rows), norms)
    clipped = (rows * np.minimum(1, CLIP / norms)[:, None]).sum(axis=0)
    eta, sigma, moves = step.step_size, step.course.sigma, []
    for _ in range(400):
        moves.append(flat(step, step._moved(start(step), 1)) - position)
    wanted = eta * (clipped + step.gradients.of_prior(position))
    noise = max(eta * sigma, np.sqrt(2 * eta))
    assert np.abs((np.mean(moves, axis=0) - wanted) / noise).max() < 4 / np.sqrt(400)
    np.testing.assert_allclose(np.std(moves, axis=0) / noise, 1, atol=0.15)
    assert sigma == pytest.approx(step.event.event.noise_multiplier * CLIP)


def test_rows_that_are_held_in_half_of_the_memory_give_the_same_gradients(begin):
    wide, narrow = (begin(dtype=dtype) for dtype in ("float64", "float32"))
    for step, dtype in ((wide, np.float64), (narrow, np.float32)):
        assert {one.dtype for one in step._rows if one.dtype.kind == "f"} == {np.dtype(dtype)}
    position = np.full(wide.gradients.size, 0.3)
    one, two = (np.vstack([*step.gradients.of_rows(step._rows, position)]) for step in (wide, narrow))
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    for step in (wide, narrow):
        assert np.isfinite(flat(step, step._moved(start(step), 50))).all()


def test_the_loop_over_steps_is_kept_on_disk(begin):
    step = begin()
    position, rng = flat(step, start(step)), np.random.default_rng(0)
    state = step._followed(step._batch_walk, position, np.zeros(0), np.ones(1), rng)
    assert _lasting(numba.typeof(tuple(state))) and not _lasting(numba.typeof(state))


@pytest.mark.usefixtures("begins")
def test_seeded_chains_are_repeated_and_others_are_not(begin):
    found = []
    for seed in (1, 1, None):
        step = begin(steps=3, batch_size=BATCH)
        with nullcontext() if seed is None else dp.testing.insecure_randomness(seed):
            step.begin_chain(0, 0)
        found.append(flat(step, step._moved(start(step), 3)))
    assert (found[0] == found[1]).all() and (found[0] != found[2]).all()


def test_ordered_cutpoints_have_gradients_that_the_kernel_maps():
    """PyTensor fills them into memory that is not set, which the kernel takes from no graph."""
    with pm.Model() as model:
        ordered = pm.distributions.transforms.ordered
        cuts = pm.Normal("cuts", 0, 1, shape=2, transform=ordered, initval=[-1.0, 1.0])
        pm.OrderedLogistic("y", pm.Normal("mean", 0, 1), cuts, observed=np.arange(12) % 3)
    found = inspect(model, dp.Domain()).rows
    gradients = BatchGradients(found, shared_prior_model(found))
    y, at, step = np.arange(12) % 3, np.array([-0.5, 0.2, 0.3]), 1e-6 * np.eye(3)
    (rows,) = gradients.of_rows([y], at)

    def logp(at):
        ends = np.array([-np.inf, at[0], at[0] + np.exp(at[1]), np.inf])
        chances = np.diff(1 / (1 + np.exp(np.clip(at[2] - ends, -50, 50))))
        return np.log(chances)[y]

    names = [name for name, _, _ in gradients.shapes]
    order = [0, 1, 2] if names[0].startswith("cuts") else [1, 2, 0]
    wanted = [(logp((at + move)[order]) - logp((at - move)[order])) / 2e-6 for move in step]
    np.testing.assert_allclose(rows, np.transpose(wanted), atol=1e-6)
