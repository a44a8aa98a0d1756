"""What an event says that overrides little, and how kinds become known."""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from pymc_dp.accounting import (
    ComposedEvent,
    GDPEvent,
    PureEvent,
    at_distance,
    basic,
    event_from_dict,
    gdp,
    group_event,
    leaves,
    pld,
    pure,
    rdp,
    replace_event,
    total_delta,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting.calibrate import with_noise_times
from pymc_dp.accounting.events import Event, base
from pymc_dp.accounting.pairs import LaplacePair, Normal
from pymc_dp.errors import ArgumentError


@pytest.fixture(autouse=True)
def kinds(monkeypatch):
    """Kinds that are defined in a test are known in it alone."""
    monkeypatch.setattr(base, "_KINDS", dict(base._KINDS))
    return base._KINDS


def defined(name="OneEvent", kind="one", parent=Event, **readings):
    """A kind of event with these readings and one field."""
    body = {"__annotations__": {"size": float}, "__module__": "elsewhere", "__qualname__": name, **readings}
    cls = type(parent)(name, (parent,), body, kind=kind)
    return dataclass(frozen=True, kw_only=True)(cls)


def test_a_kind_that_says_nothing_has_no_finite_cost_and_no_other_reading():
    event = defined()(size=1.0)
    assert (event.pure_loss(), event.approximate_loss(), event.zcdp_rho(), event.gdp_half_square()) == (None,) * 4
    assert event.renyi_divergence(2.0) == math.inf and event.loss_pairs() is None and event.relation is None
    for accountant in (pure, zcdp, gdp, rdp, pld, basic):
        assert accountant.epsilon_at(event, 1e-6) == math.inf and accountant.delta_at(event, 1.0) == 1.0
    assert total_delta(event, 1.0) == 1.0
    with pytest.raises(ArgumentError, match="No finite epsilon"):
        total_epsilon(ComposedEvent(events=(event, PureEvent(epsilon=0.1))), 1e-6)


@pytest.mark.parametrize(
    ("read", "reader"),
    [
        (lambda event: group_event(event, rows=2), "group_event"),
        (replace_event, "group_event"),
        (lambda event: at_distance(event, 2.0), "at_distance"),
        (lambda event: with_noise_times(event, 2.0), "with_noise_times"),
    ],
)
def test_a_reading_that_it_does_not_have_is_refused_within_others_too(read, reader):
    event = defined()(size=1.0)
    for whole in (event, ComposedEvent(events=(PureEvent(epsilon=0.1), event))):
        with pytest.raises(ArgumentError, match=f"^{reader} has no rule for an event of type OneEvent"):
            read(whole)


def test_a_pure_loss_implies_what_randomised_response_costs():
    event, plain = defined(pure_loss=lambda self: Fraction(1, 2))(size=1.0), PureEvent(epsilon=0.5)
    assert event.approximate_loss() == (Fraction(1, 2), 0)
    assert event.zcdp_rho() == plain.zcdp_rho() > 0
    assert event.renyi_divergence(3.0) == plain.renyi_divergence(3.0) > 0
    assert event.loss_pairs() == plain.loss_pairs() == (LaplacePair(Fraction(1, 2), 1),)
    assert total_epsilon(event, 1e-6) == total_epsilon(plain, 1e-6)


def test_a_mu_implies_what_two_normal_distributions_cost():
    event, plain = defined(gdp_half_square=lambda self: Fraction(1, 8))(size=1.0), GDPEvent(mu=0.5)
    assert event.pure_loss() is None and event.approximate_loss() is None
    assert event.zcdp_rho() == Fraction(1, 8)
    assert event.loss_pairs() == plain.loss_pairs() == (Normal(Fraction(1, 8)),)
    assert total_epsilon(event, 1e-6) == total_epsilon(plain, 1e-6)


def test_a_definition_makes_its_kind_known():
    one = defined()
    assert event_from_dict(one(size=2.0).to_dict()) == one(size=2.0)
    assert one(size=2.0).to_dict() == {"kind": "one", "size": 2.0}
    with pytest.raises(ArgumentError, match="Use one of PureEvent, .*, SelfComposedEvent, .*OneEvent, or register"):
        leaves("no event")


def test_two_kinds_cannot_have_one_name_but_a_class_may_be_defined_again(kinds):
    first = defined()
    with pytest.raises(ArgumentError, match="There is an event of kind 'one' already, OneEvent"):
        defined("OtherEvent")
    with pytest.raises(ArgumentError, match="There is an event of kind 'pure' already, PureEvent"):
        defined(kind="pure")
    assert kinds["one"] is first and kinds["pure"] is PureEvent
    assert defined() is kinds["one"] is not first
