"""Sum over rows of clipped gradients at a point, whatever the rows hold.

A trajectory along gradients that may be noised: shears of position and momentum by turns.

From a start far away to where the posterior is: noised gradients followed uphill, with no accept test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.gradients import RowGradients, compiled
from pymc_dp.step_methods.row_functions.builder import whole_chunk
from pymc_dp.step_methods.row_functions.limits import clip_to

CHUNK = 8192
"""Most rows that are differentiated at a time."""


class ClippedGradient:
    """Gradients of rows and of the prior, per unit of each value.

    Parameters
    ----------
    graphs : RowGradients
        In units: gradients are multiplied by these before they are clipped.
    dummies : sequence of arrays
        A few rows that are made up, one array per column.
    clip_norm : float
        Greatest Euclidean norm of what a row adds.
    n_rows : int
        Public number of rows, or the bound on it.

    Notes
    -----
    **Guarantee.** The norm is enforced on the whole numbers that are summed, and the sum is exact (`Clip`): a row moves
    it by at most the clip norm, one that is replaced by twice that. Not covered: the last bits of the draw of the noise
    that is added, which is continuous and of float64.
    """

    def __init__(self, graphs: RowGradients, dummies: Sequence[Array], clip_norm: float, n_rows: int) -> None:
        self._graphs, self._dummies = graphs, tuple(dummies)
        self._clip = clip_to(clip_norm, size=graphs.size, n_rows=n_rows)
        self._rows: tuple[Array, ...] = ()
        self._functions: tuple[Any, Any] | None = None

    def compile(self) -> None:
        """Compile, once: before the budget is charged, so that nothing is spent if this fails."""
        if self._functions is None:
            self._functions = compiled(self._graphs)
            self._sum(np.zeros(self._graphs.size), self._dummies)

    def hold(self, rows: Sequence[Array]) -> None:
        """Hold clamped rows, one array per column. **Private**."""
        self._rows = tuple(rows)

    def of_rows(self, values: Array) -> Array:
        """Sum of the clipped gradients of the rows held. **Private**.

        A row adds at most the clip norm; one whose gradient is no number adds nothing.
        """
        return self._sum(values, self._rows)

    def of_prior(self, values: Array) -> Array:
        """Gradient of the log prior, Jacobians included. Public."""
        self.compile()
        assert self._functions is not None
        return np.array(self._functions[1](values)[0])

    def _sum(self, values: Array, rows: tuple[Array, ...]) -> Array:
        from pymc_dp.step_methods.langevin.unnoised import clipped_sum

        self.compile()
        assert self._functions is not None
        return clipped_sum(
            self._functions[0],
            values,
            self._graphs.starts,
            self._clip,
            rows,
            np.arange(len(rows[0])),
            dtypes=[dummy.dtype for dummy in self._dummies],
            chunk=whole_chunk(sum(dummy[0].size for dummy in self._dummies), CHUNK),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions behind: another process makes its own."""
        return {**vars(self), "_functions": None}


Slope = Callable[[Array], Array]


class Phase(NamedTuple):
    """A point of a trajectory.

    Attributes
    ----------
    position : (n_values,) array
    momentum : (n_values,) array
        Standard normal where a trajectory begins.
    slope : (n_values,) array
        Gradient of the log density at the position, per unit; noised.
    """

    position: Array
    momentum: Array
    slope: Array

    @property
    def kinetic(self) -> float:
        """Kinetic energy."""
        return 0.5 * float(self.momentum @ self.momentum)


def leapfrog(start: Phase, slope: Slope, *, step_size: float, n_leapfrog: int, units: Array) -> Phase | None:
    """Follow a trajectory; None where it leaves the real numbers.

    Parameters
    ----------
    start : Phase
    slope : callable
        Gradient at a position: one evaluation per leapfrog step. The one at the start is not made again.
    step_size : float
    n_leapfrog : int
    units : (n_values,) array
        Length of a unit of each value: inverse root of its mass.

    Notes
    -----
    Whatever is added to the slopes, every line below moves one of position and momentum by a function of the other: a
    shear, of Jacobian 1. Run from the end with the momentum turned round and the same slopes in reversed order, it
    comes back to the start; where it leaves the numbers on one way, it does so on the other.
    """
    position, momentum, force = start
    for _ in range(n_leapfrog):
        momentum = momentum + 0.5 * step_size * force
        position = position + step_size * units * momentum
        if not np.isfinite(position).all():
            return None
        force = slope(position)
        if not np.isfinite(force).all():
            return None
        momentum = momentum + 0.5 * step_size * force
    return Phase(position, momentum, force)


NARROW = 1e-4
LONGER, SHORTER = 1.2, 0.5
"""What the size is multiplied by after a move whose ends have slopes of one direction, or of opposite ones."""
LEAST = 1e-2
"""Shortest size over the first one: a stiff direction may not stop the others."""
FARTHEST = 2.0
"""Longest move over 1 / clip norm, which is what all rows together move at most."""


class Climb:
    """Gradient steps, longer while slopes agree and shorter once they turn.

    They leave no posterior as it is, so that a chain makes them while it tunes only.

    Hamiltonian trajectories conserve energy, so no way downhill makes up for what the noise of a ratio costs. From a
    start many standard deviations away they would take most of the budget to arrive.

    Parameters
    ----------
    gradient : ClippedGradient
        Compiled; called here for the prior alone.
    start : (n_values,) array
    units : (n_values,) array
    clip_norm : float
    population : int
        Public number of rows, or the bound on it.

    Attributes
    ----------
    size : float
        To be used by the next move.

    Notes
    -----
    Where gradients of rows have norm C, the log-likelihood of N rows bends by about N C²; the prior, by what it does at
    the start. The first size is one over that sum. Where noise outweighs slopes they turn often, and moves get short.
    """

    def __init__(
        self, gradient: ClippedGradient, start: Array, units: Array, *, clip_norm: float, population: int
    ) -> None:
        self._units, self._longest = units, FARTHEST / clip_norm
        apart = gradient.of_prior(start + NARROW * units) - gradient.of_prior(start)
        bent = float(np.nan_to_num(np.abs(apart) / NARROW, posinf=0.0).max(initial=0.0))
        self._first = 1 / (max(population, 1) * clip_norm**2 + bent)
        self.size = self._first

    def restart(self) -> None:
        """Forget what slopes have said."""
        self.size = self._first

    @np.errstate(all="ignore")  # slopes may leave the numbers
    def __call__(self, position: Array, force: Array, slope: Slope, moves: int) -> tuple[Array, Array]:
        """Return where so many moves lead, and the slope there: one evaluation each."""
        for _ in range(moves):
            move = self.size * force
            length = float(np.linalg.norm(move))
            position = position + self._units * move * min(1.0, self._longest / max(length, 1e-300))
            before, force = force, slope(position)
            self.size *= LONGER if float(before @ force) > 0 else SHORTER
            self.size = max(self.size, LEAST * self._first)
        return position, force


__all__ = ["Climb", "ClippedGradient", "Phase", "leapfrog"]
