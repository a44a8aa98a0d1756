"""Weighted rows: within what is charged whatever a weight is, with the variance of sampling, refused elsewhere."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit

import pymc_dp as dp
from pymc_dp.accounting import Budget, total_epsilon
from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import ArgumentError, DomainError, PrivacyError, UnsupportedModelError
from pymc_dp.gradients.choice import CLIPPING
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.integers import CURVATURE_UNITS, SCORE_UNITS, add_curvatures, add_scores
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.misfit import Residuals
from pymc_dp.gradients.release import NoisedSums, units
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.schedule import WEIGHTED_SQUARES, WEIGHTS, Extras, Schedule, stages_of
from pymc_dp.gradients.weighted import WeightedParts
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.stored import stored_rows
from pymc_dp.testing import insecure_randomness, without_noise

pytestmark = pytest.mark.usefixtures("paid")
LARGEST, N_ROWS, BUDGET = 4.0, 3000, Budget(3.0, 1e-5)
CHOICE = dp.Gradients(steps=10)


def table(n_rows=N_ROWS, seed=5):
    """A sample in which unlikely responses are rare, with weights of mean 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (40 * n_rows, 2))
    predictor = 0.5 - x @ [1.0, -0.5]
    y = (rng.random(len(x)) < expit(predictor)).astype(int)
    w = np.exp(1.1 * (y != (predictor > 0)) + 0.5 * np.clip(x[:, 0], -1, 1))
    kept = np.flatnonzero(rng.random(len(x)) < w.min() / w)[:n_rows]
    return {"x": x[kept], "y": y[kept], "w": w[kept] / w[kept].mean()}


def logistic(x, y, w=None, x_name="x"):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 3), pm.Normal("b", 0, 3, shape=2)
        if w is not None:
            pm.Data("w", w)
        pm.Bernoulli("y", logit_p=a + pm.Data(x_name, x) @ b, observed=y)
    return model


def domain(largest=LARGEST, **others):
    return dp.Domain(bounds={"x": (-2, 2), "w": (0, largest)}, **{"weights": {"y": "w"}, **others})


@pytest.fixture(scope="module")
def planned():
    return Planned.of(CHOICE, interface_of(logistic(**table()), domain()), BUDGET)


@pytest.fixture(scope="module")
def rows(planned):
    return columns(planned, **table())


def columns(planned, **held):
    of = planned.interface.inspection.columns
    return [one.clamped(np.asarray(held[one.name], dtype=one.leaf.type.dtype)) for one in of]


def parts(planned, largest=LARGEST):
    return WeightedParts(parts=plain(planned), place=planned.interface.inspection.weight, largest=largest)


def plain(planned):
    return RowParts(rows=planned.simulated.rows)


def releases(planned, rows, weighted, schedule=None):
    return NoisedSums(
        parts=weighted, chunks=lambda: [rows], schedule=schedule or planned.schedule, threads=1, weighted=weighted
    )


def little_noise(planned):
    return replace(planned.schedule, multiplier=1e-6)


def at_of(planned):
    return np.array([0.4, -0.9, 0.4]) / planned.limits.scale


def limits_of(planned):
    return planned.limits.whitened(900.0 * np.eye(3), N_ROWS)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("kind", ["scores", "factors", "weights"])
def test_no_row_adds_more_than_is_charged_and_the_largest_weight_reaches_it(planned, rng, kind):
    """Weights that no bound has held, as an error of the package might let through, beside those that were clamped."""
    made = parts(planned)
    count = 600
    held = {"x": rng.choice([-2.0, 2.0, 0.0, 1.3], (count, 2)), "y": rng.integers(0, 2, count), "w": np.zeros(count)}
    chunk = columns(planned, **held)
    chunk[made.place] = rng.choice([0.0, 1.0, LARGEST, 5.0, -1.0, 1e308, np.inf, -np.inf, np.nan], count)
    at, limits, largest = 3 * at_of(planned), replace(limits_of(planned), clip_norm=0.3, clip_curvature=0.02), 0.0
    for row in range(count):
        one = [column[row : row + 1] for column in chunk]
        found = made.shares(one)[:, None] if kind == "weights" else getattr(made, kind)(one, at, limits)
        if kind in ("scores", "weights"):
            total, limit = np.zeros(found.shape[1], dtype=np.int64), SCORE_UNITS
            add_scores(found, total)
            square = sum(int(entry) ** 2 for entry in total)
            assert kind == "scores" or total[0] >= 0
        else:
            total, limit = np.zeros((3, 3), dtype=np.int64), CURVATURE_UNITS
            add_curvatures(found, total)
            square = sum(int(total[i, j]) ** 2 * (1 if i == j else 2) for i in range(3) for j in range(i, 3))
        assert square <= limit**2
        largest = max(largest, square / limit**2)
    assert largest > 0.99


def test_replacing_a_row_moves_the_sum_of_weights_by_the_largest_at_most(planned):
    """Weights have one sign: half of what a score of one number moves by."""
    schedule = planned.schedule
    assert schedule.weights_scale == pytest.approx(schedule.multiplier * SCORE_UNITS / np.sqrt(WEIGHTS))
    event = schedule.event.events[0]
    assert (event.l2_squared, event.coordinates) == (SCORE_UNITS**2, 1) and event.scale == schedule.weights_scale


def test_rows_of_the_largest_weight_add_the_same_whole_numbers_as_without(planned, rows):
    made, at, limits = parts(planned), at_of(planned), limits_of(planned)
    full = list(rows)
    full[made.place] = np.full_like(rows[made.place], LARGEST)
    with insecure_randomness(1):
        found = releases(planned, full, made).gradient(1, 2, at, limits)
    with insecure_randomness(1):
        alone = NoisedSums(parts=plain(planned), chunks=lambda: [rows], schedule=planned.schedule, threads=1)
        np.testing.assert_array_equal(found, LARGEST * alone.gradient(1, 2, at, limits))
    ones = list(rows)
    ones[made.place] = np.ones_like(rows[made.place])
    with without_noise():
        grid = 2 * N_ROWS * LARGEST * limits.clip_norm / SCORE_UNITS
        np.testing.assert_allclose(
            releases(planned, ones, made).gradient(1, 2, at, limits), alone.gradient(1, 2, at, limits), atol=grid
        )
        np.testing.assert_allclose(
            releases(planned, ones, made).curvature(1, at, limits)[0], alone.curvature(1, at, limits)[0], rtol=1e-3
        )


def test_sums_are_of_weighted_rows_in_whatever_order(planned, rows, rng):
    made, at, limits, w = parts(planned), at_of(planned), limits_of(planned), rows[parts(planned).place]
    scores = made.parts.scores(rows, at, limits) * limits.clip_norm * w[:, None]
    order = rng.permutation(N_ROWS)
    with without_noise():
        found = releases(planned, rows, made)
        np.testing.assert_allclose(found.gradient(0, 1, at, limits), scores.sum(axis=0), atol=1e-3)
        np.testing.assert_allclose(found.squares(at, limits)[0], scores.T @ scores, rtol=2e-3, atol=1.0)
        assert found.weights()[0] == pytest.approx(w.sum(), rel=1e-6)
        other = releases(planned, [column[order] for column in rows], made)
        for name in ("weights", "squares"):
            given = () if name == "weights" else (at, limits)
            np.testing.assert_array_equal(getattr(other, name)(*given)[0], getattr(found, name)(*given)[0])


def test_twice_the_bound_is_twice_the_noise(planned, rows):
    at, limits = at_of(planned), limits_of(planned)
    one, other = (releases(planned, rows, parts(planned, largest)) for largest in (LARGEST, 2 * LARGEST))
    for found, times in ((one, 1), (other, 2)):
        with without_noise():
            exact = found.gradient(1, 1, at, limits), found.squares(at, limits)[0], found.weights()[0]
        with insecure_randomness(2):
            noise = np.std([found.gradient(1, 1, at, limits) - exact[0] for _ in range(60)])
            squares = np.std([(found.squares(at, limits)[0] - exact[1])[0, 1:] for _ in range(60)])
            weights = np.std([found.weights()[0] - exact[2] for _ in range(60)])
        share = planned.schedule.stages[1].steps[1]
        assert noise == pytest.approx(np.sqrt(one.variance(1, limits) / share) * times, rel=0.2)
        assert squares == pytest.approx(one.squares(at, limits)[1] * times**2, rel=0.2)
        assert weights == pytest.approx(one.weights()[1] * times, rel=0.25)


def test_all_that_is_released_costs_the_budget():
    for neighbours in ("replace", "add_remove"):
        extras = Extras(weights=WEIGHTS, squares=WEIGHTED_SQUARES)
        schedule = Schedule.within(BUDGET, units(3, neighbours), 60, extras=extras)
        assert 0.999 * BUDGET.epsilon < total_epsilon(schedule.event, BUDGET.delta).epsilon <= BUDGET.epsilon
        assert len(schedule.event.events) == 66
        rho = sum(float(event.rho) for event in schedule.event.events)
        assert rho == pytest.approx(0.5 / schedule.multiplier**2, rel=1e-4)
    stages = stages_of(60, extras=extras)
    assert sum(one.curvature + one.gradients for one in stages) == pytest.approx(1 - WEIGHTS - WEIGHTED_SQUARES)


def test_what_was_not_paid_is_not_released(planned, rows):
    made, unpaid = parts(planned), replace(planned.schedule, extras=Extras())
    given = at_of(planned), limits_of(planned)
    asked_for = (
        lambda found: found.weights(),
        lambda found: found.squares(*given),
        lambda found: found.norms(*given, np.arange(16.0)),
        lambda found: found.moments(planned.moments),
        lambda found: found.fit(Residuals(parts=plain(planned)), *given),
    )
    for asked in asked_for:
        with pytest.raises(PrivacyError, match="not paid"):
            asked(releases(planned, rows, made, unpaid))


def test_the_covariance_is_that_of_sampling(planned, rows):
    """With next to no noise: H⁻¹ J H⁻¹ of the rows at the maximum of the weighted likelihood."""
    exact = replace(planned, schedule=little_noise(planned))
    with insecure_randomness(3):
        found = exact.walk(rows)
    flat = np.zeros(3), np.zeros((3, 3))
    mean, covariance = exact.quadratic(found).posterior(*flat)
    held = table()
    x, w = np.column_stack([np.ones(N_ROWS), held["x"]]), np.minimum(held["w"], LARGEST)
    at = np.zeros(3)
    for _ in range(20):
        p = expit(x @ at)
        bent = (x * (w * p * (1 - p))[:, None]).T @ x
        at = at + np.linalg.solve(bent, x.T @ (w * (held["y"] - p)))
    scores = x * (w * (held["y"] - expit(x @ at)))[:, None]
    wanted = np.linalg.inv(bent) @ (scores.T @ scores) @ np.linalg.inv(bent)
    assert (np.abs(mean - at) < 0.6 * np.sqrt(np.diag(wanted))).all(), "scores are clipped: another, noisier estimate"
    ratio = np.diag(covariance) / np.diag(wanted)
    assert ((ratio > 0.95) & (ratio < CLIPPING)).all()
    without = exact.quadratic(replace(found, scores=None)).posterior(*flat)[1]
    assert (np.diag(without) < 0.8 * np.diag(covariance)).all(), "rows that count once would be known too well"
    assert found.rows == pytest.approx(w.sum(), rel=1e-3)


def test_the_check_of_the_fit_counts_rows_whatever_they_weigh(planned, rows):
    lighter = list(rows)
    lighter[parts(planned).place] = rows[parts(planned).place] / 8
    with insecure_randomness(3):
        found = replace(planned, schedule=little_noise(planned)).walk(lighter)
    assert found.rows < N_ROWS / 4
    assert found.misfit.share_deviation == pytest.approx(
        2e-6
        * planned.schedule.scale_of(planned.schedule.extras.fit)
        / N_ROWS
        / SCORE_UNITS
        / planned.schedule.multiplier,
        rel=1e-3,
    )


def test_weights_are_clamped_and_missing_ones_are_as_other_numbers_are(planned):
    held = table(4)
    column = planned.interface.inspection.columns[planned.interface.inspection.weight]
    np.testing.assert_array_equal(column.clamped(np.array([-3.0, np.nan, 99.0, np.inf])), [0, 2, 4, 4])
    assert column.name == "w" and not column.public and column.leaf in planned.interface.inspection.hidden
    assert list(parts(planned).shares(columns(planned, **held | {"w": [9.0, 1.0, np.nan, -1.0]}))) == [1, 0.25, 0.5, 0]


def test_weights_beside_the_model_need_not_be_in_it(planned, rows):
    held = table()
    interface = interface_of(logistic(held["x"][:3], held["y"][:3]), domain())
    stored = stored_rows(held)
    inspection = with_stored(interface.inspection, stored)
    inspection.require()
    beside = replace(planned, interface=replace(interface, inspection=inspection))
    with insecure_randomness(4):
        one = beside.walk(Passes.of(inspection, stored))
    with insecure_randomness(4):
        other = planned.walk(rows)
    for name in ("slope", "curvature", "scores", "rows"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_other_ways_refuse_before_any_charge():
    model, ledger = logistic(**table(50)), dp.Ledger(9.0, delta=1e-4)
    given = {"model": model, "domain": domain(), "epsilon": 1.0, "ledger": ledger}
    tried = [
        *(lambda step=step: dp.sample(step=step, **given) for step in (dp.OPS(), [dp.TemperedGibbs()], dp.SGLD())),
        lambda: dp.plan(model, domain=domain(), epsilon=1.0, delta=1e-5, statistics=CHOICE),
        lambda: dp.plan(model, domain=domain(), epsilon=1.0),
        lambda: dp.find_map(model=model, domain=domain(), epsilon=1.0, ledger=ledger),
        lambda: dp.sensitivity(model, domain()),
    ]
    for call in tried:
        with pytest.raises(UnsupportedModelError, match="(?s)Gradients.*does not weigh rows"):
            call()
    for choice in (dp.Gradients(momentum_steps=20), dp.Gradients(conservative=True)):
        with pytest.raises(ArgumentError, match="Leave them out"):
            dp.privatize(statistics=choice, delta=1e-5, **given)
    assert not ledger.history


def test_what_cannot_be_a_weight_is_refused():
    held = table(50)
    for bounds in ({}, {"w": (-1, 2)}, {"w": (0, 1e101)}):
        with pytest.raises(DomainError, match="needs bounds of at least 0"):
            dp.Domain(bounds=bounds, weights={"y": "w"})
    with pytest.raises(DomainError, match="do not go together"):
        domain(neighbours="add_remove", n_max=50, unit=dp.Unit("person", 2))
    with pytest.raises(DomainError, match="Leave it out of public"):
        domain(public=["w"])
    release = {"epsilon": 1.0, "delta": 1e-5, "statistics": CHOICE}
    with pytest.raises(DomainError, match="no pm.Data of the model"):
        dp.privatize(logistic(held["x"], held["y"]), domain=domain(), **release)
    with pytest.raises(DomainError, match="Did you mean 'y'"):
        dp.privatize(logistic(**held), domain=domain(weights={"yy": "w"}), **release)
    with pytest.raises(UnsupportedModelError, match="one number for each row"):
        dp.privatize(logistic(held["x"], held["y"], held["w"][:7]), domain=domain(), **release)
    with logistic(**held) as model:
        pm.Normal("z", model["a"], 1.0, observed=held["x"][:, 0])
    with pytest.raises(UnsupportedModelError, match="name every observed variable"):
        dp.privatize(model, domain=dp.Domain(bounds={**domain().bounds, "z": (-2, 2)}, weights={"y": "w"}), **release)


@pytest.mark.slow
def test_what_is_released_says_what_it_is_and_holds_no_weight():
    held = table(300)
    planted = plant(held["w"], low=1.0, high=3.0)
    held["w"] = planted.values
    model = logistic(**held)
    with model:
        pm.Deterministic("heaviest", model["w"].max())
    private = dp.privatize(model, domain=domain(), epsilon=3.0, delta=1e-5, statistics=CHOICE)
    record = private.dp_record
    assert not contains_canary(private, planted.canaries) and "w" not in private.named_vars
    assert "heaviest" in record.left_out and record.domain["weights"] == {"y": "w"}
    assert any("pseudo-posterior" in text for text in record.tables[0].approximations)
    shown = str(dp.explain(model, domain(), epsilon=3.0, delta=1e-5)).replace("\n", " ")
    assert "pseudo-posterior" in shown and "with probabilities" in shown
    assert domain() == eval(repr(domain()), {"Domain": dp.Domain})
