"""What is made of one inspection, such as a prior model, once for several that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any

import pytensor

_kept: ContextVar[dict[tuple[Any, ...], tuple[Any, ...]] | None] = ContextVar("kept", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """Make things of one model once for all that ask within this context; it must not be changed meanwhile."""
    token = _kept.set({})
    try:
        # Of graphs that nobody will see, nobody will ask where they were built, which takes a seventh of the time.
        with pytensor.config.change_flags(traceback__limit=0):
            yield
    finally:
        _kept.reset(token)


def kept_while_shared[**P, Found](made: Callable[P, Found]) -> Callable[P, Found]:
    """Let something be made once of the same things, the very same ones, within `shared`.

    What is given by keyword only counts by its value. Nobody may change what was made.
    """
    kinds = signature(made)

    @wraps(made)
    def once(*args: P.args, **kwargs: P.kwargs) -> Found:
        kept = _kept.get()
        if kept is None:
            return made(*args, **kwargs)
        bound = kinds.bind(*args, **kwargs)
        bound.apply_defaults()
        key = (made, *map(id, bound.args), *sorted(bound.kwargs.items()))
        if key not in kept:
            kept[key] = (made(*args, **kwargs), bound.args)  # what is held has an identity of its own
        found: Found = kept[key][0]
        return found

    return once


__all__ = ["kept_while_shared", "shared"]
