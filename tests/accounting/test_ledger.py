import threading

import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    ComposedEvent,
    DiscreteLaplaceEvent,
    GDPEvent,
    ZCDPEvent,
    mu_budget,
    rho_budget,
    total_epsilon,
)
from pymc_dp.accounting.noise_kinds import laplace_scale
from tests.accounting.oracle import laplace, poisson, pure, times


def spend(ledger, event, label="counts", neighbours="replace"):
    return ledger.spend(event, label=label, neighbours=neighbours)


@pytest.mark.parametrize(
    ("budget", "amount", "count"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (2.1, 0.7, 3), (1.0, 0.01, 100), (1.0, 1 / 3, 3)]
)
def test_decimal_amounts_fill_a_budget_exactly(budget, amount, count):
    for event in (pure(amount), DiscreteLaplaceEvent(scale=laplace_scale(2, amount), shifts=(1, 1))):
        ledger = dp.Ledger(budget)
        for _ in range(count):
            spend(ledger, event)
        assert ledger.spent.epsilon <= budget
        assert ledger.remaining < 1e-14
        with pytest.raises(dp.errors.BudgetExceeded):
            spend(ledger, event)


def test_a_refused_spend_changes_nothing_and_says_all():
    ledger = dp.Ledger(1.0)
    spend(ledger, pure(0.8))
    before = (ledger.spent, ledger.remaining, ledger.history, repr(ledger))
    with pytest.raises(dp.errors.BudgetExceeded) as caught:
        spend(ledger, pure(0.5), label="ages")
    assert (ledger.spent, ledger.remaining, ledger.history, repr(ledger)) == before
    for part in ("'ages'", "asks for epsilon=0.5", "Spent so far: epsilon=0.8", "1.3", "epsilon=1.0", "at most 0.2"):
        assert part in str(caught.value)
    spend(ledger, pure(0.2))
    with pytest.raises(dp.errors.BudgetExceeded, match="The budget is used up: work with what was already released"):
        spend(ledger, pure(1e-9))


def test_relations_do_not_mix():
    ledger = dp.Ledger(1.0)
    with pytest.raises(dp.errors.ArgumentError, match=r"2 epsilon, \(1 \+ e\^epsilon\) delta"):
        spend(ledger, pure(0.1), neighbours="add_remove")
    with pytest.raises(dp.errors.ArgumentError, match="cannot be converted"):
        spend(dp.Ledger(1.0, neighbours="add_remove"), pure(0.1), neighbours="replace")
    with pytest.raises(dp.errors.ArgumentError, match="Did you mean 'replace'"):
        spend(ledger, pure(0.1), neighbours="replaced")
    assert ledger.history == []
    spend(dp.Ledger(1.0, neighbours="add_remove"), pure(0.1), neighbours="add_remove")


def test_only_a_first_spend_is_counted_by_the_fixed_schedule_accountant():
    whole = times(laplace(55.0, 1), 200)
    ledger = dp.Ledger(1.0, 1e-5)
    assert spend(ledger, whole).total == total_epsilon(whole, 1e-5)
    assert ledger.history[0].total.accountant == "pld"
    # as soon as a later choice could have looked at the first result, losses add to what it cost
    more = pure(0.0513)
    assert total_epsilon(ComposedEvent(events=(whole, more)), 1e-5).epsilon < 0.98
    assert ledger.remaining < 0.0513
    with pytest.raises(dp.errors.BudgetExceeded):
        spend(ledger, more)


def test_threads_together_cannot_overspend():
    ledger, refused = dp.Ledger(1.0), []

    def work():
        for _ in range(20):
            try:
                spend(ledger, pure(0.01))
            except dp.errors.BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent == dp.Budget(1.0)
    assert len(ledger.history) == 100
    assert len(refused) == 60


@pytest.mark.parametrize("neighbours, other", [("replace", "add_remove"), ("add_remove", "replace")])
def test_an_event_bound_to_another_relation_is_refused(neighbours, other):
    ledger = dp.Ledger(5.0, 1e-6, neighbours=neighbours)
    step = times(poisson(4.0, 0.01, other), 10)
    for said in ("replace", "add_remove"):
        with pytest.raises(dp.errors.ArgumentError, match="This ledger counts under"):
            spend(ledger, step, neighbours=said)
    assert ledger.history == []
    spend(ledger, times(poisson(4.0, 0.01, neighbours), 10), neighbours=neighbours)


def zcdp_of(epsilon, delta=1e-6):
    return ZCDPEvent(rho=rho_budget(epsilon, delta))


def gdp_of(epsilon, delta=1e-6):
    return GDPEvent(mu=mu_budget(epsilon, delta))


@pytest.mark.parametrize("costly", [zcdp_of, gdp_of])
@pytest.mark.parametrize("small", [0.2, 1.0, 2.5])
def test_a_pure_loss_and_an_epsilon_at_delta_add_to_a_budget_exactly(costly, small):
    ledger = dp.Ledger(3.0, 1e-6)
    assert spend(ledger, pure(small)).total.delta == 0.0
    last = spend(ledger, costly(3.0 - small)).total
    assert (last.accountant, last.delta) == ("sum", 1e-6)
    assert 3.0 * (1 - 1e-6) < last.epsilon <= 3.0


def test_a_spend_after_all_of_delta_is_used_is_told_so():
    ledger = dp.Ledger(3.0, 1e-6)
    spend(ledger, zcdp_of(2.0))
    with pytest.raises(
        dp.errors.BudgetExceeded, match="all of delta.*only pure losses may follow.*need no delta.*at most 1 at delta=0"
    ):
        spend(ledger, zcdp_of(0.1))
