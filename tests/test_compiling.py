"""What takes long to compile is said once, where bars are shown, and before it has ended."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

from pymc_dp import _compiling
from pymc_dp._compiling import LONG, WORDS, Compiled, says_when_it_compiles

START, END = (SimpleNamespace(is_start=start) for start in (True, False))


class Clock:
    """Time that passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def after(self, seconds: float, compiled: Compiled, event: SimpleNamespace) -> None:
        self.now += seconds
        compiled.notify(event)


@pytest.fixture
def clock():
    return Clock()


def fresh():
    """A function that numba has not seen."""
    return numba.njit(lambda x: x + 1)


def test_it_is_said_once_while_the_rest_is_being_compiled(clock):
    said = []
    compiled = Compiled(lambda: said.append(clock.now), clock)
    for seconds, event in ((0.0, START), (LONG - 0.5, START), (1.0, END), (5.0, END), (5.0, START), (9.0, END)):
        clock.after(seconds, compiled, event)
    assert said == [LONG + 0.5]


@says_when_it_compiles
def work(*, progressbar=True):
    """Compile something."""
    return fresh()(1)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, True),
        ({"progressbar": "split"}, True),
        ({"progressbar": False}, False),
        ({"progressbar": np.ones(2)}, False),
    ],
)
def test_a_function_says_it_where_its_bar_is_shown(monkeypatch, capsys, options, shown):
    monkeypatch.setattr(_compiling, "LONG", 0.0)
    assert work(**options) == 2
    assert (WORDS in " ".join(capsys.readouterr().out.split())) == shown
    assert work.__doc__ == "Compile something."
