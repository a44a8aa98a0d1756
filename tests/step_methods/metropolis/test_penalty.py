"""The penalty method: the right target whatever the noise, bits that tell no more than is claimed, nothing besides."""

import numpy as np
import pymc as pm
import pytest
import scipy.stats as st
from pymc.step_methods.state import equal_dataclass_values

import pymc_dp as dp
from pymc_dp.accounting import PenaltyBitEvent, SelfComposedEvent, rdp, total_delta, total_epsilon
from pymc_dp.accounting.events import penalty_bit
from pymc_dp.audit import compare_with_event, contains_canary, differing, plant, privacy_loss
from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import PenaltyMetropolis
from pymc_dp.step_methods.metropolis.penalty import MOST_NOISE, NoisePrice
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import WORST, bernoulli, chance, held, normal, places, sample, take
from tests.step_methods.metropolis.test_barker import mcmc_agrees
from tests.step_methods.metropolis.test_privacy import neighbours

ORDERS = np.array([1.1, 2.0, 8.0, 64.0])
ANSWERS = np.arange(60) % 3 == 0


def begun(step, tune, draws, seed=1):
    with insecure_randomness(seed):
        step.setup_chain(np.random.default_rng(0), tune, draws)
    return step


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


@pytest.mark.slow
def test_a_target_is_sampled_right_under_much_noise(seed):
    values = np.linspace(-1, 2, 7)
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("value", mu, np.float64(1.0), observed=values)
    step = PenaltyMetropolis()
    with insecure_randomness(seed):
        tree = sample(model, 4000, tune=300, epsilon=2500.0, delta=1e-6, step=step)
    draws = tree["posterior"]["mu"].values[0]
    assert 0.1 < (np.diff(draws) == 0).mean() < 0.9
    mcmc_agrees(draws, st.norm(values.sum() / 8, 1 / np.sqrt(8)), 100)


# The price.


@pytest.mark.parametrize("blocks", [None, "each"])
def test_all_bits_of_all_chains_are_paid_for_in_advance(blocks):
    _, step = held("normal", [0.0, 1.0], method=PenaltyMetropolis, epsilon=2.0, chains=2, blocks=blocks)
    begun(step, 10, 30)
    bits = 2 * 40 * (2 if blocks else 1)
    whole = SelfComposedEvent(event=PenaltyBitEvent(ratio=step.spending.ratio, most_noise=MOST_NOISE), count=bits)
    assert 1.9 < total_epsilon(whole, 1e-6).epsilon <= 2.0
    assert total_epsilon(step.event, 1e-6).epsilon == total_epsilon(whole, 1e-6).epsilon
    point = step.prior_model.initial_point()
    for _ in range(40):
        point, [stats] = step.step(point)
        assert stats["active"] and stats[SPENT] <= 2.0
    assert step.spending.made <= step.spending.paid == bits // 2
    step.spending.made = step.spending.paid
    assert not step.spending.affords(0.0)


def test_the_noise_is_in_proportion_to_the_range_and_capped(rng):
    _, step = held("bernoulli", [0, 1, 1], method=PenaltyMetropolis, epsilon=1.0, scale=3.0)
    begun(step, 0, 60)
    here, there = places(step, rng, 2, 0.01)
    reach = step._between(here, there)
    assert step.spending.noise(reach) * step.spending.ratio == pytest.approx(reach)
    assert step._between(there, here) == reach
    point = step.prior_model.initial_point()
    for _ in range(60):  # nearly all of such wide steps would need s > 3
        before = step.spending.made
        new, _ = step.step(point)
        assert new is point or step.spending.made == before + 1
        point = new
    assert step.spending.made < 10


def test_places_whose_noise_no_float_holds_are_refused():
    _, step = held("normal", [0.0, 1.0], method=PenaltyMetropolis, epsilon=2.0, scale=400.0)
    begun(step, 0, 60)
    assert step.spending.loss(1e200) == np.inf
    point = step.prior_model.initial_point()
    for _ in range(60):
        point, _ = step.step(point)


def test_proposals_are_tuned_within_the_noise_allowed(seed):
    _, step = held("bernoulli", ANSWERS.astype(int), method=PenaltyMetropolis, epsilon=3.0)
    begun(step, 400, 400, seed)
    point, noises, moved = step.prior_model.initial_point(), [], 0
    for count in range(800):
        here = step._here
        new, _ = step.step(point)
        moved += new is not point and count >= 400
        point = new
        if here is not None and step._here is not here:
            noises.append(step.spending.noise(step._between(here, step._here)))
    assert max(noises) <= MOST_NOISE and 0.5 < np.mean(noises[-50:]) < 2.0
    assert 0.25 < moved / 400 < 0.8


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


def test_mutant_half_of_the_noise(monkeypatch, rng):
    right = NoisePrice.noise
    monkeypatch.setattr(NoisePrice, "noise", lambda *a: 0.5 * right(*a))
    assert told("bernoulli", "replace", rng, (0, 3))[0] > 1.5


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


# What is seen.


def test_the_noised_ratio_is_kept_nowhere(monkeypatch):
    _, step = held("normal", [0.3, -1.0, 2.0], method=PenaltyMetropolis, epsilon=50.0)
    begun(step, 20, 20)
    private, right = set(), PenaltyMetropolis._odds

    def odds(self, here, there):
        found = right(self, here, there)
        private.add(found)
        return found

    monkeypatch.setattr(PenaltyMetropolis, "_odds", odds)
    generator, noises = step.generator, []

    class Noting:
        def __getattr__(self, name):
            return getattr(generator, name)

        def standard_normal(self, *size):
            found = generator.standard_normal(*size)
            noises.append(found) if not size else None
            return found

    step.generator = Noting()
    point, shown = step.prior_model.initial_point(), []
    for _ in range(40):
        point, stats = step.step(point)
        shown += [*stats[0].values(), *(float(v) for v in map(np.ravel, point.values()) for v in v)]
    step.generator = generator
    kept = set(map(float, shown)) | numbers(vars(step)) | numbers(step.walk)
    assert len(private) > 10 and len(noises) >= len(private)
    assert not kept & private and not kept & set(noises)


def numbers(part, depth=0):
    """All floats within nested containers and plain objects of the package."""
    if isinstance(part, float):
        return {float(part)}
    if isinstance(part, np.ndarray) and part.dtype == float:
        return set(part.ravel().tolist())
    if isinstance(part, dict):
        parts = part.values()
    elif isinstance(part, list | tuple):
        parts = part
    elif type(part).__module__.startswith("pymc_dp") and hasattr(part, "__dict__"):
        parts = vars(part).values()
    else:
        return set()
    return set().union(*(numbers(one, depth + 1) for one in parts)) if depth < 6 else set()


def test_seeded_runs_on_neighbours_differ_in_states_alone():
    def run(rows):
        with insecure_randomness(5):
            return sample(bernoulli(rows), 150, tune=20, epsilon=20.0, delta=1e-6, step=PenaltyMetropolis())

    rows = np.array([0] * 30 + [1] * 30)
    other = rows.copy()
    other[:25] = 1
    found = [name for name in map(str, differing(run(rows), run(other))) if "dp_manifest" not in name]
    assert found and all("posterior" in name for name in found), found


def test_trace_and_report_hold_nothing_of_the_rows():
    planted = plant(np.linspace(-1, 1, 9), rows=(2, 6), low=-4, high=4)
    tree = sample(normal(planted.values), 20, tune=5, epsilon=9.0, delta=1e-6, step=PenaltyMetropolis())
    assert not contains_canary(tree, planted.canaries)
    assert tree["posterior"].sizes["draw"] == 20 and tree["sample_stats"][SPENT].values[0, -1] <= 9.0
    report = str(tree.dp.report())
    assert all(word in report for word in ("PenaltyMetropolis", "penalty method", "s > 3", "not tempered"))
    assert tree.dp.guarantee == "stepwise" and 8.99 < tree.dp.epsilon <= 9.0


def test_state_is_saved_and_restored():
    _, step = held("grouped", [0, 1, 1, 0], method=PenaltyMetropolis, epsilon=30.0, blocks=[["mu", "tau"], ["z"]])
    begun(step, 60, 60)
    point = step.prior_model.initial_point()
    for _ in range(40):
        point, _ = step.step(point)
    saved = step.sampling_state
    ends = []
    for _ in range(2):
        step.sampling_state = saved
        assert equal_dataclass_values(step.sampling_state, saved)
        at = point
        for _ in range(40):
            at, _ = step.step(at)
        ends.append((at, step.sampling_state))
    assert equal_dataclass_values(ends[0][1], ends[1][1])
    for name in point:
        np.testing.assert_array_equal(ends[0][0][name], ends[1][0][name])


def test_no_delta_is_refused_with_a_remedy():
    with pytest.raises(ArgumentError, match=r"delta=0.*delta > 0.*dp.BarkerMetropolis"):
        sample(bernoulli([0, 1]), 5, epsilon=1.0, step=PenaltyMetropolis())
    assert repr(dp.PenaltyMetropolis(blocks=[["a"]])) == "PenaltyMetropolis(blocks=(('a',),))"
