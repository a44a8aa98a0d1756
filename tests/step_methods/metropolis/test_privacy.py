"""No accept bit tells more than its range says: quadrature over data sets and relations; mistakes that must show."""

import numpy as np
import pytest

from pymc_dp.accounting import BoundedRangeEvent
from pymc_dp.audit import compare_with_event, privacy_loss
from tests.step_methods.metropolis.models import GROUPS, MODELS, WORST, held, places, take

SIZES = (0, 1, 30)


def bits(odds):
    """Log probabilities of the two values of the accept bit, along the first axis."""
    return np.array([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)])


def neighbours(name, n, relation):
    """Pairs (rows, groups) that differ in one row; the others are all at one extreme, or mixed."""
    worst = WORST[name]
    for others in ([worst[0]] * n, [worst[1]] * n, list(np.resize(worst, n))):
        ends = [(value, group) for value in worst for group in ((0, 1) if name == "grouped" else (0,))]
        tables = [([*others, value], [*np.resize(GROUPS, n), group]) for value, group in ends]
        if relation == "add_remove":
            yield from (((others, list(np.resize(GROUPS, n))), table) for table in tables)
        else:
            yield from ((tables[i], tables[j]) for i in range(len(tables)) for j in range(i))


def audited(name, relation, rng, sizes=SIZES, count=5, width=0.7, shift=0.0):
    """Largest share of the claimed range by which log odds move between any two data sets, and all claims that fail."""
    model, step = held(name, WORST[name][:1], relation)
    spots = places(step, rng, count, width, shift)
    pairs = [(here, there) for here in spots for there in spots if here is not there]
    claimed = np.array([step._between(here, there) for here, there in pairs])

    def odds(rows, groups):
        take(step, model, rows, groups if name == "grouped" else None)
        return np.array([step._odds(here, there) for here, there in pairs])

    share, failures = 0.0, []
    for n in sizes:
        worst = np.zeros(len(pairs)), np.zeros((2, len(pairs), 2))
        for one, other in neighbours(name, n, relation):
            p, q = odds(*one), odds(*other)
            share = max(share, (np.abs(p - q) / claimed).max())
            loss = np.abs(bits(p) - bits(q)).max(axis=0)
            failures += [f"{name}: {a} > {b}" for a, b in zip(loss, claimed, strict=True) if a > b * (1 + 1e-9)]
            seen = loss > worst[0]
            worst[0][seen] = loss[seen]
            worst[1][:, seen] = np.stack([bits(p).T, bits(q).T])[:, seen]
        for place in np.flatnonzero((worst[0] > 0) & (worst[0] < 30))[:6]:
            event = BoundedRangeEvent(eta=float(claimed[place]))
            found = compare_with_event(privacy_loss(*worst[1][:, place]), event, slack=1e-9)
            failures += [] if found.passed else [found.report()]
    return share, failures


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_true_loss_of_every_bit_is_within_the_claim(name, relation, rng):
    share, failures = audited(name, relation, rng)
    assert not failures
    assert share <= 1 + 1e-9, "the log odds move by more than the range"
    assert share > 0.99, "the range is not what a row can do"


def test_public_columns_bound_what_a_row_can_do(rng):
    """The row keeps its group: pairs of rows in one group show what is claimed, and less is claimed than without."""
    model, step = held("grouped", [0] * 6, public=("group",))
    _, private = held("grouped", [0] * 6)
    spots = places(step, rng)
    shares = []
    for here in spots:
        for there in spots:
            if here is there:
                continue
            reach = step._between(here, there)
            assert reach <= private._between(here, there)
            for row in range(6):
                odds = []
                for value in (0, 1):
                    take(step, model, np.where(np.arange(6) == row, value, 1))
                    odds.append(step._odds(here, there))
                shares.append(abs(odds[0] - odds[1]) / reach)
    assert 0.99 < max(shares) <= 1 + 1e-9


@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_a_step_of_small_range_is_zero_concentrated_as_claimed(name, rng):
    """Rényi divergences of the bit are at most a R²/8 at every order: a quarter of what a pure loss R would give."""
    model, step = held(name, WORST[name][:1])
    here, there = places(step, rng, 2, 0.05)
    reach = step._between(here, there)
    orders = np.array([1.01, 1.5, 2.0, 10.0, 100.0])
    worst = np.zeros(len(orders))
    for n in SIZES:
        for (one, _), (other, _) in neighbours(name, n, "replace"):
            found = []
            for rows in (one, other):
                take(step, model, rows)
                found.append(bits(step._odds(here, there)))
            worst = np.maximum(worst, privacy_loss(*found).renyi(orders) / (orders * reach**2 / 8))
    assert (worst <= 1 + 1e-6).all()
    assert worst[0] > 0.9
