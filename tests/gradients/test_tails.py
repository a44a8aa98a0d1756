"""A limit from a released histogram of norms: on known tails, and where noise has rows that are not there."""

import numpy as np
import pytest

from pymc_dp.gradients.schedule import BINS
from pymc_dp.gradients.tails import Tail, chosen, edges_of

ROWS, LARGEST, LITTLE = 40_000, 60.0, 1e-3
TAILS = {
    "t, 3 degrees of freedom": lambda rng: np.abs(rng.standard_t(3, ROWS)),
    "lognormal": lambda rng: np.exp(rng.normal(size=ROWS)),
}


def histogram(norms, edges):
    return np.histogram(norms, [*edges[:-1], np.inf])[0].astype(float)


def drawn(name, rng):
    norms = np.minimum(TAILS[name](rng), LARGEST)
    unit = float(np.sqrt(np.mean(norms**2)))
    return norms, unit, edges_of(unit, LARGEST)


@pytest.mark.parametrize("name", TAILS)
def test_what_a_limit_clips_off_is_seen(name, rng):
    norms, unit, edges = drawn(name, rng)
    tail = Tail.of(histogram(norms, edges), edges, LITTLE, ROWS)
    for limit in unit * np.array([1.2, 2.0, 3.0, 5.0]):
        assert tail.clipped_off(limit) == pytest.approx(np.maximum(norms - limit, 0).sum(), rel=0.2)
        assert tail.beyond(limit) == pytest.approx(np.sum(norms > limit), rel=0.2)
    assert tail.counts.sum() == pytest.approx(ROWS, rel=0.01)


@pytest.mark.parametrize("name", TAILS)
def test_a_limit_weighs_noise_against_what_it_clips_off(name, rng):
    norms, unit, edges = drawn(name, rng)
    tail = Tail.of(histogram(norms, edges), edges, LITTLE, ROWS)
    given = {"least": unit, "largest": LARGEST}
    found = chosen(tail, noise=30.0, kappa=0.5, **given)
    assert found.bias == pytest.approx(0.5 * tail.clipped_off(found.limit))
    assert found.share == pytest.approx(found.bias / (30.0 * found.limit))
    assert found.beyond == pytest.approx(np.sum(norms > found.limit), rel=0.5, abs=3)

    def loss(limit):
        return (30.0 * limit) ** 2 + (0.5 * np.maximum(norms - limit, 0).sum()) ** 2

    best = min(map(loss, np.geomspace(unit, LARGEST, 400)))
    assert loss(found.limit) < 1.1 * best, "the best limit for the rows themselves, nearly"
    limits = [chosen(tail, noise=noise, kappa=0.5, **given).limit for noise in (3.0, 30.0, 300.0)]
    assert unit <= limits[2] < limits[1] < limits[0] <= LARGEST
    assert chosen(tail, noise=30.0, kappa=0.1, **given).limit < found.limit


def test_what_noise_might_hide_is_part_of_the_bias(rng):
    """A tail that is light: the bias that is said is no less than what is clipped off, whatever noise there was."""
    norms = np.sqrt(np.mean(rng.normal(size=(ROWS, 5)) ** 2, axis=1))
    edges = edges_of(1.0, LARGEST)
    counts = histogram(norms, edges)
    for _ in range(100):
        tail = Tail.of(counts + 30.0 * rng.normal(size=BINS), edges, 30.0, ROWS)
        found = chosen(tail, least=1.0, largest=LARGEST, noise=30.0, kappa=0.5)
        assert found.bias > 0.5 * np.maximum(norms - found.limit, 0).sum()
        assert found.bias < 1.5 * 30.0 * found.limit, "of the order of the noise"


def test_where_noise_is_all_there_is_a_limit_all_the_same(rng):
    edges = edges_of(1.0, np.inf)
    for released in (np.zeros(BINS), -1e6 * np.ones(BINS), 1e4 * rng.normal(size=BINS), 1e9 * np.ones(BINS)):
        found = chosen(Tail.of(released, edges, 1e4, 50), least=1.0, largest=np.inf, noise=100.0, kappa=1.0)
        assert np.isfinite([found.limit, found.bias, found.beyond]).all() and 1.0 <= found.limit <= edges[-1]
