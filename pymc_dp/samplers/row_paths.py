"""Log weights of annealed particles by rows: sums along their paths, among which the kernel chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_dp.errors import PrivacyError, UnsupportedModelError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Kernel, RowMap
from pymc_dp.samplers.gibbs import NOTHING, GibbsRows, quick_centre, some_of
from pymc_dp.samplers.near_rows import CHUNK, REMEDY, ROOM, no_digits, require_finite
from pymc_dp.samplers.rows import OfPublicRows
from pymc_dp.samplers.sum_paths import Noised

FARTHEST = 4
"""Rows with the largest range, which are moved on to where it is larger."""


class RowPaths:
    """f_i(x) = Σ_j s_j l(x, θ_ij) of particles i, whose states and shares s are public, summed over rows by the kernel.

    Parameters
    ----------
    of : GibbsRows
    states : (n_states, n_scalars) array
        Public values of all variables, at which rows are looked at.

    Attributes
    ----------
    range : float
        How far neighbours move the sum of l, as a range over all parameters: the largest that was found. Along a path
        whose shares add up to s they move f by s times that.
    low, high : float
        Between which l of a row lies, less `level`.
    level : float
        Under replace the middle of what l of a row may be.

    Notes
    -----
    **Guarantee.** That of the kernel's operations. Nothing in here can make one cost more than was paid.
    """

    def __init__(self, of: GibbsRows, states: Array) -> None:
        self._of, self.replace, rows = of, of.replace, of.rows
        self._by_row = bool(of.known)
        self._plain = self._centred = OfPublicRows(rows, rows.logp, several=True)
        self._middle: OfPublicRows | None = None
        if self._by_row:
            middle = rows.middle_of_ends(of.known)
            self._middle = OfPublicRows(rows, middle, several=True, columns=of.known)
            self._centred = OfPublicRows(rows, pt.sub(rows.logp, middle), several=True)
        held = of.public.rows
        found = self._plain.at(held, states).T
        alive = np.isfinite(found).any(axis=1)
        held, found = {name: one[alive] for name, one in held.items()}, found[alive]
        require_finite(found)
        self._rows, self._shares = {name: one[:0] for name, one in held.items()}, np.zeros(0)
        if of.replace and not self._by_row:
            places = some_of(len(found))
            weights = quick_centre(found[places])
            self._rows = {name: one[places[list(weights)]] for name, one in held.items()}
            self._shares = np.array(list(weights.values()))
        centre = self._at_rows(states)

        def less(tried: Any) -> Array:
            numbers = self._centred.at(tried, states).T - centre
            return np.where(np.isfinite(numbers), numbers, 0.0)

        far = np.argsort(np.ptp(less(held), axis=1))[-FARTHEST:]
        top = {name: one[far] for name, one in held.items()}
        moved, seen = of.public.swept(top, np.ones(len(far)), lambda tried: np.ptp(less(tried), axis=1))
        width = max(float(np.ptp(less(held), axis=1).max()), float(np.nan_to_num(seen).max(initial=0.0)))
        plain = self._plain.at({name: np.concatenate([held[name], moved[name]]) for name in held}, states)
        plain = plain[np.isfinite(plain)]
        room = ROOM * max(1.0, float(np.abs(plain).max()))
        low, high = float(plain.min()) - room, float(plain.max()) + room
        self.level = (low + high) / 2 if of.replace else 0.0
        self.low, self.high = (low - self.level, high - self.level) if of.replace else (min(low, 0.0), max(high, 0.0))
        self.range = (2 if of.replace else 1) * max(width, NOTHING) * (1 + ROOM)
        if (problem := no_digits(float(np.abs(plain).max()), of.most_rows, self.range, REMEDY)) is not None:
            raise UnsupportedModelError([problem])
        self._maps: dict[str, RowMap] = {}

    def compile(self, particles: int, steps: int, *, evidence: bool) -> None:
        """Compile what is needed of so many particles, each of so many states: before the budget is charged."""
        rows = self._of.rows
        wanted = {"centred": rows.logp}
        if self._by_row:
            wanted["centred"] = pt.sub(rows.logp, rows.middle_of_ends(self._of.known))
        if evidence and self._by_row:
            wanted["plain"] = rows.logp
        for key, graph in wanted.items():
            points = pt.matrix("points", shape=(particles * steps, rows.at.type.shape[0]))
            shares, centre = pt.vector("shares", shape=(steps,)), pt.vector("centre", shape=(particles,))
            each: Any = rows.at_points(graph, points, particles * steps)
            mixed = (each.reshape((particles, steps)) * shares).sum(axis=1) - centre
            self._maps[key] = rows.row_map(mixed, [points, shares, centre])

    def choose(self, kernel: Kernel, points: Array, shares: Array, most: float, pay: Grant) -> int:
        """Draw a particle with probability ∝ exp(Σ f_i).

        Parameters
        ----------
        points : (n_particles, n_steps, n_scalars) array
        shares : (n_steps,) array
        most : float
            What is enforced and paid for: a range over particles of what neighbours differ by.
        """
        flat = points.reshape(-1, points.shape[-1])
        centre = self._at_rows(flat).reshape(points.shape[:2]) @ shares
        return int(
            kernel.choose(
                self._maps["centred"],
                [flat, shares, centre],
                len(points),
                width=most / (2 if self._of.replace else 1),
                eta=most,
                public=self._offset(flat).reshape(points.shape[:2]) @ shares,
                pay=pay,
            )
        )

    def soft_max(self, kernel: Kernel, points: Array, shares: Array, ends: tuple[float, float], scale: float) -> float:
        """Return the log of the mean of exp(Σ f_i), with discrete Laplace noise of a scale over what a row moves."""
        flat, level = points.reshape(-1, points.shape[-1]), self.level * float(shares.sum())
        found = kernel.soft_max(
            self._maps.get("plain", self._maps["centred"]),
            [flat, shares, np.full(len(points), level)],
            len(points),
            low=ends[0],
            high=ends[1],
            noise="laplace",
            scale=scale,
        )
        return found + (self._of.n_rows * level if self._of.replace else 0.0)

    def _at_rows(self, points: Array) -> Array:
        """Return the centre at each point: a mean of public rows; 0 where rows have their own, or none."""
        if not len(self._shares):
            return np.zeros(len(points))
        return np.asarray(np.nan_to_num(self._plain.at(self._rows, points) @ self._shares, posinf=0.0, neginf=0.0))

    def _offset(self, points: Array) -> Array:
        """Return what the centres of all rows add to the sum at each point: public."""
        if self._middle is None:
            return self._of.n_rows * self._at_rows(points) if self._of.replace else np.zeros(len(points))
        rows, counts = self._of.kinds
        size, total = max(1, CHUNK // max(len(counts), 1)), []
        for start in range(0, len(points), size):
            total.append(self._middle.at(rows, points[start : start + size]) @ counts)
        return np.concatenate(total)


@dataclass(frozen=True, eq=False)
class WeighedRows:
    """Particles with log weights Σ f_i, of which a row's share is held within `ends`; see `RowPaths`."""

    paths: RowPaths
    kernel: Kernel
    points: Array
    shares: Array
    ends: tuple[float, float]

    def choose(self, most: float, pay: Grant) -> int:
        """Draw a particle by its weight; a range of `most` is enforced and paid for."""
        return self.paths.choose(self.kernel, self.points, self.shares, most, pay)

    def soft_max(self, scale: float) -> Noised:
        """Return the log of the mean weight with discrete Laplace noise, of a scale over what a row moves it by."""
        low, high = self.ends
        moved = high - low if self.paths.replace else max(-low, high)
        return Noised(self.paths.soft_max(self.kernel, self.points, self.shares, self.ends, scale), scale * moved)

    def weights(self, scale: float) -> Noised:
        """Refuse: weights are released by exact sums alone."""
        raise PrivacyError("Weights are released with noise by exact sums alone; this is an error of pymc_dp.")


__all__ = ["RowPaths", "WeighedRows"]
