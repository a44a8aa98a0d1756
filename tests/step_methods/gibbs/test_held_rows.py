"""Rows held one by one: what they add up to, how they are counted, and draws against the density of the rows."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.gibbs.conjugate_draws import BetaChance
from pymc_dp.step_methods.gibbs.grid import Free, Grid
from pymc_dp.step_methods.row_functions import bounds
from tests.step_methods.gibbs.conftest import bound, scans
from tests.step_methods.gibbs.row_models import ROW_MODELS
from tests.step_methods.gibbs.test_conditionals import follows, update
from tests.step_methods.gibbs.test_tempered import check, marginal

BETA = 0.6


def rows_and_step(name, rng, count=40, relation="replace", **settings):
    case = ROW_MODELS[name]
    rows = case.draw_rows(rng, count)
    step, _ = bound(case.build(rows), case.domain(relation), epsilon=1e9, **settings)
    return case, rows, step


def log_likelihood(case, rows, places):
    """Sum over rows at each place: parameters by name with a leading axis of places."""
    count, many = (len(next(iter(item.values()))) for item in (rows, places))
    all_rows = {name: np.concatenate([column] * many) for name, column in rows.items()}
    at = {name: np.repeat(np.asarray(value, dtype=float), count, axis=0) for name, value in places.items()}
    return case.density(all_rows, at).reshape(many, count).sum(axis=1)


def above_first(values):
    """What is the same at all places says nothing about a draw, and is left out."""
    return values - values[0]


LEAST = 1e-3
"""Share of what is charged for a row that no row is cut by, where rows are held about public rows."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "relation"),
    [(name, "replace") for name in ROW_MODELS] + [(name, "add_remove") for name in ROW_MODELS if "public" not in name],
)
def test_scores_are_the_log_likelihood_of_the_rows(name, relation, rng):
    """At many values of one variable or element, the others held; chosen elements together."""
    case, rows, step = rows_and_step(name, rng, relation=relation, grid=7)
    held = {key: value[0] for key, value in case.draw_parameters(rng, 1).items()}
    for one in step.scan.updates:
        if isinstance(one, Free):
            continue
        (scores,) = one.held
        assert "proved from the graph of y" in one.reason and all(item > 0 for item in one.ranges)
        candidates, chosen = np.broadcast_to(held[one.name], (3, *one.shape)) + 0.0, case.draw_parameters(rng, 2)
        moving = ... if len(one.ranges) == 1 else (slice(None), *(0 for _ in one.shape))
        candidates[1:][moving] = chosen[one.name][moving]
        places = {key: candidates if key == one.name else [value] * 3 for key, value in held.items()}
        expected = log_likelihood(case, rows, places)
        about = relation == "replace" and any(bound.references.rows for bound in scores.bounds)
        room = LEAST * max(one.ranges) if about else 1e-9 + 40 * max(bound.limit.unit for bound in scores.bounds)
        assert above_first(scores(candidates, held).sum(axis=1)) == pytest.approx(above_first(expected), abs=room)


def test_elements_that_rows_choose_are_drawn_together_from_their_own_rows(rng):
    case, rows, step = rows_and_step("groups", rng, grid=9)
    found = update(step, "mu")
    assert isinstance(found, Grid) and found.together and len(found.ranges) == 1
    (scores,) = found.held
    table = scores(found.knots, {"top": np.float64(0.0)})
    assert table.shape == (10, 3)
    for group in range(3):
        mine = {name: column[rows["g"] == group] for name, column in rows.items()}
        expected = log_likelihood(case, mine, {"mu": found.knots})
        assert above_first(table[:, group]) == pytest.approx(above_first(expected), abs=1e-9)


@pytest.mark.slow
def test_a_factor_of_all_groups_leaves_them_apart(rng):
    """mu = top + tau z[g]: one mechanism for all z, one for tau, one for top."""
    group = np.array([0, 1, 1, 2, 0])
    with pm.Model(coords={"g": range(3)}) as model:
        top, tau = pm.Uniform("top", -1, 1), pm.Uniform("tau", 0.5, 1)
        z = pm.Truncated("z", pm.Normal.dist(), -2, 2, dims="g")
        pm.StudentT("y", nu=4, mu=top + (tau * z)[pm.Data("i", group)], sigma=1.0, observed=rng.normal(size=5))
    step, _ = bound(model, Domain(bounds={"y": (-3, 3)}), grid=8)
    assert [len(item.ranges) for item in step.scan.updates] == [1, 1, 1]
    assert update(step, "z").together


@pytest.mark.slow
def test_kinds_of_whole_numbers_are_counted(rng):
    """As many numbers are held as there are kinds of rows, and they add up to the same."""
    _, rows, step = rows_and_step("zero-inflated", rng, 60, grid=5)
    (likelihood,) = step.held
    assert len(likelihood.rows.weights) == 9 and likelihood.rows.weights.sum() == 60
    assert likelihood.rows.weights.tolist() == np.bincount(rows["d"].astype(int), minlength=9).tolist()
    _, _, few = rows_and_step("zero-inflated", rng, 5, grid=5)
    assert len(few.held[0].rows.weights) == 5  # fewer rows than kinds: public under `replace`


def test_no_rows_at_all_are_counted_as_such():
    """Under add_remove a table may be empty, and nothing but noise may show it."""
    case = ROW_MODELS["zero-inflated"]
    step, _ = bound(case.build({"d": np.zeros(0)}), case.domain("add_remove"), grid=5)
    assert step.held[0].rows.weights.tolist() == [0] * 9


def test_public_groups_are_each_told_by_their_own_rows():
    """What rows have in common is that of the rows of a group: nothing of other groups reaches its element."""
    group, y = np.repeat([0, 1, 2], 60), np.repeat([0.1, 1.0, 1.9], 60)
    with pm.Model(coords={"g": range(3)}) as model:
        mu = pm.Uniform("mu", 0, 2, dims="g")
        pm.Logistic("y", mu[pm.Data("i", group)], 0.1, observed=y)
    step, _ = bound(model, Domain(bounds={"y": (0, 2)}, public=("i",)), epsilon=1e9, grid=40)
    found = update(step, "mu")
    (scores,) = found.held
    table = scores(found.knots, {"mu": np.ones(3)})
    best = found.knots[table.argmax(axis=0), 0]
    assert best == pytest.approx([0.1, 1.0, 1.9], abs=0.06)
    exact = stats.logistic.logpdf(y[:, None], found.knots[:, 0], 0.1).reshape(3, 60, -1).sum(axis=1).T
    assert table - table.max(axis=0) == pytest.approx(exact - exact.max(axis=0), abs=1e-2 * scores.bounds[0].charge)


@pytest.mark.slow
def test_rows_are_added_up_in_parts(rng, monkeypatch):
    _, _, step = rows_and_step("regression", rng, grid=8)
    found = update(step, "sd")
    values = {"b": np.array([0.3, -0.2]), "sd": np.float64(1.0)}
    whole = found.held[0](found.points, values)
    monkeypatch.setattr(bounds, "CHUNK", 24)
    assert found.held[0](found.points, values) == pytest.approx(whole)


def test_cells_lie_between_knots(rng):
    """What rows add to a cell is a mean of what they add to the knots about it: no row has a larger range there."""
    _, _, step = rows_and_step("location", rng, grid=4)
    found = update(step, "mu")
    at_knots, at_cells = found.held[0](found.knots, {})[:, 0], found.rows_at(found.knots, {})[:, 0]
    assert at_cells == pytest.approx(np.interp(found.points, found.knots, at_knots))


def test_rows_are_clamped_and_those_without_a_density_count_for_nothing():
    def total(rows):
        with pm.Model() as model:
            data = pm.Data("d", np.ones(len(rows)))
            pm.Exponential("y", pm.Uniform("rate", 0.5, 1.0), observed=data)
        data.set_value(np.array(rows))
        step, _ = bound(model, Domain(bounds={"y": (-1.0, 2.0)}), grid=4)
        found = update(step, "rate")
        return above_first(found.held[0](found.points, {}).ravel()), found.points

    found, rates = total([0.5, 7.0, np.nan])
    assert found == pytest.approx(above_first(3 * np.log(rates) - (0.5 + 2.0 + 0.5) * rates), abs=1e-9)
    found, rates = total([0.5, -0.5])
    assert found == pytest.approx(above_first(np.log(rates) - 0.5 * rates), abs=1e-9)


def test_what_no_private_value_enters_is_kept_though_it_costs_nothing():
    """The rows say nothing of mu; that they are five does, which is public."""
    with pm.Model() as model:
        mu = pm.Uniform("mu", -1, 1)
        pm.CustomDist("y", mu, logp=lambda y, mu: 2 * mu + 0 * y, observed=np.zeros(5))
        pm.StudentT("z", nu=4, mu=pm.Uniform("m", 0, 1), sigma=1.0, observed=np.zeros(5))
    step, _ = bound(model, Domain(bounds={"y": (0.0, 1.0), "z": (0.0, 1.0)}), grid=4)
    found = update(step, "mu")
    assert not sum(found.ranges) and len(step.scan.ranges) == 1
    scores = found.held[0](found.knots, {"m": np.float64(0.5)})[:, 0]
    assert above_first(scores) == pytest.approx(above_first(10 * found.knots), abs=1e-7)


def test_no_private_row_is_read_before_the_budget_is_charged(rng, monkeypatch):
    def read(self):
        raise AssertionError("a row was read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", read)
    case = ROW_MODELS["logistic"]
    step, _ = bound(case.model(rng), case.domain(), read=False)
    with pytest.raises(AssertionError, match="a row was read"), opened_gate():
        step.load()


# --- law --------------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "variable", "held"),
    [
        ("zero-inflated", "rate", {"psi": 0.4, "rate": 1.0}),
        ("mixture", "w", {"w": 0.5, "mu": (-1.0, 1.5)}),
        ("clamped", "mu", {"mu": 0.0}),
        ("location", "mu", {"mu": 0.0}),
    ],
)
def test_conditionals_follow_the_tempered_density_of_the_rows(name, variable, held, rng):
    case, rows, step = rows_and_step(name, rng, 12, grid=40)
    values = {key: np.array(value) for key, value in held.items()}
    sample = np.array([update(step, variable).draw(rng, values, step.sums, BETA) for _ in range(500)])
    low, high = case.parameters[variable]

    def log_density(grid):
        prior = -0.5 * np.log(grid) - 0.3 * grid if variable == "rate" else 0.0
        places = {key: grid if key == variable else [value] * len(grid) for key, value in values.items()}
        return prior + BETA * log_likelihood(case, rows, places)

    assert follows(sample, log_density, low, high)


@pytest.mark.slow
def test_two_coefficients_follow_the_tempered_posterior(rng):
    """A whole chain of a logistic regression on a few hostile rows, β < 1: skewed, and its coefficients are coupled."""
    case = ROW_MODELS["logistic"]
    rows = {"X": np.array([[1.4, 0.3], [1.0, -1.0], [0.2, 1.2], [1.5, 0.0]]), "d": np.array([1, 1, 1, 1])}
    step, _ = bound(case.build(rows), case.domain(), 12.0, grid=40)
    assert 0.3 < step.beta < 0.9
    found = scans(step, 1500, rng)
    axes = [np.linspace(-2, 3, 201)] * 2
    first, second = np.meshgrid(*axes, indexing="ij")
    eta = rows["X"] @ np.stack([first.ravel(), second.ravel()])
    height = -(first**2 + second**2) / 2 - step.beta * np.logaddexp(0, -eta).sum(axis=0).reshape(first.shape)
    for place in range(2):
        check(found["b"][:, place], *marginal(lambda *_: height, axes, place))


@pytest.mark.slow
def test_exact_sums_and_rows_of_one_table(rng):
    """A probability that is the mean of a robust variable too: exact sums for one likelihood, rows for the other."""
    answers, values = np.array([0, 1, 1, 1, 0, 1]), rng.normal(0.5, 1.0, 6)
    with pm.Model() as model:
        p, q = pm.Uniform("p", 0.1, 0.9), pm.Uniform("q", 0.1, 0.9)
        pm.Bernoulli("z", p, observed=answers)
        pm.Bernoulli("other", q, observed=answers)
        pm.StudentT("y", nu=4, mu=p, sigma=1.0, observed=values)
    step, _ = bound(model, Domain(bounds={"y": (-3, 3)}), grid=40)
    assert [table.name for table in step.tables] == ["z", "other"] and [item.name for item in step.held] == ["y"]
    assert isinstance(update(step, "q"), BetaChance) and isinstance(update(step, "p"), Grid)
    ((both,),) = (update(step, "p").ranges,)
    alone = 2 * np.log(9)
    assert both > alone + 1 and "proved from the graph of y" in update(step, "p").reason
    sample = np.array([update(step, "p").draw(rng, {"p": 0.5, "q": 0.5}, step.sums, BETA) for _ in range(800)])
    ones, zeros = answers.sum(), (1 - answers).sum()

    def log_density(p):
        robust = -2.5 * np.log1p((values[:, None] - p) ** 2 / 4).sum(axis=0)
        return BETA * (ones * np.log(p) + zeros * np.log1p(-p) + robust)

    assert follows(sample, log_density, 0.1, 0.9)


@pytest.mark.slow
def test_levels_are_weighed_by_their_rows(rng):
    """A parameter of whole numbers has no cells between its levels: each counts what the rows add there."""
    rows = np.array([2.0, 1.5, 2.5])
    with pm.Model() as model:
        k = pm.DiscreteUniform("k", 0, 4)
        pm.StudentT("y", nu=4, mu=k, sigma=1.0, observed=pm.Data("d", rows))
    step, _ = bound(model, Domain(bounds={"y": (-1, 5)}), epsilon=1e9)
    found = update(step, "k")
    assert isinstance(found, Grid) and found.points.ravel().tolist() == [0, 1, 2, 3, 4]
    weights = stats.t.logpdf(rows[:, None], 4, np.arange(5)).sum(axis=0)
    expected = np.exp(weights - weights.max())
    draws = [int(found.draw(rng, {}, step.sums, 1.0)) for _ in range(4000)]
    shares = np.bincount(draws, minlength=5) / 4000
    assert shares == pytest.approx(expected / expected.sum(), abs=0.04)


def test_numbers_of_any_size_are_refused_though_what_a_row_moves_is_bounded():
    """A row of 1e300 would leave no digit to the others, and to the prior: they would be forgotten."""
    with pm.Model() as model:
        pm.Laplace("y", pm.TruncatedNormal("b", 0, 1, lower=-3, upper=3), 1.0, observed=np.zeros(4))
    with pytest.raises(UnsupportedModelError, match="leave floats no digits"):
        bound(model, None)
    step, _ = bound(model, Domain(bounds={"y": (-100, 100)}))
    assert step.scan.updates
