"""Which process an object was made in, since a fork copies what may be there only once; and its processors."""

from __future__ import annotations

import os
from typing import final

_generation = object()


def _begin_generation() -> None:
    global _generation
    _generation = object()


# A process number alone does not tell: a fork of a fork may be given the number of a process that has ended.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_generation)


@final
class Birthplace:
    """The process in which this object was made.

    Attributes
    ----------
    pid : int
        Its number.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._generation = _generation

    @property
    def here(self) -> bool:
        """Whether this is that process, not a fork of it. The number tells forks that run no hook of Python's."""
        return self._generation is _generation and self.pid == os.getpid()


def processors() -> int:
    """Return how many threads may work side by side."""
    return os.cpu_count() or 1


__all__ = ["Birthplace", "processors"]
