"""A descent with momentum before the walk: what it books, what steers it, and what is said of what it releases."""

import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget, total_epsilon
from pymc_dp.accounting.gdp import mu_for
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.descent import TRUST, Descent, trusted
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of, layered
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.schedule import DESCENT, Limits, stages_of
from pymc_dp.plan.rehearsal import NARROW, labels
from pymc_dp.plan.result import Recorder
from pymc_dp.release.paid import forget_releases
from tests.gradients.models import bernoulli, groups, two

pytestmark = pytest.mark.usefixtures("paid")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

BUDGET = Budget(2.0, 1e-5)
LOCAL = dp.Gradients(steps=10, momentum_steps=20)
DOMAIN = dp.Domain(bounds={"x": (-1, 1)})


def net(x, y, units=2, spread=2.0):
    with pm.Model() as model:
        w, v = pm.Normal("w", 0, spread, shape=(x.shape[1], units)), pm.Normal("v", 0, spread, shape=units)
        pm.Bernoulli("y", logit_p=pt.tanh(pm.Data("x", x) @ w) @ v, observed=y)
    return model


def table(rng, n=400):
    x = rng.uniform(-1, 1, (n, 2))
    return x, (rng.random(n) < 1 / (1 + np.exp(-3 * np.tanh(2 * x[:, 0])))).astype(int)


@pytest.fixture(scope="module")
def planned():
    return Planned.of(LOCAL, interface_of(net(*table(np.random.default_rng(1))), DOMAIN), BUDGET)


@pytest.fixture(scope="module")
def released():
    forget_releases()
    ledger, model = dp.Ledger(10.0, 1e-5), net(*table(np.random.default_rng(1)))
    return dp.privatize(model, epsilon=2.0, delta=1e-5, domain=DOMAIN, statistics=LOCAL, ledger=ledger), ledger


def test_it_is_a_stage_without_a_curvature_and_all_stages_share_the_budget():
    first, *others = stages_of(60, 150)
    assert first.curvature == 0 and first.steps == (1 / 150,) * 150 and first.gradients == DESCENT
    assert sum(one.curvature + one.gradients for one in others) == pytest.approx(1 - DESCENT)
    assert [one.steps for one in others] == [one.steps for one in stages_of(60)]


@pytest.mark.slow
def test_every_step_is_booked_and_all_of_the_budget_is_spent(planned):
    """By the accountant of the events, and by hand: squares of sensitivity over deviation add up to μ²."""
    schedule = planned.schedule
    events, size = schedule.event.events, planned.interface.size
    assert len(events) == 20 + 10 + 4 and [one.coordinates for one in events[:21]] == 20 * [size] + [21]
    assert BUDGET.epsilon * (1 - 1e-3) < total_epsilon(schedule.event, BUDGET.delta).epsilon <= BUDGET.epsilon
    squares = sum(float(one.l2_squared) / one.scale**2 for one in events)
    assert np.sqrt(squares) == pytest.approx(mu_for(2.0, 1e-5), rel=1e-3)
    assert sum(float(one.rho) for one in events[:20]) == pytest.approx(DESCENT * sum(float(one.rho) for one in events))
    assert len(planned.spent) == 34 and planned.spent[-1] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.slow
def test_each_event_is_that_of_a_sum_that_was_released(planned, monkeypatch):
    """Scales of the noise that is drawn, in the order of the events; off its diagonal a curvature has less by √2."""
    drawn = []

    def noted(total, scale):
        drawn.append((scale, np.size(total)))
        return np.asarray(total, dtype=float)

    monkeypatch.setattr("pymc_dp.gradients.release.GAUSSIAN.add", noted)
    planned.walk(planned.read())
    expected = []
    for event in planned.schedule.event.events:
        size = planned.interface.size
        if event.coordinates == size:
            expected.append((event.scale, size))
        else:
            expected += [(event.scale * np.sqrt(2), size), (event.scale, size * (size - 1) // 2)]
    assert [size for _, size in drawn] == [size for _, size in expected]
    np.testing.assert_allclose([scale for scale, _ in drawn], [scale for scale, _ in expected], rtol=1e-12)


class Given:
    """Gradients that are released, whatever the rows: of a normal log-likelihood with several curvatures."""

    def __init__(self, bent, mode):
        self.bent, self.mode, self.seen = bent, mode, []

    def gradient(self, stage, step, at, limits):
        self.seen.append((stage, step, at.copy(), limits.clip_norm))
        return -self.bent * (at - self.mode)


def test_it_goes_where_released_gradients_lead_and_nothing_else_steers_it(planned):
    prior, n_rows = Prior(mean=np.zeros(3), precision=np.eye(3)), 1000
    limits = Limits(scale=np.ones(3), clip_norm=2.0, clip_curvature=UNLIMITED)
    descent = Descent(start=np.array([1.0, -2.0, 0.5]), rate=1 / 5, limits=limits, n_rows=n_rows)
    given = Given(n_rows * np.array([5.0, 1.0, 0.2]), np.array([0.3, 0.1, -0.4]))
    end = descent.end((1 / 300,) * 300, prior, given)
    bent = given.bent
    np.testing.assert_allclose(end, bent * given.mode / (bent + 1), atol=1e-6)
    assert [one[:2] for one in given.seen] == [(0, step) for step in range(300)]
    assert {one[3] for one in given.seen} == {2.0}
    again = Given(bent, given.mode)
    assert (descent.end((1 / 300,) * 300, prior, again) == end).all()
    first = Descent.of(planned.simulated, planned.prior, 400)
    other = Planned.of(LOCAL, interface_of(net(*table(np.random.default_rng(7))), DOMAIN), BUDGET)
    second = Descent.of(other.simulated, other.prior, 400)
    assert first.rate == second.rate and (first.start == second.start).all(), "values of rows do not matter"
    assert first.limits.clip_norm == second.limits.clip_norm and (first.start != 0).all()


@pytest.mark.slow
def test_a_narrow_prior_does_not_throw_it_off(rng):
    """With few rows the prior is the steepest there is."""
    interface = interface_of(net(*table(rng, 20), spread=0.01), DOMAIN)
    planned = Planned.of(LOCAL, interface, BUDGET)
    descent = Descent.of(planned.simulated, planned.prior, 20)
    calm = Given(np.zeros(interface.size), np.zeros(interface.size))
    end = descent.end((1 / 200,) * 200, planned.prior, calm)
    assert np.linalg.norm(end - planned.prior.mean) < np.linalg.norm(descent.start - planned.prior.mean)


def test_noise_does_not_drive_it_out_of_the_prior(rng):
    class Noise:
        def gradient(self, stage, step, at, limits):
            return rng.normal(size=3) * 1e6

    prior = Prior(mean=np.array([1.0, 0.0, -1.0]), precision=np.diag([1.0, 4.0, 100.0]))
    limits = Limits(scale=np.ones(3), clip_norm=2.0, clip_curvature=UNLIMITED)
    end = Descent(start=prior.mean, rate=1.0, limits=limits, n_rows=10).end((1 / 50,) * 50, prior, Noise())
    off = end - prior.mean
    assert np.isfinite(end).all() and off @ prior.precision @ off <= 9 * 3 * (1 + 1e-9)


@pytest.mark.slow
def test_what_is_released_is_labelled_local_and_stays_so(released, tmp_path):
    private, ledger = released
    assert len(ledger.history[0].event.events) == 34
    with private:
        drawn = pm.sample(10, tune=10, chains=1, cores=1, random_seed=3, progressbar=False, quiet=True)
        found = dp.scrub(drawn, private)
    texts = found.dp.approximations
    assert "local, not calibrated. This is one mode of several" in texts[1] and "20 steps" in texts[1]
    assert "χ²" in texts[2] and "once in a hundred" in texts[2]
    assert "local, not calibrated" in " ".join(str(found.dp.report()).replace("│", " ").split())
    release = dp.Release.load(dp.Release.of(private).save(tmp_path / "release.json"))
    table = release.record.tables[0]
    assert table.plan["momentum_steps"] == 20 and table.plan["chi_squared_limit"] > 1
    assert "local, not calibrated" in table.approximations[1]
    dummies = net(np.zeros((3, 2)), np.zeros(3, dtype=int))
    point = private.initial_point(0)
    assert dp.condition(dummies, release).compile_logp()(point) == pytest.approx(private.compile_logp()(point))


@pytest.mark.slow
def test_the_private_model_keeps_to_the_trust_region(planned):
    """Where rows say nothing, it is as wide as the prior times a normal a fifth as wide."""
    found = planned.dummy()
    nothing = np.eye(planned.interface.size)
    quadratic = planned.quadratic(type(found)(**{**vars(found), "curvature": 1e-9 * nothing, "noise": nothing}))
    mean, precision = planned.prior.mean, planned.prior.precision
    scale = planned.limits.scale
    _, covariance = quadratic.posterior(scale * mean, precision / np.outer(scale, scale))
    expected = np.linalg.inv((1 + TRUST) * precision) * np.outer(scale, scale)
    np.testing.assert_allclose(covariance, expected, rtol=1e-6, atol=1e-12)
    assert (trusted(planned.prior, mean).precision == TRUST * precision).all()


@pytest.mark.slow
def test_a_concave_log_likelihood_gets_the_answer_of_the_plain_walk(rng):
    """With next to no noise, and rows enough that the trust region does not matter."""
    design = rng.uniform(-1, 1, (20_000, 3))
    answers = (rng.random(20_000) < 1 / (1 + np.exp(-design @ [1.0, -0.5, 0.2]))).astype(int)
    interface = interface_of(*bernoulli(design, answers))
    posteriors = []
    for steps in (0, 100):
        planned = Planned.of(dp.Gradients(steps=30, momentum_steps=steps), interface, Budget(2000.0, 1e-5))
        with dp.testing.insecure_randomness(4):
            posteriors.append(planned.quadratic(planned.walk(planned.read())).posterior(np.zeros(4), np.eye(4)))
    (mean, covariance), (other, around) = posteriors
    widths = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(other, mean, atol=0.1 * widths.min())
    np.testing.assert_allclose(np.sqrt(np.diag(around)), widths, rtol=0.03)


@pytest.mark.slow
def test_nets_are_known_by_their_layers_and_explain_says_so(rng):
    model = net(*table(rng, 40))
    assert layered(interface_of(model, DOMAIN))
    assert not any(layered(interface_of(*build())) for build in (bernoulli, groups, two))
    text = " ".join(str(dp.explain(model, DOMAIN, delta=1e-5).full()).replace("│", " ").split())
    assert "dp.Gradients(momentum_steps=150)" in text and "local" in text
    assert "momentum" not in str(dp.explain(*bernoulli(), delta=1e-5).full())


def test_a_plan_gives_it_no_calibrated_label():
    one = Recorder(["a"], 0.9)
    for _ in range(3):
        one.add_normal({"a": np.zeros(1)}, {"a": np.ones(1)}, {"a": np.zeros(1)})
    plain, local, narrow = (one.outcome(name, 1.0, 1e-5) for name in ("not private", "net", f"net, {NARROW}"))
    for text in labels([plain, local, narrow], 0.9, ["net"]):
        assert "no calibrated label. The release is local" in text and "cover 100%" in text
    assert all("calibrated, as" in text for text in labels([plain, local, narrow], 0.9, []))


@pytest.mark.parametrize(("wrong", "says"), [(-1, "momentum_steps"), (5, "0, or at least 20"), (2.5, "momentum_steps")])
def test_numbers_of_steps_that_cannot_be_are_refused(wrong, says):
    with pytest.raises(ArgumentError, match=says):
        dp.Gradients(momentum_steps=wrong)
    shown = "steps=10, columns=None, conservative=False, momentum_steps=20, trust_model=False, robust=False"
    assert repr(LOCAL) == f"Gradients({shown})"
    assert LOCAL.local and not dp.Gradients().local


@pytest.mark.slow
def test_a_small_net_predicts_almost_as_well_as_the_one_that_made_the_rows():
    import _gradient_net

    (accuracy, loss), found = _gradient_net.fitted(11)
    assert accuracy >= 0.815 and loss < 0.45 and "local" in found.dp.approximations[1]
    assert accuracy <= _gradient_net.bayes()[0] + 0.01
