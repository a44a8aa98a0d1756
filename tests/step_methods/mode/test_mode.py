"""A choice among candidates costs what it is charged and nearly all of that; wrong sharpness would be found out."""

import numpy as np
import pytest

from pymc_dp.accounting import BoundedRangeEvent
from pymc_dp.audit.quadrature import compare_with_event, privacy_loss
from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.mode import Draws, Points
from tests.step_methods.mode.models import (
    CASES,
    SHARES,
    bound,
    coin,
    domain,
    log_probabilities,
    planned,
)

RELATIONS = ("replace", "add_remove")
SIZES = {"replace": (1, 2, 40, 400), "add_remove": (0, 1, 40, 400)}
REACHED = {"coin": 0.99, "die": 0.97, "nodes": 0.97, "line": 0.7}
ALONE = 0.87  # of a die under replace: what is enforced on one face is more than half of what two differ by
"""Least share of the charge that some pair of tables uses up: the box about the lines holds more than the lines."""


def worst(name, relation, sharpness):
    case, worst = CASES[name], None
    for pair in case.pairs(relation, SIZES[relation]):
        loss = privacy_loss(*(log_probabilities(case, rows, sharpness) for rows in pair))
        worst = loss if worst is None or loss.epsilon > worst.epsilon else worst
    return worst


@pytest.mark.few(5)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 15.0])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_no_row_shows_more_than_is_charged_and_some_row_nearly_that(name, relation, epsilon):
    """theory.md 10: the whole curve of hockey-sticks, on tables of corners, against the accountant."""
    step, event = planned(name, relation)
    sharpness = step.sharpness * epsilon
    loss = worst(name, relation, sharpness)
    found = compare_with_event(loss, BoundedRangeEvent(eta=event.eta * epsilon))
    assert found.passed, found.report()
    if epsilon == 15.0:  # some candidate has nearly all of the weight of 400 rows
        assert loss.epsilon > (ALONE if (name, relation) == ("die", "replace") else REACHED[name]) * epsilon
        wrong = compare_with_event(worst(name, relation, 2 * sharpness), BoundedRangeEvent(eta=event.eta * epsilon))
        assert not wrong.passed


@pytest.mark.few(3)
@pytest.mark.parametrize("name", sorted(CASES))
def test_weights_are_those_written_out_once_more(name, rng):
    case = CASES[name]
    rows = [case.corners[place] for place in rng.integers(len(case.corners), size=30)]
    step, _ = bound(case.model(rows), Points(values=case.places), domain(bounds=case.bounds))
    weights = step.log_weights()
    expected = step.sharpness * case.joint(rows)
    np.testing.assert_allclose(weights - weights[0], expected - expected[0], rtol=1e-9, atol=1e-11)


def test_candidates_of_a_trace_add_its_loss():
    given = Draws(
        values={"p": SHARES, "q": SHARES}, epsilon=0.7, delta=1e-6, guarantee="asymptotic", neighbours="replace"
    )
    step, _ = bound(coin([0, 1]), given, domain(), 0.1)
    step.setup_chain(np.random.default_rng(0), 0, 1)
    record = step.record()
    assert (record.epsilon, record.delta, record.guarantee) == (0.8, 1e-6, "asymptotic")
    assert "paid for before" in dict(record.sampler.facts)["losses"]
    with pytest.raises(ArgumentError, match="losses under two relations do not add"):
        bound(coin([0, 1]), given, domain("add_remove"))
