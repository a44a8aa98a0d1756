"""The public bound of the acceptance holds for every data set tried, the worst that could be thought of included."""

import numpy as np
import pytest

from pymc_dp.draws.log_concave import envelope_at, log_acceptance, mode
from pymc_dp.draws.log_concave_shells import worst_acceptance
from tests.draws.regressions import LOGISTIC, posterior, simulate


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
