"""A progress bar for long work that PyMC does not draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


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


__all__ = ["Advance", "progress", "reading"]
