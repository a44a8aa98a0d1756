"""Exact draws from a log-concave density in one dimension: rejection from tangents that are found by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Function = Callable[[Floats], Floats]

SLACK = 0.5
"""By how much the envelope may exceed the highest value found, at most, between the two tangents about the mode."""
DROP = 2.0
"""By how much, at most, the logarithm has dropped where the tangent of a side touches; at least by 1."""
WORST_ACCEPTANCE = math.exp(-SLACK) * -math.expm1(-DROP) / DROP
"""A share of .26 of the proposals is accepted whatever the density; measured: .5 to 1."""
FLAT = 1e-14
"""A piece whose logarithm changes by less is uniform to within rounding."""
NO_MASS = "log density must fall towards every infinite end, or it has no finite mass. Give finite bounds."


class Point(NamedTuple):
    """A point with the log density there and its slope; a point outside the support has height -inf."""

    place: float
    height: float
    slope: float

    def tangent(self, x: float) -> float:
        """Height at x of the line that touches here."""
        return self.height + self.slope * (x - self.place) if x != self.place else self.height


@dataclass(frozen=True, kw_only=True)
class Tangents:
    """An envelope of a concave function: the tangent at ``places[i]`` from ``edges[i]`` to ``edges[i + 1]``."""

    places: Floats
    heights: Floats
    slopes: Floats
    edges: Floats

    @property
    def log_masses(self) -> Floats:
        """Logarithm of the integral of each piece's exponential."""
        top, length, rate = self._pieces()
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = np.log(length)
            steep = np.log(-np.expm1(-rate * length)) - np.log(rate)
        return top + np.where(rate * length < FLAT, flat, steep)

    def draw(self, rng: np.random.Generator, log_density: Function, size: int) -> Floats:
        """Draw `size` independent values from the density below this envelope."""
        found = np.empty(0)
        log_masses = self.log_masses
        while found.size < size:
            piece = choose(rng, np.broadcast_to(log_masses, (2 * (size - found.size), log_masses.size)))
            x = self._propose(rng, piece)
            envelope = self.heights[piece] + self.slopes[piece] * (x - self.places[piece])
            with np.errstate(all="ignore"):
                accepted = log_density(x) - envelope >= -rng.standard_exponential(x.size)
            found = np.append(found, x[accepted])
        return found[:size]

    def _pieces(self) -> tuple[Floats, Floats, Floats]:
        """Height at the higher end, length and absolute slope of each piece."""
        high_end = np.where(self.slopes > 0, self.edges[1:], self.edges[:-1])
        flat = self.slopes == 0
        beyond = np.where(flat, 0.0, np.where(flat, self.places, high_end) - self.places)
        return self.heights + self.slopes * beyond, np.diff(self.edges), np.abs(self.slopes)

    def _propose(self, rng: np.random.Generator, piece: npt.NDArray[np.int64]) -> Floats:
        """Invert the distribution function of each piece, measured from its higher end, so that tails keep digits."""
        _, length, rate = (item[piece] for item in self._pieces())
        uniform = rng.random(piece.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = -np.log1p(uniform * np.expm1(-rate * length)) / rate
        beyond = np.where(rate * length < FLAT, uniform * length, steep)
        left, right = self.edges[:-1][piece], self.edges[1:][piece]
        with np.errstate(invalid="ignore"):
            x = np.where(self.slopes[piece] > 0, right - beyond, left + beyond)
        return np.clip(x, left, right)


def draw_log_concave(
    rng: np.random.Generator, log_density: Function, slope: Function, low: float, high: float, start: float
) -> float:
    """Draw from a log-concave density on an interval.

    Parameters
    ----------
    rng : numpy.random.Generator
        ``randomness.secure_generator()`` where the draw is a release.
    log_density : callable
        (k,) array of points to (k,) array of logarithms of the density, up to a constant: concave on [low, high]; -inf
        or NaN outside its support.
    slope : callable
        (k,) array of points to (k,) array of its derivatives; at a kink any number between both sides' slopes.
    low, high : float
        ``low < high``, either may be infinite.
    start : float
        Any point in [low, high] where the density is positive. The nearer to the mode, the fewer evaluations.

    Returns
    -------
    float in [low, high]

    Raises
    ------
    ArgumentError
        For an empty interval, a start outside of it or of the support, no finite mass, or a slope that is NaN within
        the support. No text shows a value of the density.

    Notes
    -----
    A concave function lies below each of its tangents, so the exponential of the least of any tangents is an envelope,
    and a draw by rejection from it is exact wherever they touch. Bisection by the sign of the slope finds two tangents
    about the mode that nowhere exceed the highest value found by more than 1/2; one more on each side touches where the
    logarithm has dropped by 1 to 2 (none where the interval ends before).

    At least .26 of the proposals are accepted. To one side of the highest point found let W be the distance to where
    the side's tangent touches and D in [1, 2] the drop there. The density is at least ``e^(-D t / W)`` relative to the
    highest point at a distance t <= W, by concavity: its mass is at least ``W (1 - e^-D) / D``. The envelope is at most
    e^(1/2) up to where the tangent falls below that, which is ``(D + 1/2) / slope`` before W, and has mass
    ``e^(1/2) / slope`` beyond: less than ``W e^(1/2)`` in sum. Without a tangent on a side, the same holds with W the
    distance to the end. The number of evaluations before the first proposal grows with the logarithm of the distance
    from `start` in units of the density's width.

    **Guarantee.** The draw has exactly the stated distribution in real arithmetic with ideal randomness; the arithmetic
    is float64. It is private to the extent that the stated distribution is. The number of evaluations, and with it the
    run time, depends on the density and is covered by no guarantee.

    References
    ----------
    Gilks, Wild (1992), doi 10.2307/2347565; Devroye (1986), Non-Uniform Random Variate Generation, section VII.2.

    Examples
    --------
    >>> x = draw_log_concave(np.random.default_rng(1), lambda x: -(x**4), lambda x: -4 * x**3, -np.inf, np.inf, 3.0)
    >>> -3 < x < 3
    True
    """
    envelope = tangents(log_density, slope, low, high, start)
    return float(envelope.draw(rng, log_density, 1)[0])


def tangents(log_density: Function, slope: Function, low: float, high: float, start: float) -> Tangents:
    """Return an envelope for `draw_log_concave`; its parameters are explained there."""
    if not low < high or not low <= start <= high or not math.isfinite(start):
        raise ArgumentError(f"low < high must hold, and start must be finite and between, got {low!r}, {high!r}.")
    search = _Search(log_density, slope, float(low), float(high))
    first = search.at(float(start))
    if not math.isfinite(first.height):
        raise ArgumentError("start must lie where the log density is finite. Start nearer to the mode.")
    touching = search.about_mode(first)
    best = max(touching, key=lambda point: point.height)
    left, right = search.side(best, touching[0], -1.0), search.side(best, touching[-1], 1.0)
    return _joined(sorted({point.place: point for point in (*left, *touching, *right)}.values()), search)


class _Search:
    """Bisection on one density; its ends move inwards where the support turns out to be smaller."""

    def __init__(self, log_density: Function, slope: Function, low: float, high: float) -> None:
        self.log_density, self.slope, self.ends = log_density, slope, {-1.0: low, 1.0: high}

    def at(self, x: float) -> Point:
        with np.errstate(all="ignore"):
            height = float(self.log_density(np.array([x]))[0])
            if not math.isfinite(height):
                return Point(x, -math.inf, math.nan)
            slope = float(self.slope(np.array([x]))[0])
        if math.isnan(slope):
            raise ArgumentError("slope must be a number wherever the log density is, at kinks too, got NaN.")
        return Point(x, height, slope)

    def outwards(self, point: Point, side: float) -> Point | None:
        """Go from `point`, which rises to that side, until the density falls again; None at the end of the support."""
        step = 2.0 / abs(point.slope) if point.slope else max(abs(point.place), 1.0)
        while True:
            step = max(step, 4 * math.ulp(point.place))
            x = point.place + side * step
            if side * x >= side * self.ends[side]:
                if math.isfinite(self.ends[side]):
                    return None
                raise ArgumentError(NO_MASS)
            ahead = self.at(x)
            if self._is_end(ahead, side):
                return None
            if side * ahead.slope <= 0:
                return ahead
            point, step = ahead, 4.0 * step

    def about_mode(self, first: Point) -> list[Point]:
        """Find one tangent or two about the mode that exceed the highest value found by at most SLACK."""
        left = first if first.slope >= 0 else self.outwards(first, -1.0)
        right = first if first.slope <= 0 else self.outwards(first, 1.0)
        while True:
            known = [point for point in (left, right) if point is not None]
            a, b = left.place if left else self.ends[-1.0], right.place if right else self.ends[1.0]
            middle = 0.5 * a + 0.5 * b
            if self._top(left, right) - max(point.height for point in known) <= SLACK or not a < middle < b:
                return known
            point = self.at(middle)
            if left and right and not math.isfinite(point.slope):
                return known
            if not self._is_end(point, -1.0 if left is None else 1.0):
                left, right = (point if point.slope >= 0 else left), (point if point.slope <= 0 else right)

    def _top(self, left: Point | None, right: Point | None) -> float:
        """Highest value of the lower of both tangents."""
        if left and right:
            crossing = _crossing(left, right)
            return max(left.tangent(crossing), right.tangent(crossing))
        return right.tangent(self.ends[-1.0]) if right else left.tangent(self.ends[1.0]) if left else math.inf

    def side(self, best: Point, outermost: Point, side: float) -> list[Point]:
        """Find where the log density has dropped by 1 to DROP, between `best` and the end; none where it does not."""
        inner, outer = best, outermost
        step = max(abs(outer.place - best.place), 1.0 / abs(outer.slope) if outer.slope else 1.0)
        while best.height - outer.height < 1.0:
            inner, step = outer, max(2.0 * step, 4 * math.ulp(outer.place))
            x = min(max(inner.place + side * step, self.ends[-1.0]), self.ends[1.0])
            if x == inner.place:
                return []
            outer = self._reached(x, side)
        while not best.height - outer.height <= DROP:
            middle = 0.5 * inner.place + 0.5 * outer.place
            if middle in (inner.place, outer.place):
                break
            point = self._reached(middle, side)
            inner, outer = (point, outer) if best.height - point.height < 1.0 else (inner, point)
        return [outer] if math.isfinite(outer.height) and math.isfinite(outer.slope) else []

    def _reached(self, x: float, side: float) -> Point:
        if math.isinf(x):
            raise ArgumentError(NO_MASS)
        point = self.at(x)
        self._is_end(point, side)
        return point

    def _is_end(self, point: Point, side: float) -> bool:
        """Whether the density is 0 from here on, as it is beyond an infinite slope; the end is moved to this point."""
        if math.isfinite(point.slope):
            return False
        self.ends[side] = point.place
        return True


def _crossing(left: Point, right: Point) -> float:
    """Where two tangents cross, kept between their points: whatever rounding does, each stays above the function."""
    difference = left.slope - right.slope
    if not difference > 0:
        return 0.5 * left.place + 0.5 * right.place
    share = (right.height - left.height - right.slope * (right.place - left.place)) / difference
    return min(max(left.place + share, left.place), right.place) if math.isfinite(share) else left.place


def _joined(points: list[Point], search: _Search) -> Tangents:
    inner = [_crossing(a, b) for a, b in pairwise(points)]
    found = Tangents(
        places=np.array([point.place for point in points]),
        heights=np.array([point.height for point in points]),
        slopes=np.array([point.slope for point in points]),
        edges=np.array([search.ends[-1.0], *inner, search.ends[1.0]]),
    )
    if not np.isfinite(found.log_masses.max()):
        raise ArgumentError(NO_MASS)
    return found
