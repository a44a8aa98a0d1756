"""Ctrl+C while something is being paid for: the first one waits, the second one does not."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

WAITS = b"\nCtrl+C waits until what was charged is released. A second one ends it now, and what was charged is lost.\n"


class HeldBack:
    """Hold Ctrl+C back as long as the context lasts, and pass it on at its end.

    A second Ctrl+C raises `KeyboardInterrupt` at once. Only the main thread can hold it back, and only where it means
    something: elsewhere the context does nothing. The handler found at the beginning is there again at the end.

    Attributes
    ----------
    asked : bool
        Whether Ctrl+C was pressed.
    taken : bool
        Whether it has had its effect, so that nothing is passed on.

    Examples
    --------
    >>> with HeldBack() as held:
    ...     done = not held.asked
    >>> done
    True
    """

    def __init__(self) -> None:
        self.asked = self.taken = False
        self._previous: Any = None

    def __enter__(self) -> Self:
        self._previous = _handler()
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._caught)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self._restore()
        if self.asked and not self.taken and kind is None:
            signal.raise_signal(signal.SIGINT)

    def stop_if_asked(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl+C was pressed: here it does no harm."""
        if self.asked:
            self.taken = True
            raise KeyboardInterrupt

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            self.taken = True
            self._restore()
            raise KeyboardInterrupt
        self.asked = True
        os.write(2, WAITS)  # printing may be what was interrupted

    def _restore(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None


def _handler() -> Any:
    """Return what happens at Ctrl+C, or None where that cannot be changed and put back."""
    if threading.current_thread() is not threading.main_thread():
        return None
    found = signal.getsignal(signal.SIGINT)
    return None if found in (None, signal.SIG_IGN) else found


def leave_to_parent() -> None:
    """Ignore Ctrl+C in a process that another one started: a terminal sends it to both, and the other one decides."""
    if multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


__all__ = ["HeldBack", "leave_to_parent"]
