"""Chains whose ranges are proved: the right target, no row beyond the claim, and what is refused or said."""

import itertools
import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from arviz import ess
from pymc.step_methods.state import equal_dataclass_values

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs.unconstrained import StepProof
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.ratios import ProvedRatio, SumsRatio
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.testing import insecure_randomness
from pymc_dp.transforms.prior_model import prior_model as prior_model_of
from tests.step_methods.metropolis.models import BOUNDS, MODELS, QUIET, WORST, domain, held, places

NORM = {"x": 1.5}
WILD = [0.0, 1.0, -0.6, -1e6, 1e300, np.nan, np.inf, -np.inf]


def logistic(x, y):
    with pm.Model() as model:
        eta = pm.Data("x", np.asarray(x, dtype=float)) @ pm.Normal("b", 0, 2, shape=2)
        pm.Bernoulli("y", logit_p=eta, observed=np.asarray(y, dtype=int))
    return model


def table(rng, n):
    x = rng.normal(size=(n, 2))
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True) / 1.5)
    return x, (rng.random(n) < 1 / (1 + np.exp(-x @ [1.5, -0.5]))).astype(int)


def proved(model, relation="replace", **options):
    forget_releases()
    given = dp.Domain(norms=NORM, neighbours=relation, n_max=1000 if relation == "add_remove" else None)
    with model:
        return BarkerMetropolis(epsilon=options.pop("epsilon", 1e4), delta=1e-6, domain=given, **options)


def begun(step, tune, draws):
    with insecure_randomness(3):
        step.setup_chain(np.random.default_rng(0), tune, draws)
    return step


def run(step, point, count):
    stats = []
    for _ in range(count):
        point, [one] = step.step(point)
        stats.append(one[SPENT])
    return point, stats


# The range.


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_proved_ranges_hold_those_in_closed_form_and_little_more(name, relation, rng):
    """Two ways to one number: sums in cells and branch points there, the graph of a row's density here."""
    model, step = held(name, WORST[name][:1], relation)
    assert isinstance(step.ratio, SumsRatio)
    bounds = {key: value for key, value in BOUNDS.items() if key in model.named_vars}
    inspection = inspect(model, domain(relation, bounds=bounds)).rows
    inspection.require()
    proof = StepProof(inspection, prior_model_of(inspection))
    spots = places(step, rng, 4, 0.4) + places(step, rng, 3, 0.02)
    for here, there in itertools.pairwise(spots):
        closed = step.ratio.reach(here, there)
        assert closed * (1 - 1e-7) <= proof.between(here.values, there.values).reach
    for here in spots:
        there = step.coefficients.at(here.values + 0.003 * rng.normal(size=here.values.shape))
        assert proof.between(here.values, there.values).reach <= 1.1 * step.ratio.reach(here, there)


def worst_share(relation, rng):
    """Largest sensitivity of log odds between neighbours over the claimed range, whatever a row holds."""
    step = proved(logistic(np.zeros((3, 2)), [0, 1, 1]), relation)
    spots = [*places(step, rng, 2, 1.0), *places(step, rng, 2, 0.05)]
    pairs = [(here, there) for here in spots for there in spots if here is not there]
    rows = [(x0, x1, y) for x0 in WILD for x1 in (0.0, np.nan, -3.0, 0.7) for y in (0, 1, 7)]
    rows += [(*x, y) for x in rng.normal(size=(40, 2)) * 9 for y in (0, 1)]
    shares = []
    for others in ([], [(1.0, -1.0, 1)] * 5):
        tables = [clamped_table(step, [*others, row]) for row in rows]
        tables += [clamped_table(step, others)] if relation == "add_remove" else []
        for pair in pairs:
            odds = np.array([odds_of(step, pair, columns) for columns in tables])
            base = odds[-1:] if relation == "add_remove" else odds
            assert np.isfinite(odds).all()
            shares.append(np.abs(odds[:, None] - base).max() / step._between(*pair))
    return max(shares)


def clamped_table(step, rows):
    """Columns as the step reads them."""
    values = {"x": np.array([row[:2] for row in rows], dtype=float).reshape(-1, 2)}
    values["y"] = np.array([row[2] for row in rows], dtype=int)
    return [column.clamped(values[column.name]) for column in step.ratio.rows._columns]


def odds_of(step, pair, columns):
    step.ratio.rows.hold(columns)
    return step._odds(*pair)


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_no_row_moves_the_odds_by_more_than_is_claimed(relation, rng):
    assert 0.9 < worst_share(relation, rng) <= 1 + 1e-9


@pytest.mark.slow
def test_mutant_half_the_range(monkeypatch, rng):
    right = ProvedRatio.reach
    monkeypatch.setattr(ProvedRatio, "reach", lambda *a: 0.5 * right(*a))
    assert worst_share("replace", rng) > 1.5


@pytest.mark.slow
def test_a_density_that_goes_wrong_moves_the_odds_by_no_more_than_is_claimed(monkeypatch, rng):
    """The clamp at what is proved holds without trust in compiled code."""
    right = RowRatios._at
    monkeypatch.setattr(RowRatios, "_at", lambda *given: [1e3 * terms**3 for terms in right(*given)])
    assert worst_share("replace", rng) <= 1 + 1e-9


def test_a_row_that_is_no_number_is_within_the_claim_of_public_rows():
    """Its ratio counts as 0, while those of all numbers, given the row's public values, are nearly equal."""
    x = np.array([[0.1, 0.0], [0.55, 0.0]])
    with pm.Model():
        s, eta = pm.HalfNormal("s"), pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Laplace("y", pm.Normal("mu"), 1.0, observed=np.zeros(2))
        pm.Normal("w", eta, s, observed=np.zeros(2))
        given = dp.Domain(bounds={"w": (-0.01, 0.01)}, public=("x",))
        step = BarkerMetropolis(epsilon=1e4, delta=1e-6, domain=given)
    spread = step.coefficients.spread
    start = step.coefficients.start.values + spread({"s_log__": 0.0, "b": np.array([2.0, 0.0]), "mu": 0.0})
    here = step.coefficients.at(start)
    there = step.coefficients.at(start + spread({"s_log__": 0.1, "b": 0.0, "mu": 0.0}))
    odds = []
    for y in (0.0, np.nan, np.inf):
        values = {"x": x[:1], "y": np.array([y]), "w": np.zeros(1)}
        step.ratio.rows.hold([column.clamped(values[column.name]) for column in step.ratio.rows._columns])
        odds.append(step._odds(here, there))
    assert 0.05 < np.ptp(odds) <= step._between(here, there) * (1 + 1e-9)


# The target.


def test_detailed_balance(rng):
    x, y = table(rng, 12)
    model = logistic(x, y)
    step = proved(model)
    spots, point = places(step, rng, 5, 0.3), model.initial_point()
    logp = model.compile_logp(mode="FAST_COMPILE")
    target = np.array([float(logp(step.coefficients.point(spot.values, point))) for spot in spots])
    odds = np.array([[step._odds(here, there) for there in spots] for here in spots])
    np.testing.assert_allclose(odds, target[None, :] - target[:, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(odds, -odds.T)


@pytest.mark.slow
def test_a_regression_is_sampled_right(seed, rng):
    """ESS first; then the moments of both coefficients, against quadrature of the exact posterior."""
    x, y = table(rng, 60)
    with insecure_randomness(seed):
        tree = dp.sample(
            900,
            tune=200,
            model=logistic(x, y),
            domain=dp.Domain(norms=NORM),
            epsilon=1e4,
            delta=1e-6,
            step=BarkerMetropolis(),
            **QUIET,
        )
    grid = np.linspace(-6, 8, 281)
    one, other = np.meshgrid(grid, grid, indexing="ij")
    eta = one[..., None] * x[:, 0] + other[..., None] * x[:, 1]
    log = (y * eta - np.logaddexp(0, eta)).sum(-1) - (one**2 + other**2) / 8
    weights = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    draws = tree["posterior"]["b"].values[0]
    for column, value in enumerate((one, other)):
        for power in (1, 2):
            chain, truth = draws[:, column] ** power, (weights * value**power).sum()
            size = float(ess(chain[None, :]))
            assert size > 30
            assert abs(chain.mean() - truth) < 5 * chain.std() / np.sqrt(size)


@pytest.mark.slow
def test_a_logistic_regression_agrees_with_nuts(seed, rng):
    x, y = table(rng, 500)
    model = logistic(x, y)
    with model:
        nuts = pm.sample(1000, tune=1000, chains=2, random_seed=seed, **{"progressbar": False, "quiet": True})
    with insecure_randomness(seed):
        tree = dp.sample(
            4000, model=model, domain=dp.Domain(norms=NORM), epsilon=300.0, delta=1e-6, step=BarkerMetropolis(), **QUIET
        )
    for column in range(2):
        chain, truth = tree["posterior"]["b"].values[0, :, column], nuts["posterior"]["b"].values[..., column]
        error = np.hypot(chain.std() / np.sqrt(ess(chain[None])), truth.std() / np.sqrt(ess(truth)))
        assert ess(chain[None]) > 100 and abs(chain.mean() - truth.mean()) < 5 * error
        assert chain.std() == pytest.approx(truth.std(), rel=0.2)


# Life of the step.


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_default_proposals_reach_the_end_within_the_budget(relation, seed, rng):
    n_max = 100 if relation == "add_remove" else None
    with insecure_randomness(seed):
        tree = dp.sample(
            100,
            tune=50,
            model=logistic(*table(rng, 60)),
            domain=dp.Domain(norms=NORM, neighbours=relation, n_max=n_max),
            epsilon=2.0,
            delta=1e-6,
            step=BarkerMetropolis(),
            **QUIET,
        )
    spent = tree["sample_stats"][SPENT].values[0]
    assert len(spent) == 100 and 0.5 < spent[-1] <= 2.0
    told = " ".join(str(tree.dp.report()).replace("│", " ").split())
    relation_told = "sup g - inf g" if relation == "replace" else "sup |g|"
    assert relation_told in told and "proved from the graph at every step" in told and "G = " in told


def test_state_is_saved_and_restored(rng):
    step = begun(proved(logistic(*table(rng, 8)), epsilon=30.0), 20, 40)
    point, _ = run(step, step.prior_model.initial_point(), 15)
    saved = step.sampling_state
    first = (*run(step, point, 25), step.sampling_state)
    step.sampling_state = saved
    assert equal_dataclass_values(step.sampling_state, saved)
    second = (*run(step, point, 25), step.sampling_state)
    assert equal_dataclass_values(first[2], second[2])
    np.testing.assert_array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[0]["b"], second[0]["b"])


def test_a_step_goes_to_other_processes(rng):
    step = proved(logistic(*table(rng, 8)))
    copy = begun(pickle.loads(cloudpickle.dumps(step)), 0, 5)
    here, there = places(step, rng, 2)
    assert copy._between(here, there) == step._between(here, there)
    run(copy, copy.prior_model.initial_point(), 5)


def test_the_trace_holds_nothing_of_the_rows(rng):
    planted = plant(rng.uniform(-0.7, 0.7, size=12), rows=(2, 7), low=-0.7, high=0.7)
    model = logistic(planted.values.reshape(6, 2), [0, 1, 1, 0, 1, 1])
    options = {"domain": dp.Domain(norms=NORM), "epsilon": 9.0, "step": BarkerMetropolis()}
    tree = dp.sample(20, tune=5, model=model, **options, **QUIET)
    assert not contains_canary(tree, planted.canaries)


# What is said.


def preview(model, given=None):
    return BarkerMetropolis().preview(model, given, Budget(1.0, 1e-6))


def test_a_preview_says_how_steep_a_row_is_at_the_start(rng):
    model = logistic(*table(rng, 5))
    found = preview(model, dp.Domain(norms=NORM))
    assert found.fits and "at the start G = 2.12" in dict(found.facts)["one row moves"]  # 1.5 sqrt(2)
    obstacle = preview(model).problem
    assert "'x' has no bounds" in obstacle
    for remedy in ("dp.Domain(bounds={'x': (low, high)})", "dp.Domain(norms={'x': norm})", "dp.clamp(", "clamp=..."):
        assert remedy in obstacle


def test_clamped_rows_are_said(rng):
    with pm.Model() as model:
        pm.StudentT("y", nu=3, mu=pm.Normal("mu"), sigma=1.0, observed=np.zeros(4))
    assert "'y' has no bounds" in preview(model).problem
    facts = preview(dp.clamp(model, -6.0, 0.0)).facts
    said = "log-likelihood of a row of y clamped to (-6, 0): a pseudo-posterior"
    assert [text for name, text in facts if name == "target"][1] == said
    by_hand = BarkerMetropolis(clamp=1.0).preview(dp.clamp(model, -6.0, 0.0), None, Budget(1.0, 1e-6))
    assert said in dict(by_hand.facts).values()


def test_what_has_no_rule_or_no_bound_is_named():
    with pm.Model() as model:
        sd = pm.Normal("sd", initval=0.0)
        pm.Normal("y", 0.0, pm.math.abs(sd), observed=np.zeros(4))
    found = preview(model, dp.Domain(bounds={"y": (-1.0, 1.0)}))
    assert not found.fits and ("initial point" in found.problem or "dp.truncate(model, {'sd'" in found.problem)
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.CustomDist("y", mu, logp=lambda value, mu: pm.math.sin(value - mu) * value, observed=np.zeros(4))
    forget_releases()
    with pytest.raises(UnsupportedModelError, match="dp.Domain\\(bounds"):
        dp.sample(5, model=model, epsilon=1.0, step=BarkerMetropolis(), **QUIET)
