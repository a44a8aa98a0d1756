"""What is released of a walk: stages, each of a curvature matrix and some gradients, and their shares of the budget.

Public constants of a sum over rows: its coordinates, and how large one row may be in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import Budget, ComposedEvent, DiscreteGaussianEvent, calibrated
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.curvature import Blocks, Levels
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.walk_kinds import Bins, Collapsed, Kind, Matrix, Vector, WalkSum, walk_event

if TYPE_CHECKING:
    from scipy.sparse import csr_array


LEAST_STEPS = 10
LEAST_MOMENTUM = 20
ROUNDING = 1e-12
"""Room for the rounding of scales, relative."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A curvature matrix, released where the stage begins, and a walk of gradients from there; either may be left out.

    Attributes
    ----------
    curvature, gradients : float
        Shares of the budget: of ρ, which adds up over Gaussian noise. 0: none is released.
    steps : tuple of float
        Share of `gradients` of each step; they add up to 1. None in a last stage, of a curvature alone.
    """

    curvature: float
    gradients: float
    steps: tuple[float, ...]


STAGES = ((0.05, 0.06, 5, 0.3), (0.05, 0.08, 4, 0.3), (0.07, 0.56, 3, 0.4))
"""Shares of curvature and gradients, power k by which later steps are paid more, share of the steps: of each stage."""
END = 0.13
"""Share of the curvature where the walk ends."""
DESCENT = 0.40
"""Share of a descent with momentum before the walk, if there is one; the stages share the rest."""
BINS = 16
"""Of a histogram of norms."""


@dataclass(frozen=True, kw_only=True)
class Extras:
    """Shares of the budget of what is released beside a walk; 0 for what is not.

    Attributes
    ----------
    weights : float
        Of the sum of the weights, first of all.
    norms : float
        Of the histogram of norms of scores, before the last stage.
    squares : float
        Of the outer products of scores, where the walk has ended.
    columns : float
        Of moments of columns, before the walk.
    moments : int
        How many numbers these are.
    fit : float
        Of the check of the fit, where the walk has ended.
    checks : int
        How many numbers these are.
    left_out : float
        Of the counts of rows of persons that are left out, before the walk.
    counts : int
        How many numbers these are.
    """

    weights: float = 0.0
    norms: float = 0.0
    squares: float = 0.0
    columns: float = 0.0
    moments: int = 0
    fit: float = 0.0
    checks: int = 0
    left_out: float = 0.0
    counts: int = 0

    @property
    def total(self) -> float:
        """Share of all of them."""
        return self.weights + self.norms + self.squares + self.columns + self.fit + self.left_out


NORMS, WEIGHTS, WEIGHTED_SQUARES, SQUARES, COLUMNS, FIT, LEFT_OUT = 0.04, 0.02, 0.12, 0.08, 0.015, 0.02, 0.02
"""Shares of `Extras`, where they are released; of the outer products of weighted scores, and of others."""


def stages_of(steps: int, momentum_steps: int = 0, extras: Extras | None = None) -> tuple[Stage, ...]:
    """Return the stages of a walk of `steps` gradients: step t of a stage is paid in proportion to t^k.

    A descent with momentum before it is a stage without a curvature, whose steps are all paid alike. Something is left
    for what else is released.

    With H the curvature and ρ the share of it that is known, the error of a stage falls as t^(-(k + 1) ρ); later steps
    weigh what they were paid, so that nothing is lost by k > 0.

    Examples
    --------
    >>> [len(stage.steps) for stage in stages_of(60)]
    [18, 18, 24, 0]
    >>> [len(stage.steps) for stage in stages_of(60, momentum_steps=150)]
    [150, 18, 18, 24, 0]
    """
    _validate.many("steps", steps)
    if steps < LEAST_STEPS:
        raise ArgumentError(f"steps must be at least {LEAST_STEPS}, got {steps}: each of three stages needs some.")
    require_momentum(momentum_steps)
    rest = (1 - DESCENT if momentum_steps else 1.0) - (0.0 if extras is None else extras.total)
    counts = [round(share * steps) for *_, share in STAGES[:-1]]
    counts.append(steps - sum(counts))
    stages = [
        Stage(curvature=rest * curvature, gradients=rest * gradients, steps=_rising(count, power))
        for (curvature, gradients, power, _), count in zip(STAGES, counts, strict=True)
    ]
    stages.append(Stage(curvature=rest * END, gradients=0.0, steps=()))
    if momentum_steps:
        stages.insert(0, Stage(curvature=0.0, gradients=DESCENT, steps=_rising(momentum_steps, 0)))
    return tuple(stages)


def require_momentum(momentum_steps: int) -> None:
    """Refuse numbers of steps that are none, or lead nowhere."""
    _validate.many("momentum_steps", momentum_steps, 0)
    if 0 < momentum_steps < LEAST_MOMENTUM:
        raise ArgumentError(
            f"momentum_steps must be 0, or at least {LEAST_MOMENTUM}, got {momentum_steps}: fewer lead nowhere. Leave "
            "it out where the log-likelihood is concave, or about so; write momentum_steps=150 for a neural net."
        )


def _rising(count: int, power: float) -> tuple[float, ...]:
    weights = np.arange(1, count + 1) ** float(power)
    return tuple(map(float, weights / weights.sum()))


@dataclass(frozen=True, kw_only=True)
class Units:
    """What one row, or a person, can add to the sums of a walk.

    Attributes
    ----------
    dimension : int
        Number of parameters d.
    neighbours : {"replace", "add_remove"}
    levels : Levels or None
        Where not all of a curvature is released.
    vectors : int
        Of the factor of a row's curvature, at most.

    Notes
    -----
    **Sensitivity.** That of the kernel's kinds of sums: a score moves a sum by C, or twice that where it is replaced; a
    curvature by C_F, or by √2 C_F, and sums over its entries by 2 C_F. So says `names`.
    """

    dimension: int
    neighbours: str
    levels: Levels | None = None
    vectors: int = 1

    def curvature(self, size: int) -> Matrix | Collapsed:
        """Return what a row adds to a sum of curvatures of `size` parameters."""
        if self.levels is None:
            return Matrix(size, self.vectors)
        slots, shared = (tuple(map(int, one)) for one in (self.levels.slots, self.levels.shared))
        return Collapsed(slots, shared, self.vectors)

    @property
    def names(self) -> tuple[str, str]:
        """Sensitivities of a sum of scores and of one of curvatures, in words."""
        if self.neighbours != "replace":
            return "C", "C_F"
        return "2 C", "√2 C_F" if self.levels is None else "2 C_F"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Every release of a walk, and the scale of its noise.

    Attributes
    ----------
    stages : tuple of Stage
    units : Units
    multiplier : float
        Standard deviation over sensitivity that one release of everything would have.
    extras : Extras
    """

    stages: tuple[Stage, ...]
    units: Units
    multiplier: float
    extras: Extras = field(default_factory=Extras)

    @classmethod
    def within(
        cls, budget: Budget, units: Units, steps: int, momentum_steps: int = 0, extras: Extras | None = None
    ) -> Schedule:
        """Return the releases whose events cost a budget together, never more; δ must be > 0."""
        if budget.delta == 0:
            raise ArgumentError(
                "dp.Gradients adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far below 1 / "
                "number of rows. Exact sums, statistics=dp.Statistics(), need no delta."
            )
        extras = extras or Extras()
        stages = stages_of(steps, momentum_steps, extras)
        plain = cls(stages=stages, units=units, multiplier=1.0, extras=extras)
        found = calibrated(plain.event, budget.epsilon, budget.delta)
        assert isinstance(found, ComposedEvent)
        scaled, own = found.events[-1], plain.event.events[-1]
        assert isinstance(scaled, DiscreteGaussianEvent) and isinstance(own, DiscreteGaussianEvent)
        multiplier = scaled.scale / own.scale * (1 + ROUNDING)
        return replace(plain, multiplier=multiplier)

    @cached_property
    def sums(self) -> dict[str, WalkSum]:
        """All sums by their names, each with its share of the budget, in the order of the events."""
        extras, found = self.extras, dict[str, WalkSum]()

        def paid(name: str, share: float, kind: Callable[[int], Kind], size: int) -> None:
            if share:
                found[name] = WalkSum(kind(size), self.scale_of(kind(size), share))

        if extras.weights:
            scale = float(self.multiplier * UNITS / np.sqrt(extras.weights))
            found["weights"] = WalkSum(Bins(1), scale)
        paid("left out", extras.left_out, Vector, extras.counts)
        paid("moments", extras.columns, Vector, extras.moments)
        paid("norms", extras.norms, Bins, BINS)
        for place, stage in enumerate(self.stages):
            paid(curvature_of(place), stage.curvature, self.units.curvature, self.units.dimension)
            for step, share in enumerate(stage.steps):
                paid(gradient_of(place, step), stage.gradients * share, Vector, self.units.dimension)
        paid("fit", extras.fit, Vector, extras.checks)
        paid("squares", extras.squares, Matrix, self.units.dimension)
        return found

    def scale_of(self, kind: Kind, share: float) -> float:
        """Scale of the noise on a sum that is paid a share of the budget, in whole units; of matrices on a diagonal."""
        return float(self.multiplier * np.sqrt(kind.squared(self.units.neighbours) / share))

    def gradient_variance(self, stage: int) -> float:
        """Variance of the noise that a gradient would have that is paid all of its stage's share, in whole units."""
        squared = Vector(self.units.dimension).squared(self.units.neighbours)
        return self.multiplier**2 * squared / self.stages[stage].gradients

    @property
    def event(self) -> ComposedEvent:
        """What all sums cost together: what the kernel charges."""
        found = walk_event(list(self.sums.values()), self.units.neighbours)
        assert isinstance(found, ComposedEvent)
        return found


def curvature_of(stage: int) -> str:
    """Return the name of a stage's curvature among the sums."""
    return f"curvature {stage}"


def gradient_of(stage: int, step: int) -> str:
    """Return the name of a gradient among the sums."""
    return f"gradient {stage}, {step}"


CLIP_NORM, CLIP_CURVATURE = 1.0, 1.5
"""C and C_F of a whitened sum: over the root mean square of the norms of scores, and the mean size of curvatures."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """Public constants of a sum over rows.

    Attributes
    ----------
    scale : (d,) array
        D: walks are in coordinates η / D.
    clip_norm, clip_curvature : float
        C and C_F, in the coordinates of the sum.
    basis : (d, d) array or None
        B: sums are of B D s, with s the score of a row. Symmetric and positive definite. None: the identity.
    levels : Levels or None
        Parameters that a row meets one at a time; where there are any, B does not mix them.
    blocks : tuple of arrays of int
        Places of parameters that no row relates to those of another block; none: all are one.
    relaxing : (float, float)
        By what C and C_F of whitened sums were multiplied (`relaxed`).
    weighing : bool
        Whether what C_F leaves of a curvature is also what is left of the score.
    """

    scale: Array
    clip_norm: float
    clip_curvature: float
    basis: Array | None = None
    levels: Levels | None = None
    blocks: Blocks = ()
    relaxing: tuple[float, float] = (1.0, 1.0)
    weighing: bool = True

    @cached_property
    def _back(self) -> Array:
        return np.eye(len(self.scale)) if self.basis is None else np.linalg.inv(self.basis)

    @cached_property
    def sparse_basis(self) -> csr_array:
        """B, of which most entries are 0 where there are levels."""
        from scipy.sparse import csr_array  # a fifth of a second, for who releases gradients

        return csr_array(self.basis)

    def score(self, found: Array) -> Array:
        """Return a sum of scores in the coordinates of the walk."""
        return np.asarray(self._back @ found)

    def curvature(self, found: Array) -> Array:
        """Return a sum of curvatures, or a covariance of scores, in the coordinates of the walk."""
        turned = self._back @ found @ self._back
        return np.asarray((turned + turned.T) / 2)

    def floor(self, deviation: float) -> Array:
        """Return the edge of the noise of a curvature in the coordinates of the walk, (d, d).

        Parameters
        ----------
        deviation : float
            Of the noise on its entries off the diagonal, in the coordinates of this sum.
        """
        sizes = np.full(len(self.scale), float(len(self.scale)))
        for inside in self.blocks:
            sizes[inside] = len(inside)
        if self.levels is not None:
            sizes = self.levels.together.sum(axis=1)
        return self.curvature(np.diag(deviation * np.sqrt(sizes)))

    def whitened(self, curvature: Array, n_rows: float, noised: Array | None = None) -> Limits:
        """Return coordinates in which the curvature of a sum is about the same in all directions, and limits there.

        Parameters
        ----------
        curvature : (d, d) array
            Of the sum, in the coordinates of the walk: positive definite, and public.
        n_rows : float
            How many rows there are, or may be; or that count on average, where it is no whole number.
        noised : (d, d) array, optional
            The same and its noise (`floor`): what is below that is not blown up. None: there is none.

        Notes
        -----
        Noise of the same size in all directions wastes most of the budget where curvatures differ: a saturated logistic
        regression has a hundredth of the curvature along its coefficients. With B = √n M^-1/2, M the curvature and its
        noise, the mean of ‖B s‖² over the rows is t = tr(B H B) / n, about the number of parameters, in any units of
        the columns and whatever their bounds. So C = √t, and C_F = 1.5 t, for the curvature of a row with one predictor
        has the size of its mean squared score.

        With `levels`, M is in blocks of what is indexed alike, and the mean block stands for all: then rows that meet
        few parameters have few coordinates, and all rows of an array are of about the same size, whether their level is
        common or rare. Parameters that all rows meet are a small part of so many; they are raised (`Levels.raised`).
        """
        noised = curvature if noised is None else noised
        if self.levels is not None:
            curvature, noised = (self.levels.averaged(one) for one in (curvature, noised))
        values, vectors = np.linalg.eigh(noised)
        values = np.maximum(values, np.finfo(float).eps * values[-1])
        basis = (vectors * np.sqrt(n_rows / values)) @ vectors.T
        if self.levels is not None:
            basis = np.where(self.levels.together, basis, 0.0)
            factor = self.levels.raised(np.diag(basis @ curvature @ basis))
            basis *= factor  # alike within a block
        size_of_rows = float(np.trace(basis @ curvature @ basis)) / n_rows
        size_of_rows = max(size_of_rows, float(np.finfo(float).eps))  # what is nearly singular may round below 0
        return Limits(
            scale=self.scale,
            basis=basis,
            clip_norm=CLIP_NORM * math.sqrt(size_of_rows),
            clip_curvature=CLIP_CURVATURE * size_of_rows,
            levels=self.levels,
            blocks=self.blocks,
        )

    def relaxed(self, norm: float, curvature: float) -> Limits:
        """Return the same coordinates, with limits that are larger by factors."""
        return replace(
            self,
            clip_norm=self.clip_norm * norm,
            clip_curvature=self.clip_curvature * curvature,
            relaxing=(self.relaxing[0] * norm, self.relaxing[1] * curvature),
        )


__all__ = [
    "BINS",
    "CLIP_CURVATURE",
    "CLIP_NORM",
    "COLUMNS",
    "FIT",
    "NORMS",
    "SQUARES",
    "WEIGHTED_SQUARES",
    "WEIGHTS",
    "Extras",
    "Limits",
    "Schedule",
    "Stage",
    "Units",
    "curvature_of",
    "gradient_of",
    "require_momentum",
    "stages_of",
]
