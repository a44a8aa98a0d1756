"""The closed form of a likelihood that is an exponential family in one unknown parameter.

With ``l(x, θ) = T(x) η(θ) - c A(θ)``, c a known number, two rows of one cell differ by ``(T - T') η(θ)``: its range
over θ is the width of T times that of η, which is monotone. The range of one row alone, ``max_θ l - min_θ l``, is a
largest value of functions that are linear in T, so convex: it is largest at an end of T. l has one maximum in θ, so
that its least value is at an end of the box of θ, and its greatest at that maximum or at the end next to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import override

import numpy as np

from pymc_dp.families.closed_form import Boxes, CellRanges, ClosedForm, Moving
from pymc_dp.families.features import BoundedFeatures, RowStatistic
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array


@dataclass(frozen=True, kw_only=True)
class OneParameter(ClosedForm):
    """A likelihood ``l(x, θ) = T(x) η(θ) - c A(θ)`` of one unknown parameter θ, T its one statistic and c known.

    Attributes
    ----------
    slot : int
        Which of its parameters is unknown.
    low, high : float
        Open interval of values of θ.
    known : int or None
        Which of its parameters is the number c; None for 1.
    natural : callable
        η as a function of θ and c.
    density : callable
        l as a function of T, θ and c, up to terms free of θ.
    best : callable
        The θ at which l is largest, from T and c.
    """

    known: int | None
    natural: Callable[[Array, Array], Array]
    density: Callable[[Array, Array, Array], Array]
    best: Callable[[Array, Array], Array]

    @override
    def applies(self, statistic: RowStatistic, boxes: Boxes) -> bool:
        """All parameters but θ are known numbers."""
        known = (bool((low == high).all()) for slot, (low, high) in enumerate(boxes) if slot != self.slot)
        return len(statistic.labels) == 1 and all(known)

    @override
    def ranges(self, statistic: RowStatistic, boxes: Boxes, moving: Moving, *, normalised: bool) -> CellRanges:
        low, high = boxes[self.slot]
        c, same_c = (np.ones(len(low)),) * 2 if self.known is None else boxes[self.known]
        inside = (low > self.low) & (high < self.high) & (c == same_c) & (c > 0)
        least, most = _ends(statistic)
        same = (most - least) * np.abs(self.natural(high, c) - self.natural(low, c))
        alone = np.maximum(*(self._alone(np.full(low.shape, t), low, high, c) for t in (least, most)))
        same, alone = np.where(inside, same, np.inf), np.where(inside, alone, np.inf)
        reason = "{title} rows, one parameter"
        return CellRanges(same=same, alone=alone, same_size=same, alone_size=alone, reason=reason)

    def _alone(self, t: Array, low: Array, high: Array, c: Array) -> Array:
        best = self.best(t, c)
        best = np.clip(np.where(np.isnan(best), low, best), low, high)
        heights = np.stack([self.density(t, theta, c) for theta in (best, low, high)])
        top, bottom = heights.max(axis=0), heights[1:].min(axis=0)
        return np.asarray(top - bottom + 1e-13 * np.abs(heights).max(axis=0))


def _ends(statistic: RowStatistic) -> tuple[float, float]:
    """Least and greatest T of a row, as it is rounded and clipped."""
    if isinstance(statistic, BoundedMoments):
        return float(statistic.low), float(statistic.high)
    assert isinstance(statistic, BoundedFeatures)
    (only,) = statistic.features
    return only.centre - only.half_width, only.centre + only.half_width


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
