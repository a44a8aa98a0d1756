"""What was charged is released, or its loss is said; errors where rows are held show none of them."""

import signal
import warnings
from collections.abc import Iterator

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import PureEvent
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.paid import forget_releases, paid, weaknesses

CANARY = 8_675_309


@pytest.fixture(autouse=True)
def _no_history() -> Iterator[None]:
    forget_releases()
    yield
    forget_releases()


@pytest.fixture(scope="module")
def inspection():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1]))
    return inspect(model, None).sums


def payment(inspection, ledger):
    return paid(inspection, dp.Budget(0.5), event=PureEvent(epsilon=0.5), label="y", ledger=ledger)


class Holder:
    def __init__(self) -> None:
        self.rows = [CANARY]


def everything_of(error: BaseException) -> str:
    """What a debugger would show of an error: its texts, those before it, and the variables of all frames."""
    said, found = [], [error]
    while found:
        one = found.pop()
        said += [repr(one), str(getattr(one, "__notes__", ""))]
        frames = one.__traceback__
        while frames is not None:
            if frames.tb_frame.f_code.co_filename != __file__:  # this file knows the canary
                said += [f"{name}={value!r}" for name, value in frames.tb_frame.f_locals.items()]
                said += [repr(vars(value)) for value in frames.tb_frame.f_locals.values() if isinstance(value, Holder)]
            frames = frames.tb_next
        found += [other for other in (one.__cause__, one.__context__) if other is not None]
    return "\n".join(said)


def failing(holder: Holder, kind: type[Exception] = ValueError) -> None:
    def deeper() -> None:
        secret = {"row": CANARY}
        try:
            raise KeyError(secret["row"])
        except KeyError as error:
            raise kind(f"{holder.rows} is out of range") from error

    deeper()


def test_an_error_shows_and_keeps_nothing(inspection):
    ledger, holder = dp.Ledger(1.0), Holder()
    with pytest.raises(dp.errors.ReleaseError) as caught, payment(inspection, ledger) as made:
        made.read(lambda: failing(holder), holder=holder)
    assert str(CANARY) not in everything_of(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None and vars(holder) == {}
    assert ledger.spent.epsilon == 0.5


def test_all_errors_have_one_text(inspection):
    said = set()
    for kind in (ValueError, MemoryError, ZeroDivisionError):
        with pytest.raises(dp.errors.ReleaseError) as caught, payment(inspection, None) as made:
            made.read(lambda kind=kind: failing(Holder(), kind))
        said.add(str(caught.value))
        forget_releases()
    assert len(said) == 1 and "budget is spent" in said.pop()


def test_an_error_of_the_package_keeps_its_text_and_loses_what_came_before_it(inspection):
    def work() -> None:
        rows = [CANARY]
        try:
            raise KeyError(rows[0])
        except KeyError as error:
            raise dp.errors.BudgetExceeded("All chains have begun.") from error

    with (
        pytest.raises(dp.errors.PrivacyError, match="All chains have begun") as caught,
        payment(inspection, None) as made,
    ):
        made.read(work)
    assert str(CANARY) not in everything_of(caught.value)


def test_where_the_ledger_refuses_nothing_is_read_and_ctrl_c_is_free_again(inspection):
    ledger, before = dp.Ledger(0.1), signal.getsignal(signal.SIGINT)
    with pytest.raises(dp.errors.BudgetExceeded), payment(inspection, ledger):
        pytest.fail("rows were read")
    assert ledger.history == [] and signal.getsignal(signal.SIGINT) is before


def inspected(n=50, **domain):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 1, 1), observed=np.zeros(n, dtype=int))
    return inspect(model, dp.Domain(bounds={"y": (0, 9)}, **domain)).sums


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
    texts = weaknesses(inspected(), dp.Budget(epsilon, delta))
    assert len(texts) == bool(words)
    assert all(word in texts[0] for word in words)


def charged(ledger, epsilon=20.0, delta=0.5):
    event = PureEvent(epsilon=epsilon)
    with paid(inspected(), dp.Budget(epsilon, delta), event=event, label="counts", ledger=ledger):
        pass


def test_warnings_come_before_the_charge():
    ledger = dp.Ledger(20.0)
    with pytest.raises(dp.errors.WeakGuaranteeWarning, match="bounds very little"), warnings.catch_warnings():
        warnings.simplefilter("error")
        charged(ledger)
    other = dp.Ledger(20.0)
    charged(other, epsilon=1.0, delta=0.0)
    with pytest.raises(dp.errors.RepeatedReleaseWarning, match="ε=1 of 20 is spent"):
        charged(ledger, epsilon=1.0, delta=0.0)
    assert ledger.history == [] and len(other.history) == 1


def test_a_refused_charge_is_no_release():
    with pytest.raises(dp.errors.BudgetExceeded):
        charged(dp.Ledger(0.5), epsilon=1.0, delta=0.0)
    charged(None, epsilon=1.0, delta=0.0)
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="second release from these rows, ε=2 in total"):
        charged(None, epsilon=1.0, delta=0.0)


def test_a_warning_of_delta_names_no_number_of_private_rows():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(37) % 2)
    domain = dp.Domain(neighbours="add_remove", n_max=50)
    with pytest.warns(dp.errors.WeakGuaranteeWarning, match="n_max") as caught:
        dp.privatize(model, epsilon=1.0, delta=0.5, domain=domain, statistics=dp.Statistics(noise="gaussian"))
    assert not any("37" in str(one.message) for one in caught)
