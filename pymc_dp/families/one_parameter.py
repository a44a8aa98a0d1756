"""The closed form of a likelihood that is an exponential family in one unknown parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array


@dataclass(frozen=True, kw_only=True)
class OneParameter:
    """A likelihood ``l(x, θ) = T(x) η(θ) - c A(θ)`` of one unknown parameter θ, T its one statistic and c known.

    Attributes
    ----------
    slot : int
        Which of its parameters is unknown.
    known : int or None
        Which of its parameters is the number c; None for 1.
    natural : callable
        η as a function of θ and c.
    density : callable
        l as a function of T, θ and c, up to terms free of θ.
    best : callable
        The θ at which l is largest, from T and c.
    low, high : float
        Open interval of values of θ.
    """

    slot: int
    known: int | None
    natural: Callable[[Array, Array], Array]
    density: Callable[[Array, Array, Array], Array]
    best: Callable[[Array, Array], Array]
    low: float = 0.0
    high: float = np.inf


def of_scale(known: int | None = None, slot: int = 1) -> OneParameter:
    """A scale s: ``-c log s - T / s``."""
    return OneParameter(
        slot=slot,
        known=known,
        natural=lambda s, c: -1 / s,
        density=lambda t, s, c: -c * np.log(s) - t / s,
        best=lambda t, c: t / c,
    )


__all__ = ["OneParameter", "of_scale"]
