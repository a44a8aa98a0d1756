"""Counts with totals of their own: what rows add, how far apart neighbours are, and what the posterior makes of it."""

from itertools import product

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.families.statistic import OwnTotals
from pymc_dp.release.noise import counts_sensitivity
from pymc_dp.testing import without_noise
from tests.families.test_multinomial import WILD, each

pytestmark = [
    pytest.mark.usefixtures("paid"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
TRUTH = np.array([0.2, 0.5, 0.8])
DOMAIN = dp.Domain(bounds={"n": (1, 20)})


def table(rng, rows=400):
    trials, group = rng.integers(1, 21, rows), rng.integers(0, 3, rows)
    return trials, group, rng.binomial(trials, TRUTH[group])


def successes(trials, group, y, *, probability=lambda p, g, n: p[g]):
    with pm.Model(coords={"group": range(3)}) as model:
        n, g = pm.Data("n", trials), pm.Data("g", group)
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Binomial("y", n=n, p=probability(p, g, n), observed=y)
    return model


def released(model, domain=DOMAIN):
    with without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain)
    return private.rvs_to_values[private["y"]].get_value()


@pytest.mark.parametrize("levels", [2, 3])
def test_every_row_adds_what_it_counts_and_its_most_at_most(levels, rng):
    statistic = OwnTotals(labels=tuple("abc"[:levels]), trials=7)
    rows = np.array([*product(WILD, repeat=levels), *rng.integers(0, 3, (50, levels))], dtype=np.float64)
    found = each(statistic, rows)
    assert (found >= 0).all() and (found.sum(axis=1) <= 7).all()
    proper = np.array([all(x in range(8) for x in row) and sum(row) <= 7 for row in rows.tolist()])
    assert proper.sum() >= 50
    np.testing.assert_array_equal(found[proper], rows[proper])


@pytest.mark.parametrize(("relation", "known"), [("replace", True), ("replace", False), ("add_remove", False)])
def test_no_neighbours_are_further_apart_than_claimed(relation, known):
    """All pairs of all rows, in one cell or in two; the claim is attained."""
    statistic = OwnTotals(labels=("a", "b"), trials=7)
    rows = each(statistic, np.array(list(product(WILD, repeat=2))))
    none = np.zeros_like(rows)
    pairs = [(rows, none[:1])] if relation == "add_remove" else [(rows, rows)]
    apart = np.concatenate([(one[:, None] - other[None]).reshape(-1, 2) for one, other in pairs])
    if relation == "replace":  # out of one cell and into another
        apart = np.concatenate([np.pad(apart, ((0, 0), (0, 2))), np.array([[*a, *-b] for a in rows for b in rows])])
    claimed = counts_sensitivity(statistic, relation, sizes_known=known)
    assert np.abs(apart).sum(axis=1).max() == claimed.l1
    assert (apart**2).sum(axis=1).max() == claimed.l2_squared


@pytest.mark.parametrize(
    "domain",
    [
        DOMAIN,
        dp.Domain(bounds={"n": (1, 20)}, public=["g"]),
        dp.Domain(public=["n"]),
        dp.Domain(bounds={"n": (1, 20)}, neighbours="add_remove", n_max=1000),
    ],
)
def test_sums_are_those_of_failures_and_successes_by_group(domain, rng):
    trials, group, y = table(rng)
    expected = [[(trials - y)[group == k].sum(), y[group == k].sum()] for k in range(3)]
    np.testing.assert_array_equal(released(successes(trials, group, y), domain), expected)


def test_what_is_not_between_0_and_the_trials_counts_as_the_nearest():
    trials, y = np.array([5, 5, 50, -3, 20]), np.array([9, -2, 30, 4, 20])
    found = released(successes(trials, np.zeros(5, dtype=int), y))
    np.testing.assert_array_equal(found[0], [0 + 5 + 0 + 0 + 0, 5 + 0 + 20 + 1 + 20])
