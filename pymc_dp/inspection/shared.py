"""One inspection of a model for several that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from typing import Any

from pymc import Model

from pymc_dp.domain import Domain

KEYWORD = Parameter.KEYWORD_ONLY
_kept: ContextVar[dict[tuple[Any, ...], tuple[Any, ...]] | None] = ContextVar("kept", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """Inspect every model once for all that ask within this context; it must not be changed meanwhile."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def kept_while_shared[Found](inspected: Callable[..., Found]) -> Callable[..., Found]:
    """Let an inspection be made once for the same model and domain within `shared`."""
    defaults = {name: given.default for name, given in signature(inspected).parameters.items() if given.kind is KEYWORD}

    @wraps(inspected)
    def once(model: Model, domain: Domain | None = None, **options: Any) -> Found:
        kept = _kept.get()
        if kept is None:
            return inspected(model, domain, **options)
        key = (inspected, id(model), id(domain), *sorted({**defaults, **options}.items()))
        if key not in kept:
            kept[key] = (inspected(model, domain, **options), model, domain)  # what is held has an identity of its own
        found: Found = kept[key][0]
        return found

    return once


__all__ = ["kept_while_shared", "shared"]
