"""Ranges over candidates that are found on public rows, against other rows and other points; and how choices fall."""

import re
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import chisquare

import pymc_dp as dp
from pymc_dp.accounting import BoundedRangeEvent
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.priors import priors_of
from pymc_dp.rows.gate import opened_gate
from pymc_dp.samplers.row_scores import RowScores
from pymc_dp.step_methods.ops.grid import grid_of
from pymc_dp.transforms.prior_model import shared_prior_model

X = np.linspace(-1, 1, 40)


def robust():
    pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=pm.Uniform("sigma", 0.3, 2), observed=X)
    return {"bounds": {"y": (-3, 3)}}


def logistic():
    x = pm.Data("x", X)
    eta = pm.Uniform("a", -2, 2) + pm.Uniform("b", -2, 2) * x
    pm.Bernoulli("y", logit_p=eta, observed=np.arange(40) % 2)
    return {"bounds": {"x": (-1, 1)}}


def public_predictor():
    x = pm.Data("x", X)
    pm.Poisson("y", pt.exp(pm.Uniform("a", -1, 1) + pm.Uniform("b", -1, 1) * x), observed=np.arange(40) % 5)
    return {"bounds": {"y": (0, 9)}, "public": ["x"]}


def within_a_norm():
    x = pm.Data("x", np.stack([X, X[::-1]], axis=1))
    pm.Bernoulli("y", logit_p=x @ pm.Uniform("b", -3, 3, shape=2), observed=np.arange(40) % 2)
    return {"norms": {"x": 1.5}}


def one_of_three():
    which = pm.Data("which", np.arange(40) % 3)
    pm.Laplace("y", pm.Uniform("mu", -1, 1) * which, 1.0, observed=X)
    return {"bounds": {"y": (-2, 2), "which": (0, 2)}}


def made(build, neighbours="replace", count=24):
    with pm.Model() as model:
        given = build()
    n_max = 50 if neighbours == "add_remove" else None
    found = inspect(model, dp.Domain(**given, neighbours=neighbours, n_max=n_max)).rows
    prior_model = shared_prior_model(found)
    points, _ = grid_of(priors_of(prior_model), count)
    return RowScores(found, prior_model, points)


def other_rows(scores, rng, count=4000):
    found = {}
    for name, column in scores._rows.columns.items():
        var, (low, high) = scores._rows.inputs[name], column.ends
        if column.public and scores._replace:
            values = np.broadcast_to(rng.choice(X, (count, *[1] * len(var.type.shape))), (count, *var.type.shape))
        elif column.norm is not None:
            directions = rng.normal(size=(count, *var.type.shape))
            values = column.norm * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        else:
            values = low + (high - low) * rng.choice([0.0, 1.0, *rng.random(6)], (count, *var.type.shape))
        found[name] = (np.rint(values) if column.integer else values).astype(var.type.dtype)
    return found


BUILDS = robust, logistic, within_a_norm, one_of_three


@pytest.mark.parametrize(
    ("build", "neighbours"), [*product(BUILDS, ("replace", "add_remove")), (public_predictor, "replace")]
)
def test_a_found_range_is_that_of_other_rows_too_and_hardly_more(build, neighbours, rng):
    scores = made(build, neighbours)
    found = scores._near.at(other_rows(scores, rng), scores.points)
    alike = [held for name, held in other_rows(scores, rng).items() if scores._rows.columns[name].public]
    if neighbours == "add_remove":
        largest = float(np.ptp(found, axis=1).max())
    elif alike:  # neighbours differ in private values alone
        rows = other_rows(scores, rng)
        (y,) = [name for name in rows if not scores._rows.columns[name].public]
        ends = [scores._near.at({**rows, y: np.full_like(rows[y], end)}, scores.points) for end in (0, 9)]
        largest = float(np.ptp(ends[1] - ends[0], axis=1).max())
    else:
        far = found[np.argsort(np.ptp(found - found[0], axis=1))[-100:]]
        largest = max(float(np.ptp(found - row, axis=1).max()) for row in far)
    # What is charged is twice the range about a centre, which is no seminorm of two rows where several numbers count.
    assert largest * 0.999 <= scores.range <= largest * (1.15 if build is robust else 1.01)


@pytest.mark.usefixtures("begins")
def test_choices_fall_as_the_tempered_posterior_says_and_are_paid_for_once():
    scores = made(robust, count=5)
    uses, beta = 4000, 0.05
    event = BoundedRangeEvent(eta=beta * scores.range * (1 + 1e-12) + scores.slack)
    with opened_gate():
        scores.load()
    public = np.linspace(0, 1, len(scores.points))
    with pytest.raises(PrivacyError, match="setup_chain"):
        scores.choose(beta, public)
    with dp.testing.insecure_randomness(3):
        scores.begin(event, uses)
        chosen = np.bincount([scores.choose(beta, public) for _ in range(uses)], minlength=len(scores.points))
    with pytest.raises(BudgetExceeded, match="No use"):
        scores.choose(beta, public)
    y = next(iter(scores._rows.columns))
    exact = public + beta * scores._near.at({y: X}, scores.points).sum(axis=0)
    chance = np.exp(exact - exact.max())
    assert chisquare(chosen, uses * chance / chance.sum()).pvalue > 1e-3
    scores.forget()


def test_centres_of_public_rows_are_added_again():
    scores = made(public_predictor, count=8)
    with opened_gate():
        scores.load()
    scores.compile()
    rows = {name: np.asarray(X if one.public else np.arange(40) % 5) for name, one in scores._rows.columns.items()}
    rows = {name: held.astype(scores._rows.inputs[name].type.dtype) for name, held in rows.items()}
    held = scores._map.on(rows, [scores.points, scores._centre], len(scores.points)).sum(axis=0)
    assert held + scores._offset == pytest.approx(scores._near.at(rows, scores.points).sum(axis=0))


def wide(kind=int):
    x = pm.Data("x", (np.arange(40 * 60).reshape(40, 60) % 3 == 0).astype(kind))
    pm.Bernoulli("y", logit_p=pm.Uniform("b", -1, 1) * (x @ pt.ones(60)), observed=np.arange(40) % 2)
    return {"bounds": {"x": (0, 1)}}


@pytest.mark.parametrize("kind", [int, float])
def test_the_range_of_rows_of_many_numbers_is_found(kind):
    """The farthest row has all of its 60 entries at one end, which no row at random has."""
    scores = made(lambda: wide(kind), count=24)
    assert scores.range == pytest.approx(2 * 60 * (1 - 1 / 24), rel=0.01)


def test_a_mode_of_very_many_rows_is_not_at_an_edge():
    """Their centre adds up to far more than what tells candidates apart."""
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", -8, 8), 1.0, observed=np.tile([3.0, 5.0], 50_000))
    domain = dp.Domain(bounds={"y": (0, 5)})
    found = dp.find_map(epsilon=1.0, model=model, domain=domain, grid=1024, ledger=dp.Ledger(1.0), progressbar=False)
    assert float(found["posterior"]["mu"].squeeze()) == pytest.approx(4.0, abs=0.1)


def on_fair(names):
    """6,366 answers on affairs, with predictors between -1 and 1."""
    table = pytest.importorskip("statsmodels.api").datasets.fair.load_pandas().data
    x = table[names].to_numpy()
    x = 2 * (x - x.min(axis=0)) / np.ptp(x, axis=0) - 1
    with pm.Model() as model:
        logit = pm.Data("x", x) @ pm.Uniform("b", -3, 3, shape=len(names))
        pm.Bernoulli("y", logit_p=logit, observed=(table["affairs"] > 0).to_numpy().astype(int))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def test_no_row_of_a_real_table_is_cut_and_its_mode_is_chosen():
    model, domain = on_fair(["religious", "rate_marriage"])
    found = inspect(model, domain).rows
    prior_model = shared_prior_model(found)
    points, _ = grid_of(priors_of(prior_model), 41)
    scores = RowScores(found, prior_model, points)
    with opened_gate():
        scores.load()
    rows = {name: column.values for name, column in scores._table.columns.items()}
    each = scores._near.at(rows, points)
    assert np.ptp(each - scores._centre, axis=1).max() <= scores.range / 2 * (1 + 1e-9)
    ledger = dp.Ledger(1.0)
    idata = dp.find_map(epsilon=1.0, model=model, domain=domain, grid=41, ledger=ledger, progressbar=False)
    chosen, total = int(idata["sample_stats"]["candidate"].squeeze()), each.sum(axis=0)
    near = float(re.search("within ([\\d.]+) of", str(idata.dp.report().record["sampler"]["facts"]))[1])
    assert total[chosen] > total.max() - 2 * near


def test_a_clamped_likelihood_needs_no_bounds_of_values():
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=1.0, observed=X)
    found = inspect(dp.clamp(model, low=-4, high=-0.5)).rows
    prior_model = shared_prior_model(found)
    points, _ = grid_of(priors_of(prior_model), 16)
    assert 0 < RowScores(found, prior_model, points).range <= 2 * 3.5


def test_rows_that_tell_nothing_or_anything_are_refused():
    def nothing():
        pm.Uniform("y", 0, pm.Uniform("m", 2, 3), observed=X + 1)
        return {"bounds": {"y": (0, 1)}}

    def anything():
        pm.Laplace("y", pm.Uniform("m", 0, 3), 1.0, observed=X)
        return {}

    def infinite():
        pm.Uniform("y", 0, pm.Uniform("m", 0.5, 3), observed=X + 1)
        return {"bounds": {"y": (0, 1)}}

    for build, text in (
        (nothing, "Give other candidates"),
        (anything, "'y': \\(low, high\\)"),
        (infinite, "infinite or NaN"),
    ):
        with pytest.raises(dp.errors.UnsupportedModelError, match=text):
            made(build)
