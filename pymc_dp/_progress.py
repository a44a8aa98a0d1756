"""A progress bar for long work that PyMC does not draw, and one line where there is nothing to count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Timer
from typing import Protocol

LONG = 5.0
"""Seconds after which work without a bar says what takes so long."""


class Advance(Protocol):
    """Moves a bar."""

    def __call__(self, done: int = 1, description: str | None = None) -> None:
        """Count what was done since the last call, and change the words beside the bar, if there are new ones."""


@contextmanager
def progress(shown: bool, description: str, total: int) -> Iterator[Advance]:
    """Show a bar with the number of parts that are done and the time that is left; draw nothing unless `shown`."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, disable=not shown) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done=1, description=None: bar.update(task, advance=done, description=description)


def reading(
    shown: bool, n_rows: int, neighbours: str, description: str = "rows read"
) -> AbstractContextManager[Advance]:
    """Show a bar over the rows of a table, unless their number is private."""
    return progress(shown and neighbours == "replace", description, n_rows)


@contextmanager
def announced(words: str, after: float | None = None) -> Iterator[None]:
    """Write one line to stderr where the work within takes longer than `after` seconds, by default `LONG`."""
    timer = Timer(LONG if after is None else after, lambda: print(words, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


__all__ = ["LONG", "Advance", "announced", "progress", "reading"]
