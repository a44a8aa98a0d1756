"""What a walk releases: all of the budget, never more."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.schedule import Schedule, Units, stages_of
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.walk_kinds import walk_event


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


def regression(weights=None, who=None):
    x = np.linspace(-1, 1, 40)
    with pm.Model() as model:
        if weights is not None:
            pm.Data("w", weights)
        if who is not None:
            pm.Data("who", who)
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Data("x", x) * pm.Normal("b"), observed=np.arange(40) % 2)
    return model


BOUNDS = {"x": (-1, 1)}
WALKS = {
    "rows": (regression, {"bounds": BOUNDS}, {}),
    "rows that come and go, robust": (
        regression,
        {"bounds": BOUNDS, "neighbours": "add_remove", "n_max": 90},
        {"robust": True},
    ),
    "momentum": (regression, {"bounds": BOUNDS}, {"momentum_steps": 20}),
    "persons": (
        lambda: regression(who=np.arange(40) // 2),
        {"bounds": BOUNDS, "neighbours": "add_remove", "n_max": 90, "unit": dp.Unit("who", max_rows=3)},
        {},
    ),
    "weighted": (
        lambda: regression(weights=np.linspace(0, 4, 40)),
        {"bounds": {**BOUNDS, "w": (0, 4)}, "weights": {"y": "w"}},
        {},
    ),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning")
@pytest.mark.parametrize("case", WALKS)
def test_what_the_kernel_charges_is_what_was_priced_beforehand(case, monkeypatch):
    """By the plan of the release; by ``dp.plan``, which rehearses it; and as by the formulas of the schedule."""
    build, declared, choice = WALKS[case]
    rehearsed, unit = [], declared.get("unit")
    charge = Rehearsal.charge
    monkeypatch.setattr(Rehearsal, "charge", lambda self, *given: rehearsed.append(given[0]) or charge(self, *given))
    statistics, domain = dp.Gradients(steps=10, **choice), dp.Domain(**declared)
    ledger = dp.Ledger(1.0, 1e-5, neighbours=domain.neighbours, unit=unit and unit.column)
    given = {"delta": 1e-5, "domain": domain, "statistics": statistics, "progressbar": False}
    private = dp.privatize(build(), epsilon=1.0, ledger=ledger, **given)
    (entry,), planned = ledger.history, Planned.of(statistics, interface_of(build(), domain), dp.Budget(1.0, 1e-5))
    assert entry.event == planned.schedule.event == walk_event(list(planned.schedule.sums.values()), domain.neighbours)
    assert entry.event.to_dict() == dp.Release.of(private).record.event
    assert not rehearsed
    if case != "weighted":  # which dp.plan does not simulate
        dp.plan(build(), [1.0], repeats=2, **given)
        assert rehearsed and all(event == entry.event for event in rehearsed)
