"""A bought clip norm: what a row may change, what it costs, that all else follows it, and what is told of it."""

import math
import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from scipy.special import log_softmax

import pymc_dp as dp
from pymc_dp.accounting import BoundedRangeEvent, Budget, ComposedEvent, total_epsilon
from pymc_dp.audit import differing
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import SGLD, EstimatedNorm, PolynomialDecay
from pymc_dp.step_methods.langevin.base import StochasticGradient

from .conftest import BATCH, BUDGET, N_ROWS, funded, logistic, relation, start, table

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
BOUGHT = EstimatedNorm(share=0.5, quantile=0.6, low=0.05, high=50.0)
SMALL = {"low": 0.5, "high": 2.0}


@pytest.fixture
def _no_curve(monkeypatch):
    """What every number of steps costs alone is not looked at."""
    monkeypatch.setattr(cost, "some_of", lambda steps: [])


def log_odds(estimate, norms, neighbours):
    """Exact log-probabilities of the candidates at ε = 1."""
    return log_softmax(estimate.weight(Budget(1.0, 1e-6), neighbours) * estimate.scores(np.asarray(norms, dtype=float)))


def worst(estimate, tables, neighbours):
    """Greatest loss between neighbours, and greatest range of what they do to the log-weights."""
    losses, ranges = [0.0], [0.0]
    for one, other in tables:
        change = log_odds(estimate, one, neighbours) - log_odds(estimate, other, neighbours)
        losses.append(np.abs(change).max())
        ranges.append(np.ptp(change))
    return max(losses), max(ranges)


def neighbours_of(rng, neighbours, n_rows, hard):
    """Tables whose rows lie below, at and above candidates, and one row that is anything."""
    values = np.array([*(hard.candidates[::3]), 0.0, 0.7, 1e300, np.inf, np.nan])
    for _ in range(600):
        rows = rng.choice(rng.choice(values, size=rng.integers(1, 4)), size=n_rows)
        if neighbours == "replace":
            other = rows.copy()
            other[0] = rng.choice(values)
        else:
            other = rows[1:]
        yield rows, other


@pytest.mark.few(12)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("n_rows", [1, 2, 9])
def test_no_row_moves_the_odds_by_more_than_what_is_paid(neighbours, quantile, n_rows):
    estimate = EstimatedNorm(share=0.6, quantile=quantile, **SMALL)
    pairs = neighbours_of(np.random.default_rng(n_rows), neighbours, n_rows, estimate)
    loss, span = worst(estimate, pairs, neighbours)
    paid = estimate.event(Budget(1.0, 1e-6)).eta
    assert paid == 0.6 and max(loss, span) <= paid


@pytest.mark.parametrize(
    ("neighbours", "quantile", "moved"), [("replace", 0.5, [1.9]), ("add_remove", 0.5, []), ("add_remove", 0.9, [])]
)
def test_the_bound_is_reached(neighbours, quantile, moved):
    """A smaller range would not do: the first row leaves candidates below the quantile, and those above."""
    estimate = EstimatedNorm(share=0.6, quantile=quantile, **SMALL)
    first = 0.5 if moved else 1.9
    rows = np.array([first, *[0.5] * 9, *[0.7] * 85, *[1.9] * 5])
    pair = rows, np.append(rows[1:], moved)
    assert worst(estimate, [pair], neighbours)[1] > 0.999 * 0.6


def test_the_quantile_is_met_within_what_is_told():
    rng = np.random.default_rng(5)
    estimate, budget, n_rows = EstimatedNorm(share=0.2, quantile=0.8), Budget(1.0, 1e-6), 5000
    norms = rng.lognormal(0.3, 1.0, n_rows)
    probability = np.exp(log_odds(estimate, norms, "replace"))
    off = estimate.error(budget, "replace")
    within = (norms[:, None] <= estimate.candidates).sum(axis=0)
    below = np.concatenate([[0], within[:-1]])
    good = (within >= 0.8 * n_rows - off) & (below <= 0.8 * n_rows + off)
    assert probability[good].sum() >= 0.99 and good.sum() < 12


@pytest.mark.parametrize("norm", [0.5, 3.0])
def test_norms_that_are_all_the_same_are_met_from_above_by_the_next_candidate(norm):
    """Scores of thresholds alone would be the same for every candidate above."""
    estimate = EstimatedNorm(share=0.2)
    chosen = int(np.argmax(log_odds(estimate, np.full(2000, norm), "replace")))
    assert norm <= estimate.candidates[chosen] < 1.26 * norm
    assert log_odds(estimate, np.full(2000, norm), "replace")[chosen] > math.log(0.99)


def test_norms_that_are_no_numbers_are_above_all_candidates():
    estimate = EstimatedNorm(**SMALL)
    odd = np.array([0.6] * 5 + [np.nan, np.inf, -np.inf, 1e300, 3.0])
    assert np.array_equal(estimate.scores(odd), estimate.scores(np.array([0.6] * 5 + [3.0] * 5)))
    assert np.argmax(estimate.scores(np.full(8, np.nan))) == len(estimate.candidates) - 1


def test_draws_have_the_probabilities_that_were_looked_at():
    estimate = EstimatedNorm(share=0.6, quantile=0.5, **SMALL)
    norms, budget = np.array([0.55, 0.7, 0.9, 1.1, 1.8]), Budget(1.0, 1e-6)
    with dp.testing.insecure_randomness(3):
        drawn = [estimate.estimate(norms, budget, "replace") for _ in range(3000)]
    expected = np.exp(log_odds(estimate, norms, "replace"))
    found = np.array([np.mean(np.isclose(drawn, one)) for one in estimate.candidates])
    assert found.sum() == 1 and np.abs(found - expected).max() < 5 * math.sqrt(0.25 / 3000)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"share": 0.0}, r"share must lie in \(0, 1\)"),
        ({"share": 1}, r"share must lie in \(0, 1\)"),
        ({"quantile": 1.0}, r"quantile must lie in \(0, 1\)"),
        ({"low": 2.0, "high": 1.0}, "low < high"),
        ({"low": 0.0}, "1e-50 <= low"),
        ({"high": math.inf}, "high must be finite"),
    ],
)
def test_arguments_out_of_range_are_refused(settings, match):
    with pytest.raises(ArgumentError, match=match):
        EstimatedNorm(**settings)


def test_a_step_size_that_is_a_number_is_refused():
    with pytest.raises(ArgumentError, match="too large for a clip norm that is not known yet"):
        SGLD(clip_norm=EstimatedNorm(), step_size=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_curve")
def test_a_share_too_small_for_the_rows_is_refused_with_one_that_would_do(begin):
    with pytest.raises(ArgumentError, match=r"needs 615 rows at epsilon=3; 200 are publicly known. Give it share=0.31"):
        begin(clip_norm=EstimatedNorm())
    begin(clip_norm=EstimatedNorm(share=0.31))


# --- the chain --------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_whole_is_paid_for_before_the_norm_is_known(begin, neighbours):
    step, plain = begin(neighbours, clip_norm=BOUGHT, epsilon=0.5), begin(neighbours, epsilon=0.5)
    assert isinstance(step.event, ComposedEvent)
    bought, steps = step.event.events
    assert bought == BoundedRangeEvent(eta=0.25) and steps.count == 50
    assert 0.49 < total_epsilon(step.event, BUDGET["delta"]).epsilon <= 0.5
    assert steps.event.noise_multiplier > plain.event.event.noise_multiplier
    assert step.clip_norm in BOUGHT.candidates and step.clip_norm * (1 - 1e-7) < step._loop.clip.bound < step.clip_norm
    assert step.course.sigma == pytest.approx(
        steps.event.noise_multiplier * step.clip_norm * step.population / BATCH, rel=1e-8
    )
    assert step.spent() == 0.0
    step.step(start(step))
    assert step.spent() > total_epsilon(bought, BUDGET["delta"]).epsilon


@pytest.mark.few(1, cases="all")
@pytest.mark.usefixtures("_no_curve")
@pytest.mark.parametrize("settings", [{}, {"papers": True}, {"step_size": PolynomialDecay()}])
def test_what_was_priced_does_not_hang_on_the_norm(begin, settings):
    step = begin(clip_norm=BOUGHT, **settings)
    priced, temperature = step.event.events[1].event.noise_multiplier, step.course.temperature
    for norm in (0.01, 7.0):
        step._norm = norm
        step._settle(step.funding)
        assert priced <= step.course.sigma / (norm * step.population / BATCH) <= priced * (1 + 1e-8)
        np.testing.assert_allclose(step.course.temperature, temperature)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_curve")
def test_norms_are_those_of_the_gradients(begin):
    step = begin(clip_norm=100.0)
    position = np.linspace(-1, 1, 5)
    single = [np.linalg.norm(step.clipped_sum(position, np.array([place]))) for place in range(N_ROWS)]
    np.testing.assert_allclose(step.row_norms(position, step._rows), single)


@pytest.mark.usefixtures("_no_curve")
def test_nothing_is_told_of_an_estimate_before_the_number_of_steps_is_fixed(model, shared):
    with model:
        step = SGLD(batch_size=BATCH, clip_norm=BOUGHT, **BUDGET)
    assert step._norm is not None and step.clip_norm == 1.0
    step.setup_chain(None, 0, 5)
    assert step.clip_norm == step._norm
    assert f"{step._norm:.4g} per row" in dict(step.describe().facts)["clip norm"]


@pytest.mark.usefixtures("_no_curve")
def test_a_look_ahead_buys_nothing(model, shared, monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))
    found = SGLD(batch_size=BATCH, clip_norm=BOUGHT).preview(model, None, Budget(**BUDGET))
    assert found.fits and found.bound._norm is None
    assert "yet to be estimated" in dict(found.facts)["clip norm"]
    assert "once it is known" in dict(found.facts)["step size"]


@pytest.mark.usefixtures("_no_curve")
def test_one_estimate_serves_all_chains_and_their_copies(model, shared):
    with model:
        step = SGLD(batch_size=BATCH, chains=2, clip_norm=BOUGHT, **BUDGET)
    again = pickle.loads(cloudpickle.dumps(step))
    for one in (step, again):
        one.setup_chain(None, 0, 5)
    assert step.clip_norm == again.clip_norm and step.course.sigma == again.course.sigma


@pytest.mark.usefixtures("_no_curve")
@pytest.mark.parametrize("name", ["replace", "add_remove"])
def test_with_the_same_randomness_a_row_changes_no_public_word(name, shared):
    """One row moves the odds by little, so that under most seeds the same norm is chosen; then draws alone differ."""
    trees = []
    for change in (False, True):
        x, group, y = table()
        x[7], y[7] = (1e300, 1 - y[7]) if change else (x[7], y[7])
        rows = slice(0, N_ROWS - (change and name == "add_remove"))
        step = SGLD(batch_size=BATCH, clip_norm=BOUGHT)
        with dp.testing.insecure_randomness(4):
            tree = dp.sample(
                5, **BUDGET, step=step, model=logistic(x[rows], group[rows], y[rows]), domain=relation(name),
                ledger=dp.Ledger(**BUDGET, neighbours=name), **QUIET,
            )  # fmt: skip
            trees.append(tree)
    found = {path for path in differing(*trees) if "manifest" not in path}
    assert found and found <= {f"/posterior/{name}" for name in ("coefficients", "scale", "offset")}
    text = str(trees[0].dp.report())
    assert "estimate of the clip norm" in text and "0.5 of epsilon" in text


@pytest.mark.usefixtures("_no_curve")
def test_an_estimate_that_was_seeded_is_not_published(model, shared):
    with model:
        with dp.testing.insecure_randomness(1):
            step = SGLD(batch_size=BATCH, clip_norm=BOUGHT, **BUDGET)
        tree = dp.scrub(pm.sample(3, step=step, chains=1, **PLAIN), model)
    assert tree.dp.guarantee == "none"


@pytest.mark.usefixtures("_no_curve")
def test_an_estimate_is_made_once_and_after_the_charge(model, shared, monkeypatch):
    made = []
    monkeypatch.setattr(StochasticGradient, "row_norms", lambda *_: made.append(1) or np.ones(N_ROWS))
    ledger = dp.Ledger(epsilon=0.1, delta=1e-5)
    with pytest.raises(dp.BudgetExceeded):
        dp.sample(3, **BUDGET, step=SGLD(batch_size=BATCH, clip_norm=BOUGHT), model=model, ledger=ledger, **QUIET)
    assert not made
    step = SGLD(batch_size=BATCH, clip_norm=BOUGHT)
    tree = dp.sample(3, chains=2, **BUDGET, step=step, model=model, **{**QUIET, "cores": 1})
    assert len(made) == 1 and 0.5 * BUDGET["epsilon"] < tree.dp.epsilon <= BUDGET["epsilon"]


@pytest.mark.usefixtures("_no_curve")
def test_noise_that_does_not_follow_the_norm_is_an_error(model, shared, monkeypatch):
    monkeypatch.setattr(StochasticGradient, "row_norms", lambda *_: np.full(N_ROWS, 10.0))
    settle = StochasticGradient._settle
    monkeypatch.setattr(
        StochasticGradient, "_settle", lambda self, funding: settle(self, funding) if self._norm is None else None
    )
    with pytest.raises(PrivacyError, match="below what was paid for"):
        dp.sample(3, **BUDGET, step=SGLD(batch_size=BATCH, clip_norm=BOUGHT), model=model, **QUIET)


@pytest.mark.usefixtures("_no_curve")
def test_hot_steps_are_told_in_the_report(model, shared):
    step = SGLD(batch_size=BATCH, clip_norm=BOUGHT, step_size=PolynomialDecay())
    tree = dp.sample(6, epsilon=0.5, delta=1e-5, step=step, model=model, **QUIET)
    for page in (str(tree.dp.report()), tree.dp.report()._repr_html_()):
        assert "temperature of the noise" in page and "above that of the target until step" in page.replace("\n", " ")


@pytest.mark.usefixtures("_no_curve")
def test_a_funded_step_of_one_use_is_refused_before_it_reads(model, shared, monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))
    with model, pytest.raises(ArgumentError, match="publicly known"):
        funded(model, clip_norm=EstimatedNorm(share=0.01))
