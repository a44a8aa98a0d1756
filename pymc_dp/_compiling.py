"""What numba compiles: one line when it takes long, and a count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from inspect import signature
from typing import Any

LONG = 3.0
"""Seconds of compiling after which it is said; a cache that is warm takes less."""
WORDS = "Compiling for this model: up to a minute or so the first time on this machine, then kept."


class Compiled:
    """Functions that numba has compiled, and the seconds that took.

    Numba says when it begins and ends. One function makes others be compiled: seconds are those of the outermost.

    Parameters
    ----------
    say : callable, optional
        Called once, where compiling has taken `LONG` seconds.
    clock : callable
    """

    def __init__(self, say: Callable[[], None] | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.functions, self._ended, self._depth, self._began = 0, 0.0, 0, 0.0
        self._say, self._clock = say, clock

    @property
    def seconds(self) -> float:
        """Seconds of compiling until now."""
        return self._ended + (self._clock() - self._began) * (self._depth > 0)

    def notify(self, event: Any) -> None:
        """Hear of a beginning or an end."""
        if event.is_start:
            self._begin()
        else:
            self._end()
        if self._say is not None and self.seconds >= LONG:
            say, self._say = self._say, None
            say()

    def _begin(self) -> None:
        if self._depth == 0:
            self._began = self._clock()
        self.functions, self._depth = self.functions + 1, self._depth + 1

    def _end(self) -> None:
        if self._depth == 1:
            self._ended += self._clock() - self._began
        self._depth -= 1


@contextmanager
def heard(compiled: Compiled) -> Iterator[Compiled]:
    """Let it hear of all that is compiled in this process meanwhile."""
    from numba.core import event

    event.Listener.register(Compiled)  # which is not derived from it: numba takes long to import
    with event.install_listener("numba:compile", compiled):
        yield compiled


def says_when_it_compiles[**P, Found](function: Callable[P, Found]) -> Callable[P, Found]:
    """Let a function with a progress bar say, where the bar is shown, that compiling takes long, before it has ended.

    What is compiled depends on the model and on what was compiled before, on no private value.
    """
    usual = signature(function).parameters["progressbar"].default

    @wraps(function)
    def saying(*args: P.args, **kwargs: P.kwargs) -> Found:
        shown = kwargs.get("progressbar", usual)  # which the function itself checks
        with heard(Compiled(_announce)) if isinstance(shown, bool | str) and shown else nullcontext():
            return function(*args, **kwargs)

    return saying


def _announce() -> None:
    """Print above the bars, which are on the same console."""
    from rich import get_console

    get_console().print(WORDS)


__all__ = ["LONG", "WORDS", "Compiled", "heard", "says_when_it_compiles"]
