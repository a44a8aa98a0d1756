"""Black-box audits of the real release: real inspection, real plan, OpenDP's noise; adversarial neighbouring tables."""

from dataclasses import replace

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import pure_epsilon, total_epsilon
from pymc_dp.audit import compare_with_event, product
from tests.audit import pipeline
from tests.audit.pipeline import INF, NAN
from tests.audit.test_quadrature import counts_loss

# (model, table, the row of it that changes becomes): rows at the bounds, beyond them, and of no category.
REPLACED = [
    (pipeline.bernoulli, [(0,), (0,)], (1,)),
    (pipeline.grouped_bernoulli, [(0, 0), (1, 1)], (2, 1)),
    (pipeline.categorical, [(0,), (0,), (2,)], (2,)),
    (pipeline.poisson, [(5,), (5,)], (2**31 - 1,)),
    (pipeline.normal, [(5.0,)], (INF,)),
    (pipeline.normal_mean, [(-INF,), (52.0,)], (100.0,)),
    (pipeline.normal_sd, [(20.0,), (NAN,)], (1e9,)),
    (pipeline.grouped_normal, [(0, 5.0), (1, 5.0)], (1, 100.0)),
    (pipeline.two_variables, [(0, 0), (1, 0)], (1, 1)),
]
REMOVED = [
    (pipeline.bernoulli, [(1,)]),
    (pipeline.categorical, [(7,), (1,)]),
    (pipeline.poisson, [(2**31 - 1,)]),
    (pipeline.normal, [(INF,), (5.0,)]),
    (pipeline.two_variables, [(1, 1)]),
]
CASES = [(kind, "replace", table, [row, *table[1:]]) for kind, table, row in REPLACED]
CASES += [(kind, "add_remove", table, table[1:]) for kind, table in REMOVED]
NAMES = [f"{kind.__name__}-{relation}" for kind, relation, _, _ in CASES]


@pytest.mark.few(8)
@pytest.mark.parametrize("delta", [0.0, 0.02], ids=["laplace", "gaussian"])  # a δ that some hundreds of runs can see
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_releases_pass(case, delta):
    kind, relation, table, neighbour = case
    line = kind(relation).with_gaussian_noise(delta) if delta else kind(relation)
    budget = {"epsilon": 1.0, "delta": delta, "runs": 2000, "confidence": 1 - 1e-6}
    found = dp.audit(line.mechanism, table, neighbour, **budget, vectorised=True, progressbar=False)
    assert found.passed, found.report()


@pytest.mark.parametrize(
    ("kind", "table", "row"),
    [
        (pipeline.bernoulli, [(0,)], (1,)),
        (pipeline.grouped_bernoulli, [(0, 0)], (2, 1)),
        (pipeline.categorical, [(0,)], (2,)),
    ],
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-3)])
def test_gaussian_noise_of_counts_has_exactly_the_delta_that_was_asked_for(kind, table, row, epsilon, delta):
    """Hockey-stick divergence of the two releases, outcome by outcome: never above δ, and hardly below it."""
    line = replace(kind("replace"), epsilon=epsilon).with_gaussian_noise(delta)
    line.hold(table)
    plan = line.plan()
    sums_of = line.block_sums(plan, 0)
    moved = (sums_of([row]) - sums_of(table)).ravel()
    (block,) = plan.tables[0].blocks
    reach = np.arange(-np.ceil(8 * block.scale), np.ceil(8 * block.scale) + 1)
    log_mass = np.zeros(())
    log_moved = np.zeros(())
    for shift in moved[moved != 0]:
        here, there = (-0.5 * (at / block.scale) ** 2 for at in (reach, reach - shift))
        total = np.log(np.exp(here).sum())
        log_mass, log_moved = np.add.outer(log_mass, here - total), np.add.outer(log_moved, there - total)
    divergence = np.maximum(np.exp(log_mass) - np.exp(epsilon + log_moved), 0).sum()
    assert 0.99 * delta < divergence <= delta
    assert total_epsilon(plan.event, delta).epsilon <= epsilon


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_event_covers_the_exact_loss_of_the_release(case):
    """The exact loss between these two tables, from their integer sums and the noise of each block."""
    kind, relation, table, neighbour = case
    line = kind(relation)
    line.hold(table)
    plan = line.plan()
    moved, scales = [], []
    for place, block in enumerate(block for item in plan.tables for block in item.blocks):
        sums_of = line.block_sums(plan, place)
        shifts = np.abs(sums_of(table) - sums_of(neighbour)).ravel()
        moved += shifts[shifts > 0].tolist()
        scales += [block.scale] * int((shifts > 0).sum())
    pure = sum(shift / scale for shift, scale in zip(moved, scales, strict=True))
    assert 0.2 < pure <= pure_epsilon(plan.event) <= plan.epsilon
    if max(moved) < 1000:  # the hockey-sticks of counts; sums on a grid have too many outcomes
        loss = product(*[counts_loss(scale, shift) for shift, scale in zip(moved, scales, strict=True)])
        comparison = compare_with_event(loss, plan.event)
        assert comparison.measured_epsilon == pytest.approx(pure)
        assert comparison.passed, comparison.report()
