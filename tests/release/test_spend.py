import warnings

import numpy as np
import pymc as pm
import pytest

from pymc_dp import Budget, Domain, Ledger, metrics
from pymc_dp.accounting import PureEvent
from pymc_dp.errors import BudgetExceeded, RepeatedReleaseWarning, WeakGuaranteeWarning
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.spend import spend, weaknesses


def inspection(n=50, **domain):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 1, 1), observed=np.zeros(n, dtype=int))
    return inspect(model, Domain(bounds={"y": (0, 9)}, **domain)).sums


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        (10.0, 0.0, []),
        (10.5, 0.0, ["ε = 10.5", "e^10.5 = 3.6e+04 times"]),
        (1e6, 0.0, ["e^1e+06 times"]),
        (1.0, 0.019, []),
        (
            1.0,
            0.02,
            ["is not below 1 / 50, for 50 rows:", "one row, chosen at random", "below 0.02, for example 0.0002"],
        ),
    ],
)
def test_budgets_that_bound_next_to_nothing_are_named(epsilon, delta, words):
    texts = weaknesses(inspection(), Budget(epsilon, delta))
    assert len(texts) == bool(words)
    assert all(word in texts[0] for word in words)


def test_where_the_number_of_rows_is_private_its_bound_counts():
    found = inspection(n=50, neighbours="add_remove", n_max=1000)
    (text,) = weaknesses(found, Budget(1.0, 0.001))
    assert "1 / 1000, for 1000 rows at most (n_max)" in text and "50" not in text
    assert weaknesses(found, Budget(1.0, 0.0009)) == []


def test_what_a_unit_is_worth_is_not_judged():
    assert weaknesses(inspection(metric=metrics.L1("y")), Budget(100.0)) == []


def charged(ledger, epsilon=20.0, delta=0.5):
    event = PureEvent(epsilon=epsilon)
    spend(inspection(), Budget(epsilon, delta), event=event, label="counts", ledger=ledger)


def test_both_are_said_and_the_release_is_made():
    ledger = Ledger(20.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        charged(ledger)
    assert [item.category for item in caught] == [WeakGuaranteeWarning] * 2
    assert [item.filename for item in caught] == [__file__] * 2
    assert ledger.spent.epsilon == 20.0


def test_warnings_come_before_the_charge():
    ledger = Ledger(20.0)
    with pytest.raises(WeakGuaranteeWarning, match="bounds very little"), warnings.catch_warnings():
        warnings.simplefilter("error")
        charged(ledger)
    other = Ledger(20.0)
    charged(other, epsilon=1.0, delta=0.0)
    with pytest.raises(RepeatedReleaseWarning, match="ε=1 of 20 is spent"):
        charged(ledger, epsilon=1.0, delta=0.0)
    assert ledger.history == [] and len(other.history) == 1


def test_a_refused_charge_is_no_release():
    with pytest.raises(BudgetExceeded):
        charged(Ledger(0.5), epsilon=1.0, delta=0.0)
    charged(None, epsilon=1.0, delta=0.0)
    with pytest.warns(RepeatedReleaseWarning, match="second release from these rows, ε=2 in total"):
        charged(None, epsilon=1.0, delta=0.0)
