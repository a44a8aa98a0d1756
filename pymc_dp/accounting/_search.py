"""The least of many bounds, each of which holds; and the least noise of which a bound is small enough."""

from __future__ import annotations

import math
from collections.abc import Callable

from pymc_dp.errors import ArgumentError

_TOLERANCE = 1e-4  # of the noise found, relative, above the least there is; never below it


def least_on_grid(bound: Callable[[int], float], count: int, step: int) -> float:
    """Return the least of ``bound(0), ..., bound(count - 1)`` that is found: every `step`-th first, then the gaps.

    It is the least of all where they fall and then rise. Any of them holds, so that a worse one is still a bound.
    """
    found: dict[int, float] = {}
    places = [*range(0, count, step), count - 1]
    while True:
        for place in places:
            if 0 <= place < count and place not in found:
                found[place] = bound(place)
        centre = min(found, key=lambda place: found[place])
        if step == 1:
            return found[centre]
        step //= 2
        places = [centre - step, centre, centre + step]


def least_noise(total: Callable[[float], float], epsilon: float, start: float) -> float:
    """Return a noise whose `total` was found to be at most `epsilon`, and at most a little above one that was not.

    In logarithms the total is nearly a line that falls, so that secants need few steps. Each aims past the root, away
    from the side last seen, so that both ends close in.
    """
    enough = short = 0.0  # noises that do and do not suffice, 0 until one is known
    at: dict[float, float] = {}
    noise = start
    for step in range(100):
        value = at[noise] = total(noise)
        if value <= epsilon:
            enough = noise if not enough else min(enough, noise)
        else:
            short = max(short, noise)
        if not short or not enough:
            move = min(max(value / epsilon, 0.25), 4.0)
            noise *= move * (1 + _TOLERANCE) if value > epsilon else move / (1 + _TOLERANCE)
            continue
        if enough <= short * (1 + 2 * _TOLERANCE):
            return enough
        middle = math.sqrt(short * enough)
        if step % 4 != 3 and math.isfinite(at[short]) and at[enough] > 0:
            share = math.log(at[short] / epsilon) / math.log(at[short] / at[enough])
            middle = short * (enough / short) ** share
        aim = middle / (1 + _TOLERANCE) if value <= epsilon else middle * (1 + _TOLERANCE)
        noise = min(max(aim, short * (1 + _TOLERANCE / 2)), enough / (1 + _TOLERANCE / 2))
    if not enough:
        raise ArgumentError(f"No noise was found for epsilon={epsilon}. Ask for a larger epsilon or fewer steps.")
    return enough
