"""Samplers from outside of the package that ``dp.explain`` looks at beside its own."""

from __future__ import annotations

from collections.abc import Callable

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.base import PrivateStep

SAMPLERS: list[Callable[[], PrivateStep]] = []
"""In the order of registration. `register` adds to it; nobody else does."""


def register[T: Callable[[], PrivateStep]](sampler: T) -> T:
    """Let ``dp.explain`` list a sampler: whether it fits a model, and how noisy it would be. A decorator.

    ``dp.sample(step=...)`` and ``pm.sample(step=...)`` run any `PrivateStep`, registered or not.

    Parameters
    ----------
    sampler : class
        Derived from `PrivateStep`; without arguments it makes a specification.

    Raises
    ------
    ArgumentError
        If it is not such a class, or is registered already.
    """
    made = sampler() if callable(sampler) else None
    if not (isinstance(made, PrivateStep) and isinstance(sampler, type)) or made.is_bound:
        raise ArgumentError(
            f"{sampler!r} is not accepted: only a class derived from PrivateStep that makes a specification without "
            "arguments."
        )
    if sampler in SAMPLERS:
        raise ArgumentError(f"{made!r} is registered already. Register a sampler once.")
    SAMPLERS.append(sampler)
    return sampler


__all__ = ["SAMPLERS", "register"]
