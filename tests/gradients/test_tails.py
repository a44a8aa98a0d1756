"""A limit from a released histogram of norms, where noise has rows that are not there."""

import numpy as np

from pymc_dp.gradients.schedule import BINS
from pymc_dp.gradients.tails import Tail, chosen, edges_of

ROWS, LARGEST = 40_000, 60.0


def histogram(norms, edges):
    return np.histogram(norms, [*edges[:-1], np.inf])[0].astype(float)


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
