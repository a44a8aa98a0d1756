"""Posteriors of one or two bounded parameters, drawn exactly from a public grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.draws.finite_choice import cells, choose, crossed, settled
from pymc_dp.inspection.interpreted import plain_function, stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.priors import OWN_TRANSFORM, Prior
from pymc_dp.inspection.row_density import guarded, vectorized
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.inspection.taint import depends_on
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

CELLS = {1: 16_384, 2: 512}
"""Cells per axis."""
NO_SUPPORT = "Its prior density is 0, or its likelihood has no valid parameters, on all of the grid."
CHUNK = 2**20
"""Numbers held at once while densities are evaluated."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GridPosterior:
    """A posterior on a grid, of exact sums of the rows; its density is taken as constant within each cell.

    Attributes
    ----------
    priors : tuple of Prior
    points : (n_points, n_scalars) array
        Middle of each grid cell.
    widths : (n_scalars,) array
        Width of a grid cell along each axis.
    prior_logp : (n_points,) array
        Log prior density at the points, Potentials included.
    hulls : list of list of (low, high)
        Least and largest value over the grid of each parameter of each table, per cell.
    """

    priors: tuple[Prior, ...]
    points: Array
    widths: Array
    tables: tuple[TableLikelihood, ...]
    prior_logp: Array
    hulls: list[list[tuple[Array, Array]]]
    _likelihood: Any = field(repr=False)
    words = "independent and exact: a cell of a public grid, then a uniform point within it"
    exact = True

    @classmethod
    def of(
        cls, prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood], count: int | None
    ) -> Self | str:
        """Lay out the grid, or say what is in the way."""
        scalars = sum(prior.size for prior in priors)
        if scalars == 0:
            return "The model has no free variable."
        if scalars > 2 or any(prior.distribution == "dirichlet" for prior in priors):
            return f"Exact draws need conjugate priors, or at most 2 bounded scalar parameters (there are {scalars})."
        own = [prior.name for prior in priors if prior.distribution.endswith(OWN_TRANSFORM)]
        if own:
            return f"Leave out the transform of {', '.join(own)}, set by hand: some of them restrict the prior too."
        if not all(prior.bounded for prior in priors):
            names = ", ".join(f"{prior.name!r}: (low, high)" for prior in priors if not prior.bounded)
            return f"With bounds it can be drawn from a grid: dp.truncate(model, {{{names}}})."
        if any(np.issubdtype(prior.variable.type.dtype, np.integer) for prior in priors):
            return "Exact draws from a grid need continuous parameters."
        points, widths = grid_of(priors, count or CELLS[scalars])
        prior_logp, hulls = _on_grid(prior_model, priors, tables, points)
        if not np.isfinite(prior_logp).any():
            return NO_SUPPORT
        return cls(
            priors=tuple(priors),
            tables=tuple(tables),
            points=points,
            widths=widths,
            prior_logp=np.where(np.isnan(prior_logp), -np.inf, prior_logp),
            hulls=hulls,
            _likelihood=_compile_likelihood(prior_model, priors, tables),
        )

    def boxes(self, table: TableLikelihood) -> list[tuple[Array, Array]]:
        """Bounds of each parameter of a table in each of its cells, over the points of the grid."""
        return self.hulls[self.tables.index(table)]

    def draw(
        self, rng: np.random.Generator, held: Sequence[ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        prior, likelihood = self.log_densities(held)
        with np.errstate(invalid="ignore"):
            total = (inverse if temper_prior else 1.0) * settled(prior) + inverse * likelihood
        place = choose(rng, np.where(np.isnan(total), -np.inf, total))
        return by_name(self.priors, self.points[place] + self.widths * (rng.random(len(self.widths)) - 0.5))

    def log_densities(self, held: Sequence[ExactSums]) -> tuple[Array, Array]:
        """Return the log prior density and the log-likelihood of each cell: two (n_points,) arrays. **Private**."""
        arrays = [item for one in held for item in (one.sums, one.sizes)]
        size = max(1, CHUNK // max(1, sum(item.size for item in arrays)))
        starts = range(0, len(self.points), size)
        parts = [self._likelihood(self.points[start : start + size], *arrays) for start in starts]
        return self.prior_logp, np.concatenate(parts)


def grid_of(priors: Sequence[Prior], count: int) -> tuple[Array, Array]:
    """Return the middles of a grid's cells over the box of bounded priors, and the widths of a cell."""
    middles, widths = cells(*box_of(priors), count)
    return crossed(list(middles.T)), widths


def box_of(priors: Sequence[Prior]) -> tuple[Array, Array]:
    """Return the ends of bounded priors, all scalars one after the other."""
    low = np.concatenate([prior.low.ravel() for prior in priors if prior.low is not None])
    high = np.concatenate([prior.high.ravel() for prior in priors if prior.high is not None])
    return low, high


def by_name(priors: Sequence[Prior], flat: Array) -> dict[str, Array]:
    """Split one flat vector of all scalars into free variables."""
    result, start = {}, 0
    for one in priors:
        result[one.name] = flat[start : start + one.size].reshape(one.shape)
        start += one.size
    return result


def over_flat(prior_model: Model, priors: Sequence[Prior], ends: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return graphs over one flat vector of all free scalars."""
    flat = pt.vector("flat", shape=(sum(prior.size for prior in priors),), dtype="float64")
    parts = parts_of(flat, [prior.variable for prior in priors], [prior.shape for prior in priors])
    return flat, rebuild(ends, parts)[0]


def prior_terms(prior_model: Model) -> list[Any]:
    """Return the log prior density as scalar terms over the free variables themselves, Potentials included."""
    from pymc.logprob.basic import conditional_logp

    values = {rv: rv.clone(name=f"{rv.name}_at") for rv in prior_model.free_RVs}
    terms = [pt.sum(term) for term in conditional_logp(values).values()]
    terms = rebuild(terms, {values[rv]: rv for rv in prior_model.free_RVs})[0]
    return [*terms, *(pt.sum(var) for var in prior_model.potentials)]


def log_prior(prior_model: Model, priors: Sequence[Prior], points: Array) -> Array:
    """Return the log prior density at (n_points, n_scalars) points; -inf where it is no number."""
    terms = prior_terms(prior_model)
    flat, (total,) = over_flat(prior_model, priors, [pt.add(*terms) if len(terms) > 1 else terms[0]])
    batch = pt.matrix("points", shape=(None, points.shape[1]), dtype="float64")
    # Where a parent is invalid a point is impossible, which is no error: the ends of supports are looked at.
    graph = vectorized(stable(frozen_shared(guarded(total), ())), {flat: batch})
    graph = graph if graph.type.ndim else pt.broadcast_to(graph, (batch.shape[0],))
    with np.errstate(all="ignore"):
        (found,) = compiled([batch], [graph])(points)
    return np.where(np.isnan(found), -np.inf, found)


def _on_grid(
    prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood], points: Array
) -> tuple[Array, list[list[tuple[Array, Array]]]]:
    terms = prior_terms(prior_model)
    supported = [pt.all(table.family.supported(table.parameters)) for table in tables]
    terms += [pt.switch(valid, 0.0, -np.inf) for valid in supported]
    parameters = [parameter for table in tables for parameter in table.parameters]
    flat, (prior, *given) = over_flat(
        prior_model, priors, [pt.add(*terms) if len(terms) > 1 else terms[0], *parameters]
    )
    batch = pt.matrix("points", shape=(None, points.shape[1]), dtype="float64")
    outputs = [out if depends_on(out, [flat]) else None for out in (prior, *given)]
    many = vectorized([out for out in outputs if out is not None], {flat: batch})
    constant = [out for out, kept in zip((prior, *given), outputs, strict=True) if kept is None]
    moving = plain_function([batch], many)
    fixed = plain_function([], constant)()
    size = max(1, CHUNK // max(1, sum(table.cells.count for table in tables)))
    logps, lows, highs = [], None, None
    for start in range(0, len(points), size):
        results = iter(moving(points[start : start + size]))
        still = iter(fixed)
        found = [next(results) if kept is not None else next(still) for kept in outputs]
        n = len(points[start : start + size])
        logps.append(np.broadcast_to(found[0], (n,)))
        low = [
            item.min(axis=0) if kept is not None else item for item, kept in zip(found[1:], outputs[1:], strict=True)
        ]
        high = [
            item.max(axis=0) if kept is not None else item for item, kept in zip(found[1:], outputs[1:], strict=True)
        ]
        lows = low if lows is None else [np.minimum(a, b) for a, b in zip(lows, low, strict=True)]
        highs = high if highs is None else [np.maximum(a, b) for a, b in zip(highs, high, strict=True)]
    assert lows is not None and highs is not None
    pairs = iter(zip(lows, highs, strict=True))
    hulls = []
    for table in tables:
        boxes = []
        for ndim in table.family.event_ndims:
            low, high = next(pairs)
            shape = (table.cells.count, *np.shape(low)[np.ndim(low) - ndim :])
            boxes.append((np.broadcast_to(low, shape), np.broadcast_to(high, shape)))
        hulls.append(boxes)
    return np.concatenate(logps), hulls


def _compile_likelihood(prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood]) -> Any:
    held = [
        (
            pt.matrix(f"sums{place}", shape=(table.cells.count, None), dtype="float64"),
            pt.vector(f"sizes{place}", shape=(table.cells.count,), dtype="float64"),
        )
        for place, table in enumerate(tables)
    ]
    totals = [pt.sum(table.logp(*sums)) for table, sums in zip(tables, held, strict=True)]
    flat, (total,) = over_flat(prior_model, priors, [pt.add(*totals) if len(totals) > 1 else totals[0]])
    batch = pt.matrix("points", shape=(None, flat.type.shape[0]), dtype="float64")
    many = vectorized(total, {flat: batch})
    inputs = [item for pair in held for item in pair]
    return plain_function([batch, *inputs], many)
