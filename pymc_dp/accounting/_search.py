"""The least of many bounds, each of which holds."""

from __future__ import annotations

from collections.abc import Callable


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
