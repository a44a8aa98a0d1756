"""Rows of counts, with one total for all or one of their own: what they add, and how far they are apart."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.families.statistic import LevelCounts, OwnTotals
from pymc_dp.inspection.rows import Column
from pymc_dp.release.noise import counts_sensitivity
from pymc_dp.rows.sums import make_cells, sum_rows
from pymc_dp.testing import without_noise

pytestmark = [
    pytest.mark.usefixtures("paid"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
NAN, INF = float("nan"), float("inf")
WILD = (NAN, INF, -INF, 1e308, -1e308, -1.0, 0.4, 2.5, 3.0, 7.0, 1e6)


def counts(levels, trials):
    return LevelCounts(labels=tuple(map(str, range(levels))), trials=trials)


def expected(row, trials):
    """One row in plain Python: every count takes what is left at most, the last one the rest."""
    left, found = trials, []
    for value in row[:-1]:
        value = 0.0 if value != value else float(value)
        found.append(round(min(max(value, 0.0), left)))
        left -= found[-1]
    return [*found, left]


def each(statistic, rows):
    """What every row adds, by the compiled pass with a cell per row."""
    leaf = pytensor.shared(np.arange(len(rows)))
    column = Column(
        name="c", leaf=leaf, stand_ins=(leaf,), levels=np.arange(len(rows)), outside="first", public=True, dim=None
    )
    return sum_rows(make_cells([column], len(rows), None), statistic, rows, with_sizes=False)


@pytest.mark.parametrize("levels", [2, 3, 5])
@pytest.mark.parametrize("trials", [1, 7, 2**29])
def test_every_row_adds_all_its_trials(levels, trials, rng):
    rows = np.concatenate(
        [rng.choice(WILD, (300, levels)), rng.multinomial(min(trials, 1000), np.ones(levels) / levels, 50)]
    )
    found = each(counts(levels, trials), rows)
    assert found.tolist() == [expected(row, trials) for row in rows]
    assert (found >= 0).all() and (found.sum(axis=1) == trials).all()


@pytest.mark.few(5)
@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize(("relation", "known"), [("replace", True), ("replace", False), ("add_remove", False)])
def test_no_neighbours_are_further_apart_than_claimed(levels, relation, known):
    """All pairs of all rows of wild numbers, which stay in their cell or change it."""
    trials = 7
    rows = each(counts(levels, trials), np.array(list(product(WILD, repeat=levels))))
    kept = rows[:, 1:] if known and levels == 2 else rows
    if relation == "add_remove":
        apart = kept[None, :, :]
    elif known:
        apart = kept[:, None] - kept[None]
    else:  # out of one cell and into another
        left, right = (np.broadcast_to(item, (len(kept), len(kept), levels)) for item in (kept[:, None], kept[None]))
        apart = np.concatenate(
            [np.concatenate([left, -right], axis=2), np.pad(left - right, ((0, 0), (0, 0), (0, levels)))]
        )
    sensitivity = counts_sensitivity(counts(levels, trials), relation, sizes_known=known)
    assert np.abs(apart).sum(axis=-1).max() == sensitivity.l1
    assert (apart**2).sum(axis=-1).max() == sensitivity.l2_squared


def model_of(rows, group=None, trials=6):
    with pm.Model(coords={"level": range(rows.shape[1]), "g": range(2)}) as model:
        p = pm.Dirichlet("p", np.ones(rows.shape[1]), dims=("level",) if group is None else ("g", "level"))
        if group is not None:
            p = p[pm.Data("group", group)]
        pm.Multinomial("y", trials, p, observed=pm.Data("rows", rows))
    return model


@pytest.mark.parametrize("levels", [2, 3])
def test_plug_in_is_the_density_of_the_rows_up_to_a_constant(levels, rng):
    model = model_of(rng.multinomial(6, np.ones(levels) / levels, 40))
    with without_noise():
        private = dp.privatize(model, epsilon=1.0, statistics=dp.Statistics(noise_aware=False))
    whole, sums = (item.compile_logp(mode="FAST_COMPILE") for item in (model, private))
    points = [{"p_simplex__": rng.normal(size=levels - 1)} for _ in range(5)]
    differences = [float(whole(at)) - float(sums(at)) for at in points]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9)


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
def test_no_neighbours_with_own_totals_are_further_apart_than_claimed(relation, known):
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
