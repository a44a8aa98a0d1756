"""Slice sampling, one coordinate after the other: for what costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final, override

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.conditionals import Conditional, Sums, Values

WIDTH = 2.0
MOST_STEPS = 64
"""Widths that an interval may grow by; more would not make it less correct, only longer."""


def slice_draw(
    rng: np.random.Generator, density: Callable[[Array], float], start: Array, widths: Array | float = WIDTH
) -> Array:
    """Update every coordinate of an array once, leaving a density invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    density : callable
        Log-density up to a constant; -inf or NaN outside of the support.
    start : array
        A point of the support.
    widths : array or float
        Of the first interval of each coordinate, fixed beforehand; the distribution is the same whatever they are.

    References
    ----------
    Neal (2003), Slice sampling, figures 3 and 5, doi 10.1214/aos/1056562461.

    Examples
    --------
    >>> x = slice_draw(np.random.default_rng(1), lambda x: -float((x**2).sum()) / 2, np.zeros(3))
    >>> x.shape
    (3,)
    """
    point = np.array(start, dtype=np.float64)
    flat = point.reshape(-1)
    first = np.broadcast_to(widths, point.shape).ravel()
    for place in range(flat.size):
        _update(rng, density, point, flat, place, float(first[place]))
    return point


def _update(
    rng: np.random.Generator, density: Callable[[Array], float], point: Array, flat: Array, place: int, width: float
) -> None:
    origin = flat[place]

    def at(value: float) -> float:
        flat[place] = value
        found = float(density(point))
        return -np.inf if np.isnan(found) else found

    level = at(origin) - rng.standard_exponential()
    left = origin - width * rng.random()
    right = left + width
    budget = int(rng.integers(MOST_STEPS))
    for _ in range(budget):
        if at(left) <= level:
            break
        left -= width
    for _ in range(MOST_STEPS - 1 - budget):
        if at(right) <= level:
            break
        right += width
    while True:
        value = left + (right - left) * rng.random()
        if at(value) > level or left == right:
            return
        if value < origin:
            left = value
        else:
            right = value


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Free(Conditional):
    """Slice sampling of a variable that sees no row: a function of released states, at no cost.

    It leaves its conditional invariant, where the other updates draw from theirs.

    Attributes
    ----------
    density : callable
        From the variable on its unconstrained scale and the others' values to the log-density.
    forward, backward : callable
        To and from the unconstrained scale, given the others' values.
    """

    kind = "slice sampling"
    density: Callable[[Array, Values], float]
    forward: Callable[[Array, Values], Array]
    backward: Callable[[Array, Values], Array]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        start = self.forward(values[self.name], values)
        return self.backward(slice_draw(rng, lambda place: self.density(place, values), start), values)
