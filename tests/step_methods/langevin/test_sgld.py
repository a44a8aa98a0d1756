"""Pricing, pairing of sampler, relation and accountant, noise, and what a trace of SGLD shows."""

import logging
import math
import pickle

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget, SelfComposedEvent, rdp, total_epsilon
from pymc_dp.accounting.events import SubsampledGaussianEvent
from pymc_dp.audit import contains_canary, differing, plant
from pymc_dp.errors import ArgumentError, BudgetExceeded, ReleaseError, UnsupportedModelError
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.langevin import SGFS, SGHMC, SGLD, SGNHT
from pymc_dp.step_methods.langevin.batches import LARGEST_STABLE, batch_size

from .conftest import BATCH, BUDGET, CLIP, N_ROWS, flat, funded, logistic, relation, start, table

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PAIRS = [
    ("replace", "poisson"),
    ("replace", "without_replacement"),
    ("add_remove", "poisson"),
    ("add_remove", "without_replacement"),
]


def noise_of(step, n_steps=4000, full=False):
    """Standardised noise of single steps from one point: what the walk adds beyond the drift."""
    point = start(step)
    position = flat(step, point)
    _, prior = step._functions
    (slope,) = prior(position)
    total = step.clipped_sum(position, np.arange(N_ROWS))
    drift = step.step_size * (slope + step._loop.scale * total)
    moves = np.array([flat(step, step.step(point)[0]) - position - drift for _ in range(n_steps)])
    return moves / math.sqrt(2 * step.step_size)


# --- pairing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("neighbours", "sampling"), PAIRS)
def test_every_pair_is_accounted_by_its_own_curve_or_refused(begin, neighbours, sampling):
    if (neighbours, sampling) == ("add_remove", "without_replacement"):
        with pytest.raises(ArgumentError, match="cannot be used with neighbours='add_remove'"):
            begin(neighbours, sampling=sampling)
        return
    step = begin(neighbours, sampling=sampling)
    event = step.event.event
    population = 250 if neighbours == "add_remove" else N_ROWS
    assert isinstance(event, SubsampledGaussianEvent) and step.event.count == 50
    assert (event.sampling, event.neighbours) == (sampling, neighbours)
    assert event.rate == BATCH / population
    assert total_epsilon(step.event, BUDGET["delta"]).epsilon <= BUDGET["epsilon"]
    noise_on_sum = math.sqrt(2 * step.step_size) * BATCH / (step.step_size * population)
    assert event.noise_multiplier == pytest.approx(noise_on_sum / CLIP, rel=1e-9)
    assert event.noise_multiplier <= noise_on_sum / CLIP
    assert step._loop.poisson == (sampling == "poisson")
    assert step._loop.scale == population / BATCH
    assert ("accountant" in dict(step.describe().facts)) and str(population) in dict(step.describe().facts)["batch"]


def test_the_default_sampling_goes_with_both_relations(begin):
    assert begin("replace").batches.sampling == begin("add_remove").batches.sampling == "poisson"


def test_fixed_batches_under_replace_pay_for_a_sensitivity_of_two_norms(begin):
    """The pairing of d3p: fixed batches under replace, priced by a curve for one norm, about half of the ε."""
    step = begin(sampling="without_replacement")
    wrong = SubsampledGaussianEvent(
        noise_multiplier=step.event.event.noise_multiplier,
        sampling="poisson",
        sample_rate=BATCH / N_ROWS,
        neighbours="add_remove",
    )
    right = rdp.epsilon_at(step.event, 1e-5)
    assert right > 1.6 * total_epsilon(SelfComposedEvent(event=wrong, count=50), 1e-5).epsilon


def test_budget_decides_the_largest_step(begin):
    steps = [begin(clip_norm=20.0, epsilon=epsilon).step_size for epsilon in (0.1, 0.2, 0.4)]
    assert steps[0] < steps[1] < steps[2]
    step = begin(clip_norm=20.0, epsilon=0.1)
    assert total_epsilon(step.event, 1e-5).epsilon == pytest.approx(0.1, rel=1e-2)
    assert total_epsilon(step.event, 1e-5).epsilon <= 0.1
    stable = begin(epsilon=1000.0)
    assert stable.step_size == pytest.approx(LARGEST_STABLE / (N_ROWS * CLIP**2))


def test_a_step_with_too_little_noise_is_refused_with_numbers(begin):
    step = begin(epsilon=0.1, clip_norm=20.0)
    with pytest.raises(ArgumentError, match=r"they would cost epsilon=.*largest step size that would do is") as refused:
        begin(epsilon=0.1, clip_norm=20.0, step_size=4 * step.step_size)
    assert f"{step.step_size:.4g}" in str(refused.value)
    small = begin(epsilon=0.1, clip_norm=20.0, step_size=step.step_size / 2)
    assert total_epsilon(small.event, 1e-5).epsilon < 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delta": 0.0}, "no guarantee at delta=0"),
        ({"batch_size": N_ROWS + 1}, "above the number of rows"),
        ({"batch_size": 0}, "batch_size must"),
        ({"clip_norm": 0.0}, "clip_norm must"),
        ({"clip_norm": math.nan}, "clip_norm must"),
        ({"step_size": -1.0}, "step_size must"),
        ({"sampling": "shuffle"}, "sampling must"),
        ({"papers": 1}, "papers must"),
    ],
)
def test_wrong_arguments_are_explained(begin, settings, message):
    with pytest.raises(ArgumentError, match=message):
        begin(**settings)


def test_the_number_of_rows_is_not_told_under_add_remove(begin):
    with pytest.raises(ArgumentError, match="above n_max, 250") as refused:
        begin("add_remove", batch_size=251)
    assert str(N_ROWS) not in str(refused.value)


@pytest.mark.parametrize("method", [SGLD, SGHMC, SGNHT, SGFS])
@pytest.mark.parametrize(("neighbours", "population"), [("replace", N_ROWS), ("add_remove", 250)])
def test_a_small_table_is_the_default_batch(model, method, neighbours, population):
    step = method().preview(model, relation(neighbours), Budget(**BUDGET)).bound
    assert step.batches.size == step.batches.population == population
    assert step.event.event.sample_rate == 1.0
    assert f"{population} of {population} rows expected" in dict(step.describe().facts)["batch"]
    assert repr(method()) == f"{method.__name__}()"


def test_a_chain_walks_with_all_rows_of_a_small_table(begin):
    step = begin(batch_size=None)
    point, stats = step.step(start(step))
    assert step._loop.batch_size == N_ROWS and all(np.isfinite(value).all() for value in point.values())
    assert 0 < stats[0][SPENT] < BUDGET["epsilon"]


@pytest.mark.parametrize(("asked", "population", "size"), [(None, 200, 200), (None, 10_000, 256), (500, 10_000, 500)])
def test_the_default_batch_is_256_of_more_rows(asked, population, size):
    assert batch_size(asked, population) == size


def test_a_specification_without_a_budget_is_refused_by_pymc(model):
    with pytest.raises(ArgumentError, match=r"has no budget.*dp.SGLD\(epsilon=..., chains=...\)"):
        SGLD().setup_chain(None, 0, 1)


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_noise_has_the_variance_that_was_priced(begin, neighbours):
    # The sum of all rows enters every step exactly where the batch is the table.
    batch = 250 if neighbours == "add_remove" else N_ROWS
    step = begin(neighbours, batch_size=batch, steps=4001)
    noise = noise_of(step)
    priced = step.event.event.noise_multiplier * CLIP * step.step_size * step.population / batch
    assert math.sqrt(2 * step.step_size) == pytest.approx(priced, rel=1e-9)
    assert abs(noise.mean()) < 5 / math.sqrt(noise.size)
    assert abs(noise.var() - 1) < 5 * math.sqrt(2 / noise.size)
    assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.1


def test_the_papers_form_has_half_of_the_variance_and_pays_for_it(begin):
    step = begin(batch_size=N_ROWS, steps=4001, papers=True)
    assert noise_of(step).var() == pytest.approx(0.5, rel=0.05)
    rows = 4001 * math.log(2.5 * 4001 / 1e-5) * math.log(2 / 1e-5)
    assert step.multiplier == pytest.approx(math.sqrt(128 * rows) / 3.0)
    assert total_epsilon(step.event, 1e-5).epsilon < 0.5, "far less than the 3 that the papers say"
    assert "papers" in step.describe().noise


def test_mutant_half_the_noise_dies(begin):
    step = begin(batch_size=N_ROWS, steps=4001)
    plain = (0.0, *step._loop.constants[1:])  # nothing made up for it
    step._loop = step._loop._replace(sigma=step._loop.sigma / 2, constants=plain)
    noise = noise_of(step)
    assert abs(noise.var() - 1) > 5 * math.sqrt(2 / noise.size)


def test_under_add_remove_batches_are_divided_by_the_public_number(begin):
    """A realised batch size in the drift would show the number of rows."""
    whole, fewer = begin("add_remove"), begin("add_remove", model=logistic(*table(50)))
    assert whole._loop == fewer._loop and whole.event == fewer.event
    assert whole.describe() == fewer.describe()


# --- what leaves ------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["replace", "add_remove"])
def test_with_the_same_randomness_only_draws_differ(name, shared):
    trees = []
    for change in (False, True):
        x, group, y = table()
        x[7], y[7] = (1e300, 1 - y[7]) if change else (x[7], y[7])
        rows = slice(0, N_ROWS - (change and name == "add_remove"))
        with dp.testing.insecure_randomness(4):
            trees.append(
                dp.sample(
                    5,
                    **BUDGET,
                    step=SGLD(batch_size=BATCH, steps_per_draw=7),
                    model=logistic(x[rows], group[rows], y[rows]),
                    domain=relation(name),
                    ledger=dp.Ledger(**BUDGET, neighbours=name),
                    **QUIET,
                )
            )
    found = {path for path in differing(*trees) if "manifest" not in path}
    assert found and found <= {f"/posterior/{name}" for name in ("coefficients", "scale", "offset")}


def test_no_canary_leaves(caplog, recwarn, shared):
    x, group, y = table()
    column = plant(x[:, 1], low=-9, high=9)
    x[:, 1] = column.values
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        step = SGLD(batch_size=BATCH, steps_per_draw=5)
        tree = dp.sample(5, **BUDGET, step=step, model=logistic(x, group, y), **QUIET)
    seen = [tree, str(tree.dp.report()), caplog.records, list(recwarn), repr(step), step]
    assert contains_canary(seen, column.canaries) == []


def test_trace_says_what_was_done(model, shared):
    step = SGLD(batch_size=BATCH, clip_norm=CLIP, steps_per_draw=3)
    tree = dp.sample(4, tune=2, chains=2, **BUDGET, step=step, model=model, **{**QUIET, "cores": 1})
    assert (tree.dp.guarantee, tree.dp.delta) == ("stepwise", 1e-5)
    assert tree["posterior"]["coefficients"].shape == (2, 4, 3)
    assert list(tree["sample_stats"].data_vars) == [SPENT]
    text = str(tree.dp.report())
    for part in ("SGLD", "2 x 18", "Poisson, 40 of 200 rows expected", "0.8 per row", "noise multiplier"):
        assert part in text
    spent = tree["sample_stats"][SPENT].values
    assert (np.diff(spent, axis=1) > 0).all() and spent.max() < BUDGET["epsilon"]


@pytest.mark.parametrize("cores", [1, 2])
def test_a_funded_step_means_the_same_on_one_core_and_two(model, shared, cores):
    with model:
        step = SGLD(batch_size=BATCH, chains=2, steps_per_draw=2, **BUDGET)
        tree = dp.scrub(pm.sample(4, step=step, chains=2, cores=cores, **PLAIN), model)
        with pytest.raises(BudgetExceeded, match="all of them have begun"):
            pm.sample(4, step=step, chains=1, **PLAIN)
    one, other = tree["posterior"]["scale"].values
    assert not np.isin(one, other).any(), "chains must not repeat each other"


@pytest.mark.slow
def test_workers_that_share_nothing_compile_their_own(model, shared):
    with model:
        step = SGLD(batch_size=BATCH, chains=2, **BUDGET)
        tree = dp.scrub(pm.sample(4, step=step, chains=2, cores=2, mp_ctx="forkserver", **PLAIN), model)
    assert len(np.unique(tree["posterior"]["scale"])) == 8


def test_rows_are_read_once_and_after_the_charge(monkeypatch, model, shared):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    for limit, error in ((0.01, BudgetExceeded), (1.0, ReleaseError)):
        ledger = dp.Ledger(epsilon=limit, delta=1e-5)
        with pytest.raises(error):
            dp.sample(3, epsilon=0.5, delta=1e-5, step=SGLD(batch_size=BATCH), model=model, ledger=ledger, **QUIET)
    assert ledger.spent.epsilon > 0, "a failure after the charge loses budget, never privacy"


@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_state_can_be_saved_and_restored(begin, sampling):
    step = begin(sampling=sampling)
    point = start(step)
    step.step(point)
    saved = pickle.loads(pickle.dumps(step.sampling_state))
    expected = [step.step(point) for _ in range(3)]
    step.sampling_state = saved
    again = [step.step(point) for _ in range(3)]
    assert repr(expected) == repr(again)


def test_fused_steps_are_the_same_steps(begin):
    one, many = begin(steps=12), begin(steps=2, steps_per_draw=6)
    assert one.event == many.event
    a = b = start(one)
    for _ in range(12):
        a = one.step(a)[0]
    for _ in range(2):
        b = many.step(b)[0]
    assert list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)
    assert one.count == many.count == 12 and one.spent() == many.spent()


def test_start_and_kept_keys_are_those_of_the_point(begin):
    step = begin()
    point = start(step)
    moved = step.step(dict(reversed(point.items())))[0]
    assert list(moved) == list(reversed(point))
    assert all(moved[name].dtype == point[name].dtype and moved[name].shape == point[name].shape for name in point)


# --- right answers ----------------------------------------------------------------------------------------------------


def gaussian(n_rows=20):
    """Posterior N(0, 1), all of it from the rows but a thousandth."""
    y = np.linspace(-1, 1, n_rows)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("theta", 0, np.sqrt(1000)), np.sqrt(n_rows * 1000 / 999), observed=y)
    return model


def mean_and_error(draws):
    import arviz as az

    ess = float(az.ess(draws))
    return draws.mean(), draws.std() / math.sqrt(ess), ess


@pytest.mark.slow
@pytest.mark.parametrize(("papers", "variance", "margin"), [(False, 1.0, 0.03), (True, 0.5, 0.015)])
def test_variance_on_a_standard_normal(papers, variance, margin, monkeypatch):
    monkeypatch.undo()
    settings = {"batch_size": 20, "clip_norm": 0.4, "step_size": 0.02, "papers": papers, "steps_per_draw": 20}
    budget = 2e4 if papers else 1e5  # at which algorithm 2 has enough noise, and not more than the dynamics
    step = funded(gaussian(), steps=100_000, epsilon=budget, **settings)
    point, draws = start(step), np.empty(100_000)
    for i in range(draws.size):
        point, _ = step.step(point)
        draws[i] = point["theta"]
    mean, error, ess = mean_and_error(draws[None, 100:])
    assert ess > 5000 and abs(mean) < 5 * error
    assert abs(draws.var() - variance) < margin


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_a_skewed_posterior_is_met(sampling, monkeypatch):
    monkeypatch.undo()
    y = np.array([0.2, 0.9, 1.7, 0.4, 2.3, 0.1])
    with pm.Model() as model:
        pm.Exponential("y", pm.Gamma("rate", 2.0, 1.0), observed=y)
    settings = {"batch_size": 6, "clip_norm": 60.0, "step_size": 0.002, "steps_per_draw": 50, "sampling": sampling}
    step = funded(model, steps=60_000, epsilon=1e8, **settings)
    point, draws = start(step), np.empty(60_000)
    for i in range(draws.size):
        point, _ = step.step(point)
        draws[i] = point["rate_log__"]
    rate = np.exp(draws[None, 100:])
    shape, beta = 2 + y.size, 1 + y.sum()
    mean, error, ess = mean_and_error(rate)
    assert ess > 2000
    assert abs(mean - shape / beta) < 5 * error
    from scipy import stats

    skewness = stats.skew(rate[0])
    assert skewness == pytest.approx(2 / math.sqrt(shape), rel=0.15)
    assert stats.kstest(rate[0, ::30], stats.gamma(shape, scale=1 / beta).cdf).pvalue > 0.001


@pytest.mark.slow
def test_batches_of_either_kind_find_the_posterior(shared, model):
    """Logistic regression with small batches, against NUTS."""
    exact = pm.sample(1000, tune=500, chains=2, cores=1, model=model, random_seed=1, **PLAIN)
    for sampling in ("poisson", "without_replacement"):
        step = SGLD(batch_size=BATCH, clip_norm=6.0, step_size=1e-4, steps_per_draw=20, sampling=sampling)
        tree = dp.sample(
            20_000, epsilon=1e6, delta=1e-5, step=step, model=model, ledger=dp.Ledger(epsilon=1e6, delta=1e-5), **QUIET
        )
        for name in ("coefficients", "offset"):
            draws = tree["posterior"][name].values
            draws, known = np.atleast_3d(draws), np.atleast_3d(exact["posterior"][name].values)
            for j in range(draws.shape[-1]):
                mean, error, ess = mean_and_error(draws[..., j])
                truth, truth_error, _ = mean_and_error(known[..., j])
                assert ess > 200
                assert abs(mean - truth) < 5 * math.hypot(error, truth_error)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_discrete_parameters_are_refused_by_name():
    with pm.Model() as model:
        k = pm.Poisson("k", 2.0)
        pm.Normal("y", k, 1.0, observed=np.zeros(30))
    with pytest.raises(UnsupportedModelError, match=r"k: it is discrete"):
        dp.sample(3, **BUDGET, step=SGLD(batch_size=5), model=model, **QUIET)


def test_rows_in_a_prior_are_refused_and_nothing_is_spent():
    ledger = dp.Ledger(**BUDGET)
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(0, 1, 30))
        pm.Normal("y", pm.Normal("m", x.mean(), 1), 1.0, observed=np.zeros(30))
    with pytest.raises(UnsupportedModelError, match="'x'.*reach"):
        dp.sample(3, **BUDGET, step=SGLD(batch_size=5), model=model, ledger=ledger, **QUIET)
    assert ledger.spent.epsilon == 0


def test_clamped_rows_are_said():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("m"), 1.0, observed=np.zeros(30))
    found = SGLD(batch_size=5).preview(dp.clamp(model, -6.0, 0.0), None, Budget(1.0, 1e-5))
    said = ("target", "log-likelihood of a row of y clamped to (-6, 0): a pseudo-posterior")
    assert found.fits and said in found.facts
