"""Whole chains as black boxes: thousands on each of two neighbours, and what an observer of all states can tell."""

import numpy as np
import pytest

from pymc_dp.audit import audit
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis
from pymc_dp.step_methods.metropolis.penalty import NoisePrice
from tests.step_methods.hamiltonian import models as hamiltonian
from tests.step_methods.metropolis import models as metropolis

BUDGET = {"epsilon": 1.0, "delta": 1e-3}
STEPS, RUNS = 3, 3000


def chains(step, take, rng):
    """Return a function from rows to all states of a new chain, through the step's own loop."""
    start = step.prior_model.initial_point()

    def run(rows):
        take(rows)
        step.generator, step.count, step.tuning_steps = rng, 0, 0
        step.start_chain()
        point, states = start, []
        for _ in range(STEPS):
            point, _ = step.step(point)
            states += [float(value.item()) for value in point.values()]
        return states

    return run


def audited(run, pair):
    return audit(run, *pair, **BUDGET, runs=RUNS, progressbar=False)


@pytest.fixture
def bits(rng):
    """A chain of bits on one answer, which is 0 or 1; its proposals go far, so that each bit is worth much."""

    def make(method):
        model, step = metropolis.held("bernoulli", [0], method=method, scale=2.0, **BUDGET)
        step._fund(STEPS)
        return chains(step, lambda rows: metropolis.take(step, model, rows), rng)

    return make


@pytest.fixture
def trajectories(rng):
    """A chain of two leapfrogs a step on one row that is far to one side or to the other."""
    step = hamiltonian.held(hamiltonian.normal([hamiltonian.FAR]), clip_norm=0.5, n_leapfrog=2, **BUDGET)
    step._fund(STEPS)

    def take(rows):
        step.gradient.hold([np.array(rows, dtype=float)])
        step.limits.ratio.rows.hold([np.array(rows, dtype=float)])

    return step, chains(step, take, rng)


FAR = [hamiltonian.FAR], [-hamiltonian.FAR]


@pytest.mark.slow
@pytest.mark.parametrize("method", [BarkerMetropolis, PenaltyMetropolis])
def test_bits_of_a_chain_tell_no_more_than_was_spent(method, bits):
    found = audited(bits(method), ([0], [1]))
    assert found.passed, found.report()


@pytest.mark.slow
def test_trajectories_of_a_chain_tell_no_more_than_was_spent(trajectories):
    found = audited(trajectories[1], FAR)
    assert found.passed, found.report()


@pytest.mark.slow
def test_ratios_without_noise_are_found(bits, monkeypatch):
    run = bits(PenaltyMetropolis)
    monkeypatch.setattr(NoisePrice, "noise", lambda price, reach: 0.0)
    assert not audited(run, ([0], [1])).passed


@pytest.mark.slow
def test_bits_that_are_charged_nothing_are_found(bits, monkeypatch):
    monkeypatch.setattr("pymc_dp.step_methods.metropolis.spending.Spending.affords", lambda spending, reach: True)
    assert not audited(bits(BarkerMetropolis), ([0], [1])).passed


@pytest.mark.slow
def test_rows_that_are_not_clipped_are_found(trajectories, monkeypatch):
    """Momenta that nobody sees hide what is a little too much, and rejections what is far too much."""
    step, run = trajectories
    right = step.gradient.of_rows
    monkeypatch.setattr(step.gradient, "of_rows", lambda values: 1000 * right(values))
    monkeypatch.setattr(step, "_accepts_ratio", lambda *_: True)
    assert not audited(run, FAR).passed
