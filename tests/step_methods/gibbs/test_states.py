"""Markov states given rows: one exact draw of all paths, of a range that no two neighbours exceed."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.step_methods.gibbs.states import StatePaths
from pymc_dp.transforms.markov_states import MarkovStates
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet
from tests.step_methods.gibbs.conftest import bound

LOWER = 0.1
PUBLIC = Domain(public=("region_index", "month_index"))
PATHS = np.array(list(product(range(2), repeat=6))).reshape(-1, 2, 3)
CORNERS = {
    "two_profile": np.array([[0.9, 0.1], [0.1, 0.9]]),
    "three_profile": np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]),
}
VALUES = {"start": np.array([0.3, 0.7]), "transition": np.array([[0.6, 0.4], [0.2, 0.8]]), **CORNERS}


def table(rows=24):
    numbers = np.arange(rows)
    return {
        "region": numbers % 2,
        "month": numbers // 2 % 3,
        "two": numbers % 7 % 2,
        "three": numbers % 5 % 3,
    }


def hidden(rows=None, lower=LOWER):
    rows = table() if rows is None else rows
    with pm.Model(coords={"region": range(2), "month": range(3)}) as model:
        region, month = pm.Data("region_index", rows["region"]), pm.Data("month_index", rows["month"])
        start = pm.Dirichlet("start", np.array([1.0, 2.0]))
        transition = pm.Dirichlet("transition", np.array([[2.0, 1.0], [1.0, 1.5]]))
        cell = MarkovStates("states", start, transition, dims=("region", "month"))[region, month]
        two_profile = TruncatedDirichlet("two_profile", np.ones((2, 2)), lower)
        three_profile = TruncatedDirichlet("three_profile", np.ones((2, 3)), lower)
        pm.Categorical("two", two_profile[cell], observed=rows["two"])
        pm.Categorical("three", three_profile[cell], observed=rows["three"])
    return model


def update_of(step, name):
    return next(update for update in step.scan.updates if update.name == name)


def law(rows, beta):
    """Log-probability of every path, by enumeration of the model's own graph: rows one by one."""
    start, moves = VALUES["start"], VALUES["transition"]
    total = np.log(start[PATHS[..., 0]]).sum(axis=1) + np.log(moves[PATHS[..., :-1], PATHS[..., 1:]]).sum(axis=(1, 2))
    for region, month, two, three in zip(*rows.values(), strict=True):
        state = PATHS[:, region, month]
        total += beta * np.log(CORNERS["two_profile"][state, two] * CORNERS["three_profile"][state, three])
    return total - np.logaddexp.reduce(total)


@pytest.mark.slow
def test_paths_are_drawn_from_their_joint_law(rng):
    beta = 0.4
    step, _ = bound(hidden(), PUBLIC)
    update = update_of(step, "states")
    assert isinstance(update, StatePaths)
    given = {**VALUES, "states": np.zeros((2, 3))}
    draws = np.array([update.draw(rng, given, step.sums, beta).ravel() for _ in range(4000)])
    seen = np.bincount(draws @ 2 ** np.arange(6)[::-1], minlength=64)
    truth = np.exp(law(table(), beta))
    common = truth * 4000 > 5
    pooled = [np.append(item[common], item[~common].sum()) for item in (seen, truth * 4000)]
    assert common.sum() > 10
    assert stats.chisquare(*pooled).pvalue > 0.001


@pytest.mark.parametrize("domain", [PUBLIC, None], ids=["public cells", "private cells"])
def test_no_row_moves_the_law_of_paths_by_more_than_its_range(domain):
    step, _ = bound(hidden(), domain)
    update, beta = update_of(step, "states"), 0.3
    assert len(update.ranges) == 1
    before, worst = law(table(), beta), 0.0
    cells = [(0, 0)] if domain is PUBLIC else list(product(range(2), range(3)))
    for (region, month), two, three in product(cells, range(2), range(3)):
        rows = {name: column.copy() for name, column in table().items()}
        for name, value in zip(rows, (region, month, two, three), strict=True):
            rows[name][0] = value
        moved = law(rows, beta) - before
        assert (np.abs(moved) <= beta * update.ranges[0]).all()
        worst = max(worst, np.ptp(moved))
    for first in range(2):  # the worst row to leave is one of each category, whatever the first row is
        rows = {name: column.copy() for name, column in table().items()}
        rows["two"][0], rows["three"][0] = first, first
        other = {name: column.copy() for name, column in rows.items()}
        other["two"][0], other["three"][0] = 1 - first, 1 - first
        worst = max(worst, np.ptp(law(rows, beta) - law(other, beta)))
    assert worst <= beta * update.ranges[0]
    assert worst == pytest.approx(beta * update.ranges[0], rel=1e-4)  # attained at these profiles


def test_a_scan_pays_for_the_paths_and_for_every_profile():
    step, event = bound(hidden(), PUBLIC, steps=5)
    paid = {update.name: update.ranges for update in step.scan.updates}
    two, three = (2 * np.log(high / LOWER) for high in (0.9, 0.8))
    assert paid["two_profile"] == pytest.approx((two,), rel=1e-4)
    assert paid["three_profile"] == pytest.approx((three,), rel=1e-4)
    assert paid["states"] == pytest.approx((two + three,), rel=1e-4)
    assert event.count == 5 and len(event.event.events) == 3
