"""What every accountant must obey, for every event, and that none of them is below the truth."""

import itertools
import math

import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    ComposedEvent,
    basic,
    deltas,
    gdp,
    pld,
    pure,
    rdp,
    sum_of_parts,
    total_delta,
    total_epsilon,
    zcdp,
)
from tests.accounting import oracle
from tests.accounting.oracle import EVENTS, UnknownEvent, laplace, times

MODULES = {part.__name__.rpartition(".")[2]: part for part in (pure, zcdp, gdp, rdp, pld, basic, sum_of_parts)}
DELTAS = (1e-200, 1e-12, 1e-6, 1e-3, 0.999999)
EPSILONS = (0.0, 1e-9, 0.3, 5.0, 500.0)


def total_or_inf(event, delta):
    """A total, infinite where there is none: what fails with a probability of its own has none at smaller deltas."""
    try:
        return total_epsilon(event, delta).epsilon
    except dp.errors.ArgumentError as error:
        if "No finite epsilon" in str(error):
            return math.inf
        raise


ACCOUNTANTS = {name: (part.epsilon_at, getattr(deltas, name)) for name, part in MODULES.items()}
ACCOUNTANTS["total"] = (total_or_inf, lambda event, at: total_delta(event, at) if at > 0 else deltas.pld(event, at))
WITHIN = {"pld": 0.01, "total": 0.01}
every_accountant = pytest.mark.parametrize("name", ACCOUNTANTS)


def falls(values):
    return all(one >= other for one, other in itertools.pairwise(values))


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@every_accountant
def test_answers_are_bounds_that_fall_agree_and_grow_with_uses(name, event):
    epsilon_at, delta_at = ACCOUNTANTS[name]
    loop = ComposedEvent(events=(event,) * 12)
    for composed in (times(times(event, 3), 4), ComposedEvent(events=(times(event, 11), event))):
        assert [epsilon_at(composed, d) for d in DELTAS] == [epsilon_at(loop, d) for d in DELTAS]
        assert [delta_at(composed, e) for e in EPSILONS] == [delta_at(loop, e) for e in EPSILONS]
    for count in (1, 30, 1000):
        composed = times(event, count)
        epsilons, deltas = [epsilon_at(composed, d) for d in DELTAS], [delta_at(composed, e) for e in EPSILONS]
        assert falls(epsilons) and min(epsilons) >= 0
        assert falls(deltas) and min(deltas) >= 0 and max(deltas) <= 1
        assert epsilons[2] == math.inf or delta_at(composed, epsilons[2]) <= 1e-6 * (1 + 1e-9)
    # the grid of the losses may differ, hence the last digits
    growing = [epsilon_at(times(event, count), 1e-6) for count in (1, 2, 5, 20, 200)]
    assert all(more >= less * (1 - 1e-6) for less, more in itertools.pairwise(growing))


@pytest.mark.parametrize("scale, shift, count", [(4.0, 1, 1), (20.0, 1, 50), (9.7, 3, 12), (60.0, 10, 100)])
@every_accountant
def test_covers_discrete_laplace_noise(name, scale, shift, count):
    oracle.assert_upper_bound(
        ACCOUNTANTS[name][1],
        times(laplace(scale, shift), count),
        lambda epsilon: oracle.by_convolution(scale, shift, count, epsilon),
        [x * shift * count / scale for x in (0.0, 0.03, 0.1, 0.3, 0.6, 0.9, 1.0)],
        within=WITHIN.get(name, math.inf),
    )


@pytest.mark.parametrize("shifts", [(3, 1), (2, 2, 1)], ids=repr)
@pytest.mark.parametrize("sign", [1, -1])
@every_accountant
def test_covers_vectors_in_every_direction(name, shifts, sign):
    signed = [(1.7, shift * sign**place) for place, shift in enumerate(shifts)]
    oracle.assert_upper_bound(
        ACCOUNTANTS[name][1],
        laplace(1.7, *shifts),
        lambda epsilon: oracle.by_definition(signed, epsilon),
        [0.0, 0.2, 0.5, 1.0, 1.4],
        within=WITHIN.get(name, math.inf),
    )


@every_accountant
def test_an_unknown_event_is_refused(name):
    for event in (UnknownEvent(), times(UnknownEvent(), 2)):
        for ask, at in zip(ACCOUNTANTS[name], (1e-6, 1.0), strict=True):
            with pytest.raises(dp.errors.ArgumentError, match="UnknownEvent"):
                ask(event, at)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_the_least_of_all_accountants_wins(event):
    for count in (1, 100):
        composed = times(event, count)
        answers = {name: part.epsilon_at(composed, 1e-6) for name, part in MODULES.items()}
        best = total_epsilon(composed, 1e-6)
        named = {"sum": "sum_of_parts"}.get(best.accountant, best.accountant)
        assert best.epsilon == min(answers.values()) == answers[named]
