"""Every public call, each argument wrong in many ways: an error of the package that names it, and nothing spent."""

import warnings

import numpy as np
import pytest

import pymc_dp as dp
from tests.wrong_calls import FEW, WORDS, WRONG, Call, calls, planned, trace

CALLS = calls()


class Reached(BaseException):
    """All checks were passed: whatever comes next spends, reads rows or simulates them."""


@pytest.fixture(autouse=True)
def nothing_spent(monkeypatch, tmp_path):
    """Stop every call before the first ledger is charged, or the first row read or simulated."""
    trace(), planned()  # made once, and in earnest

    def stop(*args, **kwargs):
        raise Reached

    for where in (
        "pymc_dp.release.paid.weaknesses",
        "pymc_dp.plan.run.draw_truths",
        "pymc_dp.plan.sampler.draw_tables",
        "pymc_dp.rehearse.sums.draw_truths",
    ):
        module, _, name = where.rpartition(".")
        monkeypatch.setattr(__import__("sys").modules[module], name, stop)
    monkeypatch.chdir(tmp_path)  # a text may be a right path


def outcome(call: Call, argument: str, wrong: object) -> Exception | None:
    """Return what a call with one wrong argument raises."""
    given = {**call.right(), argument: wrong}
    ledger = given.get("ledger")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.function(**given)
    except Reached:
        return None
    except Exception as error:
        assert not isinstance(ledger, dp.Ledger) or not ledger.history
        return error
    return None


@pytest.mark.few(11)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_wrong_argument_is_named_and_nothing_is_spent(call, subtests):
    for argument in call.arguments:  # not looked up before: some take a trace to be made
        with subtests.test(argument=argument):
            names_it_and_spends_nothing(call, argument)


def names_it_and_spends_nothing(call: Call, argument: str) -> None:
    right = call.right()[argument]
    for name in FEW if call.slow else WRONG:
        wrong = WRONG[name]
        if wrong is None and right is None:
            continue
        error = outcome(call, argument, wrong)
        if error is None:
            continue
        text = str(error)
        assert isinstance(error, dp.errors.PrivacyError), f"{name}: {type(error).__name__}: {text[:200]}"
        assert any(word in text for word in (argument, *WORDS.get(argument, ()))) or name in RIGHT, f"{name}: {text}"
        assert len(text.split()) > 5 and "114813069527425" not in text


# Wrong values that some arguments take, so that an error may be about another one that does not fit them.
RIGHT = {"three", "half", "true", "zero", "far", "tiny", "tree", "pairs", "array", "function", "class", "bytes"}
RIGHT |= {"frame", "negative", "texts"}


def test_texts_show_no_rows_that_were_passed_in_the_wrong_place():
    rows = np.array([[123.456, 789.012]])
    for call in CALLS:
        for argument in call.arguments if not call.slow else ():
            error = outcome(call, argument, rows)
            assert "123.4" not in str(error), f"{call.name}({argument}): {error}"
