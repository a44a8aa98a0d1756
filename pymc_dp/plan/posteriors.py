"""Mean and standard deviation of a posterior whose gradient can be had: Langevin dynamics without noise on gradients.

Simulated rows say where the posterior lies: about their truth, where a chain begins, as wide as the curvature there.

Posteriors of other models: one NUTS chain each, of a density that is compiled once.

Posteriors of models that fall apart into parts of one or two unknowns each: on grids, without a random number.

The posterior that is not private: what those of a release come to as its noise goes to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.families import MomentFamily
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.batches import Component
from pymc_dp.simulation.prior import split
from pymc_dp.step_methods.ops.converged import walked
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.sum_noises import GaussianSums

STEPS, BURN = 3000, 300
TIME, FRICTION = 0.5, 2.0
"""Of a step, in units in which the posterior has curvature 1; a step is exact for the positions of a normal one."""
NEARBY = 1e-3
"""Distance over which gradients are compared for their curvature."""
HALVINGS = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Of a posterior in unconstrained space: (n_parameters,) arrays."""

    mean: Array
    sd: Array


def moments(slope: Callable[[Array], Array], truth: Array, rng: np.random.Generator) -> Moments:
    """Return the moments of the density whose logarithm has the gradient `slope`, about a point of its middle.

    Raises
    ------
    UnsupportedModelError
        Where no step is short enough for the dynamics to stay finite.

    References
    ----------
    Leimkuhler, Matthews (2013): the splitting, BAOAB.
    """
    units = _units(slope, truth)
    for halving in range(HALVINGS):
        with np.errstate(all="ignore"):
            draws = _walk(slope, truth, units, TIME / 2**halving, rng)
        if draws is not None:
            return Moments(mean=draws.mean(axis=0), sd=draws.std(axis=0))
    what = "the gradient of its log-posterior on simulated rows cannot be followed"
    remedy = "Give priors that keep parameters where the density is finite."
    raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])


def _units(slope: Callable[[Array], Array], truth: Array) -> Array:
    """Return the matrix from coordinates in which the posterior is about standard normal."""
    bent = np.array([slope(truth + move) - slope(truth - move) for move in NEARBY * np.eye(truth.size)])
    curvature = -np.nan_to_num((bent + bent.T) / (4 * NEARBY), nan=0.0, posinf=0.0, neginf=0.0)
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(np.abs(values), 1e-8 * max(1.0, float(np.abs(values).max())))
    return np.asarray(vectors / np.sqrt(values))


def _walk(
    slope: Callable[[Array], Array], start: Array, units: Array, time: float, rng: np.random.Generator
) -> Array | None:
    """Return positions, (STEPS, n_parameters); None where they do not stay finite."""
    position, velocity = start.copy(), rng.normal(size=start.size)
    keep = math.exp(-FRICTION * time)
    fresh = math.sqrt(1 - keep**2)
    force = units.T @ slope(position)
    found = np.empty((STEPS, start.size))
    for step in range(-BURN, STEPS):
        velocity = velocity + time / 2 * force
        halfway = position + time / 2 * (units @ velocity)
        velocity = keep * velocity + fresh * rng.normal(size=start.size)
        position = halfway + time / 2 * (units @ velocity)
        force = units.T @ slope(position)
        velocity = velocity + time / 2 * force
        if not (np.isfinite(force).all() and np.abs(velocity).max() < 1e6):
            return None
        if step >= 0:
            found[step] = position
    return found


TUNE, DRAWS_OF_CHAIN = 250, 350


class Chain:
    """NUTS on a model whose observed values change between posteriors.

    Parameters
    ----------
    model : pymc.Model
    start : (n_elements,) array
        Where chains begin: a place in the middle of the prior, whatever the truth.
    shapes : list of tuple of int
        Of the value variables.
    """

    def __init__(self, model: Model, start: Array, shapes: list[tuple[int, ...]]) -> None:
        names = [str(value.name) for value in model.value_vars]
        self.start = {name: part[0] for name, part in zip(names, split(start[None], shapes), strict=True)}
        self.step: Any = pm.NUTS(model=model, initial_point=self.start, target_accept=0.85)

    def draws(self, seed: int) -> Array:
        """Tune anew and return draws, (DRAWS, n_elements)."""
        # A step that is too long, while it is tuned, overflows and is rejected.
        with np.errstate(over="ignore", invalid="ignore"):
            return walked(self.step, self.start, np.random.default_rng(seed), tune=TUNE, draws=DRAWS_OF_CHAIN)[0]


LINE, SQUARE = 160, 28
"""Cells of an axis, of a part with one unknown and with two."""
MOST_PASSES = 12
ENOUGH = 3
"""A grid is fine enough once the mass is spread over one cell in so many."""
DRAWS = 1000
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Grids:
    """A posterior as a product of parts, each on a grid of its own.

    Attributes
    ----------
    terms : callable
        From points, (n_points, n_elements), to the terms of the log density, (n_points, n_terms).
    parts : tuple of Component
    edges : tuple of (LINE + 1,) or (SQUARE + 1,) arrays
        Edges of the cells of each element to begin with: quantiles of the prior.
    uniforms : tuple of (DRAWS, 2) arrays
        One for each part: points that fill the unit square evenly, the same for every posterior.
    """

    terms: Callable[[Array], Array]
    parts: tuple[Component, ...]
    edges: tuple[Array, ...]
    uniforms: tuple[Array, ...]

    @classmethod
    def of(cls, terms: Callable[[Array], Array], parts: tuple[Component, ...], prior: Array) -> Self | None:
        """Lay out grids over draws from the prior, (n_draws, n_elements); None where a part has too many unknowns."""
        if any(len(part.elements) > 2 for part in parts):
            return None
        lone = LINE if all(len(part.elements) == 1 for part in parts) else SQUARE**2
        edges: list[Array] = [np.zeros(0)] * prior.shape[1]
        for part in parts:
            for element in part.elements:
                edges[element] = _spread(prior[:, element], lone if len(part.elements) == 1 else SQUARE)
        rng = np.random.default_rng(len(parts))
        order = np.arange(DRAWS)
        even = np.stack([(order + 0.5) / DRAWS, ((order + 0.5) * GOLDEN) % 1], axis=1)
        uniforms = tuple(even[rng.permutation(DRAWS)] for _ in parts)
        return cls(terms=terms, parts=parts, edges=tuple(edges), uniforms=uniforms)

    def draws(self) -> Array:
        """Return evenly spread draws of the posterior, (DRAWS, n_elements)."""
        edges, masses = list(self.edges), list[Array]()
        for turn in range(MOST_PASSES):
            masses = self._masses(edges)
            fine = [self._refined(part, mass, edges) for part, mass in zip(self.parts, masses, strict=True)]
            if (turn and all(done for done, _ in fine)) or turn == MOST_PASSES - 1:
                break
            for part, (done, finer) in zip(self.parts, fine, strict=True):
                if not (turn and done):
                    for element, new in zip(part.elements, finer, strict=True):
                        edges[element] = new
        result = np.empty((DRAWS, len(edges)))
        for part, mass, uniform in zip(self.parts, masses, self.uniforms, strict=True):
            result[:, list(part.elements)] = _drawn(mass, [edges[element] for element in part.elements], uniform)
        return result

    def _masses(self, edges: Sequence[Array]) -> list[Array]:
        """Posterior mass of every cell of every part: the density in its middle, times its volume."""
        count = max(prod(len(edges[element]) - 1 for element in part.elements) for part in self.parts)
        points = np.empty((count, len(edges)))
        volumes = []
        for part in self.parts:
            axes = [edges[element] for element in part.elements]
            middles = np.meshgrid(*[(axis[1:] + axis[:-1]) / 2 for axis in axes], indexing="ij")
            widths = np.meshgrid(*[np.diff(axis) for axis in axes], indexing="ij")
            for element, middle in zip(part.elements, middles, strict=True):
                points[:, element] = middle.ravel()
            volumes.append(np.prod(widths, axis=0))
        found = self.terms(points)
        result = []
        for part, volume in zip(self.parts, volumes, strict=True):
            logp = found[:, list(part.terms)].sum(axis=1).reshape(volume.shape)
            logp = np.where(np.isnan(logp) | (volume <= 0), -np.inf, logp)
            mass = np.exp(logp - logp.max()) * volume
            result.append(mass / mass.sum())
        return result

    def _refined(self, part: Component, mass: Array, edges: Sequence[Array]) -> tuple[bool, list[Array]]:
        """Whether the grid of a part is fine enough, and a finer one."""
        marginals = [mass.sum(axis=tuple(j for j in range(mass.ndim) if j != i)) for i in range(mass.ndim)]
        done = all(1 / np.sum(marginal**2) >= len(marginal) / ENOUGH for marginal in marginals)
        return done, [
            _finer(edges[element], marginal) for element, marginal in zip(part.elements, marginals, strict=True)
        ]


def _spread(prior: Array, count: int) -> Array:
    """Edges of `count` cells: quantiles of draws, the ends further out by a half of their range."""
    edges = np.quantile(prior, np.linspace(0, 1, count + 1))
    reach = 0.5 * (edges[-1] - edges[0])
    edges[0] -= reach
    edges[-1] += reach
    return edges


def _finer(edges: Array, mass: Array) -> Array:
    """Edges of as many cells over what has mass: half of them where the mass is, the other half evenly."""
    held = np.flatnonzero(mass > 1e-7)
    low, high = max(held[0] - 1, 0), min(held[-1] + 2, len(mass))
    part, widths = mass[low:high], np.diff(edges)[low:high]
    below = np.concatenate([[0.0], np.cumsum(part / part.sum() + widths / widths.sum())])
    return np.interp(np.linspace(0, 1, len(edges)), below / below[-1], edges[low : high + 1])


def _drawn(mass: Array, edges: Sequence[Array], uniform: Array) -> Array:
    """Draw from cells of constant density: the first unknown, then the second given its cell."""
    marginal = mass if mass.ndim == 1 else mass.sum(axis=1)
    below = np.concatenate([[0.0], np.cumsum(marginal)])
    first = np.interp(uniform[:, 0] * below[-1], below, edges[0])
    if mass.ndim == 1:
        return first[:, None]
    cell = np.clip(np.searchsorted(below, uniform[:, 0] * below[-1], side="right") - 1, 0, len(marginal) - 1)
    given = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(mass, axis=1)], axis=1)[cell]
    wanted = uniform[:, 1] * given[:, -1]
    place = np.clip((given <= wanted[:, None]).sum(axis=1) - 1, 0, mass.shape[1] - 1)
    rows = np.arange(len(uniform))
    inside = np.maximum(given[rows, place + 1] - given[rows, place], 1e-300)
    part = np.clip((wanted - given[rows, place]) / inside, 0, 1)
    second = edges[1][place] + part * np.diff(edges[1])[place]
    return np.stack([first, second], axis=1)


class UnnoisedDensity(ReleaseDensity):
    """Density of exact counts, and of exact sums of **clamped** rows, normal as for a release.

    The plug-in form takes values at the bounds for what was observed: where many are clamped it would be further from
    the truth than a private posterior.
    """

    @override
    def _plugin_logp(self, value: TensorVariable, given: list[TensorVariable]) -> TensorVariable:
        counted = LevelCounts | ExposedCounts
        if isinstance(self.statistic, counted) or not isinstance(self.family, MomentFamily):
            return super()._plugin_logp(value, given)
        first = 0 if self.sizes.public else 1
        n = pt.maximum(self.sizes.bound.astype(float) if self.sizes.public else value[:, 0], 1e-3)
        mean, covariance = self.family.moments(given, self.statistic)
        sums = value[:, first:] / np.array(self.statistic.scales)
        columns = [sums[:, i] for i in range(len(mean))]
        return GaussianSums().sums(columns, self._centred(mean), covariance, pt.zeros(len(mean)), n)


__all__ = ["DRAWS", "Chain", "Grids", "Moments", "UnnoisedDensity", "moments"]
