"""Ctrl+C is held back once, and never swallowed."""

import os
import signal

import pytest

from pymc_dp._interrupts import HeldBack


@pytest.fixture(autouse=True)
def _handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    yield
    found = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert found is before


def press(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_second_one_does_not_wait():
    done = []
    with pytest.raises(KeyboardInterrupt), HeldBack() as held:
        press()
        done.append(1)
        press()
        done.append(2)
    assert done == [1] and held.taken


def test_one_within_another_waits_for_the_outer_one():
    done = []
    with pytest.raises(KeyboardInterrupt), HeldBack():
        with HeldBack():
            press()
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_no_function_come_back(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with HeldBack() as held:
            if handler is signal.SIG_IGN:
                press()
        assert signal.getsignal(signal.SIGINT) is handler and not held.asked
    finally:
        signal.signal(signal.SIGINT, before)
