"""Draws in several dimensions follow quadrature; envelopes lie above the density whatever the data."""

import numpy as np
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.draws.log_concave import (
    LogConcave,
    draw_log_concave_vector,
    envelope_at,
    envelopes_at,
    log_acceptance,
    mode,
)
from tests.draws.regressions import (
    HUBER,
    LAPLACE,
    LOGISTIC,
    NORMAL,
    POISSON,
    PROBIT,
    marginals,
    posterior,
    simulate,
)

N = 4000
ALPHA = 0.001


@pytest.fixture
def rng(seed, request):
    return np.random.default_rng([seed, *request.node.name.encode()])


def assert_follows(draws, target, center, reach, points):
    for i, cdf in enumerate(marginals(target, center, reach, points)):
        assert stats.kstest(draws[:, i], cdf).pvalue > ALPHA


@pytest.mark.few(2)
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(
    ("family", "n", "d", "strong", "beta"),
    [
        (LOGISTIC, 60, 2, 1.0, 1.0),
        (LOGISTIC, 60, 2, [0.04, 4.0], 0.7),
        (LOGISTIC, 25, 3, 1.0, 1.0),
        (LOGISTIC, 0, 2, 1.0, 1.0),
        (POISSON, 30, 2, 1.0, 0.5),
        (NORMAL, 30, 2, 1.0, 0.5),
    ],
)
def test_draws_follow_posteriors(rng, family, n, d, strong, beta, by_rows):
    z, y = simulate(rng, family, n, d, intercept=True)
    target = posterior(family, z, y, strong, beta=beta, by_rows=by_rows)
    draws = draw_log_concave_vector(rng, target, np.zeros(d), draws=N)
    sd = 6 / np.sqrt(np.broadcast_to(strong, d)) if n == 0 else 7 * draws.std(axis=0)
    assert_follows(draws, target, draws.mean(axis=0), sd, 401 if d == 2 else 101)


@pytest.mark.parametrize(("family", "by_rows"), [(PROBIT, False), (HUBER, True), (HUBER, False), (LAPLACE, False)])
def test_draws_follow_posteriors_without_self_concordance(rng, family, by_rows):
    z, y = simulate(rng, family, 6, 2)
    target = posterior(family, z, y, 1.0, by_rows=by_rows)
    draws = draw_log_concave_vector(rng, target, np.zeros(2), draws=N)
    assert_follows(draws, target, draws.mean(axis=0), 7 * draws.std(axis=0), 801)


def adversarial(rng, family, name, d):
    """Data sets on which envelopes could fail."""
    z, y = simulate(rng, family, 50, d, radius=2.0)
    answers = {LOGISTIC: np.ones(50), POISSON: np.full(50, 9.0), NORMAL: np.full(50, 30.0), HUBER: np.full(50, 0.3)}
    return {
        "typical": (z, y),
        "separable": (np.abs(z), answers[family]),
        "all rows equal": (np.repeat(z[:1], 50, axis=0), answers[family]),
        "one row": (z[:1], y[:1]),
        "along axes": (2 * np.eye(d)[np.arange(50) % d], answers[family]),
        "no rows": (np.empty((0, d)), np.empty(0)),
        "many in one direction": (np.concatenate([z, np.repeat(z[:1], 250, axis=0)]), np.resize(y, 300)),
    }[name]


KINDS = ["typical", "separable", "all rows equal", "one row", "along axes", "no rows", "many in one direction"]


def everywhere(rng, z, precision):
    """Offsets of all lengths: in all directions, along rows, and as the posterior has them."""
    d = len(precision)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    lengths = 10 ** rng.uniform(-4, 2.5, (1500, 1))
    random = rng.standard_normal((1500, d))
    rows = z[rng.integers(0, len(z), 1500)] if len(z) else random
    return np.concatenate(
        [random * lengths, random @ root.T * lengths, rows * lengths, -(rows @ root @ root.T) * lengths]
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", [LOGISTIC, POISSON, NORMAL, HUBER])
def test_every_envelope_lies_above_its_density(rng, family, kind):
    for d, strong in ((2, [1.0, 0.05]), (6, 1.0)):
        z, y = adversarial(rng, family, kind, d)
        target = posterior(family, z, y, strong, beta=0.6)
        best = mode(target, np.zeros(d))
        for point in (best, best + 0.3 * rng.standard_normal(d)):
            v = everywhere(rng, z, target.curvature(point) + np.diag(target.strong))
            heights = np.abs(target.at(point + v)) + np.abs(target.at(point[None]))
            for envelope in envelopes_at(target, point):
                place = np.einsum("ki,ij,kj->k", v, envelope.metric, v)
                piece = np.searchsorted(envelope.edges, place, side="right") - 1
                above = log_acceptance(target, point, envelope, np.minimum(piece, envelope.offsets.size - 1), v)
                assert (above <= 1e-9 + 1e-13 * heights).all()


def test_a_claim_that_is_too_strong_would_be_seen(rng):
    """Half the self-concordance, or twice the prior's precision: envelopes that are exceeded."""
    z, y = np.full((30, 2), 1.0), np.ones(30)
    true = posterior(LOGISTIC, z, y, 1.0, by_rows=False)
    for change in ({"self_concordance": true.self_concordance / 2}, {"strong": 2 * true.strong}):
        wrong = LogConcave(**{**vars(true), **change})
        point = mode(true, np.zeros(2))
        v = everywhere(rng, z, np.eye(2))
        envelope = envelope_at(wrong, point)
        piece = np.searchsorted(envelope.edges, np.einsum("ki,ij,kj->k", v, envelope.metric, v), side="right") - 1
        assert log_acceptance(true, point, envelope, np.minimum(piece, envelope.offsets.size - 1), v).max() > 1e-3


def test_values_that_are_no_numbers_are_outside_of_the_support(rng):
    true = posterior(NORMAL, np.ones((3, 2)), np.ones(3), 1.0)
    half = LogConcave(**{**vars(true), "value": lambda points: np.where(points[:, 0] > 0, true.value(points), np.nan)})
    draws = draw_log_concave_vector(rng, half, np.full(2, 0.1), draws=N)
    assert draws[:, 0].min() > 0
    kept = LogConcave(**{**vars(true), "low": np.array([0.0, -np.inf])})
    assert_follows(draws, kept, np.zeros(2), np.full(2, 6.0), 801)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"strong": np.array([1.0, 0.0])}, "Give every parameter a prior"),
        ({"strong": np.ones(3)}, "2 finite numbers"),
        ({"self_concordance": -1.0}, "self_concordance must be >= 0"),
        ({"self_concordance": np.nan}, "self_concordance must be >= 0"),
        ({"low": np.zeros(2), "high": np.array([1.0, 0.0])}, "low < high"),
        ({"low": np.zeros(3)}, "low < high"),
    ],
)
def test_what_is_no_density_is_refused(change, text):
    true = posterior(NORMAL, np.ones((3, 2)), np.ones(3), 1.0)
    with pytest.raises(dp.errors.ArgumentError, match=text):
        LogConcave(**{**vars(true), **change})


@pytest.mark.parametrize("start", [np.zeros(3), np.full(2, np.inf), np.full(2, -123.5)])
def test_a_start_outside_is_refused_without_a_value(rng, start):
    true = posterior(NORMAL, np.full((3, 2), 123.456), np.full(3, 123.456), 1.0, low=np.zeros(2))
    with pytest.raises(dp.errors.ArgumentError, match="start must be 2 numbers") as error:
        draw_log_concave_vector(rng, true, start)
    assert "123" not in str(error.value)
