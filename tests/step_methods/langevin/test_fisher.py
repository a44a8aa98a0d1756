"""Price, noise and refusals of Fisher scoring, what its trace shows, and moments of what it samples."""

import logging
import math
import pickle

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget, total_epsilon
from pymc_dp.audit import contains_canary, differing, plant
from pymc_dp.errors import ArgumentError, BudgetExceeded, ReleaseError
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.langevin import SGFS, fisher, kernels, walk
from pymc_dp.step_methods.langevin.batches import algorithm_two
from pymc_dp.step_methods.langevin.information import views
from pymc_dp.step_methods.row_functions.limits import clip_to

from . import scoring
from .conftest import BATCH, BUDGET, N_ROWS, flat, relation, start
from .scoring import CLIP, WIDTH, funded, regression, rows
from .test_sgld import PAIRS, PLAIN, QUIET, mean_and_error

CALL = {"batch_size": BATCH, "clip_norm": CLIP}


@pytest.fixture(scope="module")
def regressed():
    return regression(*rows())


@pytest.fixture(scope="module")
def graphs(regressed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SGFS, "_compile", scoring.by_hand)
        return funded(regressed).gradients


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch, graphs):
    """Graphs are made once, gradients are written by hand, and what chains have spent so far is not followed."""
    monkeypatch.setattr(SGFS, "_compile", scoring.by_hand)
    monkeypatch.setattr(walk, "row_gradients", lambda inspection, prior_model: graphs)
    monkeypatch.setattr(cost, "some_of", lambda steps: [])


@pytest.fixture
def begin(regressed):
    return lambda *arguments, **settings: funded(settings.pop("model", regressed), *arguments, **settings)


# --- price ------------------------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(("neighbours", "sampling"), PAIRS)
def test_one_event_pays_for_gradients_and_products(begin, neighbours, sampling):
    share = 0.02 if neighbours == "replace" else 0.5
    if (neighbours, sampling) == ("add_remove", "without_replacement"):
        with pytest.raises(ArgumentError, match="cannot be used with neighbours='add_remove'"):
            begin(neighbours, sampling=sampling)
        return
    step = begin(neighbours, sampling=sampling, fisher_share=share)
    event, plan = step.event.event, step._loop
    gradients = plan.sigma / plan.scale / CLIP
    products = plan.products * BATCH / CLIP**2
    assert step.event.count == 50 and (event.sampling, event.neighbours) == (sampling, neighbours)
    assert event.noise_multiplier == pytest.approx((gradients**-2 + products**-2) ** -0.5, rel=1e-9)
    assert event.noise_multiplier <= (gradients**-2 + products**-2) ** -0.5
    assert products**-2 == pytest.approx(share * event.noise_multiplier**-2)
    assert 0.99 * 3 < total_epsilon(step.event, 1e-5).epsilon <= 3
    population = 250 if neighbours == "add_remove" else N_ROWS
    known = population / BATCH - 1 if sampling == "poisson" else (population / BATCH - 1) * population / (N_ROWS - 1)
    assert step.weight == pytest.approx(population * (1 + known))


def test_smaller_steps_have_more_noise_and_cost_less(begin):
    free = begin()
    natural = 4 / free.course.sigma**2
    assert (free.course.sizes == natural).all() and "no step injects noise" in dict(free.describe().facts)["step size"]
    large, small = begin(step_size=natural * 10), begin(step_size=natural / 4)
    assert large.course.sigma == free.course.sigma and large.event == free.event
    assert small.course.sigma == pytest.approx(2 * free.course.sigma)
    assert small.course.products == free.course.products
    assert total_epsilon(small.event, 1e-5).epsilon < 0.7 * total_epsilon(free.event, 1e-5).epsilon
    falling = begin(step_size=dp.schedules.PolynomialDecay(first=natural, least=natural / 100))
    assert falling.event == free.event, "what later steps add is injected"
    assert (np.diff(falling.course.sizes) < 0).all() and " steps inject" in falling._sizes()


@pytest.mark.slow
def test_where_next_to_no_noise_is_asked_for_steps_stay_as_short_as_rows_can_bend(begin):
    step = begin(epsilon=1e6)
    assert step.course.sigma**2 == pytest.approx(N_ROWS * CLIP**2)
    assert total_epsilon(step.event, 1e-5).epsilon < 1e6
    assert begin(epsilon=1e6, step_size=1e9).course.sigma < 0.3 * step.course.sigma
    papers = begin(papers=True)
    assert 4 * CLIP**2 / papers._stable == pytest.approx(N_ROWS * CLIP**2)


@pytest.mark.few(1)
@pytest.mark.parametrize("settings", [{}, {"papers": True}, {"step_size": dp.schedules.PolynomialDecay(first=1e-3)}])
def test_what_was_priced_does_not_hang_on_a_clip_norm_that_is_bought(begin, settings):
    step = begin(clip_norm=dp.schedules.EstimatedNorm(share=0.5, quantile=0.5, low=0.1, high=10.0), **settings)
    priced, products = step.event.events[1].event.noise_multiplier, step.course.products
    for norm in (0.01, 7.0):
        step._norm = norm
        step._settle(step.funding)
        assert priced <= step._joint(step.course) <= priced * (1 + 1e-8)
        assert step.course.products == pytest.approx(products)
        assert step._loop_plan(N_ROWS).products == pytest.approx(products * norm**2 / BATCH)


def test_algorithm_four_has_its_constants_and_pays_what_they_cost(begin):
    step = begin(papers=True)
    uses, epsilon, delta = 50, 3.0 / 2, 1e-5 / 2
    variance = 32 * uses * math.log(2.5 * uses / delta) * math.log(2 / delta) / (N_ROWS * epsilon) ** 2
    assert step._loop.sigma / N_ROWS == pytest.approx(math.sqrt(variance) * CLIP)
    assert step.course.sizes[0] == pytest.approx(1 / (N_ROWS**2 * variance))
    assert step._loop.products == pytest.approx(7 * CLIP**2 * math.sqrt(variance)) and step._loop.centred
    assert step.weight == N_ROWS * (1 + N_ROWS / BATCH)
    assert step.batches.sampling == "without_replacement"
    # The worst pair of rows moves a mean by 2 C / b and a covariance by 4 C² / b.
    mean = step._loop.sigma / N_ROWS * BATCH / CLIP / 2
    covariance = step._loop.products * BATCH / CLIP**2 / 4
    assert step.event.event.whole.noise_multiplier == pytest.approx((mean**-2 + covariance**-2) ** -0.5)
    assert total_epsilon(step.event, 1e-5).epsilon < 0.5, "far less than the 3 that the papers say"
    assert "algorithm 4" in dict(step.describe().facts)["form"]


def test_algorithm_four_is_refused_where_it_proves_nothing(begin, monkeypatch):
    monkeypatch.setattr(fisher, "algorithm_two", lambda *arguments: 1e-3 * algorithm_two(*arguments))
    with pytest.raises(ArgumentError, match="algorithm 4's noise, .* is too small"):
        begin(papers=True)
    alone = begin(papers=True, steps=1)
    assert 2.99 < total_epsilon(alone.event, 1e-5).epsilon <= 3, "one step gets the noise that it needs"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delta": 0.0}, "no guarantee at delta=0"),
        ({"fisher_share": 0.0}, "fisher_share must lie"),
        ({"fisher_share": 1.0}, "fisher_share must lie"),
        ({"fisher_share": math.nan}, "fisher_share must"),
        ({"papers": True, "sampling": "poisson"}, "fixed size of at least 2"),
        ({"papers": True, "neighbours": "add_remove"}, "neighbours='replace'"),
        ({"papers": True, "batch_size": 1}, "fixed size of at least 2"),
    ],
)
def test_wrong_arguments_are_explained(begin, settings, message):
    with pytest.raises(ArgumentError, match=message):
        begin(**settings)


def test_too_many_parameters_are_refused_with_another_way(monkeypatch):
    monkeypatch.undo()
    with pm.Model() as model:
        many = pm.Normal("many", shape=201)
        pm.Normal("y", many.sum(), 1.0, observed=np.zeros(30))
    found = SGFS(batch_size=5).preview(model, None, Budget(1.0, 1e-5))
    assert "201 parameters, more than 200" in found.problem and "dp.SGNHT()" in found.problem


def test_under_add_remove_nothing_shows_the_number_of_rows(begin):
    whole, fewer = begin("add_remove"), begin("add_remove", model=regression(*rows(50)))
    assert whole._loop == fewer._loop and whole.event == fewer.event
    assert whole.describe() == fewer.describe() and (whole.memory == fewer.memory).all()


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_noise_through_the_step_has_the_variance_that_was_priced(begin, neighbours):
    """Rows without covariates have no gradient: what moves the chain, and what it learns, is noise."""
    step = begin(neighbours, step_size=1e9, model=regression(np.zeros((N_ROWS, WIDTH)), np.zeros(N_ROWS)))
    event = step.event.event
    population = 250 if neighbours == "add_remove" else N_ROWS
    point, moves, seen = start(step), [], []
    for _ in range(2000):
        known = views(step.memory, WIDTH)
        known.bends[:], known.axes[:], known.sum_of[:], known.steps[:] = 0.0, np.eye(WIDTH), 0.0, (1e6, 0)
        moves.append(flat(step, step.advance(point)))
        seen.append(views(step.memory, WIDTH).sum_of[np.tril_indices(WIDTH)].copy())
    ridge = step.course.sigma**2  # of G, which is nothing else here
    gradients = np.array(moves) * ridge / 2 * BATCH / population / CLIP
    weights = np.where(np.equal(*np.tril_indices(WIDTH)), 1.0, math.sqrt(2))
    products = np.array(seen) * weights * BATCH / CLIP**2
    for noise, share in ((gradients, 0.95), (products, 0.05)):
        priced = event.noise_multiplier / math.sqrt(share)
        assert abs((noise / priced).var() - 1) < 5 * math.sqrt(2 / noise.size)
        assert abs(noise.mean()) < 5 * priced / math.sqrt(noise.size)
        assert np.abs(np.corrcoef(noise.T) - np.eye(noise.shape[1])).max() < 0.12
    assert np.abs(np.corrcoef(np.hstack([gradients, products]).T)[:WIDTH, WIDTH:]).max() < 0.12


@pytest.mark.slow
def test_fused_steps_are_the_same_steps(begin):
    fixed = {"sampling": "without_replacement"}
    one, many = begin(**fixed), begin(steps=2, steps_per_draw=25, **fixed)
    for step in (one, many):  # as if many were made: axes are found anew after every eighth
        known = views(step.memory, WIDTH)
        known.steps[0], known.bends[:] = 400, 1e3
    a = b = start(one)
    for _ in range(50):
        a = one.step(a)[0]
    for _ in range(2):
        b = many.step(b)[0]
    assert one.event == many.event and all(np.array_equal(a[name], b[name]) for name in a)
    assert np.array_equal(one.memory, many.memory) and one.memory[-2:].tolist() == [448, 2]


@pytest.mark.slow
def test_state_can_be_saved_and_restored(begin):
    step = begin()
    point = start(step)
    for _ in range(5):
        point = step.step(point)[0]
    saved = pickle.loads(pickle.dumps(step.sampling_state))
    expected = [step.step(point) for _ in range(3)]
    step.sampling_state = saved
    again = [step.step(point) for _ in range(3)]
    assert repr(expected) == repr(again)


def test_the_precision_of_the_prior_is_read_off_its_gradient(begin):
    np.testing.assert_allclose(views(begin().memory, WIDTH).precision, 4 * np.eye(WIDTH), rtol=1e-9, atol=1e-12)


# --- what leaves ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["replace", "add_remove"])
def test_with_the_same_randomness_only_draws_differ(name):
    trees = []
    for change in (False, True):
        x, y = rows()
        y[7] = 1e300 if change else y[7]
        kept = slice(0, N_ROWS - (change and name == "add_remove"))
        with dp.testing.insecure_randomness(4):
            trees.append(
                dp.sample(
                    5,
                    **BUDGET,
                    step=SGFS(**CALL, steps_per_draw=10),
                    model=regression(x[kept], y[kept]),
                    domain=relation(name),
                    ledger=dp.Ledger(**BUDGET, neighbours=name),
                    **QUIET,
                )
            )
    found = {path for path in differing(*trees) if "manifest" not in path}
    assert found == {"/posterior/coefficients"}


def test_no_canary_leaves(caplog, recwarn):
    x, y = rows()
    column = plant(x[:, 1], low=-9, high=9)
    x[:, 1] = column.values
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        step = SGFS(**CALL, steps_per_draw=10)
        tree = dp.sample(5, **BUDGET, step=step, model=regression(x, y), **QUIET)
    seen = [tree, str(tree.dp.report()), caplog.records, list(recwarn), repr(step), step]
    assert contains_canary(seen, column.canaries) == []


def test_trace_says_what_was_done(regressed):
    step = SGFS(**CALL, steps_per_draw=5)
    tree = dp.sample(3, tune=2, chains=2, **BUDGET, step=step, model=regressed, **{**QUIET, "cores": 1})
    assert (tree.dp.guarantee, tree.dp.delta) == ("stepwise", 1e-5)
    assert tree["posterior"]["coefficients"].shape == (2, 3, WIDTH)
    assert list(tree["sample_stats"].data_vars) == [SPENT]
    text = str(tree.dp.report())
    for part in ("SGFS", "2 x 25", "Poisson, 40 of 200 rows expected", "products", "0.05 of the budget"):
        assert part in text


def test_a_funded_step_runs_in_pymc_on_two_cores(regressed):
    with regressed:
        step = SGFS(**CALL, chains=2, steps_per_draw=5, **BUDGET)
        tree = dp.scrub(pm.sample(5, step=step, chains=2, cores=2, **PLAIN), regressed)
        with pytest.raises(BudgetExceeded, match="all of them have begun"):
            pm.sample(5, step=step, chains=1, **PLAIN)
    assert len(np.unique(tree["posterior"]["coefficients"])) == 2 * 5 * WIDTH, "chains must not repeat each other"


def test_rows_are_read_once_and_after_the_charge(monkeypatch, regressed):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    for limit, error in ((0.01, BudgetExceeded), (1.0, ReleaseError)):
        ledger = dp.Ledger(epsilon=limit, delta=1e-5)
        with pytest.raises(error):
            dp.sample(3, epsilon=0.5, delta=1e-5, step=SGFS(**CALL), model=regressed, ledger=ledger, **QUIET)
    assert ledger.spent.epsilon > 0


# --- right answers ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_the_posterior_of_a_regression_is_met_by_small_batches_and_much_noise(sampling):
    """Noise that protects rows as large as the bends, batches of a tenth: Langevin steps 2 / σ² had 11 times more."""
    x, y = rows(seed=11)
    draws = np.empty((30_000, WIDTH))
    settings = {"batch_size": 20, "clip_norm": 12.0, "sampling": sampling, "step_size": 1e9, "steps_per_draw": 10}
    step = funded(regression(x, y), steps=len(draws), epsilon=1e6, **settings)
    step._loop = step._loop._replace(sigma=20.0, products=1.0)
    point = start(step)
    for i in range(len(draws)):
        point, _ = step.step(point)
        draws[i] = point["coefficients"]
    draws = draws[300:]
    information = x.T @ x + 4 * np.eye(WIDTH)
    mean, covariance = np.linalg.solve(information, x.T @ y), np.linalg.inv(information)
    for j in range(WIDTH):
        found, error, ess = mean_and_error(draws[None, :, j])
        assert ess > 10_000 and abs(found - mean[j]) < 5 * error
    root = np.linalg.cholesky(information)
    np.testing.assert_allclose(root.T @ np.cov(draws.T) @ root, np.eye(WIDTH), atol=0.06)
    assert covariance.max() > 2 * covariance.diagonal().min(), "some directions are wider than others"


@pytest.mark.slow
def test_products_of_a_model_with_several_blocks_are_those_of_a_plain_loop(compiled, model, monkeypatch, rng):
    """Logistic regression with an offset of scale unknown, whose logarithm no row reaches; gradients by PyTensor."""
    monkeypatch.undo()
    position, places = rng.normal(size=5), rng.integers(0, N_ROWS, size=151)
    (x,) = (column for column in compiled._rows if column.ndim == 2)
    group, y = (column for column in compiled._rows if column.ndim == 1)
    residual = y - 1 / (1 + np.exp(-x @ position[:3] - position[4] * group))
    gradients = residual[:, None] * np.column_stack([x, np.zeros(N_ROWS), group])
    gradients *= np.minimum(1, 0.8 / np.linalg.norm(gradients, axis=1))[:, None]
    total, table = np.zeros(5 + 25), compiled._table._replace(places=places)
    clip = clip_to(0.8, size=5, n_rows=N_ROWS, products=True)
    shared = kernels.make_shared(total.size)
    starts, count = compiled.gradients.starts, len(places)
    kernels.add_clipped(compiled._functions[0], position, starts, clip, table, count, shared, total)
    total, products = total[:5], total[5:].reshape(5, 5)
    expected = np.tril(gradients[places].T @ gradients[places])
    np.testing.assert_allclose(total * clip.unit, gradients[places].sum(axis=0), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(products * clip.product_unit, expected, rtol=1e-7, atol=1e-7)
    step = SGFS(batch_size=BATCH, clip_norm=2.0, steps_per_draw=5, dtype="float32")
    settings = {"step": step, "model": model, **QUIET}
    tree = dp.sample(300, epsilon=1e4, delta=1e-5, ledger=dp.Ledger(epsilon=1e4, delta=1e-5), **settings)
    draws = tree["posterior"]["coefficients"].values[0, 100:]
    assert (np.abs(draws.mean(axis=0) - [1.0, -0.5, 0.2]) < 1).all() and (draws.std(axis=0) < 0.5).all()
