"""What answers from samples lose: against worst cases computed exactly."""

import pytest
from scipy.stats import binom

from pymc_dp import theorems


def test_lemma_11_as_printed_fails_where_many_responses_are_compared():
    """One response has utility 0.99; a million others are 0 or 1, with mean 0.6: one of them looks better."""
    samples, delta, others = 20, 0.5, 10**6
    chosen_wrongly = 1 - (1 - 0.6**samples) ** others
    lost = 0.99 - 0.6
    printed = theorems.query_loss(samples=samples, delta=delta)
    assert lost > printed.value and chosen_wrongly > 0.999 > delta
    assert theorems.query_loss(samples=samples, delta=delta, responses=others + 1).vacuous


@pytest.mark.parametrize("samples", [20, 200])
@pytest.mark.parametrize("gap", [0.05, 0.2, 0.4])
def test_two_responses_lose_no_more_than_the_bound(samples, gap):
    """Utilities 0 or 1, means 1/2 and 1/2 - gap, independent: how often is the worse one chosen?"""
    counts = range(samples + 1)
    better = [binom.pmf(k, samples, 0.5) for k in counts]
    worse = sum(better[k] * binom.sf(k - 1, samples, 0.5 - gap) for k in counts)
    for delta in (0.5, 0.1, 0.01):
        found = theorems.query_loss(samples=samples, delta=delta, responses=2)
        assert gap <= found.value or worse <= delta
