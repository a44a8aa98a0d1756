"""What a walk releases: all of the budget, never more."""

import pytest

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.gradients.schedule import Schedule, Units, stages_of


def units(neighbours="replace", dimension=5):
    return Units(dimension=dimension, neighbours=neighbours)


def test_shares_add_up_and_later_steps_are_paid_more():
    stages = stages_of(60)
    assert sum(stage.curvature + stage.gradients for stage in stages) == pytest.approx(1.0)
    for stage in stages:
        assert list(stage.steps) == sorted(stage.steps)
        assert sum(stage.steps) == pytest.approx(1.0 if stage.gradients else 0.0)
    assert stages[-1].steps == (), "a curvature where the walk ends"
    assert sum(len(stage.steps) for stage in stages_of(37)) == 37


@pytest.mark.few(5)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("momentum_steps", [0, 150])
def test_all_releases_together_cost_the_budget_and_not_more(neighbours, epsilon, momentum_steps):
    schedule = Schedule.within(dp.Budget(epsilon, 1e-5), units(neighbours), 60, momentum_steps)
    spent = total_epsilon(schedule.event, 1e-5)
    assert epsilon * (1 - 1e-3) < spent.epsilon <= epsilon
    assert len(schedule.event.events) == 64 + momentum_steps


def test_events_say_what_the_scales_are():
    """ρ of every release, by hand."""
    schedule = Schedule(stages=stages_of(60), units=units(), multiplier=3.0)
    first, second, *_ = schedule.event.events
    assert float(first.rho) == pytest.approx(schedule.stages[0].curvature / (2 * 9))
    share = schedule.stages[0].gradients * schedule.stages[0].steps[0]
    assert float(second.rho) == pytest.approx(share / (2 * 9))
    assert sum(float(event.rho) for event in schedule.event.events) == pytest.approx(1 / (2 * 9))
    assert (first.coordinates, second.coordinates) == (15, 5)
