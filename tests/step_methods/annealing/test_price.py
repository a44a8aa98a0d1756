import pytest

import pymc_dp as dp
from pymc_dp.accounting import PureEvent, total_epsilon
from pymc_dp.step_methods.annealing.price import Costs, largest_beta


def costs(**given):
    like = {
        "path": (0.25, 1.0),
        "updates": (2.0, 3.0),
        "particles": 4,
        "range": 4.5,
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
    noised = {"weights": "weights", "log evidence": "evidence"}
    for part, event in held.parts(beta):
        if part in noised:
            assert event == PureEvent(epsilon=given[noised[part]])
