"""Posterior densities of models whose rows are held one by one, at many points of the parameter space."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_density import guarded, vectorized
from pymc_dp.inspection.rows import Array, rebuild, shape_of
from pymc_dp.rows.gate import read
from pymc_dp.samplers.row_function import RowFunction
from pymc_dp.step_methods.ops.grid import over_flat, prior_terms
from pymc_dp.step_methods.row_functions import Bound, Nodes

CHUNK = 2**21
"""Row terms held at once."""

Held = tuple[list[Array], Array]
"""Clamped rows, one array per column, and how often each of them occurs. Private."""


class RowDensity:
    """Log prior and log-likelihood of a prior model's free variables, flat and on their own scale, with derivatives.

    A row enters the graph as a row of placeholders and nothing else of the table does.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    priors : sequence of Prior
        Of the prior model, in its order.

    Raises
    ------
    UnsupportedModelError
        If a parameter is discrete, or if the likelihood does not factorise over rows on dummy rows.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model, priors: Sequence[Prior]) -> None:
        _refuse_discrete(priors)
        self.priors = tuple(priors)
        self.columns = inspection.columns
        rows = RowFunction.of(inspection, prior_model)
        self._rows = list(rows.many)
        self._flat = pt.vector("flat", shape=(sum(prior.size for prior in priors),), dtype="float64")
        self._weights = pt.vector("weights", dtype="float64")
        each = rows.over_rows(stable(rows.total))
        parts = parts_of(self._flat, inspection.stand_ins, [prior.shape for prior in priors])
        self._each: Any = rebuild([each], parts)[0][0].astype("float64")
        self._prior = _prior(prior_model, priors, self._flat)
        self._likelihood = pt.dot(self._each, self._weights)

    @property
    def dimension(self) -> int:
        """Number of scalars of all free variables."""
        return sum(prior.size for prior in self.priors)

    def read(self, nodes: Nodes | None = None) -> Held:
        """Return clamped rows; equal rows of whole numbers are counted. Reads private data.

        Where there is none, a row of weight 0 is held: not every operation takes a table without rows.
        Given public `nodes`, return these, and how many shares of rows each of them has.
        """
        rows = [read(column) for column in self.columns]
        if nodes is not None:
            return nodes.columns, nodes.weights(rows)
        if rows and not len(rows[0]):
            return self.nothing()
        few = all(column.integer and row.ndim == 1 for column, row in zip(self.columns, rows, strict=True))
        if few and rows and not any(column.public for column in self.columns):  # public rows keep their order
            table, counts = np.unique(np.stack(rows, axis=1), axis=0, return_counts=True)
            parts = [part.astype(row.dtype) for part, row in zip(table.T, rows, strict=True)]
            return [np.ascontiguousarray(part) for part in parts], counts.astype(np.float64)
        return rows, np.ones(len(rows[0]))

    def nothing(self) -> Held:
        """Return a row of weight 0. Reads no row."""
        shapes = [(1, *shape_of(column.leaf)[1:]) for column in self.columns]
        none = [
            np.zeros(shape, dtype=column.leaf.type.dtype) for column, shape in zip(self.columns, shapes, strict=True)
        ]
        return [column.clamped(row) for column, row in zip(self.columns, none, strict=True)], np.zeros(1)

    def stand_ins(self) -> tuple[list[Any], Any]:
        """Return shared variables for rows and their weights, without rows."""
        empty = [np.zeros((0, *row.type.shape[1:]), dtype=row.type.dtype) for row in self._rows]
        rows = [pytensor.shared(item, shape=row.type.shape) for item, row in zip(empty, self._rows, strict=True)]
        return rows, pytensor.shared(np.zeros(0), shape=(None,))

    def graphs(self, flat: Variable, rows: Sequence[Variable], weights: Variable) -> tuple[Any, Any]:
        """Return log prior density and log-likelihood as graphs over a flat vector and rows."""
        replace = {self._flat: flat, self._weights: weights, **dict(zip(self._rows, rows, strict=True))}
        prior, likelihood = rebuild([self._prior, self._likelihood], replace)[0]
        return prior, likelihood

    @cached_property
    def _values(self) -> Any:
        points = pt.matrix("points", shape=(None, self.dimension), dtype="float64")
        prior, each = vectorized([self._prior, self._each], {self._flat: points})
        prior = prior if prior.type.ndim else pt.broadcast_to(prior, (points.shape[0],))
        each = each if each.type.ndim == 2 else pt.broadcast_to(each, (points.shape[0], each.shape[0]))
        return compiled([points, *self._rows], [prior, each])

    @cached_property
    def _slope(self) -> Any:
        gradient = pytensor.grad(self._likelihood, self._flat, disconnected_inputs="ignore", return_disconnected="zero")
        return compiled([self._flat, *self._rows, self._weights], [gradient])

    def each(self, points: Array, rows: Sequence[Array]) -> tuple[Array, Array]:
        """Return log prior densities (k,), and every row's log-likelihood (k, n_rows), at (k, dimension) points.

        As floats return them: nothing bounds these numbers. **Private**.
        """
        with np.errstate(all="ignore"):
            prior, each = self._values(points, *rows)
        return np.where(np.isnan(prior), -np.inf, prior), each

    def at(self, points: Array, held: Held) -> tuple[Array, Array]:
        """Return log prior densities and log-likelihoods at (k, dimension) points: two (k,) arrays, for public rows.

        A sum of floats, which no bound is enforced on; what is drawn from rows is made of `held_sums`.
        """
        size = max(1, CHUNK // max(1, len(held[1])))
        parts = [self.each(points[s : s + size], held[0]) for s in range(0, len(points), size)]
        with np.errstate(all="ignore"):
            return np.concatenate([prior for prior, _ in parts]), np.concatenate([e @ held[1] for _, e in parts])

    def held_sums(self, points: Array, held: Held, bound: Bound | None) -> tuple[Array, Array]:
        """Return log prior densities, and log-likelihoods as sums of rows within a bound: two (k,) arrays. **Private**.

        The second is up to a constant. From one point to another one row moves it by no more than ``bound.charge``,
        whatever the compiled density returns; without a bound it is a sum of floats.
        """
        if bound is None:
            return self.at(points, held)
        prior, _ = self.each(points, self.nothing()[0])
        return prior, bound.total(lambda at, rows: self.each(at, rows)[1], points, *held)

    def slope(self, point: Array, held: Held) -> Array:
        """Return the gradient of the log-likelihood at one point, for public rows: a (dimension,) array."""
        with np.errstate(all="ignore"):
            return np.asarray(self._slope(point, *held[0], held[1])[0])


def _refuse_discrete(priors: Sequence[Prior]) -> None:
    found = [prior.name for prior in priors if not prior.variable.type.dtype.startswith("float")]
    if found:
        what = "it is discrete, and posteriors of rows held one by one are drawn for continuous parameters only"
        remedy = "Use dp.TemperedGibbs(), or sum the parameter out of the likelihood."
        raise UnsupportedModelError([Problem(where=name, what=what, remedy=remedy) for name in found])


def _prior(prior_model: Model, priors: Sequence[Prior], flat: Variable) -> Any:
    terms = prior_terms(prior_model)
    own, (total,) = over_flat(prior_model, priors, [pt.add(*terms) if len(terms) > 1 else terms[0]])
    # Where a parent is invalid a point is impossible, which is no error: trials look at the ends of supports.
    return stable(frozen_shared(guarded(rebuild([total], {own: flat})[0][0]), ()))


__all__ = ["Held", "RowDensity"]
