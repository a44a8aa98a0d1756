"""Where privacy randomness comes from: the operating system, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Insecure:
    """Replacement of the secure noise inside a test: a seeded generator, or no noise at all where it is None."""

    rng: np.random.Generator | None


_insecure: ContextVar[Insecure | None] = ContextVar("pymc_dp_insecure", default=None)


def insecure() -> Insecure | None:
    """Return the replacement that is in force, or None where noise is secure."""
    return _insecure.get()


@contextmanager
def use_insecure(replacement: Insecure) -> Iterator[None]:
    """Draw privacy noise from `replacement` inside the block; every release made there has guarantee "none"."""
    token = _insecure.set(replacement)
    try:
        yield
    finally:
        _insecure.reset(token)
