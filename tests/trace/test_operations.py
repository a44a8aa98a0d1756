"""The report names the operations of a release, with exact costs that are those of the events that were charged."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GDPEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    total_epsilon,
)
from pymc_dp.trace.operations import NAMES, operations

EVENT = ComposedEvent(
    events=(
        DiscreteLaplaceEvent(scale=4.0, sensitivity=1),
        SelfComposedEvent(event=BoundedRangeEvent(eta=0.25), count=3),
        ComposedEvent(events=(DiscreteGaussianEvent(scale=10.0, l2_squared=4), GDPEvent(mu=0.3), GDPEvent(mu=0.4))),
        ApproximateEvent(epsilon=0.5, delta=1e-7),
        SelfComposedEvent(event=DiscreteLaplaceEvent(scale=8.0, sensitivity=1), count=2),
    )
)


def test_uses_of_one_kind_add_up_in_its_own_terms():
    found = {name: (uses, exact, at) for name, uses, exact, at in operations({"event": EVENT.to_dict(), "delta": 1e-6})}
    assert found["sum with discrete Laplace noise"][:2] == ("3", "ε = 0.5")
    assert found["choice, or exact draw"][:2] == ("3", "range η = 0.75")
    assert found["sum with discrete Gaussian noise"][:2] == ("1", "ρ = 0.02")
    assert found["draw by its shape"][:2] == ("2", "μ = 0.5")
    assert found["accept bit, labels, or batches together"][1] == "ε = 0.5, δ = 1e-07"
    gaussian = total_epsilon(DiscreteGaussianEvent(scale=10.0, l2_squared=4), 1e-6).epsilon
    assert found["sum with discrete Gaussian noise"][2] == f"{gaussian:.6g}, 1e-06"


def test_batches_say_their_noise_and_their_rate():
    event = SubsampledGaussianEvent(noise_multiplier=1.5, sampling="poisson", sample_rate=0.01, neighbours="add_remove")
    ((_, uses, exact, _),) = operations({"event": SelfComposedEvent(event=event, count=9).to_dict(), "delta": 1e-6})
    assert (uses, exact) == ("9", "noise 1.5 clip norms, rate 0.01")


def test_no_kind_of_event_is_without_a_name():
    import pymc_dp.accounting.events as events

    kinds = {one.kind for one in vars(events).values() if isinstance(one, type) and getattr(one, "kind", None)}
    assert kinds - {"composed", "self_composed"} == set(NAMES)


@pytest.mark.parametrize(("noise", "delta", "cost"), [("laplace", 0.0, "ε = "), ("gaussian", 1e-6, "ρ = ")])
def test_a_report_names_the_sums_of_its_release(noise, delta, cost):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 2, 2), observed=np.arange(40) % 2)
    release = dp.Release.of(
        dp.privatize(
            model, epsilon=1.0, delta=delta, statistics=dp.Statistics(noise), domain=dp.Domain(), label="operations"
        )
    )
    ((name, uses, exact, at),) = operations(release.record.to_dict())
    assert name == f"sum with discrete {noise.capitalize()} noise" and uses == "1" and exact.startswith(cost)
    assert float(at.split(",")[0]) <= 1.0
