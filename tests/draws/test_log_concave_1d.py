"""Draws from one-dimensional log-concave densities have their law at every scale; the reference is a quadrature."""

import numpy as np
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.draws.log_concave_1d import WORST_ACCEPTANCE, draw_log_concave, tangents
from tests.draws.regressions import HUBER, LAPLACE, LOGISTIC, NORMAL, POISSON, PROBIT
from tests.draws.test_truncated import cumulative

N = 4000
ALPHA = 0.001
INF = np.inf


@pytest.fixture
def rng(seed, request):
    return np.random.default_rng([seed, *request.node.name.encode()])


def line(family, z, y, scale=1.0, beta=1.0):
    """Posterior of one coefficient under N(0, scale^2), where z / scale are the rows: its log density and its slope."""

    def log_density(x):
        return beta * family.f(np.multiply.outer(np.asarray(x) / scale, z), y).sum(axis=-1) - (x / scale) ** 2 / 2

    def slope(x):
        eta = np.multiply.outer(np.asarray(x) / scale, z)
        return (beta * (family.slope(eta, y) * z).sum(axis=-1) - x / scale) / scale

    return log_density, slope


POSTERIORS = {
    "logistic, separable": (LOGISTIC, np.linspace(0.5, 2, 30), np.ones(30)),
    "logistic, many rows": (LOGISTIC, np.linspace(-1, 2, 400), (np.arange(400) % 3 > 0).astype(float)),
    "poisson": (POISSON, np.linspace(-1, 2, 12), np.array([0, 0, 1, 0, 2, 1, 0, 0, 3, 1, 0, 0.0])),
    "poisson, all zero": (POISSON, np.full(20, 1.5), np.zeros(20)),
    "probit": (PROBIT, np.linspace(0.1, 3, 15), np.ones(15)),
    "huber": (HUBER, np.array([1.0, 1, 1, 2, -1]), np.array([0.0, 8, 9, 1, 3])),
    "laplace": (LAPLACE, np.array([1.0, 1, 1, 2, -1]), np.array([0.0, 2, 2.5, 1, 3])),
    "normal": (NORMAL, np.array([3.0, 1.0]), np.array([1.0, -2.0])),
    "no rows": (LOGISTIC, np.empty(0), np.empty(0)),
}

SHAPES = {
    "normal": (lambda x: -(x**2) / 2, lambda x: -x, -INF, INF, 0.1),
    "laplace": (lambda x: -np.abs(x), lambda x: -np.sign(x), -INF, INF, 3.0),
    "laplace, from its kink": (lambda x: -np.abs(x), lambda x: -np.sign(x), -INF, INF, 0.0),
    "two kinks": (
        lambda x: -np.abs(x) - 40 * np.abs(x - 1),
        lambda x: -np.sign(x) - 40 * np.sign(x - 1),
        -INF,
        INF,
        5.0,
    ),
    "uniform": (lambda x: 0 * x, lambda x: 0 * x, -2.0, 5.0, -2.0),
    "uniform, its ends unknown": (
        lambda x: np.where((x > 1) & (x < 2), 0.0, -INF),
        lambda x: 0 * x,
        -INF,
        INF,
        1.3,
    ),
    "exponential": (lambda x: -3 * x, lambda x: -3 + 0 * x, 0.0, INF, 20.0),
    "rising": (lambda x: 50 * x, lambda x: 50 + 0 * x, -INF, 1.0, 0.0),
    "flat top": (lambda x: -np.maximum(np.abs(x) - 10, 0.0), lambda x: -np.sign(x) * (np.abs(x) > 10), -INF, INF, 9.0),
    "power": (lambda x: -(x**20), lambda x: -20 * x**19, -INF, INF, 2.0),
    "gumbel": (lambda x: -x - np.exp(-x), lambda x: -1 + np.exp(-x), -INF, INF, -300.0),
    "semicircle": (lambda x: np.log(1 - x * x) / 2, lambda x: -x / (1 - x * x), -1.0, 1.0, 0.99),
    "gamma": (lambda x: 2 * np.log(x) - x, lambda x: 2 / x - 1, 0.0, INF, 1e-9),
    "normal, far tail": (lambda x: -(x**2) / 2, lambda x: -x, 30.0, INF, 1e5),
    "normal, far tail to the left": (lambda x: -(x**2) / 2, lambda x: -x, -60.0, -30.0, -60.0),
    "normal, narrow": (lambda x: -(((x - 1) / 1e-8) ** 2) / 2, lambda x: -(x - 1) / 1e-16, -INF, INF, -7.0),
}


@pytest.mark.few(9)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", POSTERIORS)
def test_draws_follow_posteriors_at_every_scale(rng, name, scale):
    log_density, slope = line(*POSTERIORS[name], scale=scale)
    draws = tangents(log_density, slope, -INF, INF, 3.0 * scale).draw(rng, log_density, N)
    assert stats.kstest(draws, cumulative(log_density, -30 * scale, 30 * scale)).pvalue > ALPHA


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.3), (2.0, 3.0), (0.0, INF), (-INF, -1.0)])
@pytest.mark.parametrize("name", ["logistic, separable", "poisson", "laplace"])
def test_draws_stay_within_ends_wherever_the_mode_is(rng, name, low, high):
    log_density, slope = line(*POSTERIORS[name])
    draws = tangents(log_density, slope, low, high, max(low, -1.0)).draw(rng, log_density, N)
    assert draws.min() >= low
    assert draws.max() <= high
    assert stats.kstest(draws, cumulative(log_density, max(low, -30.0), min(high, 30.0))).pvalue > ALPHA


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_follow_their_law(rng, name):
    log_density, slope, low, high, start = SHAPES[name]
    draws = tangents(log_density, slope, low, high, start).draw(rng, log_density, N)
    with np.errstate(all="ignore"):
        cdf = cumulative(quiet(log_density), max(low, -100.0), min(high, 100.0))
    assert stats.kstest(draws, cdf).pvalue > ALPHA


def quiet(log_density):
    def at(x):
        heights = log_density(x)
        return np.where(np.isnan(heights), -np.inf, heights)

    return at


def ratio(envelope, log_density, x):
    """Logarithm of the density over the envelope."""
    piece = np.clip(np.searchsorted(envelope.edges, x, side="right") - 1, 0, envelope.places.size - 1)
    with np.errstate(all="ignore"):
        heights = log_density(x)
    below = heights - envelope.heights[piece] - envelope.slopes[piece] * (x - envelope.places[piece])
    return np.where(np.isnan(heights), -np.inf, below)


@pytest.mark.parametrize("name", SHAPES)
def test_envelopes_lie_above_and_a_fair_share_is_accepted(rng, name):
    log_density, slope, low, high, start = SHAPES[name]
    envelope = tangents(log_density, slope, low, high, start)
    steps = np.geomspace(1e-12, 1e3, 2000)
    places = (envelope.places[:, None] + np.concatenate([-steps, steps])).ravel()
    places = places[(places > envelope.edges[0]) & (places < envelope.edges[-1])]
    with np.errstate(all="ignore"):
        rounding = 1e-9 * (1 + np.nan_to_num(np.abs(log_density(places)), posinf=0.0))
    assert (ratio(envelope, log_density, places) <= rounding).all()
    proposals = envelope.draw(rng, lambda x: np.full(x.size, np.inf), N)
    assert np.exp(ratio(envelope, log_density, proposals)).mean() > WORST_ACCEPTANCE


@pytest.mark.parametrize(
    ("log_density", "slope", "low", "high", "start", "text"),
    [
        (lambda x: -(x**2), lambda x: -2 * x, 2.0, 1.0, 1.5, "low < high"),
        (lambda x: -(x**2), lambda x: -2 * x, 0.0, 1.0, 1.5, "low < high"),
        (lambda x: -(x**2), lambda x: -2 * x, -INF, INF, INF, "start must be finite"),
        (lambda x: np.log(x), lambda x: 1 / x, -1.0, 1.0, -0.5, "finite. Start nearer"),
        (lambda x: 0 * x, lambda x: 0 * x, -INF, INF, 0.0, "no finite mass"),
        (lambda x: x, lambda x: 1 + 0 * x, 0.0, INF, 1.0, "no finite mass"),
        (lambda x: -np.abs(x), lambda x: -x / np.abs(x), -INF, INF, 0.0, "at kinks too"),
    ],
)
def test_what_is_no_density_is_refused(rng, log_density, slope, low, high, start, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        draw_log_concave(rng, log_density, slope, low, high, start)
