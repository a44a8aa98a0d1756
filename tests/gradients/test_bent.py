"""Scores that bend: straight ones stay, and those of saturated coefficients are followed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients import bent as module
from pymc_dp.gradients import fit
from pymc_dp.gradients.bent import Bent, apart, capped, followed
from pymc_dp.gradients.choice import Gradients
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.private_model import Quadratic
from pymc_dp.gradients.release import units
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits, Schedule, stages_of
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.walk import Found
from tests.gradients import models

SIZE = 4
PRIOR = Prior(mean=np.zeros(SIZE), precision=np.eye(SIZE))


@pytest.fixture
def made(rng, monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.simulated.DRAWS", 20)
    monkeypatch.setattr("pymc_dp.gradients.simulated.FEW", 400)
    rows = RowScores.of(interface_of(*models.bernoulli()), mode="FAST_COMPILE")
    found = Simulated.of(rows, {}, rng)
    vars(found)["scale"] = np.ones(SIZE)
    return found


def followed_above(monkeypatch, least):
    for name in ("FOLLOWED", "FOLLOWED_IN_NOISE"):
        monkeypatch.setattr(module, name, least)


def found_of(curvature, end, path):
    limits = Limits(scale=np.ones(SIZE), clip_norm=UNLIMITED, clip_curvature=UNLIMITED, basis=np.diag([1.0, 2, 1, 0.5]))
    mean = sum(weight * (gradient + curvature @ at) for weight, at, gradient in path)
    return Found(
        slope=mean,
        curvature=curvature,
        noise=20.0 * np.eye(SIZE),
        end=end,
        limits=limits,
        unresolved=0,
        chi_squared=1.0,
        degrees=1,
        path=tuple(path),
        rows=1.0,
    )


def curvature_of(made, at, count):
    factors = made.spread(at)
    return np.einsum("nqd,nqe->de", factors, factors) * count / len(factors)


@pytest.mark.slow
def test_at_the_end_the_curvature_is_the_released_one_and_columns_are_as_wide_as_it_says(made):
    end = np.array([0.3, 2.0, -1.0, 0.5])
    curvature = curvature_of(made.narrowed(0.25), end, 5000)
    found = found_of(curvature, end, [(1.0, end, np.zeros(SIZE))])
    bent = Bent.of(found, made, 5000)
    basis = found.limits.basis
    np.testing.assert_allclose(bent.curvature(bent.end), basis @ curvature @ basis, rtol=1e-8)
    width = np.ptp(bent.simulated.columns[0]) / np.ptp(made.columns[0])
    assert 0.2 < width < 0.4
    np.testing.assert_array_equal(bent.simulated.scale, made.scale)


def test_the_change_of_scores_is_the_integral_of_the_curvature(made):
    end = np.array([0.3, 2.0, -1.0, 0.5])
    found = found_of(curvature_of(made, end, 5000), end, [(1.0, end, np.zeros(SIZE))])
    bent, away = Bent.of(found, made, 5000), np.array([0.4, 0.3, -0.2, 0.5])
    steps = (np.arange(400) + 0.5) / 400
    wanted = np.mean([bent.curvature(bent.end + step * away) for step in steps], axis=0) @ away
    np.testing.assert_allclose(bent.change(bent.end + away)[0], wanted, rtol=1e-4)


def test_straight_scores_stay_as_they_are(made, monkeypatch):
    rng = np.random.default_rng(4)
    curvature = np.diag([300.0, 200, 100, 400]) + 20.0
    end, true = rng.normal(size=SIZE), rng.normal(size=SIZE)
    places = [end + 0.1 * rng.normal(size=SIZE) for _ in range(3)]
    found = found_of(curvature, end, [(1 / 3, at, curvature @ (true - at)) for at in places])
    straight = Quadratic.of(found, np.ones(SIZE))
    bent = Bent.of(found, made, 5000)
    same = found.limits.basis @ curvature @ found.limits.basis
    monkeypatch.setattr(Bent, "curvature", lambda self, at: same)
    followed_above(monkeypatch, -1.0)
    got = followed(found, straight, bent, PRIOR).posterior(PRIOR.mean, PRIOR.precision)
    wanted = straight.posterior(PRIOR.mean, PRIOR.precision)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def saturated(made):
    """Rows without privacy noise on the path, and with much of it charged: the end was short of the truth."""
    true = np.array([0.0, 6.0, 0.0, 0.0])
    end = 0.7 * true
    first = found_of(curvature_of(made, end, 3000), end, [(1.0, end, np.zeros(SIZE))])
    bent = Bent.of(first, made, 3000)
    basis = first.limits.basis
    score = np.linalg.solve(basis, bent.change(np.linalg.solve(basis, true))[0])
    found = replace(first, slope=score + first.curvature @ end, path=((1.0, end, score),))
    return true, found, bent, Quadratic.of(found, np.ones(SIZE))


def test_the_prior_draws_saturated_coefficients_less_to_its_mean(made, monkeypatch):
    followed_above(monkeypatch, -1.0)
    true, found, bent, straight = saturated(made)
    means = [
        one.posterior(PRIOR.mean, PRIOR.precision)[0] for one in (straight, followed(found, straight, bent, PRIOR))
    ]
    assert means[0][1] < means[1][1] < 1.2 * true[1]
    assert np.linalg.norm(means[1] - true) < np.linalg.norm(means[0] - true)


def test_scores_are_followed_where_that_moves_the_mean_and_else_nothing_changes(made, monkeypatch):
    _, found, bent, straight = saturated(made)
    straight, prior = replace(straight, scale=np.array([1.0, 0.5, 4, 2])), replace(PRIOR, mean=np.full(SIZE, 0.2))
    followed_above(monkeypatch, -1.0)
    nearest = followed(found, straight, bent, prior)
    plain = [replace(one, scale=np.ones(SIZE)) for one in (straight, nearest)]
    (mean, covariance), (other, _) = (one.posterior(prior.mean, prior.precision) for one in plain)
    moved = (other - mean) @ np.linalg.solve(covariance, other - mean) / SIZE
    followed_above(monkeypatch, moved * 0.999)
    np.testing.assert_array_equal(followed(found, straight, bent, prior).curvature, nearest.curvature)
    followed_above(monkeypatch, moved * 1.001)
    assert followed(found, straight, bent, prior) is straight


@pytest.mark.parametrize(("noise", "least"), [(0.3, "FOLLOWED_IN_NOISE"), (0.05, "FOLLOWED")])
def test_with_much_noise_scores_are_followed_from_a_smaller_shift_on(made, monkeypatch, noise, least):
    """Noise reaches far, to where scores bend; with little of it their own variance changes, too."""
    _, found, bent, straight = saturated(made)
    found = replace(found, noise=noise / (1 - noise) * found.curvature)
    straight = replace(straight, covariance=found.curvature + found.noise)
    followed_above(monkeypatch, np.inf)
    monkeypatch.setattr(module, least, -1.0)
    assert followed(found, straight, bent, PRIOR) is not straight
    monkeypatch.setattr(module, least, np.inf)
    assert followed(found, straight, bent, PRIOR) is straight


@pytest.mark.parametrize(("noise", "used"), [(0.3, True), (0.05, False)])
def test_noise_that_hides_a_curvature_does_not_keep_scores_from_being_followed(made, monkeypatch, noise, used):
    """Of a saturated coefficient made-up rows have next to no curvature, and what noise leaves of it is far more."""
    end = np.array([0.0, 60.0, 0.0, 0.0])
    curvature = curvature_of(made, end, 1000)
    curvature += np.diag(np.full(SIZE, np.diag(curvature).max() / 10))
    found = found_of(curvature, end, [(1.0, end, np.ones(SIZE))])
    found = replace(found, noise=noise / (1 - noise) * curvature)
    assert Bent.of(found, made, found.rows).strained
    monkeypatch.setattr(fit, "followed", lambda _, quadratic, *__: replace(quadratic, slope=quadratic.slope + 1))
    got = planned_of(found, made).quadratic(found)
    np.testing.assert_allclose(got.slope - found.slope, 1.0 * used)


def test_columns_are_drawn_no_wider_than_is_enough(made, monkeypatch):
    end, narrowed, tried = np.array([0.2, -0.3, 0.1, 0.4]), type(made).narrowed, []
    curvature = curvature_of(made.narrowed(0.25), end, 5000)
    found = found_of(curvature, end, [(1.0, end, np.zeros(SIZE))])
    monkeypatch.setattr(type(made), "narrowed", lambda self, width: tried.append(width) or narrowed(self, width))
    best = Bent.of(found, made, 5000).simulated
    widths = np.geomspace(module.NARROWEST, 1.0, module.WIDTHS)
    factors = [narrowed(made, width).clipped(end, found.limits, module.CHOOSING) for width in widths]
    sizes = np.array([(one**2).sum(axis=(1, 2)).mean() for one in factors])
    basis = found.limits.basis
    enough = np.flatnonzero(sizes * 5000 >= np.trace(basis @ curvature @ basis))[0]
    assert 0 < enough < module.WIDTHS - 1 and max(tried) < 1.0
    np.testing.assert_array_equal(best.columns[0], narrowed(made, widths[enough]).columns[0])


def test_rows_of_known_columns_are_as_they_are(made, monkeypatch):
    end = np.zeros(SIZE)
    stated = replace(made, loose={})
    vars(stated)["scale"] = made.scale
    found = found_of(curvature_of(made, end, 5000), end, [(1.0, end, np.zeros(SIZE))])
    assert Bent.of(found, stated, 5000).simulated is stated


@pytest.mark.parametrize(("followed_from", "rounds"), [(-1.0, module.ROUNDS), (np.inf, 1)])
def test_no_round_of_the_search_is_made_twice(made, monkeypatch, followed_from, rounds):
    _, found, bent, straight = saturated(made)
    change, calls = Bent.change, []
    monkeypatch.setattr(Bent, "change", lambda self, at, *rule: calls.append(0) or change(self, at, *rule))
    followed_above(monkeypatch, followed_from)
    monkeypatch.setattr(module, "SETTLED", -1.0)
    followed(found, straight, bent, PRIOR)
    assert len(calls) == len(found.path) + rounds * len(module._draws(SIZE))


def test_the_search_ends_where_it_has_settled_near_where_it_would_end(made, monkeypatch):
    _, found, bent, straight = saturated(made)
    followed_above(monkeypatch, -1.0)
    monkeypatch.setattr(module, "ROUNDS", 40)
    change, calls = Bent.change, []
    monkeypatch.setattr(Bent, "change", lambda self, at, *rule: calls.append(0) or change(self, at, *rule))
    near = followed(found, straight, bent, PRIOR).posterior(PRIOR.mean, PRIOR.precision)
    assert len(calls) < len(found.path) + 40 * len(module._draws(SIZE))
    monkeypatch.setattr(module, "SETTLED", -1.0)
    mean, covariance = followed(found, straight, bent, PRIOR).posterior(PRIOR.mean, PRIOR.precision)
    off = near[0] - mean
    assert off @ np.linalg.solve(covariance, off) < 0.1**2 * SIZE
    np.testing.assert_allclose(np.diag(near[1]), np.diag(covariance), rtol=0.1)


@pytest.mark.parametrize("size", [1, 3, 4, 10, 16, 40])
def test_positions_have_the_moments_of_a_standard_normal(size):
    draws = module._draws(size)
    assert 2 * module.FEWEST <= len(draws) <= 2 * module.MOST
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=1e-12)
    if 2 * size <= len(draws):
        np.testing.assert_allclose(draws.T @ draws / len(draws), np.eye(size), atol=1e-10)


def planned_of(found, made):
    return fit.Planned(
        choice=Gradients(conservative=True),
        interface=made.rows.interface,
        simulated=made,
        moments=Moments(entries=()),
        start=np.zeros(SIZE),
        limits=found.limits,
        schedule=Schedule(stages=stages_of(10), units=units(SIZE, "replace"), multiplier=1.0),
        prior=PRIOR,
        early=None,
        budget=dp.Budget(1.0, 1e-5),
        descent=None,
    )


def fails(*_):
    raise np.linalg.LinAlgError("Singular matrix")


def singular(found, quadratic, *_):
    return replace(quadratic, covariance=np.zeros_like(quadratic.covariance))


def unknown(found, quadratic, *_):
    return replace(quadratic, curvature=np.full_like(quadratic.curvature, np.nan))


FAILURES = [("Bent", SimpleNamespace(of=fails)), ("followed", singular), ("followed", unknown)]


@pytest.mark.parametrize(("name", "stand_in"), FAILURES)
def test_a_release_that_was_paid_for_is_not_lost_where_scores_cannot_be_followed(made, monkeypatch, name, stand_in):
    _, found, _, straight = saturated(made)
    monkeypatch.setattr(fit, name, stand_in)
    monkeypatch.setattr(fit, "bends", lambda quadratic, *_: np.zeros(len(quadratic.slope)))
    got = planned_of(found, made).quadratic(found)
    np.testing.assert_array_equal(got.covariance, straight.covariance)


def test_made_up_rows_that_had_to_be_turned_far_say_nothing(made, monkeypatch):
    """A column near one of its bounds: rows around the middle have another curvature altogether."""
    end = np.array([0.3, 0.5, -0.2, 0.5])
    curvature = curvature_of(made, end, 1000)
    assert not Bent.of(found_of(curvature, end, []), made, 1000).strained
    skewed = np.diag([1.0, 400, 1, 1]) @ curvature @ np.diag([1.0, 400, 1, 1])
    assert Bent.of(found_of(skewed, end, []), made, 1000).strained


@pytest.mark.slow
def test_columns_of_which_a_trace_says_nothing_are_wide_enough_to_tell_slopes_from_intercepts(monkeypatch):
    """An intercept and a slope for each group: rows in the middle of x have all of the trace, in one direction."""
    monkeypatch.setattr("pymc_dp.gradients.simulated.DRAWS", 20)
    rng = np.random.default_rng(7)
    with pm.Model() as model:
        b, group = pm.Normal("b", 0, 1, shape=(4, 2)), pm.Data("group", np.arange(200) % 4)
        mean = b[group, 0] + b[group, 1] * pm.Data("x", np.zeros(200))
        pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=np.zeros(200))
    domain = dp.Domain(bounds={"x": (0, 9), "y": (-50, 50)})
    rows = RowScores.of(interface_of(model, domain), mode="FAST_COMPILE")
    made = Simulated.of(rows, {}, rng)
    size = len(made.scale)
    end = np.zeros(size)
    curvature = curvature_of(made, end, 200)
    limits = Limits(scale=made.scale, clip_norm=UNLIMITED, clip_curvature=UNLIMITED)
    limits = limits.whitened(curvature, 200).relaxed(1.0, 1.0)
    found = replace(found_of(np.eye(SIZE), np.zeros(SIZE), []), curvature=0.7 * curvature, end=end, limits=limits)
    narrow = next(module._narrowed(made, end, limits, 0.0))
    assert Bent._turned(found, narrow, end, limits.basis @ found.curvature @ limits.basis).strained
    best = Bent.of(found, made, 200)
    assert not best.strained and np.ptp(best.simulated.columns[0]) > 2 * np.ptp(narrow.columns[0])


def test_what_clipping_leaves_of_slopes_is_known(made):
    end = np.array([0.3, 0.5, -0.2, 0.5])
    found = found_of(curvature_of(made, end, 1000), end, [])
    np.testing.assert_allclose(Bent.of(found, made, 1000).kept, 1.0)
    halved = replace(found, limits=replace(found.limits, clip_norm=0.5, clip_curvature=0.1))
    kept = Bent.of(halved, made, 1000).kept
    assert (kept > 0).all() and (kept < 0.9).all()


def test_a_bent_precision_is_in_no_direction_larger_than_a_straight_one(rng):
    parts = rng.normal(size=(2, SIZE, 9))
    one, other = (part @ part.T for part in parts)
    found = capped(one, other)
    assert np.linalg.eigvalsh(other - found).min() > -1e-9 and np.linalg.eigvalsh(one - found).min() > -1e-9
    np.testing.assert_allclose(capped(0.5 * other, other), 0.5 * other, atol=1e-9)
    np.testing.assert_allclose(capped(1e3 * other, other), other, rtol=1e-9)


def test_a_bent_posterior_is_no_surer_than_the_straight_one(made, monkeypatch):
    _, found, bent, straight = saturated(made)
    followed_above(monkeypatch, -1.0)
    monkeypatch.setattr(module, "_averaged", lambda *_: iter([(1e6 * np.eye(SIZE), np.ones(SIZE))]))
    nearest = followed(found, straight, bent, PRIOR)
    assert nearest is not straight
    wide, narrow = (one.posterior(PRIOR.mean, PRIOR.precision)[1] for one in (straight, nearest))
    assert np.linalg.eigvalsh(narrow - wide).min() > -1e-9


def test_how_far_bent_and_straight_posteriors_are_apart_is_in_the_wider_of_both():
    straight = Quadratic(slope=np.zeros(1), curvature=4 * np.eye(1), covariance=4 * np.eye(1), scale=np.ones(1))
    sharp = Quadratic(slope=np.full(1, 100.0), curvature=100 * np.eye(1), covariance=100 * np.eye(1), scale=np.ones(1))
    prior = Prior(mean=np.zeros(1), precision=1e-9 * np.eye(1))
    for pair in ((straight, sharp), (sharp, straight)):
        assert apart(*pair, prior) == pytest.approx(2.0, rel=1e-3)
