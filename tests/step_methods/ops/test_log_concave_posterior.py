"""Exact draws by rejection from log-concave posteriors, through the step, against quadrature and closed forms."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats

from pymc_dp.accounting import BoundedRangeEvent, GDPEvent
from pymc_dp.domain import Domain
from pymc_dp.draws.log_concave import envelope_at
from pymc_dp.draws.log_concave_box import FaceEnvelope, mode_in_box
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.step_methods.ops.from_rows import LogConcavePosterior, RowGridPosterior
from tests.step_methods.ops.models import LINES, bound, draws, logistic, poisson
from tests.step_methods.ops.test_from_rows import cdf

ALPHA = 0.001
WIDE = [pytest.param(bounds, marks=pytest.mark.slow) for bounds in ((-1.0, 2.5), (0.0, None))]
"""Limits of the boxes that the slow tests look at beside none."""


def exact(model, public, epsilon, delta=1e-6, **settings):
    step, event = bound(model, public, epsilon, delta, **settings)
    assert isinstance(step.posterior, LogConcavePosterior) and step.claimed == "exact"
    return step, event


def huber(value, mu):
    apart = value - mu
    return pt.switch(pt.abs(apart) < 1, -(apart**2) / 2, 0.5 - pt.abs(apart))


def huber_logp(apart):
    return np.where(np.abs(apart) < 1, -(apart**2) / 2, 0.5 - np.abs(apart))


# --- one dimension ----------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["mixed", "separable", "none"])
def test_one_coefficient_of_a_logistic_regression_is_drawn_exactly(kind, rng):
    pairs = {"mixed": [(1.0, 1), (0.5, 0), (-1.0, 1)] * 7, "separable": [(1.0, 1), (-1.0, 0)] * 50, "none": []}[kind]
    relation = {"neighbours": "add_remove", "n_max": 500}
    step, _ = exact(logistic(pairs), Domain(bounds={"x": (-1, 1)}, **relation), 20.0)
    at = np.linspace(-24, 24, 20_001)
    x, y = np.asarray(pairs).reshape(-1, 2).T
    held = LINES["logistic"].logp(at[:, None], x, y).sum(axis=1)
    law = stats.norm.logpdf(at, 0, 2) + step.temperature.inverse * held
    assert stats.kstest(draws(step, 400, rng)["b"], cdf(at, law)).pvalue > ALPHA


@pytest.mark.slow
def test_one_coefficient_of_a_poisson_regression_is_drawn_exactly(rng):
    """Its bounds let it be drawn from a grid as well."""
    pairs = [(1.0, 10), (0.3, 2), (-0.5, 0)] * 9
    step, _ = bound(poisson(pairs, 1.5, 0.2), Domain(bounds={"x": (-1, 1), "y": (0, 10)}), 30.0, 1e-6)
    at = np.linspace(-1.5, 1.5, 8001)
    held = LINES["Poisson"].logp(at[:, None], *np.asarray(pairs).T).sum(axis=1)
    law = stats.norm.logpdf(at, 0, 0.2) + step.temperature.inverse * held
    assert [type(way) for way in step.ways] == [RowGridPosterior, LogConcavePosterior, LogConcavePosterior]
    for way in step.ways:
        step.posterior = way
        assert stats.kstest(draws(step, 300, rng)["b"], cdf(at, law)).pvalue > ALPHA


@pytest.mark.slow
def test_a_location_under_hubers_loss_is_drawn_exactly(rng):
    y = np.append(stats.norm(1).rvs(40, random_state=1), [5.0, 5.0, 5.0])
    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("mu", 0, 3), logp=huber, observed=y)
    step, _ = exact(model, Domain(bounds={"y": (-5, 5)}), 20.0)
    at = np.linspace(-30, 30, 40_001)
    law = stats.norm.logpdf(at, 0, 3) + step.temperature.inverse * huber_logp(y[:, None] - at).sum(axis=0)
    assert stats.kstest(draws(step, 400, rng)["mu"], cdf(at, law)).pvalue > ALPHA


@pytest.mark.few(1)
@pytest.mark.parametrize(("grid", "sd"), [(2, 1.0), (None, 1e-4)])
def test_no_grid_is_drawn_from_at_a_price_that_log_concavity_sets(grid, sd):
    """Two cells about a prior's mode lie further apart than its sd: a row moves them by more than mu says."""
    options = {} if grid is None else {"grid": grid}
    step, event = bound(logistic([(1.0, 1)], 10.0, sd), Domain(bounds={"x": (-1, 1)}), 1.0, 1e-6, read=False, **options)
    assert isinstance(event.event, GDPEvent)
    assert isinstance(step.ways[0], RowGridPosterior) and isinstance(step.posterior, LogConcavePosterior)


def test_a_grid_is_drawn_from_by_range_where_rejection_could_take_too_long(monkeypatch):
    public = Domain(bounds={"x": (-1, 1)})
    monkeypatch.setattr(LogConcavePosterior, "obstacle", lambda *args: "it takes long")
    step, event = bound(logistic([(1.0, 1)], 10.0, 1.0), public, 1.0, 1e-6, read=False)
    assert isinstance(step.posterior, RowGridPosterior) and isinstance(event.event, BoundedRangeEvent)


# --- several ----------------------------------------------------------------------------------------------------------


def regression(x, y, wide=None, sd=2.0):
    lower, upper = (None, None) if wide is None else wide
    with pm.Model() as model:
        if wide is None:
            b = pm.Normal("b", 0, sd, shape=3)
        else:
            b = pm.TruncatedNormal("b", 0, sd, lower=lower, upper=upper, shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=y)
    return model


def quadrature(logp, low, high, panels=9):
    """Places in three dimensions, their probabilities, and the logarithm of the mass of a density."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    axes, masses = [], []
    for a, b in zip(low, high, strict=True):
        half = (b - a) / panels / 2
        axes.append((np.linspace(a + half, b - half, panels)[:, None] + half * nodes).ravel())
        masses.append(np.tile(half * weights, panels))
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    logs = logp(grid) + np.log(np.multiply.outer(np.multiply.outer(*masses[:2]), masses[2])).ravel()
    total = special.logsumexp(logs)
    return grid, np.exp(logs - total), total


def agrees(sample, grid, mass):
    """Means, second moments and their products within 4.5 standard errors."""
    for power in (lambda b: b, lambda b: b**2, lambda b: b * np.roll(b, 1, axis=1)):
        found, wanted = power(sample), mass @ power(grid)
        assert (np.abs(found.mean(axis=0) - wanted) < 4.5 * found.std(axis=0) / np.sqrt(len(found))).all()


def table(rng, n=60):
    x = rng.normal(size=(n, 3))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    return x, (rng.random(n) < special.expit(x @ [3.0, -2.0, 0.5])).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [None, *WIDE])
def test_three_coefficients_of_a_logistic_regression_are_drawn_exactly(wide, rng):
    x, y = table(rng)
    step, _ = exact(regression(x, y, wide), Domain(norms={"x": 1.0}), 50.0)
    low, high = (-9, 9) if wide is None else (wide[0], wide[1] or 9)
    inverse = step.temperature.inverse

    def logp(b):
        eta = b @ x.T
        return -(b**2).sum(axis=1) / 8 + inverse * np.where(y == 1, -np.logaddexp(0, -eta), -np.logaddexp(0, eta)).sum(
            1
        )

    sample = draws(step, 300, rng)["b"]
    assert ((low <= sample) & (sample <= high)).all()
    agrees(sample, *quadrature(logp, [low] * 3, [high] * 3)[:2])


@pytest.mark.slow
def test_normal_regression_has_the_normal_posterior(rng):
    x, _ = table(rng, 40)
    y = np.clip(x @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=40), -2, 2)
    with pm.Model() as model:
        b = pm.TruncatedNormal("b", 0, 0.5, lower=-4, upper=4, shape=3)
        pm.Normal("y", pm.Data("x", x) @ b, 0.5, observed=y)
    step, _ = exact(model, Domain(norms={"x": 1.0}, bounds={"y": (-2, 2)}), 300.0)
    inverse = step.temperature.inverse
    precision = 4 * np.eye(3) + 4 * inverse * x.T @ x  # bounds of 8 standard deviations cut off nothing
    spread = np.linalg.cholesky(np.linalg.inv(precision))
    sample = np.linalg.solve(spread, (draws(step, 300, rng)["b"] - np.linalg.solve(precision, 4 * inverse * x.T @ y)).T)
    assert inverse > 0.1
    assert all(stats.kstest(axis, stats.norm.cdf).pvalue > ALPHA for axis in sample)


# --- what could take too long -----------------------------------------------------------------------------------------


def target_of(step):
    """The density that a step draws from, and its mode."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pymc_dp.step_methods.ops.from_rows.draw_in_box", lambda *args: seen.append(args) or args[2])
        draws(step, 1, np.random.default_rng(0))
    (_, target, start), *_ = seen
    return target, mode_in_box(target, start)


def faces(target, point):
    low, high = target.box
    gradient = target.gradient(point)
    return FaceEnvelope(gradient=gradient, strong=target.strong, low=low - point, high=high - point)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [None, *WIDE])
def test_the_share_that_is_accepted_is_never_below_what_is_promised(wide):
    """Rows that push all coefficients out of the box, or along one direction, or in all."""
    for x in (-np.ones((40, 3)) / 3**0.5, np.tile([1.0, 0, 0], (40, 1)), np.tile(np.eye(3), (14, 1))[:40]):
        step, _ = exact(regression(x, np.ones(40, dtype=int), wide), Domain(norms={"x": 1.0}), 50.0)
        posterior, inverse = step.posterior, step.temperature.inverse
        target, point = target_of(step)
        low, high = (np.where(np.isfinite(end), end, sign * 12) for end, sign in zip(target.box, (-1, 1), strict=True))
        *_, total = quadrature(target.at, low, high, panels=15)
        masses = [envelope_at(target, point).log_mass, faces(target, point).log_mass]
        accepted = total - target.at(point[None])[0] - min(masses) - 1.5 * np.log(2 * np.pi)
        assert accepted - 6 < posterior.share(inverse, posterior._strong()) <= accepted + 1e-3


def many(wide, d, n=20):
    with pm.Model() as model:
        limits = {} if wide is None else {"lower": -wide, "upper": wide}
        b = (pm.Normal if wide is None else pm.TruncatedNormal)("b", 0, 3, shape=d, **limits)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((n, d))) @ b, observed=np.zeros(n, dtype=int))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize("wide", [None, 5.0])
def test_what_could_take_too_long_for_some_data_is_refused_for_all(wide, blind):
    with pytest.raises(UnsupportedModelError, match="rejection may need 1e.* proposals for 100 parameters and 20000"):
        bound(many(wide, 100, 20_000), Domain(norms={"x": 1.0}), 3.0, 1e-6, read=False)
    step, _ = exact(many(wide, 3), Domain(norms={"x": 1.0}), 3.0, read=False)
    assert step.posterior.obstacle(step.temperature.inverse, False) == ""


@pytest.mark.slow
def test_a_prior_that_is_tempered_too_is_wider_and_needs_more_tries():
    step, _ = exact(many(5.0, 3), Domain(norms={"x": 1.0}), 3.0, read=False)
    posterior, strong = step.posterior, step.posterior._strong()
    assert posterior.share(0.1, 0.1 * strong) < posterior.share(0.1, strong)


def test_in_several_dimensions_priors_must_be_normal():
    """The bound of the number of tries knows no other; the price would."""
    with pm.Model() as model:
        b = pm.Beta("b", 2, 2, shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((9, 3))) @ b, observed=np.zeros(9, dtype=int))
    with pytest.raises(UnsupportedModelError, match="needs normal priors"):
        bound(model, Domain(norms={"x": 1.0}), 3.0, 1e-6)


def test_a_step_can_be_sent_to_another_process():
    """The rules that proved it go with it: NumPy's own decorator of theirs could not."""
    step, _ = exact(logistic([(1.0, 1), (-1.0, 0)]), Domain(bounds={"x": (-1, 1)}), 2.0)
    again = pickle.loads(cloudpickle.dumps(step))
    assert draws(again, 1, np.random.default_rng(1)) == draws(step, 1, np.random.default_rng(1))
