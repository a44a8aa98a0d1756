"""The penalty method: the right target whatever the noise, bits that tell no more than is claimed, nothing besides."""

import numpy as np
import pytest
import scipy.stats as st

from pymc_dp.accounting import PenaltyBitEvent, SelfComposedEvent, rdp, total_delta
from pymc_dp.accounting.events import penalty_bit
from pymc_dp.audit import compare_with_event, privacy_loss
from pymc_dp.step_methods.metropolis import PenaltyMetropolis
from pymc_dp.step_methods.metropolis.penalty import MOST_NOISE
from tests.step_methods.metropolis.models import WORST, chance, held, places, take
from tests.step_methods.metropolis.test_privacy import neighbours

ORDERS = np.array([1.1, 2.0, 8.0, 64.0])


# The target.


@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_detailed_balance_over_the_noise(name, rng):
    rows = [value for value in np.resize(WORST[name], 12) if value in range(-4, 5)]
    model, step = held(name, rows, method=PenaltyMetropolis, epsilon=300.0)
    logp = model.compile_logp(mode="FAST_COMPILE")
    here, there = places(step, rng, 2, 0.2)
    target = [float(logp(step.coefficients.point(spot.values, model.initial_point()))) for spot in (here, there)]
    step.spending.ratio = step._between(here, there) / 1.3
    noises, width = np.linspace(-9, 9, 2401, retstep=True)
    flow = []
    for (one, other), density in zip(((here, there), (there, here)), target, strict=True):
        odds = step._odds(one, other)
        step._odds = lambda *_, odds=odds: odds
        accept = np.array([chance(step, one, other, noise) for noise in noises])
        del step._odds
        mean = float((st.norm.pdf(noises) * accept).sum() * width)
        assert mean == pytest.approx(np.exp(penalty_bit.log_accept(np.array([odds / 1.3]), 1.3)[0][0]), rel=1e-5)
        flow.append(np.exp(density - max(target)) * mean)
    assert flow[0] == pytest.approx(flow[1], rel=1e-5)


# What a bit tells.


def told(name, relation, rng, sizes=(0, 3, 30)):
    """Largest Rényi divergence of bits of neighbours over the claim, and failures of the whole curve."""
    model, step = held(name, WORST[name][:1], relation, method=PenaltyMetropolis)
    spots = places(step, rng, 4, 0.5)
    pairs = [(here, there) for here in spots for there in spots if here is not there]
    reaches = np.array([step._between(*pair) for pair in pairs])
    step.spending.ratio = float(reaches.max()) / MOST_NOISE
    event = PenaltyBitEvent(ratio=step.spending.ratio, most_noise=MOST_NOISE)
    claimed = np.array([rdp.leaf_divergence(event, order) for order in ORDERS])
    noises = np.array([step.spending.noise(reach) for reach in reaches])
    share, failures = 0.0, []
    for n in sizes:
        for one, other in neighbours(name, n, relation):
            odds = []
            for rows, _ in (one, other):
                take(step, model, rows)
                odds.append(np.array([step._odds(*pair) for pair in pairs]))
            # the prior may be any; a part of it stands for what other rows say
            for shift in (0.0, *(noises[0] * np.linspace(-1, 3, 9) - odds[0][0])):
                bits = [np.stack(accept_at(at + shift, noises)) for at in odds]
                for place in range(len(pairs)):
                    loss = privacy_loss(bits[0][:, place], bits[1][:, place])
                    share = max(share, float((loss.renyi(ORDERS) / claimed).max()))
                    if place == 0 and shift == 0.0:
                        found = compare_with_event(loss, event, slack=1e-9)
                        failures += [] if found.passed else [found.report()]
    return share, failures


def accept_at(odds, noises):
    found = [penalty_bit.log_accept(np.array([at / s]), s) for at, s in zip(odds, noises, strict=True)]
    return np.array([one[0] for one, _ in found]), np.array([other[0] for _, other in found])


@pytest.mark.parametrize(("name", "relation"), [("bernoulli", "replace"), ("poisson", "add_remove")])
def test_no_bit_tells_more_than_is_claimed(name, relation, rng):
    share, failures = told(name, relation, rng, (0, 3))
    assert not failures
    assert 0.9 < share <= 1 + 1e-9


def test_a_chain_of_worst_bits_is_within_the_total():
    """Every bit at the place and the noise where it tells most: binomial counts, exactly."""
    ratio, count = 0.05, 200
    event = SelfComposedEvent(event=PenaltyBitEvent(ratio=ratio, most_noise=MOST_NOISE), count=count)
    worst = np.zeros(3)
    for place in np.linspace(0, 4, 9):
        (p, q), (p_not, q_not) = np.array(penalty_bit.log_accept(np.array([place, place + ratio]), MOST_NOISE))
        k = np.arange(count + 1)
        logs = [st.binom.logpmf(k, count, np.exp(one)) for one in (p, q)]
        assert np.exp(p) + np.exp(p_not) == pytest.approx(1) and q_not < p_not
        worst = np.maximum(worst, privacy_loss(*logs).hockey_stick([0.5, 1.0, 2.0]))
    claimed = np.array([total_delta(event, epsilon) for epsilon in (0.5, 1.0, 2.0)])
    assert (worst <= claimed).all() and worst[0] > 0.3 * claimed[0]
