"""The public bound of the acceptance holds for every data set tried, the worst that could be thought of included."""

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.mechanisms.log_concave import envelope_at, log_acceptance, mode
from pymc_dp.mechanisms.log_concave_1d import WORST_ACCEPTANCE
from pymc_dp.mechanisms.log_concave_acceptance import worst_acceptance
from tests.mechanisms.regressions import LOGISTIC, NORMAL, PROBIT, posterior, simulate

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


def test_the_bound_is_no_orders_of_magnitude_off():
    """For the usual case: less than a tenth of what typical rows accept is a bound of no use."""
    assert bound() > np.log(0.05)
    assert bound(strong=np.ones(10), dimension=10, n_rows=100_000) > np.log(1e-3)


def test_normal_posteriors_accept_everything(rng):
    z, y = simulate(rng, NORMAL, 100, 4)
    mean, _ = acceptance(rng, posterior(NORMAL, z, y, 1.0))
    assert mean == pytest.approx(1, abs=1e-6)
    assert -0.01 < bound(self_concordance=0.0) <= 0


def test_the_prior_alone_attains_its_bound(rng):
    """A normal likelihood of which only concavity is known, with equal curvature in all directions."""
    z = 1.5 * np.eye(4)[np.arange(100) % 4]
    target = posterior(PROBIT, z, np.zeros(100), 1.0)
    plain = posterior(NORMAL, z, np.zeros(100), 1.0, beta=0.01, by_rows=False)
    blind = type(target)(**{**vars(plain), "self_concordance": None})
    mean, error = acceptance(rng, blind, 40_000)
    least = bound(inverse_temperature=0.01, curvature=1.0, self_concordance=None)
    assert np.exp(least) == pytest.approx(mean, abs=4 * error + 0.01 * mean)


def test_the_bound_falls_with_all_that_makes_envelopes_worse():
    for name, values in {
        "n_rows": (1, 10, 1000, 10**6),
        "inverse_temperature": (0.0, 0.01, 1.0),
        "curvature": (0.01, 0.25, 10.0),
        "self_concordance": (0.0, 0.1, 1.5, 5.0),
    }.items():
        found = [bound(**{name: value}) for value in values]
        assert found == sorted(found, reverse=True), name
    priors = [bound(strong=np.full(4, m)) for m in (10.0, 1.0, 0.1)]
    assert priors == sorted(priors, reverse=True)
    sizes = [bound(strong=np.ones(d), dimension=d) for d in (2, 5, 10, 20)]
    assert sizes == sorted(sizes, reverse=True)


def test_nothing_is_promised_without_a_bound_of_curvature():
    assert bound(curvature=np.inf) == -np.inf
    assert bound(n_rows=0, curvature=np.inf) > -0.01


def test_one_dimension_is_bounded_whatever_the_rest():
    found = bound(strong=np.ones(1), dimension=1, curvature=np.inf, self_concordance=None)
    assert found == pytest.approx(np.log(WORST_ACCEPTANCE))


@pytest.mark.parametrize(
    "change", [{"strong": np.zeros(4)}, {"strong": np.ones(3)}, {"radius": -1.0}, {"curvature": np.nan}]
)
def test_what_is_no_number_is_refused(change):
    with pytest.raises(ArgumentError, match="strong must hold 4 numbers"):
        bound(**change)
