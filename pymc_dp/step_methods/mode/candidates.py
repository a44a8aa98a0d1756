"""Places of the parameter space that a mode is chosen from. All of them are public, or released before.

Which points of the parameter space PyMC can hold: those that its transforms lead back to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.step_methods.state import equal_dataclass_values

from pymc_dp import _validate
from pymc_dp.accounting import Event
from pymc_dp.draws.finite_choice import cells, crossed
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_density import vectorized
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.ops.grid import over_flat

MOST = 2**20
"""Candidates."""
CELLS = {1: 1024, 2: 64, 3: 16}
"""Of a grid, per axis, by the number of scalars."""


class Given(Protocol):
    """What a user gives, before the model is known."""

    def laid_out(self, priors: Sequence[Prior]) -> Array:
        """Return (n_candidates, n_scalars) points, in the order of the priors.

        Raises
        ------
        ArgumentError
            Where they do not fit the model.
        """

    @property
    def words(self) -> str:
        """What they are."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken as known beforehand."""


class _Numbers:
    """Compared by numbers: PyMC restores a sampling state only where the settings are those it was saved with."""

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers."""
        if type(other) is not type(self):
            return NotImplemented
        return bool(equal_dataclass_values(list(vars(self).values()), list(vars(other).values())))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True, eq=False)
class Points(_Numbers):
    """Candidates one by one: (n_candidates, ...) arrays by the names of all free variables."""

    values: Mapping[str, Any]

    @property
    def words(self) -> str:
        """What they are."""
        return "given one by one"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken as known beforehand."""
        return (f"candidates, given as numbers: points of {', '.join(map(repr, self.values))}",)

    def laid_out(self, priors: Sequence[Prior]) -> Array:
        """Return them as (n_candidates, n_scalars) points."""
        return _joined(self.values, priors)

    def __repr__(self) -> str:
        return f"candidates of {', '.join(map(repr, self.values))}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws(_Numbers):
    """Candidates that a trace has released, and what was paid for it.

    Attributes
    ----------
    values : mapping of str to (n_draws, ...) array
        Also of variables that the model does not have.
    epsilon, delta : float
        Of the trace.
    guarantee : str
        Its class.
    neighbours : str
        Its relation.
    assumed : tuple of str
        What its own guarantee takes as known beforehand.
    event : Event, optional
        What it was charged, for one row.
    """

    values: Mapping[str, Array]
    epsilon: float
    delta: float
    guarantee: str
    neighbours: str
    assumed: tuple[str, ...] = ()
    event: Event | None = None

    @property
    def words(self) -> str:
        """What they are."""
        return f"the distinct draws of a trace of ε = {self.epsilon:g}, δ = {self.delta:g} ({self.guarantee})"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken as known beforehand: a choice that shows one of the draws stands on all that they stood on."""
        return self.assumed

    def laid_out(self, priors: Sequence[Prior]) -> Array:
        """Return them as (n_candidates, n_scalars) points."""
        names = {prior.name for prior in priors}
        return _joined({name: held for name, held in self.values.items() if name in names}, priors)

    def __repr__(self) -> str:
        return "draws of a trace"


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(_Numbers):
    """All combinations of values along axes.

    Attributes
    ----------
    cells : int or None
        How many along each axis: the middles of so many cells between the ends of the prior's support.
    axes : mapping of str to sequence of float
        Values of every scalar of a free variable, in place of such middles.
    """

    cells: int | None = None
    axes: Mapping[str, Any]

    @property
    def words(self) -> str:
        """What they are."""
        return "a grid" if self.axes else "a grid over the supports of the priors"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken as known beforehand."""
        named = ", ".join(map(repr, self.axes))
        return (f"values of a grid, given as numbers: those of {named}",) if named else ()

    def laid_out(self, priors: Sequence[Prior]) -> Array:
        """Return the grid as (n_candidates, n_scalars) points."""
        scalars = sum(prior.size for prior in priors)
        if unknown := sorted(set(self.axes) - {prior.name for prior in priors}):
            raise ArgumentError(f"grid names {unknown}, but the free variables are {_names(priors)}.")
        if any(prior.distribution == "dirichlet" for prior in priors):
            raise ArgumentError(
                "A grid cannot hold probabilities that add up to 1. Give candidates: arrays of points by name, or a "
                "trace that was paid for."
            )
        count = self.cells or CELLS.get(scalars)
        if count is None and len(self.axes) < len(priors):
            raise ArgumentError(
                f"A grid over {scalars} scalars is too fine or too coarse. Give candidates (arrays of points by name, "
                "or a trace that was paid for), few values on each axis (grid={name: values}), or annealed=True."
            )
        axes = [axis for prior in priors for axis in self._axes(prior, count or 0)]
        if (n_points := math.prod(map(len, axes))) > MOST:
            raise ArgumentError(
                f"The grid has {n_points} points, more than {MOST}. Give fewer per axis, or candidates."
            )
        places = crossed(axes)
        _require_in_balls(places, priors)
        return places

    def _axes(self, prior: Prior, count: int) -> list[Array]:
        if prior.name in self.axes:
            values = numbers(f"grid[{prior.name!r}]", self.axes[prior.name])
            if values.ndim != 1 or not len(values):
                raise ArgumentError(f"grid[{prior.name!r}] must be a list of numbers, got shape {values.shape}.")
            return [np.unique(values)] * prior.size
        if not prior.bounded:
            raise ArgumentError(
                f"The prior of {prior.name!r} has no ends between which a grid could be laid. Give its values, "
                f"grid={{{prior.name!r}: values}}, or truncate it by dp.truncate."
            )
        assert prior.low is not None and prior.high is not None
        return list(cells(prior.low.ravel(), prior.high.ravel(), count)[0].T)

    def __repr__(self) -> str:
        return f"grid of {', '.join(map(repr, self.axes)) or self.cells or 'the supports'}"


def _require_in_balls(places: Array, priors: Sequence[Prior]) -> None:
    """Refuse a grid that is wider than a ball: its corners have no prior density."""
    start = 0
    for prior in priors:
        part = places[:, start : start + prior.size]
        start += prior.size
        outside = 0 if prior.radius is None else int((np.sum(part**2, axis=1) > prior.radius**2).sum())
        if outside:
            raise ArgumentError(
                f"A grid is a box, and {outside} of its {len(part)} points lie outside of the ball that "
                f"{prior.name!r} is restricted to, of radius {prior.radius:g}. Give annealed=True; values whose "
                f"combinations all lie inside, grid={{{prior.name!r}: values}} below {prior.radius:g}/√{prior.size} "
                "in size; or candidates (arrays of points by name, or a trace that was paid for)."
            )


def lay_out(given: Given, priors: Sequence[Prior]) -> tuple[Array, Array]:
    """Return distinct candidates, as (n, n_scalars) points, and the number that each has among those given.

    Raises
    ------
    ArgumentError
        If they do not fit the model, are outside of the priors' supports, or are fewer than two.
    """
    places = given.laid_out(priors)
    _, first = np.unique(places, axis=0, return_index=True)
    numbers = np.sort(first)
    if not 2 <= len(numbers) <= MOST:
        raise ArgumentError(
            f"There are {len(numbers)} distinct candidates, and there must be 2 to {MOST}. A single one is no choice."
        )
    places, start = places[numbers], 0
    for prior in priors:
        part = places[:, start : start + prior.size].reshape(-1, *prior.shape)
        ends = (-np.inf if prior.low is None else prior.low, np.inf if prior.high is None else prior.high)
        if not ((part >= ends[0]) & (part <= ends[1])).all():
            raise ArgumentError(
                f"Some candidates of {prior.name!r} are outside of the support of its prior. Leave them out, or give "
                "a model whose prior allows them."
            )
        start += prior.size
    return places, numbers


def _joined(values: Mapping[str, Any], priors: Sequence[Prior]) -> Array:
    if set(values) != {prior.name for prior in priors}:
        raise ArgumentError(
            f"candidates hold values of {sorted(map(str, values))}, but the free variables are {_names(priors)}. Give "
            "each of them, and no others."
        )
    parts = []
    for prior in priors:
        held = numbers(f"candidates[{prior.name!r}]", values[prior.name])
        if held.shape[1:] != prior.shape or held.ndim == 0:
            raise ArgumentError(
                f"candidates[{prior.name!r}] must have shape (n_candidates, {', '.join(map(str, prior.shape))}), got "
                f"{held.shape}."
            )
        parts.append(held.reshape(len(held), -1))
    if len({len(part) for part in parts}) > 1:
        raise ArgumentError(f"candidates must be as many for each variable, got {[len(part) for part in parts]}.")
    return np.concatenate(parts, axis=1)


def numbers(name: str, values: object) -> Array:
    """Return an array of finite numbers, a copy: what users hold may change, and need not compare as arrays do.

    Raises
    ------
    ArgumentError
        For anything else, masked values too.
    """
    try:
        held = np.array(values, dtype=np.float64)
        if isinstance(values, np.ma.MaskedArray):
            held[np.ma.getmaskarray(values)] = np.nan
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be an array of numbers, got {_validate.shown(values)}.") from None
    if not np.isfinite(held).all():
        raise ArgumentError(f"{name} must hold finite numbers.")
    return held


def _names(priors: Sequence[Prior]) -> list[str]:
    return sorted(prior.name for prior in priors)


TOLERANCE = 1e-6
"""How far a point may be from what its transform leads back to, next to its size and to the spread of all points."""


def kept(prior_model: Model, priors: Sequence[Prior], points: Array) -> Array:
    """Return which of (n, n_scalars) points are what the values that PyMC records for them say: (n,) booleans."""
    ends, moved = [], False
    for rv in prior_model.free_RVs:
        transform = prior_model.rvs_to_transforms[rv]
        moved = moved or transform is not None
        inputs = rv.owner.inputs
        ends.append(rv if transform is None else transform.backward(transform.forward(rv, *inputs), *inputs))
    if not moved:
        return np.ones(len(points), dtype=bool)
    flat, back = over_flat(prior_model, priors, ends)
    batch = pt.matrix("places", shape=(None, points.shape[1]), dtype="float64")
    whole = pt.concatenate([item.ravel().astype("float64") for item in back])
    with np.errstate(all="ignore"):  # an edge has an infinite value, which leads back to it
        found = plain_function([batch], vectorized(whole, {flat: batch}))(points)
        return np.asarray((abs(found - points) <= TOLERANCE * (abs(points) + np.ptp(points, axis=0))).all(axis=1))


__all__ = ["Draws", "Given", "Grid", "Points", "kept", "lay_out", "numbers"]
