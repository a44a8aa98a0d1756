"""Conjugate draws against the density of prior and tempered rows, and their ranges by quadrature on neighbours."""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.step_methods.gibbs import conjugate_draws
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet
from tests.step_methods.gibbs.conftest import bound, domain
from tests.step_methods.gibbs.conjugate_pairs import PAIRS, model_of

pytestmark = pytest.mark.usefixtures("paid")

BETA = 0.6
DRAWS = 800


@pytest.fixture(scope="module")
def steps():
    """One step for each relation, and the columns of its rows."""
    found = {}
    for relation in ("replace", "add_remove"):
        model, bounds = model_of()
        step, _ = bound(model, domain(relation, bounds=bounds), epsilon=1e9, read=False)
        found[relation] = step, model
    return found


def update_of(step, name):
    return next(item for item in step.scan.updates if item.name == name)


def sums_of(step, model, name, rows):
    data = model[f"{name}_rows"]
    data.set_value(np.array(rows, dtype=data.get_value().dtype))
    (table,) = [item for item in step.tables if item.name == f"{name}_y"]
    return {table.name: table.read()}


@pytest.mark.few(1, cases=3)
@pytest.mark.parametrize("name", PAIRS)
def test_draws_follow_prior_times_tempered_likelihood(name, steps, rng):
    step, model = steps["replace"]
    pair, update = PAIRS[name], update_of(step, name)
    assert type(update).__name__ == pair.law
    rows = np.array([*pair.rows, pair.rows[-1], 3 if pair.bounds is None else pair.bounds[1]])
    sums = sums_of(step, model, name, rows)
    held = {name: np.float64(np.mean(pair.ends))}
    sample = np.array([update.draw(rng, held, sums, BETA) for _ in range(DRAWS)])
    grid = np.linspace(*pair.ends, 4001)
    height = pair.log_prior(grid) + BETA * pair.log_row(rows[:, None], grid).sum(axis=0)
    mass = np.cumsum(np.exp(height - height.max()))
    assert sample.min() >= pair.ends[0] and sample.max() <= pair.ends[1]
    assert stats.kstest(sample, lambda v: np.interp(v, grid, mass / mass[-1])).pvalue > 0.001


class Law(Exception):
    """Raised in the place of a draw, with what would have been drawn from."""


HEIGHTS = {
    "truncated_beta": lambda x, a, b: (a - 1) * np.log(x) + (b - 1) * np.log1p(-x),
    "truncated_gamma": lambda x, shape, rate: (shape - 1) * np.log(x) - rate * x,
    "truncated_normal": lambda x, mean, sd: -((x - mean) ** 2) / (2 * sd**2),
}


def log_law(update, held, sums, monkeypatch):
    """Logarithm of the density that one update draws from, on a grid of its bounds."""

    def instead(name):
        def draw(rng, *arguments):
            raise Law(name, *arguments)

        return draw

    for name in HEIGHTS:
        monkeypatch.setattr(conjugate_draws, name, instead(name))
    with pytest.raises(Law) as caught:
        update.draw(np.random.default_rng(1), held, sums, BETA)
    monkeypatch.undo()
    name, *arguments = caught.value.args
    one, two, low, high = (float(np.ravel(item)[0]) for item in arguments)
    grid = np.linspace(low, high, 4001)
    height = HEIGHTS[name](grid, one, two)
    top = height.max()
    return height - top - np.log(np.trapezoid(np.exp(height - top), grid))


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", PAIRS)
def test_no_conjugate_draw_loses_more_than_its_range(name, relation, steps, monkeypatch):
    """Adversarial rows: none, one and many at every extreme, and a neighbour in one more."""
    step, model = steps[relation]
    pair, update = PAIRS[name], update_of(step, name)
    (paid,), held = update.ranges, {name: np.float64(np.mean(pair.ends))}
    reached = 0.0
    for base, n in itertools.product(pair.rows, (0, 1, 400)):
        laws_by_row = [
            log_law(update, held, sums_of(step, model, name, [base] * n + last), monkeypatch)
            for last in [[row] for row in pair.rows] + [[]] * (relation == "add_remove")
        ]
        pairs = itertools.combinations(laws_by_row, 2) if relation == "replace" else [
            (law, laws_by_row[-1]) for law in laws_by_row[:-1]
        ]  # fmt: skip
        for one, other in pairs:
            reached = max(reached, abs(one - other).max() / (BETA * paid))
    assert 0.85 <= reached <= 1 + 1e-6, f"{reached:.3f} of the claim is reached"


def test_shares_of_counts_pay_for_every_trial(rng):
    """Rows of several trials: a Dirichlet given all counts, at the range of one trial times their number."""
    rows = np.array([[3, 0, 0], [1, 2, 0], [0, 1, 2], [2, 1, 0]])
    with pm.Model() as model:
        shares = TruncatedDirichlet("shares", np.array([1.0, 2.0, 1.5]), 0.1)
        pm.Multinomial("y", 3, shares, observed=pm.Data("d", rows))
    step, _ = bound(model, domain("replace"), epsilon=1e9)
    update = update_of(step, "shares")
    assert type(update) is conjugate_draws.DirichletShares
    assert update.ranges == pytest.approx((3 * 2 * np.log(0.8 / 0.1),), rel=1e-4)
    sample = np.array([update.draw(rng, {}, step.sums, BETA) for _ in range(600)])
    plain = rng.dirichlet(np.array([1.0, 2.0, 1.5]) + BETA * rows.sum(axis=0), 6000)
    plain = plain[(plain >= 0.1).all(axis=1)]
    for place in range(3):
        assert stats.ks_2samp(sample[:, place], plain[:, place]).pvalue > 0.001
