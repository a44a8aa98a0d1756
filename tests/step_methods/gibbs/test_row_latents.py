"""One latent per row: released, paid for once per scan, and only where the number of rows is public."""

import itertools
import math

import numpy as np
import pymc as pm
import pytest

from pymc_dp.audit.quadrature import privacy_loss
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.step_methods.gibbs import row_latents
from tests.step_methods.gibbs.conftest import bound, domain

pytestmark = pytest.mark.usefixtures("paid")

ROWS = np.array([-2.5, -1.8, -2.2, 2.1, 1.7, 2.4, 2.9, 9.0])


def mixture(rows=ROWS, relation="replace", labels=None, weights=None):
    coords = {"row": labels if labels is not None else [f"person {i}" for i in range(len(rows))], "k": ["a", "b"]}
    with pm.Model(coords=coords) as model:
        w = pm.Dirichlet("w", np.ones(2), dims="k") if weights is None else weights
        z = pm.Categorical("z", w, dims="row")
        mean = pm.Uniform("mean", [-3.0, 0.0], [0.0, 3.0], dims="k")
        pm.Normal("y", mean[z], 1.0, observed=rows, dims="row")
    return model, domain(relation, bounds={"y": (-3, 3)})


@pytest.mark.slow
def test_no_latent_shows_its_row_by_more_than_its_range(monkeypatch):
    """Neighbours in one row, at the worst means: one latent's law changes, by no more than what a scan pays."""
    beta, worst = 0.1, 0.0
    laws = {}
    for value in np.linspace(-4, 4, 9):
        rows = ROWS.copy()
        rows[2] = value
        step, _ = bound(*mixture(rows), epsilon=1e9)
        update = next(item for item in step.scan.updates if item.name == "z")
        for means in ((-3.0, 3.0), (-3.0, 0.0), (0.0, 3.0)):
            seen = []
            monkeypatch.setattr(row_latents, "choose", lambda rng, scores: seen.append(scores))  # noqa: B023
            update.draw(None, {"w": np.array([0.4, 0.6]), "mean": np.array(means)}, {}, beta)
            monkeypatch.undo()
            laws[value, means] = seen[0] - np.logaddexp.reduce(seen[0], axis=1)[:, None]
    for (one, means), (other, same) in itertools.combinations(laws, 2):
        if means == same:
            first, second = laws[one, means], laws[other, means]
            changed = (first != second).any(axis=1)
            assert not changed[np.arange(len(ROWS)) != 2].any()
            worst = max(worst, privacy_loss(first[2], second[2]).epsilon)
    assert 0.4 * beta * update.ranges[0] < worst <= beta * update.ranges[0]


@pytest.mark.parametrize("n", [1, 10, 100, 10_000])
def test_redrawing_one_random_row_hides_nothing(n):
    """The papers' amplification by a random scan: 4 Δl Q / n, of a chain whose states are all released.

    Which latent has changed is visible. The exact law of one such step: no change, or a flip of one of n latents.
    """
    chances = np.array([0.1, 0.9])  # of z = 1 given either row; z starts at 0

    def law(row):
        flips = np.concatenate([[chances[row]], np.full(n - 1, chances[0])]) / n
        return np.log(np.concatenate([[1 - flips.sum()], flips]))

    loss = privacy_loss(law(1), law(0)).epsilon
    claim = 4 * math.log(9) / n
    assert loss == pytest.approx(math.log(9), rel=1e-9)
    assert (claim < loss) == (n > 4)
    if n in (10, 100):
        assert claim == pytest.approx({10: 0.88, 100: 0.088}[n], abs=2e-3)


def test_what_is_paid_for_latents_does_not_shrink_with_their_number():
    """The same rows in the sampler: z ~ Bernoulli(1/2), p(y = z) = .9."""
    paid = []
    for n in (3, 60):
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.5, shape=n)
            pm.Bernoulli("y", pm.math.switch(z, 0.9, 0.1), observed=np.resize([0, 1], n))
        step, _ = bound(model, Domain(), read=False)
        paid.append(step.scan.ranges)
    assert paid[0] == paid[1] == pytest.approx((2 * math.log(9),))
    assert paid[0][0] >= math.log(9)


def test_latents_of_a_private_number_of_rows_are_refused():
    with pytest.raises(UnsupportedModelError, match="one latent per row"):
        bound(*mixture(relation="add_remove"))
