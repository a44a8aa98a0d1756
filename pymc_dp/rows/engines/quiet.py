"""While an engine runs nothing is logged or warned of in this process: it could show a value."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class _Quiet:
    """How many engines run; the first silences, the last one gives back what was before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._disabled = logging.NOTSET
        self._warnings = warnings.catch_warnings()

    def begin(self) -> None:
        with self._lock:
            if self._running == 0:
                self._disabled, self._warnings = logging.root.manager.disable, warnings.catch_warnings()
                self._warnings.__enter__()
                warnings.simplefilter("ignore")
                logging.disable(max(logging.CRITICAL, self._disabled))
            self._running += 1

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                logging.disable(self._disabled)
                self._warnings.__exit__(None, None, None)


_QUIET = _Quiet()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence logging and warnings of the whole process: engines log in threads and by handlers of their own."""
    _QUIET.begin()
    try:
        yield
    finally:
        _QUIET.end()


__all__ = ["quiet"]
