"""Nothing is read before it is paid for; what pays covers what it is used for; errors hold nothing of the rows."""

import copy
import inspect
import pickle
import traceback
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp import Ledger
from pymc_dp.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    PureEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
)
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError
from pymc_dp.kernel import (
    Column,
    Interval,
    Kernel,
    LedgerAccount,
    NormalInBall,
    OneHot,
    RowMap,
    Table,
    choice_event,
)
from pymc_dp.kernel.account import Pool, Rehearsal, covers
from pymc_dp.kernel.shapes import Facts
from pymc_dp.testing import insecure_randomness
from tests.kernel.pairs import Lookup, table

NUMBERS = Lookup([[0.0, -1.0], [1.0, 0.5]])
ONE = Lookup([[0.5], [1.0]])
HELD = []
REGRESSION = NormalInBall(width=2, radius=1.0, longest=1.0, farthest=1.0, precision=1.0)
THREE = Lookup([[0.5, 0.1, 0.2], [1.0, 0.0, 0.0]])
OPERATIONS = {
    "choose": lambda k: k.choose(NUMBERS, [], 2, width=1.0, eta=5.0),
    "barker": lambda k: k.barker(ONE, [], low=0.0, high=1.0),
    "accept": lambda k: k.accept(ONE, [], low=0.0, high=1.0, beta=0.6),
    "penalty": lambda k: k.penalty(ONE, [], low=0.0, high=1.0, noise=0.1),
    "sum": lambda k: k.sum(NUMBERS, [], 2, bound=1.0, noise="laplace", scale=0.1),
    "soft_max": lambda k: k.soft_max(NUMBERS, [], 2, low=0.0, high=1.0, noise="laplace", scale=0.1),
    "sums": lambda k: k.sums(ONE, [], OneHot(2), noise="laplace", scale=0.1),
    "draw": lambda k: k.draw(THREE, [], REGRESSION, beta=1e3),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_read_where_the_budget_does_not_suffice(name):
    made = table([0, 1], "replace")
    made._blocks = made._column = None  # reading raises
    ledger = Ledger(0.5, 1e-6)
    k = Kernel(made, LedgerAccount(ledger))
    with pytest.raises(PrivacyError):
        OPERATIONS[name](k)
    assert not k.made and not ledger.history


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failure_while_rows_are_read_is_paid_for_and_tells_nothing(name):
    class Secret(Exception):
        pass

    def fail(*_, **__):
        private = f"the row says {4700 + 11}"
        HELD.append(Secret(private))
        raise HELD[-1]

    made = table([0, 1], "replace")
    made._blocks = made._column = fail
    ledger = Ledger(1e6, 0.5)
    with pytest.raises(ReleaseError) as caught:
        OPERATIONS[name](Kernel(made, LedgerAccount(ledger)))
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None and len(ledger.history) == 1
    text = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert str(4700 + 11) not in text
    frames = [frame for frame, _ in traceback.walk_tb(HELD.pop().__traceback__)]
    assert any(frame.f_code is fail.__code__ for frame in frames)
    assert not any(frame.f_locals.get("private") for frame in frames)  # whoever else holds the error


def arrays_of(error):
    """Names and arrays that the frames of an error hold, in their cells, functions and lists too."""
    left = [
        (name, each) for frame, _ in traceback.walk_tb(error.__traceback__) for name, each in frame.f_locals.items()
    ]
    found, seen = set(), set()
    for name, each in left:  # which grows
        if id(each) in seen or name in ("frame", "made", "k"):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            found.add(name)
        elif isinstance(each, list | tuple):
            left += [(name, one) for one in each]
        elif inspect.isfunction(each) and each.__module__.startswith("pymc_dp.kernel"):
            left += inspect.getclosurevars(each).nonlocals.items()
    return found


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_frames_of_a_failure_hold_no_sums_of_rows(name, kind):
    made = table([0, 1], "replace")
    blocks, found = made._blocks, []

    def failing(most):
        yield from blocks(most)
        raise kind

    made._blocks = failing
    k = Kernel(made, LedgerAccount(Ledger(1e6, 0.5)))
    try:
        OPERATIONS[name](k)
    except (ReleaseError, KeyboardInterrupt) as error:
        found.append(arrays_of(error))
    assert found and found[0] <= {"log_weights", "held", "scales"}  # public: of a choice, edges, and noise


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_operation_is_paid_for_and_tells_nothing(kind):
    def fail(*_):
        raise kind("the row says 1") from ValueError("and 2")

    made, ledger = table([0, 1], "replace"), Ledger(1e6)
    made._blocks = fail
    with pytest.raises(kind) as caught:
        OPERATIONS["choose"](Kernel(made, LedgerAccount(ledger)))
    assert not caught.value.args and caught.value.__context__ is None and len(ledger.history) == 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_public_rows_costs_nothing_and_says_what_it_would_cost(name):
    ledger = Ledger(1e6, 0.5)
    k = Kernel(table([0, 1], "replace"), LedgerAccount(ledger))
    public = Kernel(table([1, 0, 1], "replace"), Rehearsal("replace"))
    OPERATIONS[name](public)
    assert public.arithmetic == public.made[-1].arithmetic == ("float64" if name == "draw" else "hardened")
    assert public.guarantee == "none" and not ledger.history and not k.made
    OPERATIONS[name](k)
    assert k.guarantee == "exact" and [one.event for one in k.made] == [event for _, event in public.account.events]
    assert [entry.event for entry in ledger.history] == [one.event for one in k.made]


def test_a_test_of_noise_has_no_guarantee():
    k = Kernel(table([0, 1], "replace"), LedgerAccount(Ledger(10.0)))
    with insecure_randomness(1):
        found = [k.choose(NUMBERS, [], 2, width=1.0, eta=1.0)]
        assert k.guarantee == "none"
    with insecure_randomness(1):
        assert found == [k.choose(NUMBERS, [], 2, width=1.0, eta=1.0)]


def test_a_grant_pays_for_uses_that_it_covers():
    ledger = Ledger(2.0)
    k = Kernel(table([0, 1], "replace"), LedgerAccount(ledger))
    grant = k.grant(choice_event(0.5, 2), 2)
    with pytest.raises(BudgetExceeded, match="covers"):
        k.choose(NUMBERS, [], 2, width=1.0, eta=0.6, pay=grant)
    with pytest.raises(BudgetExceeded, match="covers"):
        k.sum(NUMBERS, [], 2, bound=1.0, noise="laplace", scale=1e3, pay=grant)
    assert grant.left == 2
    for eta in (0.5, 0.1):
        k.choose(NUMBERS, [], 2, width=1.0, eta=eta, pay=grant)
    with pytest.raises(BudgetExceeded, match="left"):
        k.choose(NUMBERS, [], 2, width=1.0, eta=0.1, pay=grant)
    assert len(ledger.history) == 1 and len(k.made) == 2
    with pytest.raises(PrivacyError, match="another kernel"):
        Kernel(table([0], "replace"), LedgerAccount(ledger)).choose(NUMBERS, [], 2, width=1.0, eta=0.1, pay=grant)
    with pytest.raises(BudgetExceeded, match="left"):
        k.by_kind().choose(NUMBERS, [], 2, width=1.0, eta=0.1, pay=grant)


def test_an_event_that_is_changed_after_it_was_charged_pays_for_no_more():
    k, event = Kernel(table([0, 1], "replace"), LedgerAccount(Ledger(1.0))), PureEvent(epsilon=0.1)
    grant = k.grant(event)
    object.__setattr__(event, "epsilon", 100.0)
    with pytest.raises(BudgetExceeded, match="covers"):
        k.sum(NUMBERS, [], 2, bound=1.0, noise="laplace", scale=0.1, pay=grant)


def test_what_a_charge_is_computed_from_cannot_be_assigned():
    k = Kernel(table([0, 1], "replace"), LedgerAccount(Ledger(1.0, 1e-6)))
    grant, pool = k.grant(choice_event(0.1, 2)), k.pool(rho=0.01)
    for held, name in (
        *((k, name) for name in ("sense", "neighbours", "account", "n_rows", "arithmetic", "guarantee")),
        *((grant, name) for name in ("event", "entries", "left")),
        *((pool, name) for name in ("event", "remaining")),
        *((k.account, name) for name in ("ledger", "relation")),
    ):
        with pytest.raises(AttributeError):
            setattr(held, name, getattr(held, name))


def test_a_pool_pays_for_steps_chosen_in_turn():
    k = Kernel(table([0, 1], "replace"), LedgerAccount(Ledger(1.0, 1e-6)))
    pool = k.pool(rho=0.01)
    assert pool.fits(choice_event(0.2, 2)) and not pool.fits(choice_event(0.3, 2))
    steps = 0
    while pool.fits(choice_event(0.1, 2)):
        k.choose(NUMBERS, [], 2, width=1.0, eta=0.1, pay=pool)
        steps += 1
    assert steps == 7  # each 0.1² / 8
    with pytest.raises(BudgetExceeded, match="left of the pool"):
        k.choose(NUMBERS, [], 2, width=1.0, eta=0.1, pay=pool)
    assert not pool.fits(batch(1e6, 0.1)) and not pool.fits(ApproximateEvent(epsilon=1e-9, delta=1e-9))
    pure = Kernel(table([0], "replace"), LedgerAccount(Ledger(1.0))).pool(epsilon=0.5)
    assert pure.fits(choice_event(0.4, 2)) and not pure.fits(DiscreteGaussianEvent(scale=100.0, shifts=(1,)))
    with pytest.raises(ArgumentError, match="one of them"):
        k.pool()


@pytest.mark.parametrize(("unit", "event"), [("epsilon", PureEvent), ("rho", ZCDPEvent)])
def test_a_pool_counts_every_small_step_and_ends_where_it_is_full(unit, event):
    """In float64 1 + 1e-17 is 1: a plain sum would never end."""
    pool, first, steps = Pool(**{unit: 1.0}), 1.0 - 2e-16, 0
    pool.take(event(**{unit: first}))
    while pool.fits(event(**{unit: 1e-17})) and steps < 1000:
        pool.take(event(**{unit: 1e-17}))
        steps += 1
    assert steps == (1 - Fraction(repr(first))) // Fraction(1, 10**17)
    assert pool.remaining < 1e-17
    full = Pool(**{unit: 0.3})
    for _ in range(3):
        full.take(event(**{unit: 0.1}))
    assert full.remaining == 0
    with pytest.raises(BudgetExceeded):
        full.take(event(**{unit: 1e-300}))


def batch(noise, rate, neighbours="replace"):
    return SubsampledGaussianEvent(noise_multiplier=noise, sampling="poisson", sample_rate=rate, neighbours=neighbours)


def drawn(noise, size):
    return SubsampledGaussianEvent(
        noise_multiplier=noise, sampling="without_replacement", population=9, batch_size=size, neighbours="replace"
    )


@pytest.mark.parametrize(
    ("most", "event", "covered"),
    [
        (BoundedRangeEvent(eta=1.0), BoundedRangeEvent(eta=1.0), True),
        (BoundedRangeEvent(eta=1.0), PureEvent(epsilon=0.1), False),
        (PureEvent(epsilon=1.0), BoundedRangeEvent(eta=1.0), True),
        (PureEvent(epsilon=1.0), ZCDPEvent(rho=1e-9), False),
        (ZCDPEvent(rho=0.125), BoundedRangeEvent(eta=1.0), True),
        (ZCDPEvent(rho=0.12), BoundedRangeEvent(eta=1.0), False),
        (ZCDPEvent(rho=9.0), batch(1e3, 0.1), False),
        (ZCDPEvent(rho=9.0), ApproximateEvent(epsilon=0.1, delta=0.1), False),
        (ApproximateEvent(epsilon=1.0, delta=0.1), ApproximateEvent(epsilon=1.0, delta=0.2), False),
        (ApproximateEvent(epsilon=1.0, delta=0.1), PureEvent(epsilon=1.0), True),
        (DiscreteLaplaceEvent(scale=2.0, sensitivity=2), DiscreteLaplaceEvent(scale=1.0, shifts=(1,)), True),
        (DiscreteLaplaceEvent(scale=2.0, sensitivity=2), DiscreteLaplaceEvent(scale=1.0, shifts=(1, 1)), False),
        (DiscreteLaplaceEvent(scale=2.0, shifts=(2,)), DiscreteLaplaceEvent(scale=2.0, shifts=(1, 1)), False),
        (DiscreteLaplaceEvent(scale=2.0, shifts=(2,)), DiscreteLaplaceEvent(scale=3.0, shifts=(2,)), True),
        (DiscreteLaplaceEvent(scale=2.0, shifts=(2,)), DiscreteLaplaceEvent(scale=2.0, sensitivity=2), False),
        (DiscreteLaplaceEvent(scale=2.0, shifts=(2,)), DiscreteGaussianEvent(scale=9.0, shifts=(2,)), False),
        (DiscreteGaussianEvent(scale=2.0, l2_squared=4), DiscreteGaussianEvent(scale=1.0, shifts=(1,)), True),
        (DiscreteGaussianEvent(scale=2.0, shifts=(2,)), DiscreteGaussianEvent(scale=2.0, shifts=(2,)), True),
        (DiscreteGaussianEvent(scale=2.0, shifts=(2,)), DiscreteGaussianEvent(scale=3.0, shifts=(2,)), False),
        (DiscreteGaussianEvent(scale=2.0, shifts=(2,)), DiscreteGaussianEvent(scale=1.0, shifts=(1,)), False),
        (
            DiscreteGaussianEvent(scale=2.0, l2_squared=4, coordinates=3),
            DiscreteGaussianEvent(scale=2.0, l2_squared=4, coordinates=4),
            False,
        ),
        (batch(2.0, 0.1), batch(2.0, 0.1), True),
        (batch(2.0, 0.1), batch(3.0, 0.05), True),
        (batch(2.0, 0.1), batch(2.0, 0.2), False),
        (batch(2.0, 0.1), batch(1.0, 0.1), False),
        (batch(2.0, 0.1), batch(2.0, 0.1, "add_remove"), False),
        (batch(2.0, 1.0), drawn(2.0, 3), False),
        (drawn(2.0, 3), drawn(3.0, 3), True),
        (drawn(2.0, 3), drawn(2.0, 4), False),
    ],
)
def test_an_event_covers_what_costs_no_more_by_every_reading(most, event, covered):
    assert covers(most, event) is covered


def test_accounts_count_under_the_relation_of_the_table():
    rows = {"i": Column([0, 1], 0, 1)}
    for made, account in [
        (Table(rows), Ledger(1.0, neighbours="add_remove")),
        (Table(rows, neighbours="add_remove", person=[1, 2]), Ledger(1.0, neighbours="add_remove")),
        (Table(rows, neighbours="add_remove", person=[1, 2]), Ledger(1.0, unit="other")),
    ]:
        with pytest.raises(PrivacyError, match="counts under"):
            Kernel(made, LedgerAccount(account))
    assert Kernel(Table(rows, neighbours="add_remove", person=[1, 2], unit="id"), LedgerAccount(Ledger(1.0, unit="id")))


def test_charges_chosen_in_turn_stay_within_the_ledger():
    """What is asked next may depend on what came out: the ledger is a filter, and stops it at its ε."""
    ledger = Ledger(1.0, 1e-6)
    k, asked = Kernel(table([0, 1], "replace"), LedgerAccount(ledger)), 0
    with pytest.raises(BudgetExceeded):
        for step in range(100):
            found = k.sum(NUMBERS, [], 2, bound=1.0, noise="gaussian", scale=20.0 + step % 3)
            asked += 1
            if found[0] > 0:
                k.choose(NUMBERS, [], 2, width=1.0, eta=0.1)
    assert 2 < asked < 40 and ledger.spent.epsilon <= 1.0


def test_what_pays_cannot_be_spent_twice():
    k = Kernel(table([0], "replace"), LedgerAccount(Ledger(1.0, 1e-6)))
    for pay in (k.grant(choice_event(0.1, 2)), k.pool(epsilon=0.1)):
        for twice in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(PrivacyError, match="twice"):
                twice(pay)
        pay._birthplace.pid -= 1
        with pytest.raises(PrivacyError, match="another process"):
            k.choose(NUMBERS, [], 2, width=1.0, eta=0.01, pay=pay)


def test_classes_that_state_their_own_move_or_keep_rows_are_refused():
    class Free(Interval):
        facts = Facts(1, 1, (1, 1), (1, 1))

    class Cheap(NormalInBall):
        def range(self, neighbours):
            return 1e-9

    class Keeper(RowMap):
        pass

    class Rows(Table):
        pass

    class Event(PureEvent):
        def pure_loss(self):
            return 0

    class Moves(tuple):
        __slots__ = ()

    hollow = DiscreteLaplaceEvent(scale=100.0, shifts=(1,))
    object.__setattr__(hollow, "shifts", Moves((1,)))
    k = Kernel(table([0], "replace"), LedgerAccount(Ledger(1.0)))
    with pytest.raises(ArgumentError, match="certified"):
        k.sums(ONE, [], Free((0,), (2**20,)), noise="laplace", scale=1.0)
    with pytest.raises(ArgumentError, match="known"):
        k.draw(THREE, [], Cheap(width=2, radius=1.0, longest=1.0, farthest=1.0, precision=1.0))
    with pytest.raises(ArgumentError, match="derived"):
        k.choose(object.__new__(Keeper), [], 2, width=1.0, eta=0.1)
    with pytest.raises(ArgumentError, match="derived"):
        Kernel(Rows({"i": Column([0], 0, 1)}), LedgerAccount(Ledger(1.0)))
    with pytest.raises(ArgumentError, match="event"):
        k.grant(Event(epsilon=0.5))
    with pytest.raises(ArgumentError, match="shifts of an event"):
        k.grant(hollow)
    assert not k.made
