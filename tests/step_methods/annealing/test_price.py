import math

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import DiscreteLaplaceEvent, leaves, total_epsilon
from pymc_dp.step_methods.annealing.price import Costs, largest_beta, weights_sensitivity


def costs(**given):
    like = {
        "path": (0.25, 1.0),
        "updates": (2.0, 3.0),
        "particles": 4,
        "range": 4.5,
        "sensitivity": 7.0,
        "indices": 3,
        "weights": 0.0,
        "evidence": 0.0,
    }
    return Costs(**{**like, **given})


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    "given",
    [{}, {"indices": 0, "weights": 0.2}, {"evidence": 0.1}, {"indices": 0, "weights": 0.3, "evidence": 0.3}],
)
def test_what_is_charged_fits_the_budget_and_fills_it(given, delta):
    held = costs(particles=20, **given)
    beta = largest_beta(held, dp.Budget(1.0, delta))
    assert 0.998 < total_epsilon(held.event(beta), delta).epsilon <= 1
    pure = [leaf.epsilon for leaf in leaves(held.event(beta)) if isinstance(leaf, DiscreteLaplaceEvent)]
    np.testing.assert_allclose(sorted(pure), sorted(given[name] for name in ("weights", "evidence") if name in given))


def test_normalised_weights_move_by_no_more_than_is_said(rng):
    """L1 of the change, over weights whose logs move by any amount of a given range; the worst case is met."""
    worst = 0.0
    for eta in (0.01, 0.5, 3.0, 20.0):
        bound = weights_sensitivity(eta, 6) / 2**40
        for _ in range(300):
            logs = rng.normal(0, rng.choice([0.1, 2.0]), 6)
            moved = logs + rng.choice([0.0, eta, eta * rng.random()], 6) + rng.normal()
            one, other = (np.exp(item) / np.exp(item).sum() for item in (logs, moved))
            assert np.abs(one - other).sum() <= bound
        side = eta / 2
        pair = [np.array([1 / (1 + math.exp(-s)), 1 / (1 + math.exp(s))]) for s in (side, -side)]
        worst = max(worst, np.abs(pair[0] - pair[1]).sum() / bound)
    assert 0.999 < worst <= 1


def test_weights_rounded_down_move_by_no_more_whole_units(rng):
    for eta in (1e-9, 1e-3, 2.0):
        logs = rng.normal(size=400)
        moved = logs + eta * rng.integers(0, 2, 400)
        units = [np.floor(np.exp(item) / np.exp(item).sum() * 2.0**40) for item in (logs, moved)]
        assert np.abs(units[0] - units[1]).sum() <= weights_sensitivity(eta, 400)
