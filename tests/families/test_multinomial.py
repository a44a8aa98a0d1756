"""Rows of counts: whatever a row holds it adds the same total, and no two rows are further apart than claimed."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.rows import Column
from pymc_dp.release.noise import counts_sensitivity
from pymc_dp.rows.sums import make_cells, sum_rows
from pymc_dp.testing import without_noise

NAN, INF = float("nan"), float("inf")
WILD = (NAN, INF, -INF, 1e308, -1e308, -1.0, 0.4, 2.5, 3.0, 7.0, 1e6)
pytestmark = [
    pytest.mark.usefixtures("paid"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


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
