"""The public bound of the acceptance holds for every data set tried, the worst that could be thought of included."""

import numpy as np
import pytest

from pymc_dp.draws import log_concave_shells
from pymc_dp.draws.log_concave import LogConcave, envelope_at, log_acceptance, mode
from pymc_dp.draws.log_concave_shells import _lost, shells_by_length, worst_acceptance
from tests.draws.regressions import LOGISTIC, NORMAL, posterior, simulate

PUBLIC = {
    "n_rows": 100,
    "inverse_temperature": 0.5,
    "curvature": 0.25,
    "radius": 1.5,
    "strong": np.ones(4),
    "self_concordance": 1.5,
    "dimension": 4,
}


def bound(**changes):
    return worst_acceptance(**{**PUBLIC, **changes})


def acceptance(rng, target, tries=2000):
    """Mean acceptance and its standard error."""
    point = mode(target, np.zeros(target.dimension))
    envelope = envelope_at(target, point)
    piece, v = envelope.propose(rng, tries)
    accepted = np.zeros(tries)
    accepted[: len(v)] = np.exp(log_acceptance(target, point, envelope, piece, v))
    return accepted.mean(), accepted.std() / np.sqrt(tries)


def data_sets(rng, n, d, radius):
    z, y = simulate(rng, LOGISTIC, n, d, radius)
    axes = radius * np.eye(d)[np.arange(n) % d]
    yield from ((z, y), (z, np.ones(n)), (np.repeat(z[:1], n, axis=0), np.ones(n)), (axes, np.ones(n)))
    yield axes, (np.arange(n) // d % 2).astype(float)
    yield radius * np.eye(d)[np.zeros(n, dtype=int)], np.ones(n)
    yield np.abs(z) * 0.1, np.zeros(n)


@pytest.mark.few(1)
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(
    ("n", "beta", "radius", "strong"),
    [
        (5, 1.0, 1.5, 1.0),
        (200, 0.3, 1.5, 1.0),
        (200, 1.0, 3.0, 1.0),
        (100, 1.0, 1.0, [0.05, 1.0, 20.0]),
        (0, 1.0, 1, 1),
    ],
)
def test_every_data_set_accepts_at_least_the_bound(rng, n, beta, radius, strong, by_rows):
    for d in (2, 5):
        precisions = np.resize(np.asarray(strong, dtype=float), d)
        least = worst_acceptance(
            n_rows=n,
            inverse_temperature=beta,
            curvature=0.25,
            radius=radius,
            strong=precisions,
            self_concordance=radius,
            dimension=d,
        )
        for z, y in data_sets(rng, n, d, radius) if n else [(np.empty((0, d)), np.empty(0))]:
            mean, error = acceptance(rng, posterior(LOGISTIC, z, y, precisions, beta=beta, by_rows=by_rows))
            assert np.log(mean + 4 * error) >= least


@pytest.mark.parametrize("precision", [1.0, 0.2, 5.0])
def test_the_prior_alone_attains_its_bound(rng, precision):
    """A normal likelihood of which only concavity is known, with equal curvature in all directions."""
    z = 1.5 * np.eye(4)[np.arange(100) % 4]
    plain = posterior(NORMAL, z, np.zeros(100), precision, beta=0.01, by_rows=False)
    blind = LogConcave(**{**vars(plain), "self_concordance": None})
    mean, error = acceptance(rng, blind, 40_000)
    least = bound(inverse_temperature=0.01, curvature=1.0, self_concordance=None, strong=np.full(4, precision))
    assert np.exp(least) == pytest.approx(mean, abs=4 * error + 0.002 * mean)


@pytest.mark.parametrize("bend", [0.1, 1.5, 4.0])
def test_no_direction_loses_more_than_is_granted(bend):
    """Curvature that grows as fast as it may to both sides of the mode."""
    x = np.linspace(0, 0.99, 34)
    lost = _lost(bend, x[:-1], x[1:], 0.0)
    v = np.linspace(-12, 12, 200_001)
    for place, granted in zip(x[1:], lost, strict=True):
        eigenvalue = place / (1 - place)
        grown = np.expm1(np.minimum(bend * np.abs(v), 600)) - bend * np.abs(v)
        mass = np.exp(-eigenvalue / bend**2 * grown - v**2 / 2).sum() * (v[1] - v[0])
        taken = np.log(2 * np.pi * (1 - place)) / 2 - np.log(mass)
        assert taken <= granted < taken + 0.2


@pytest.mark.few(1)
@pytest.mark.parametrize("bend", [0.5, 3.0])
def test_no_spectrum_has_more_envelope_than_is_granted(monkeypatch, bend):
    """Were the posterior normal, the tries would be the envelope's mass over its own, for every Hessian."""
    monkeypatch.setattr(log_concave_shells, "_lost", lambda bend, low, high, margin: np.zeros_like(low))
    total, metric, found = 500.0, bend**2 * np.eye(6), []
    for first in np.geomspace(0.1, total / 6, 30):
        for spectrum in (np.full(6, first), np.append(np.full(5, first), total - 5 * first)):
            envelope = shells_by_length(np.zeros(6), np.diag(spectrum), np.ones(6), metric)
            found.append(envelope.log_mass + np.log1p(spectrum).sum() / 2)
    assert max(found) <= log_concave_shells._log_tries(6, bend, total) < max(found) + np.log(2)
