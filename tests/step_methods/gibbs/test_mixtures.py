"""Discrete latents of rows, of public cells and of the whole model: exact conditionals, at the price of one row."""

import itertools
import math

import numpy as np
import pymc as pm
import pytest
from scipy import special

from pymc_dp.domain import Domain
from pymc_dp.step_methods.gibbs import row_latents
from pymc_dp.transforms.truncate import truncate
from tests.step_methods.gibbs.conftest import bound

pytestmark = pytest.mark.usefixtures("paid")

BETA = 0.6
ANSWERS = np.array([0, 1, 1, 1])


def update_of(step, name):
    return next(item for item in step.scan.updates if item.name == name)


def with_a_column(public, group=(0, 1, 1, 2)):
    """A class per row, and a column beside it."""
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.4, shape=4)
        p = pm.Uniform("p", [[0.1], [0.3]], [[0.6], [0.9]], shape=(2, 3))
        pm.Bernoulli("y", p[z, pm.Data("group", np.array(group))], observed=pm.Data("d", ANSWERS))
    return model, Domain(bounds={"group": (0, 2)}, public=["group"] if public else [])


def test_a_private_column_lets_a_row_change_what_its_class_chooses_among(monkeypatch):
    """Neighbours in the answer and in the column; the parameters anywhere within their bounds."""
    public, private = (bound(*with_a_column(public), epsilon=1e9)[0] for public in (True, False))
    paid = {step: update_of(step, "z").ranges[0] for step in (public, private)}
    logit = special.logit
    assert paid[public] == pytest.approx(logit(0.9) - logit(0.1), rel=1e-9)  # p of either class anywhere in .1 .. .9
    assert paid[private] == pytest.approx(2 * math.log(9), rel=1e-9)
    worst = 0.0
    seen = []
    monkeypatch.setattr(row_latents, "choose", lambda rng, scores: seen.append(scores))
    for p in itertools.product((0.1, 0.6), (0.1, 0.6), (0.3, 0.9), (0.3, 0.9)):
        held = {"p": np.array([[p[0], p[1], 0.3], [p[2], p[3], 0.5]])}
        laws = []
        for answer, group in itertools.product((0, 1), (0, 1)):
            exchange(private, answer, group)
            update_of(private, "z").draw(None, held, {}, BETA)
            laws.append(special.log_softmax(seen.pop()[0]))
        worst = max([worst, *(abs(one - other).max() for one, other in itertools.combinations(laws, 2))])
    assert 0.4 * BETA * paid[private] < worst <= BETA * paid[private]


def exchange(step, answer, group):
    """Give the first row other values."""
    (table,) = step.tables
    table.observed.leaf.set_value(np.array([answer, *ANSWERS[1:]], dtype=np.int32))
    for column in table.cells.columns:
        if column.name == "group":
            column.leaf.set_value(np.array([group, 1, 1, 2], dtype=column.leaf.type.dtype))


# --- latents of public cells ------------------------------------------------------------------------------------------

REGION = np.array([0, 0, 1, 1, 2, 2, 2, 3])
SEEN = np.array([0, 1, 1, 1, 0, 0, 1, 1])
KIND = np.array([0, 2, 1, 1, 2, 0, 0, 1])


def regions():
    """A class per region; classes have their own probabilities."""
    with pm.Model() as model:
        region = pm.Data("region", REGION)
        w = pm.Dirichlet("w", [1.0, 2.0, 1.5])
        z = pm.Categorical("z", w, shape=4)
        p = pm.Truncated("p", pm.Beta.dist(2.0, 1.0), 0.1, 0.9, shape=3)
        shares = pm.Dirichlet("shares", np.ones((3, 3)), shape=(3, 3))
        pm.Bernoulli("y", p[z[region]], observed=pm.Data("d", SEEN))
        pm.Categorical("kind", shares[z[region]], observed=pm.Data("k", KIND))
    return truncate(model, {"shares": (0.05, None)}), Domain(public=["region"])


@pytest.fixture(scope="module")
def regional():
    return bound(*regions(), epsilon=1e9)[0]


Z = np.array([2, 0, 2, 1])


def test_no_row_of_a_region_tells_more_than_the_range_of_its_class(regional):
    """The law of p given the classes, and of the classes given p, for all that one row can be."""
    beta, held = 0.7, {"z": Z, "p": np.full(3, 0.5), "shares": np.full((3, 3), 1 / 3), "w": np.full(3, 1 / 3)}
    (paid,) = update_of(regional, "p").ranges
    grid = np.linspace(0.1, 0.9, 2001)
    (table,) = [item for item in regional.tables if item.name == "y"]
    before = table.observed.leaf.get_value()
    reached = 0.0
    for base in (0, 1):
        laws = []
        for row in (0, 1):
            table.observed.leaf.set_value(np.array([row] + [base] * 7, dtype=before.dtype))
            sums = table.read().sums
            places = update_of(regional, "p").links[0].places(held)
            zeros, ones = sums[places == Z[0]].sum(axis=0)
            height = beta * (ones * np.log(grid) + zeros * np.log1p(-grid))
            laws.append(height - special.logsumexp(height))
        reached = max(reached, abs(laws[0] - laws[1]).max())
    table.observed.leaf.set_value(before)
    assert 0.5 * beta * paid < reached <= beta * paid
