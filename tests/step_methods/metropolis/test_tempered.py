"""Tempered Metropolis: certificates that hold on every data set, steps that keep within them, and honest words."""

import numpy as np
import pymc as pm
import pytest
import scipy.stats as st

from pymc_dp.accounting import ApproximateEvent
from pymc_dp.audit import contains_canary, differing, plant, privacy_loss
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import TemperedMetropolis, tempered
from pymc_dp.step_methods.metropolis.spending import Allowance, certified
from pymc_dp.step_methods.metropolis.tempered import BallProposal
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import WORST, bernoulli, chance, domain, held, normal, places, sample, take
from tests.step_methods.metropolis.test_barker import mcmc_agrees
from tests.step_methods.metropolis.test_privacy import neighbours

BUDGET = {"epsilon": 2.0, "delta": 0.01}


def begun(step, tune, draws, seed=1):
    with insecure_randomness(seed):
        step.setup_chain(np.random.default_rng(0), tune, draws)
    return step


def funded(name, rows, relation="replace", **options):
    return held(name, rows, relation, method=TemperedMetropolis, **{**BUDGET, **options})


# The target.


@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_detailed_balance_of_the_tempered_posterior(beta, rng):
    rows = [0.0, 1.0, -2.0, 4.0]
    model, step = funded("normal", rows, beta=beta)
    likelihood = model.compile_fn(model.observedlogp, mode="FAST_COMPILE")
    prior = model.compile_fn(model.varlogp, mode="FAST_COMPILE")
    spots = places(step, rng, 4, 0.3)
    points = [step.coefficients.point(spot.values, model.initial_point()) for spot in spots]
    logs = np.array([float(prior(point)) + beta * float(likelihood(point)) for point in points])
    step.spending.each, step.spending.delta = np.inf, 1 - 1e-16
    accept = np.array([[chance(step, one, other) for other in spots] for one in spots])
    flow = np.exp(logs - logs.max())[:, None] * accept
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9)
    assert (accept <= 1).all() and accept.min() < 0.9


@pytest.mark.slow
def test_a_chain_with_all_the_budget_there_is_samples_the_tempered_posterior(seed, monkeypatch):
    monkeypatch.setattr(Allowance, "covers", lambda self, step: True)
    values = np.linspace(-1, 2, 7)
    with pm.Model():
        pm.Normal("value", pm.Normal("mu"), np.float64(1.0), observed=values)
        step = TemperedMetropolis(**BUDGET, beta=0.5, domain=domain(bounds={"value": (-4.0, 4.0)}))
    begun(step, 0, 2000, seed)
    step.proposals[0].radius = 1.6
    point, draws = step.prior_model.initial_point(), []
    for _ in range(2000):
        point, _ = step.step(point)
        draws.append(float(point["mu"]))
    mcmc_agrees(np.array(draws), st.norm(0.5 * values.sum() / 4.5, 1 / np.sqrt(4.5)), 150)


def test_proposals_fill_a_ball_and_are_symmetric(rng):
    shape = np.array([[2.0, 0.0], [1.0, 0.5]])
    proposal = BallProposal(0.3, shape)
    noise = np.array([np.linalg.solve(shape, proposal.draw(np.zeros(2), rng)) for _ in range(4000)]) / 0.3
    lengths = np.linalg.norm(noise, axis=1)
    assert lengths.max() <= 1
    assert st.kstest(lengths**2, "uniform").pvalue > 0.001
    assert st.kstest(np.arctan2(*noise.T) / (2 * np.pi) + 0.5, "uniform").pvalue > 0.001


# The certificate.


def excess(name, relation, rng, sizes=(0, 1, 12)):
    """Largest shares of ε_t and of δ_t that bits show on any neighbours, and what no certificate covers."""
    model, step = funded(name, WORST[name][:1], relation)
    step.spending.each, step.spending.delta = np.inf, 1 - 1e-16
    spots = places(step, rng, 3, 0.02)
    pairs = [(here, there) for here in spots for there in spots if here is not there]
    shares, uncovered = np.zeros(2), []
    for n in sizes:
        step.rows = n + 1
        steps = [step._certificate(*pair) for pair in pairs]
        for one, other in neighbours(name, n, relation):
            accept = []
            for rows, _ in (one, other):
                take(step, model, rows)
                accept.append(np.array([chance(step, *pair) for pair in pairs]))
            for place, certificate in enumerate(steps):
                p, q = (float(found[place]) for found in accept)
                shares = np.maximum(
                    shares, [abs(np.log(p / q)) / certificate.epsilon, (1 - min(p, q)) / certificate.delta]
                )
                with np.errstate(divide="ignore"):
                    loss = privacy_loss(np.log([p, 1 - p]), np.log([q, 1 - q]))
                if loss.hockey_stick([certificate.epsilon])[0] > certificate.delta * (1 + 1e-9):
                    uncovered.append((n, place))
    return shares, uncovered


@pytest.mark.parametrize(("name", "relation"), [("bernoulli", "replace"), ("normal", "add_remove")])
def test_every_certificate_holds_on_every_data_set(name, relation, rng):
    shares, uncovered = excess(name, relation, rng)
    assert not uncovered
    assert (shares <= 1 + 1e-9).all() and shares.max() > 0.9


MUTANTS = {
    "rows forgotten": lambda given: {**given, "rows": 1},
    "prior forgotten": lambda given: {**given, "priors": (0.0, 0.0)},
    "half of the range": lambda given: {**given, "reach": given["reach"] / 2},
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_certificate_are_seen(name, monkeypatch, rng):
    monkeypatch.setattr(tempered, "certified", lambda **given: certified(**MUTANTS[name](given)))
    shares, _ = excess("bernoulli", "replace", rng)
    assert shares.max() > 1.5 if name != "prior forgotten" else shares.max() > 1.0


def test_more_rows_than_the_public_bound_do_not_break_a_certificate(rng):
    model, step = funded("bernoulli", [0, 1], "add_remove")
    step.rows, step.spending.each, step.spending.delta = 5, np.inf, 1 - 1e-16
    here, there = places(step, rng, 2, 0.05)
    take(step, model, [0] * 500)
    for pair in ((here, there), (there, here)):
        assert 1 - chance(step, *pair) <= step._certificate(*pair).delta


def test_a_certificate_is_the_same_there_and_back(rng):
    _, step = funded("normal", [0.0, 1.0])
    here, there = places(step, rng, 2, 0.1)
    one, other = step._certificate(here, there), step._certificate(there, here)
    assert (one.epsilon, one.fall) == pytest.approx((other.epsilon, other.fall), rel=1e-9)


def test_what_is_sampled_is_said_to_be_tempered():
    for beta, words in ((1.0, "not tempered"), (0.5, "its likelihood to the power 0.5")):
        _, step = funded("bernoulli", [0, 1], beta=beta)
        begun(step, 0, 5)
        target = dict(step.describe().facts)["target"]
        assert words in target and ("not tempered" in target) == (beta == 1)


def test_the_rounding_of_priors_is_within_the_certificate():
    same = certified(beta=1.0, reach=0.0, largest=0.0, rows=10, priors=(-5000.0, -5000.0))
    assert 5000 * 2e-16 < same.fall < 1e-9


# The chain.


@pytest.mark.parametrize("blocks", [None, "each"])
def test_steps_stay_within_their_shares(blocks):
    _, step = funded("normal", np.linspace(-1, 1, 20), chains=2, blocks=blocks)
    begun(step, 5, 95)
    moves = 200 * (2 if blocks else 1)
    assert step.event == ApproximateEvent(**BUDGET)
    assert step.spending.each * moves <= 2.0 * (1 + 1e-12) and step.spending.delta * moves <= 0.01 * (1 + 1e-12)
    point, visited, spent = step.prior_model.initial_point(), 0, 0.0
    for _ in range(100):
        before = step._place(point)
        point, [stats] = step.step(point)
        visited += not np.array_equal(before.values, step._here.values)
        assert spent <= stats[SPENT] <= 2.0 and stats["active"]
        spent = stats[SPENT]
    assert visited > 50 and spent > 0


def test_the_default_radius_is_the_largest_and_a_wider_one_is_refused():
    model = normal(np.linspace(-1, 1, 20))
    tree = sample(model, 30, tune=0, **BUDGET, step=TemperedMetropolis())
    radius = float(str(tree.dp.report()).split("ball of radius ")[1].split()[0])
    with pytest.raises(ArgumentError, match=r"no certificate at the initial point.*Give at most"):
        sample(model, 30, tune=0, **BUDGET, step=TemperedMetropolis(radius=3 * radius))
    sample(model, 30, tune=0, **BUDGET, step=TemperedMetropolis(radius=radius / 2))


def test_the_radius_falls_with_rows_and_steps():
    radii = []
    for n, draws in ((10, 100), (100, 100), (10, 1000)):
        _, step = funded("bernoulli", np.arange(n) % 2)
        begun(step, 0, draws)
        radii.append(step.radii[0])
    assert radii[0] / radii[1] == pytest.approx(10, rel=0.35) and radii[0] / radii[2] == pytest.approx(10, rel=0.35)


@pytest.mark.slow
def test_places_outside_of_the_support_are_refused_at_no_cost():
    with pm.Model():
        sigma = pm.HalfNormal("sigma", default_transform=None, initval=1e-5)
        pm.Normal("value", 0.0, 1.0 + sigma, observed=np.array([0.1, -0.4]))
        step = TemperedMetropolis(**BUDGET, domain=domain(bounds={"value": (-1, 1)}))
    begun(step, 0, 50)
    here = step.coefficients.start
    outside = step.coefficients.at(here.values - 1e-4)
    assert step._between(here, outside) == np.inf
    step.proposals[0].radius = 1e-4
    point = {"sigma": np.array(1e-5)}
    for _ in range(50):
        point, _ = step.step(point)
        assert point["sigma"] > 0


def test_seeded_runs_on_neighbours_and_canaries():
    def run(rows):
        with insecure_randomness(5):
            return sample(normal(rows), 40, tune=5, epsilon=2.0, delta=0.5, step=TemperedMetropolis())

    planted = plant(np.linspace(-1, 1, 9), rows=(2, 6), low=-4, high=4)
    tree = run(planted.values)
    assert not contains_canary(tree, planted.canaries)
    other = planted.values.copy()
    other[0] = 3.9
    found = [name for name in map(str, differing(tree, run(other))) if "dp_manifest" not in name]
    assert all("posterior" in name or SPENT in name for name in found), found
    words = str(tree.dp.report())
    assert all(word in words for word in ("TemperedMetropolis", "tiny", "BarkerMetropolis", "certified"))


# What it refuses.


def test_wrong_arguments_and_models_are_refused():
    with pytest.raises(ArgumentError, match="delta > 0"):
        sample(bernoulli([0, 1]), 5, epsilon=1.0, step=TemperedMetropolis())
    for wrong in ({"beta": 2.0}, {"beta": 0.0}, {"radius": -1.0}, {"blocks": []}):
        with pytest.raises(ArgumentError):
            TemperedMetropolis(**wrong)
    assert repr(TemperedMetropolis(radius=0.1)) == "TemperedMetropolis(radius=0.1)"
    with pytest.raises(UnsupportedModelError, match="no step that floats can distinguish from none"):
        sample(bernoulli(np.arange(5000) % 2), 5000, epsilon=1.0, delta=1e-9, step=TemperedMetropolis())
    with pm.Model() as model:
        pm.StudentT("t", nu=3, mu=pm.Normal("mu") * pm.Data("x", np.ones(2)), sigma=1.0, observed=np.array([0.1, 0.2]))
    with pytest.raises(UnsupportedModelError, match="bounds"):
        sample(model, 5, epsilon=1.0, delta=1e-6, step=TemperedMetropolis())
