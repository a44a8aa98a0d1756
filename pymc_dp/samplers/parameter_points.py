"""Public points of a parameter space: ends of what priors allow, others at random, and points moved on from these."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.columns import levels_of
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.priors import BALL, Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.public_rows import along

CORNERS, RANDOM = 256, 256
"""Points at ends of all scalars: all of them, or so many; and points at random."""
EVENLY, FEW, MOST_SWEPT = 65, 9, 16
"""Values that a single scalar takes in turn, those that one of several takes, and up to how many scalars do."""
NEAR, FAR, FARTHER = 10.0, 1e6, 1e9
"""How far a parameter without bounds is moved from its centre, in standard deviations of a normal prior, or in ones."""
STEP = 1e-5
"""Share of the way between both ends over which a slope is taken."""
TABLES = ("multivariate_normal", "dirichlet", BALL)
"""Distributions of several numbers whose points are known; of others they are drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """One free variable: where it is in a point, and what it may be."""

    prior: Prior
    place: slice
    low: Array
    high: Array
    integer: bool

    @property
    def loose(self) -> bool:
        """Whether nothing bounds some of its scalars."""
        return not np.isfinite([self.low, self.high]).all()

    @property
    def drawn(self) -> bool:
        """Whether its scalars cannot be chosen one by one, and no rule says which points there are."""
        several = getattr(self.prior.variable.owner.op, "ndim_supp", 0) > 0
        return several and self.prior.distribution not in TABLES

    def ends(self, reach: float) -> tuple[Array, Array]:
        """Return flat finite ends; what has none is `reach` units from its centre."""
        centre, spread = np.zeros(self.prior.shape), np.ones(self.prior.shape)
        if self.prior.constants and self.prior.distribution in ("normal", "halfnormal"):
            centre, spread = self.prior.constants[0], self.prior.constants[-1]
        low = np.where(np.isfinite(self.low), self.low, np.minimum(centre, self.high) - reach * spread)
        high = np.where(np.isfinite(self.high), self.high, np.maximum(centre, low) + reach * spread)
        return low.ravel(), high.ravel()

    def at(self, shares: Array, rng: np.random.Generator) -> Array:
        """Return (n, size) values at shares of the way between the ends, or as far within a ball or a simplex."""
        low, high = self.ends(NEAR)
        if self.prior.distribution == BALL:
            directions = rng.normal(size=(len(shares), *self._groups))
            directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
            lengths = np.where(rng.random((len(shares), self._groups[0], 1)) < 0.5, 1.0, shares[:, :1, None])
            return np.asarray((directions * lengths * high.max()).reshape(len(shares), -1))
        if self.prior.distribution == "dirichlet":
            mixed = rng.dirichlet(np.full(self._groups[1], 0.5), (len(shares), self._groups[0]))
            vertex = np.eye(self._groups[1])[rng.integers(self._groups[1], size=mixed.shape[:2])]
            return self._of_mass(np.where(rng.random((len(shares), 1, 1)) < 0.5, vertex, mixed))
        if self.drawn:
            with suppress(Exception):  # some cannot be drawn
                values = np.asarray(plain_draw(self.prior.variable, rng, len(shares)), dtype=np.float64)
                return values.reshape(len(shares), -1)
        values = low + (high - low) * shares
        return np.rint(values) if self.integer else values

    @property
    def middle(self) -> Array:
        """Return flat values in the middle of what is allowed."""
        low, high = self.ends(2.0)
        if self.prior.distribution == BALL:
            return np.zeros(self.prior.size)
        if self.prior.distribution == "dirichlet":
            return self._of_mass(np.full((1, *self._groups), 1 / self._groups[1]))[0]
        if self.drawn:
            return self.at(np.zeros((1, self.prior.size)), np.random.default_rng(1))[0]
        values = low / 2 + high / 2
        return np.asarray(np.rint(values) if self.integer else values)

    def uphill(self, values: Array, slopes: Array) -> Array:
        """Return where linear functions of such slopes are largest: (n, size) values, the same where they are flat."""
        low, high = self.ends(NEAR)
        if self.drawn:
            return values
        if self.prior.distribution == BALL:
            own = slopes.reshape(len(slopes), *self._groups)
            length = np.linalg.norm(own, axis=-1, keepdims=True)
            end = own * (high.max() / np.where(length > 0, length, 1.0))
            return np.where(np.repeat(length > 0, self._groups[1], axis=-1).reshape(values.shape),
                            end.reshape(values.shape), values)  # fmt: skip
        if self.prior.distribution == "dirichlet":
            own = slopes.reshape(len(slopes), *self._groups)
            return self._of_mass(np.eye(self._groups[1])[own.argmax(axis=-1)])
        return np.where(slopes > 0, high, np.where(slopes < 0, low, values))

    def swept(self) -> Iterator[tuple[int, Array]]:
        """Yield the values that each scalar takes in turn, with its place in a point."""
        if self.drawn or self.prior.distribution in (BALL, "dirichlet"):
            return
        for place, (low, high) in enumerate(zip(*self.ends(NEAR), strict=True)):
            values = np.linspace(low, high, EVENLY if self.prior.size == 1 else FEW)
            yield self.place.start + place, np.unique(np.rint(values)) if self.integer else values

    @property
    def _groups(self) -> tuple[int, int]:
        """How many balls or simplices there are, and how many numbers each has."""
        width = self.prior.shape[-1] if self.prior.shape else 1
        return self.prior.size // max(width, 1), width

    def _of_mass(self, shares: Array) -> Array:
        """Return points of simplices from shares of what lies above the least values."""
        low = self.low.reshape(1, *self._groups)
        found = low + (1 - low.sum(axis=-1, keepdims=True)).clip(0) * shares
        return np.asarray(found.reshape(len(shares), -1))


class ParameterPoints:
    """Points of a parameter space by a fixed seed, and points moved on from these. All of them are public.

    Parameters
    ----------
    priors : sequence of Prior

    Attributes
    ----------
    points : (n_points, n_scalars) array
        Values of all free variables, one after the other; parameters without bounds are far out in some.
    middle : (n_scalars,) array
    """

    def __init__(self, priors: Sequence[Prior]) -> None:
        rng, start, parts = np.random.default_rng(20261), 0, list[_Part]()
        for prior in priors:
            levels = levels_of(prior)
            ends = (prior.low, prior.high) if levels is None else (levels[0], levels[-1])
            low, high = (
                np.full(prior.shape, least if end is None else end, dtype=np.float64)
                for end, least in zip(ends, (-np.inf, np.inf), strict=True)
            )
            integer = not prior.variable.type.dtype.startswith("float")
            place = slice(start, start + prior.size)
            parts.append(_Part(prior=prior, place=place, low=low, high=high, integer=integer))
            start += prior.size
        self._parts, self._rng = parts, rng
        width = start
        if 2**width <= CORNERS:
            corners = np.array(list(itertools.product([0.0, 1.0], repeat=width)))
        else:
            corners = rng.integers(0, 2, (CORNERS, width)).astype(np.float64)
        shares = np.concatenate([corners, rng.random((RANDOM, width))])
        if width <= 2:
            evenly = np.linspace(0, 1, EVENLY)
            shares = np.concatenate([shares, *(along(evenly, place, width) for place in range(width))])
        self.middle = np.concatenate([part.middle for part in parts])
        near = np.concatenate([part.at(shares[:, part.place], rng) for part in parts], axis=1)
        far = [point for part in self.loose for point in self.moved_out(part.prior, FAR)]
        self.points = np.concatenate([self.middle[None], near, *(one[None] for one in far)])

    @property
    def loose(self) -> list[_Part]:
        """Free variables that nothing bounds."""
        return [part for part in self._parts if part.loose]

    def moved_out(self, prior: Prior, reach: float) -> Array:
        """Return a few points at which a free variable without bounds is far from its centre, in each direction."""
        part = next(part for part in self._parts if part.prior is prior)
        rng, low_high = np.random.default_rng(3), part.ends(reach)
        base = np.concatenate([one.at(rng.random((8, one.prior.size)), rng) for one in self._parts], axis=1)
        if part.drawn:
            return base
        found = []
        for side, end in enumerate(low_high):
            if np.isinf((part.low, part.high)[side]).any():
                found.append(base.copy())
                found[-1][:, part.place] = end
        return np.concatenate(found) if found else base

    def at_end(self, prior: Prior, side: int) -> Array:
        """Return the middle with one free variable at its lower or upper end."""
        part = next(part for part in self._parts if part.prior is prior)
        point = self.middle.copy()
        if part.prior.distribution == "dirichlet":
            sign = np.zeros((1, part.prior.size))
            sign[0, :: part.prior.shape[-1]] = 1.0 if side else -1.0
            point[part.place] = part.uphill(point[None, part.place], sign)[0]
        elif part.prior.distribution != BALL and not part.drawn:
            ends = part.ends(NEAR)[side]
            finite = np.isfinite((part.low, part.high)[side]).ravel()
            point[part.place] = np.where(finite, ends, point[part.place])
        return point

    def beside(self, points: Array) -> tuple[Array, Array]:
        """Return (n, n_scalars, n_scalars) points a little after each, and before it, in each scalar alone."""
        low, high = (np.concatenate([part.ends(NEAR)[side] for part in self._parts]) for side in (0, 1))
        moves = np.diag(STEP * (high - low))
        return (
            np.minimum(points[:, None] + moves, np.maximum(high, points)[:, None]),
            np.maximum(points[:, None] - moves, np.minimum(low, points)[:, None]),
        )

    def uphill(self, points: Array, slopes: Array) -> Array:
        """Return points where linear functions of such slopes are largest."""
        slopes = np.nan_to_num(slopes)
        return np.concatenate(
            [part.uphill(points[:, part.place], slopes[:, part.place]) for part in self._parts], axis=1
        )

    def swept(self, points: Array, number: Callable[[Array], Array]) -> Array:
        """Let each scalar take each of its values, and keep what is best for each point.

        Parameters
        ----------
        points : (n, n_scalars) array
        number : callable
            From (n, times, n_scalars) points to (n, times) numbers, large ones of which are looked for.
        """
        values = [(place, one) for part in self._parts for place, own in part.swept() for one in own]
        if not values or self.points.shape[1] > MOST_SWEPT:
            return points
        tried = np.repeat(points[:, None], len(values) + 1, axis=1)
        for turn, (place, value) in enumerate(values):
            tried[:, turn + 1, place] = value
        best = np.nan_to_num(number(tried)).argmax(axis=1)
        return np.asarray(tried[np.arange(len(points)), best])


__all__ = ["FAR", "FARTHER", "ParameterPoints"]
