"""Ctrl+C at ten random moments: nothing is spent twice, and nothing that was paid for is lost by pressing it once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from types import FrameType
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases

MOMENTS = 10
ROWS = np.arange(60) % 3 == 0
QUIET = {"quiet": True, "compute_convergence_checks": False}
SHORT = {"draws": 12, "tune": 4, "chains": 1, "progressbar": False, **QUIET}

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    # Where PyTensor cleans up after itself, what is raised is reported and goes no further.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:The chains were ended:pymc_dp.errors.BudgetWarning"),
]


@pytest.fixture(autouse=True)
def _handler_is_put_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    found = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    forget_releases()
    assert found is before


def model() -> pm.Model:
    with pm.Model() as made:
        p = pm.Uniform("p", 0.05, 0.95)
        pm.Bernoulli("y", p, observed=ROWS)
    return made


@dataclass
class Moments:
    """Counts the functions that are entered, and presses Ctrl+C at some of them."""

    at: tuple[int, ...] = ()
    count: int = 0
    pressed: int = 0
    charge: int = 0
    release: int = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "call":
            return
        self.count += 1
        name = frame.f_code.co_name
        self.charge = self.charge or (self.count if name == "spend" else 0)
        self.release = self.release or (self.count if name in ("_ended", "warn_of_bounds", "annotate") else 0)
        if self.count in self.at:
            self.pressed += 1
            os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def counted(self) -> Iterator[Moments]:
        sys.setprofile(self)
        try:
            yield self
        finally:
            sys.setprofile(None)


@dataclass
class Outcome:
    """What a call came to."""

    ledger: dp.Ledger
    pressed: int
    tree: xr.DataTree | None = None
    error: BaseException | None = None

    @property
    def charged(self) -> bool:
        return bool(self.ledger.history)

    @property
    def kept(self) -> Any:
        """What was released."""
        found = self.tree
        for name in ("private_model", "idata"):
            found = getattr(self.error, name, None) if found is None else found
        return found


def outcome(call: Callable[..., Any], at: tuple[int, ...] = ()) -> tuple[Outcome, Moments]:
    """Make a call that costs the whole of a ledger, and press Ctrl+C at some moments."""
    forget_releases()  # a ledger of its own for each call
    made, ledger = model(), dp.Ledger(epsilon=1.0)
    moments, tree, error = Moments(at=at), None, None
    try:
        # An interrupted change of PyTensor's settings stays, as it does without this package.
        with pytensor.config.change_flags(cxx=pytensor.config.cxx), moments.counted():
            tree = call(epsilon=1.0, model=made, ledger=ledger)
    except KeyboardInterrupt as found:
        error = found
    return Outcome(ledger=ledger, pressed=moments.pressed, tree=tree, error=error), moments


@cache
def counted(call: Callable[..., Any]) -> tuple[int, int, int]:
    """How many functions a call enters until the charge, until the release, and in all."""
    outcome(call)  # what is done once in a process
    _, found = outcome(call)
    return found.charge, found.release, found.count


def moments_of(call: Callable[..., Any], rng: np.random.Generator) -> list[int]:
    """Half of the moments at random over the whole call, half from the charge to the release."""
    first, last, every = counted(call)
    whole, within = rng.integers(1, every, MOMENTS // 2), rng.integers(first + 1, last + 1, MOMENTS // 2)
    return [*whole.tolist(), *within.tolist()]


CALLS = [
    partial(dp.sample, **SHORT),
    partial(dp.sample, **SHORT, step=dp.OPS()),
    dp.privatize,
    partial(dp.sample_ais, particles=4, temperatures=3, progressbar=False),
]


@pytest.mark.few(1)
@pytest.mark.parametrize("call", CALLS, ids=["statistics", "step", "released", "annealed"])
def test_pressed_once_it_loses_nothing_that_was_charged(call, rng):
    charged = 0
    for at in moments_of(call, rng):
        found, _ = outcome(call, (at,))
        assert found.ledger.spent.epsilon in (0.0, pytest.approx(1.0, rel=1e-3)) and len(found.ledger.history) <= 1
        assert found.ledger.spent.epsilon <= 1.0
        assert found.charged == (found.kept is not None), (at, found)
        charged += found.charged and found.pressed
    assert charged >= MOMENTS // 2  # or the moments were none


@pytest.mark.few(1)
@pytest.mark.parametrize("call", CALLS, ids=["statistics", "step", "released", "annealed"])
def test_pressed_twice_it_says_what_was_lost(call, rng):
    lost = 0
    for at in moments_of(call, rng)[MOMENTS // 2 :]:
        found, _ = outcome(call, (at, at + 2))
        assert found.ledger.spent.epsilon <= 1.0
        if found.charged and found.kept is None:
            lost += 1
            assert "the budget is spent" in str(found.error)
            assert found.error.__suppress_context__ or found.error.__context__ is None
    assert lost
