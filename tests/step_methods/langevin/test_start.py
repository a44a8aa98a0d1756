"""Chains that begin at posterior samples: what both cost together, where they begin, and what is refused."""

import copy
import pickle
from dataclasses import replace

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.accounting import Budget, ComposedEvent, SelfComposedEvent, total_epsilon
from pymc_dp.accounting.calibrate import noise_multiplier
from pymc_dp.accounting.events import BoundedRangeEvent, PureEvent, SubsampledGaussianEvent
from pymc_dp.audit import differing
from pymc_dp.errors import ArgumentError, BudgetExceeded, ReleaseError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.funding import Claims, Funding
from pymc_dp.step_methods.langevin import SGFS, SGHMC, SGLD, SGNHT, PolynomialDecay, walk
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.batches import algorithm_two
from pymc_dp.step_methods.langevin.gradients import row_gradients
from pymc_dp.step_methods.langevin.start import EDGE, HALF
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.converged import ConvergedPosterior
from pymc_dp.step_methods.ops.from_sums import TablePosterior
from pymc_dp.transforms.prior_model import prior_model
from tests.step_methods.conftest import bernoulli, domain

ANSWERS = np.arange(60) % 3 == 0
LOW, HIGH, BATCH, CLIP, STEPS = 0.05, 0.95, 20, 20.0, 10
BUDGET = {"epsilon": 1.0, "delta": 1e-5}
METHODS = [SGLD, SGHMC, SGNHT, SGFS]
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


@pytest.fixture(scope="module")
def gradients():
    """Graphs of `bernoulli`, made once."""
    found = inspect(bernoulli(ANSWERS), None).rows
    return row_gradients(found, prior_model(found))


@pytest.fixture(autouse=True)
def still(request, monkeypatch, gradients):
    """Chains stay where they are, so that states are starts; nothing is compiled."""
    monkeypatch.setattr(StochasticGradient, "_compile", lambda self: None)
    for method in (StochasticGradient, SGFS):
        monkeypatch.setattr(method, "_walk", lambda *_: None)
    monkeypatch.setattr(SGFS, "_precision", lambda self: np.eye(1))
    if "slow" not in request.keywords:
        monkeypatch.setattr(walk, "row_gradients", lambda *_: gradients)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def bound(method=SGLD, neighbours="replace", *, model=None, chains=2, steps=STEPS, budget=BUDGET, **settings):
    """A priced step and its event; nothing was compiled or read."""
    specification = method(batch_size=BATCH, **{"clip_norm": CLIP, "start": OPS(), **settings})
    specification.previewing = True
    found = specification.inspect(model or bernoulli(ANSWERS), domain(neighbours))
    return specification.bound(found, Budget(**budget), chains=chains, steps=steps)


@pytest.fixture(scope="module")
def priced(gradients):
    """One chain with its start, and what they cost."""
    with pytest.MonkeyPatch.context() as patch, pytensor.config.change_flags(mode="FAST_COMPILE"):
        patch.setattr(walk, "row_gradients", lambda *_: gradients)
        step, event = bound(SGNHT, chains=1)
    with opened_gate():
        step.load()
    return step, event


@pytest.fixture
def step(priced):
    """The same, of which no chain has begun."""
    new = copy.copy(priced[0])
    new._binding = replace(new.binding, claims=Claims(2))
    return new


def begun(step, tune=0, draws=STEPS):
    step.setup_chain(None, tune, draws)
    return step


def first(step, given=None):
    """Probability in the state after the first step."""
    point = step.prior_model.initial_point() if given is None else given
    (value,) = step.step(point)[0].values()
    return LOW + (HIGH - LOW) * special.expit(value)


# --- what both cost ---------------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("method", "neighbours", "sampling"),
    [
        (SGLD, "replace", "poisson"),
        (SGFS, "replace", "without_replacement"),
        (SGNHT, "add_remove", "poisson"),
        (SGFS, "replace", "poisson"),
    ],
)
def test_starts_and_steps_are_both_paid_for(method, neighbours, sampling):
    step, event = bound(method, neighbours, sampling=sampling)
    _, starts = OPS().bound(
        OPS().inspect(bernoulli(ANSWERS), domain(neighbours)), Budget(0.5, 0.5e-5), chains=2, steps=1
    )
    population = 1000 if neighbours == "add_remove" else len(ANSWERS)
    batches = {"sample_rate": BATCH / population}
    if sampling == "without_replacement":
        batches = {"population": population, "batch_size": BATCH}
    one = SubsampledGaussianEvent(noise_multiplier=step.multiplier, sampling=sampling, neighbours=neighbours, **batches)
    steps = SelfComposedEvent(event=one, count=2 * STEPS)
    assert isinstance(starts.event, BoundedRangeEvent) and starts.count == 2
    assert event.events[0] == starts
    total = total_epsilon(event, 1e-5).epsilon
    assert total == pytest.approx(total_epsilon(ComposedEvent(events=(starts, steps)), 1e-5).epsilon, rel=1e-6)
    assert 0.999 < total <= 1.0
    assert total_epsilon(steps, 1e-5).epsilon < 0.95, "a start that nobody charges would be found here"


def test_a_start_makes_the_chain_noisier_but_less_so_than_if_budgets_added(step):
    batches = {"sampling": "poisson", "sample_rate": BATCH / len(ANSWERS), "neighbours": "replace"}
    alone, rest = (noise_multiplier(share, share * 1e-5, STEPS, **batches) for share in (1.0, HALF))
    assert 1.05 * alone < step.multiplier < 0.95 * rest


def test_what_a_cool_start_leaves_of_its_share_goes_to_the_chain():
    generous = {"epsilon": 16.0, "delta": 1e-5}
    step, event = bound(budget=generous, chains=1, step_size=PolynomialDecay())
    assert step.start.step.temperature.inverse == 1
    assert total_epsilon(event.events[0], 1e-5).epsilon < 6
    assert 15.98 < total_epsilon(event, 1e-5).epsilon <= 16


def test_a_start_by_the_papers_rule_leaves_all_of_delta_to_the_chain():
    step, event = bound(start=OPS(papers=True), chains=1)
    assert event.events[0] == SelfComposedEvent(event=PureEvent(epsilon=0.5), count=1)
    assert 0.999 < total_epsilon(event, 1e-5).epsilon <= 1.0
    assert step.start.step.budget == Budget(0.5)


def test_the_papers_chain_gets_its_part_of_the_budget(step):
    step.settings = {**step.settings, "papers": True}
    event = step.price(Funding(budget=step.budget, chains=1, steps=100))
    assert step.course.sigma == algorithm_two(CLIP, 100, HALF, HALF * 1e-5)
    assert total_epsilon(event, 1e-5).epsilon < 1.0


def test_a_step_size_with_too_little_noise_is_told_what_it_costs_with_the_start(step):
    step.settings = {**step.settings, "step_size": 1.05 * step.step_size}
    with pytest.raises(ArgumentError, match=r"they would cost epsilon=1\.0"):
        step.price(step.funding)


def test_another_funding_changes_no_step_that_was_priced_before(priced):
    step, event = priced
    other = Funding(budget=Budget(2.0, 1e-5), chains=1, steps=5)
    kept = step.start.step.temperature
    repriced = copy.copy(step)
    assert total_epsilon(repriced.price(other), 1e-5).epsilon <= 2.0
    assert repriced.start.step.temperature.inverse > kept.inverse
    assert step.start.step.temperature is kept and step.price(step.funding) == event


def test_spending_begins_with_the_start_never_falls_and_ends_at_the_total(priced):
    step, event = priced
    places, losses = step.priced.curve
    assert (places[0], places[-1]) == (1, STEPS) and (np.diff(losses) >= 0).all()
    assert losses[0] > total_epsilon(event.events[0], 1e-5).epsilon > 0.4
    assert losses[-1] == total_epsilon(event, 1e-5).epsilon <= 1.0


# --- where chains begin -----------------------------------------------------------------------------------------------


def loaded(**settings):
    step, _ = bound(**settings)
    with opened_gate():
        step.load()
    return step


@pytest.mark.parametrize("method", METHODS)
def test_a_chain_begins_at_its_sample_whatever_point_is_given(method, monkeypatch):
    monkeypatch.setattr(OPS, "draw", lambda self, rng: {"p": np.array(0.42)})
    step = loaded(method=method, steps_per_draw=2, chains=3)
    (name,) = step.prior_model.initial_point()
    for given in (-1.5, 0.0, 3.0):
        begun(step, draws=STEPS // 2)
        assert first(step, {name: np.array(given)}) == pytest.approx(0.42)
        # Later steps begin where they are.
        assert first(step, {name: np.array(given)}) == pytest.approx(LOW + (HIGH - LOW) * special.expit(given))


def test_starts_have_the_law_of_posterior_samples(step, seed):
    rng, given = np.random.default_rng(seed), step.prior_model.initial_point()
    places = [next(iter(step.start.point(given, rng).values())) for _ in range(300)]
    beta = step.start.step.temperature.inverse
    assert 0.05 < beta < 0.5, "at 1 no temperature would be tested"
    law = stats.beta(1 + beta * ANSWERS.sum(), 1 + beta * (~ANSWERS).sum())
    inside = law.cdf(HIGH) - law.cdf(LOW)
    starts = LOW + (HIGH - LOW) * special.expit(places)
    assert stats.kstest(starts, lambda p: (law.cdf(p) - law.cdf(LOW)) / inside).pvalue > 0.001


def test_a_sample_on_the_edge_of_its_support_has_finite_coordinates(step, monkeypatch):
    for edge, place in ((LOW, -EDGE), (HIGH, EDGE)):
        monkeypatch.setattr(OPS, "draw", lambda self, rng, edge=edge: {"p": np.array(edge)})
        begun(step)
        assert list(step.step(step.prior_model.initial_point())[0].values()) == [place]


@pytest.mark.parametrize("cores", [1, 2])
def test_chains_of_a_funded_step_begin_at_samples_of_their_own(cores):
    with bernoulli(ANSWERS) as model:
        step = SGNHT(batch_size=BATCH, start=OPS(), chains=2, **BUDGET)
        tree = dp.scrub(pm.sample(3, tune=0, step=step, chains=2, cores=cores, **PLAIN), model)
        with pytest.raises(BudgetExceeded, match="all of them have begun"):
            pm.sample(3, tune=0, step=step, chains=1, **PLAIN)
    starts = tree["posterior"]["p"].values
    assert len(np.unique(starts)) == 2 and (starts == starts[:, :1]).all()
    spent = tree["sample_stats"][SPENT].values
    assert (spent[:, 0] == step.priced.curve[1][0]).all() and (np.diff(spent, axis=1) > 0).all()
    assert spent.max() == tree.dp.epsilon <= 1.0


def test_saved_states_go_on_as_they_did(step):
    begun(step)
    point = step.prior_model.initial_point()
    for _ in range(2):  # before the start, and after it
        saved = pickle.loads(pickle.dumps(step.sampling_state))
        expected = [step.step(point) for _ in range(2)]
        step.sampling_state = saved
        assert repr([step.step(point) for _ in range(2)]) == repr(expected)
    assert step.count == 4


def test_copies_of_a_begun_step_draw_starts_of_their_own(step):
    begun(step)
    again = pickle.loads(cloudpickle.dumps(step))
    assert again._generator is None and again.start.step._generator is None
    assert first(begun(again)) != first(step)


# --- what leaves ------------------------------------------------------------------------------------------------------


def test_nothing_is_read_before_the_charge(monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    for limit, error in ((0.5, BudgetExceeded), (1.0, ReleaseError)):
        ledger = dp.Ledger(epsilon=limit, delta=1e-5)
        with pytest.raises(error):
            step = SGLD(batch_size=BATCH, start=OPS())
            dp.sample(3, **BUDGET, step=step, model=bernoulli(ANSWERS), ledger=ledger, **QUIET)
    assert 0.9 < ledger.spent.epsilon <= 1.0


def test_with_the_same_randomness_only_draws_differ_and_the_report_says_how_chains_begin():
    trees = []
    for change in (False, True):
        with dp.testing.insecure_randomness(4):
            trees.append(
                dp.sample(
                    2,
                    **BUDGET,
                    step=SGHMC(batch_size=BATCH, start=OPS(), start_share=0.25),
                    model=bernoulli(ANSWERS[: 60 - change]),
                    domain=domain("add_remove"),
                    ledger=dp.Ledger(**BUDGET, neighbours="add_remove"),
                    **QUIET,
                )
            )
    assert {path for path in differing(*trees) if "manifest" not in path} == {"/posterior/p"}
    text = " ".join(str(trees[0].dp.report()).split())
    for part in ("one posterior sample per chain; share 0.25", "start, temperature", "by bounded range"):
        assert part in text


@pytest.mark.parametrize("method", METHODS)
def test_a_specification_shows_its_start(method):
    step = method(start=OPS(grid=100), start_share=0.3)
    assert repr(step) == f"{method.__name__}(start=OPS(grid=100), start_share=0.3)"
    assert repr(method(start=OPS())) == f"{method.__name__}(start=OPS())" and repr(method()) == f"{method.__name__}()"


def test_a_specification_can_be_looked_at_and_used_again():
    small = SGNHT(batch_size=BATCH, start=OPS())
    one, other = (small.preview(bernoulli(ANSWERS), None, Budget(**BUDGET), chains=2) for _ in range(2))
    assert one == other and one.fits and one.guarantee == "stepwise"
    assert one.bound.start is not other.bound.start and dict(one.facts)["start"].startswith("one posterior sample")
    assert one.call == "dp.sample(step=dp.SGNHT(batch_size=20, start=OPS()))"


# --- asymptotic -------------------------------------------------------------------------------------------------------


def unproved():
    """A product of parameters, not concave, and no grid has six axes."""
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        scale = pm.TruncatedNormal("scale", 0, 1, lower=0.5, upper=2)
        b = pm.Uniform("b", -1, 1, shape=4)
        group = pm.Data("g", rng.integers(0, 4, 60))
        pm.Bernoulli("y", logit_p=scale * b[group], observed=ANSWERS.astype(int))
    return model


def test_a_start_that_must_have_converged_makes_the_whole_asymptotic(step, monkeypatch):
    assert step.record().guarantee == step.claimed == "stepwise"
    monkeypatch.setattr(TablePosterior, "exact", False)
    assert step.record().guarantee == step.claimed == "asymptotic"


@pytest.mark.slow
def test_a_start_without_exact_draws_is_refused_or_asymptotic(monkeypatch):
    monkeypatch.setattr(ConvergedPosterior, "_judged", lambda self, inverse: 10)
    drawn = {"scale": np.array(0.75), "b": np.full(4, 0.5)}
    monkeypatch.setattr(ConvergedPosterior, "draw", lambda *_: drawn)
    step = SGLD(batch_size=BATCH, start=OPS(assume_converged=True))
    tree = dp.sample(2, **BUDGET, step=step, model=unproved(), **QUIET)
    assert tree.dp.guarantee == "asymptotic"
    assert "NOT exact" in " ".join(str(tree.dp.report()).split())
    assert tree["posterior"]["scale"].values == pytest.approx(0.75)
    with pytest.raises(UnsupportedModelError) as refused:
        bound(model=unproved())
    assert "start=OPS(), model: its posterior cannot be drawn exactly" in str(refused.value)
    assert "leave start out" in str(refused.value)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_parameter_without_bounds_is_a_problem_of_the_start():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ANSWERS.astype(int))
    preview = SGLD(batch_size=BATCH, start=OPS()).preview(model, None, Budget(**BUDGET))
    assert not preview.fits and preview.problem.startswith("start=OPS(), ")
    assert "dp.truncate(model, {'p': (0.01, 0.99)})" in preview.problem
    assert SGLD(batch_size=BATCH).preview(model, None, Budget(**BUDGET)).fits


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": {"p": 0.5}}, "is not accepted: a chain begins where PyMC says, or at one posterior sample"),
        ({"start": OPS}, "is not accepted"),
        ({"start": SGLD()}, "is not accepted"),
        ({"start": OPS(), "start_share": 0.0}, "strictly between 0 and 1, got 0"),
        ({"start": OPS(), "start_share": 1.0}, "strictly between 0 and 1, got 1"),
        ({"start": OPS(), "start_share": float("nan")}, "start_share must be finite"),
        ({"start": OPS(), "start_share": "half"}, "start_share must be a number"),
        ({"start_share": 0.4}, "means nothing without start"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_other_starts_are_refused(method, settings, message):
    with pytest.raises(ArgumentError, match=message):
        method(**settings)


def test_a_start_with_a_budget_of_its_own_is_refused():
    with bernoulli(ANSWERS), pytest.raises(ArgumentError, match="start_share of the budget of the chains"):
        SGLD(start=OPS(epsilon=0.5))


def test_no_start_is_free_of_delta():
    with pytest.raises(ArgumentError, match="no guarantee at delta=0"):
        bound(budget={"epsilon": 1.0, "delta": 0.0})
