"""The log-likelihood of one row as plain numbers, by PyMC's own graph, and points where it is likely to be extreme."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import in2out
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.tensor.rewriting.ofg import inline_symbolic_for_fusion

import pymc_dp as dp
from pymc_dp.inspection.columns import levels_of
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.one_row import of_one_row, placeholder
from pymc_dp.inspection.priors import priors_of
from pymc_dp.transforms.prior_model import prior_model

Array = npt.NDArray[np.float64]
PLAIN = in2out(inline_symbolic_for_fusion)
SHARES = (0.0, 1e-12, 1e-6, 1e-3, 0.5, 1 - 1e-3, 1 - 1e-6, 1 - 1e-12, 1.0)
"""Where within its range a scalar is tried beside random places."""
MOST_CORNERS = 64


class OneRow:
    """The log-likelihood of one row of a model as a function of arrays of values and of parameters.

    Attributes
    ----------
    low, high : lists of arrays
        Of the columns, then of the free variables.
    """

    def __init__(self, model: pm.Model, domain: dp.Domain) -> None:
        inspection = inspect(model, domain).rows
        inspection.require()
        priors = priors_of(prior_model(inspection))
        one = {column.leaf: placeholder(column.leaf, column.leaf.type.shape[1:]) for column in inspection.columns}
        inputs = [*one.values(), *inspection.stand_ins]
        self.names = [*(column.name for column in inspection.columns), *(prior.name for prior in priors)]
        self.count = len(one)
        self.shapes = [var.type.shape for var in inputs]
        self.dtypes = [var.type.dtype for var in inputs]
        self.simplex = [False] * self.count + [prior.distribution == "dirichlet" for prior in priors]
        ends = [*(column.bounds for column in inspection.columns), *map(_support, priors)]
        self.low, self.high = (
            [np.broadcast_to(pair[end], shape) for pair, shape in zip(ends, self.shapes, strict=True)] for end in (0, 1)
        )
        # What is left symbolic would be called once per point, in Python.
        graph = rewrite_graph(sum(of_one_row(term, one, {}) for term in inspection.terms), custom_rewrite=PLAIN)
        many = {var: pt.tensor(dtype=var.type.dtype, shape=(None, *var.type.shape)) for var in inputs}
        mode = pytensor.compile.mode.get_mode("FAST_COMPILE").including("canonicalize", "stabilize")
        with pytensor.config.change_flags(cxx=""):
            self.function = pytensor.function(
                list(many.values()), vectorize_graph(graph, many), mode=mode, on_unused_input="ignore"
            )

    def __call__(self, rows: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """Log-likelihoods of (n, ...) arrays of values and parameters."""
        given = [np.asarray(a, dtype=d) for a, d in zip([*rows, *parameters], self.dtypes, strict=True)]
        with np.errstate(all="ignore"):
            return np.asarray(self.function(*given))

    def table(self, rows: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """(n_rows, n_parameters) log-likelihoods of each row under each of the parameters."""
        n, m = len(rows[0]), len(parameters[0])
        flat = self(
            [np.repeat(a, m, axis=0) for a in rows], [np.tile(a, (n,) + (1,) * (a.ndim - 1)) for a in parameters]
        )
        return flat.reshape(n, m)

    def rows(self, rng: np.random.Generator, count: int, edges: Sequence[float] = ()) -> list[Array]:
        """Hostile values of a row: `edges` are values of its last column."""
        found = self._points(rng, count, range(self.count))
        for place, edge in enumerate(edges):
            found[-1][place] = edge
        return found

    def parameters(self, rng: np.random.Generator, count: int) -> list[Array]:
        """Hostile places of the parameter space."""
        return self._points(rng, count, range(self.count, len(self.names)))

    def _points(self, rng: np.random.Generator, count: int, places: Sequence[int]) -> list[Array]:
        sizes = [int(np.prod(self.shapes[place])) for place in places]
        corners = np.array(list(itertools.islice(itertools.product((0.0, 1.0), repeat=sum(sizes)), MOST_CORNERS)))
        shares = np.where(
            rng.random((count, sum(sizes))) < 0.5,
            rng.choice(SHARES, size=(count, sum(sizes))),
            rng.random((count, sum(sizes))),
        )
        shares[-len(corners) :] = corners[-count:]
        parts = np.split(shares, np.cumsum(sizes)[:-1], axis=1)
        return [self._scaled(place, part) for place, part in zip(places, parts, strict=True)]

    def _scaled(self, place: int, share: Array) -> Array:
        low, high, whole = self.low[place], self.high[place], np.dtype(self.dtypes[place]).kind in "iub"
        share = share.reshape(len(share), *self.shapes[place])
        if self.simplex[place]:
            room = share + 1e-9
            return low + room / room.sum(axis=-1, keepdims=True) * (1 - low.sum(axis=-1))
        found = np.clip(low * (1 - share) + high * share, low, high)
        return np.rint(found) if whole else found

    def at(self, where: Sequence[tuple[str, float]]) -> tuple[list[Array], list[Array]]:
        """The row and the two places that are named: (1, ...) and (2, ...) arrays."""
        found = [np.zeros((1 if place < self.count else 2, *shape)) for place, shape in enumerate(self.shapes)]
        for text, value in where:
            known = re.fullmatch(r"(.*?)(?:\[(\d+)\])?(?: \((highest|lowest)\))?", text)
            assert known is not None
            name, entry, which = known.groups()
            own = found[self.names.index(name)]
            own.reshape(len(own), -1)[int(which == "lowest"), int(entry or 0)] = value
        return found[: self.count], found[self.count :]


def _support(prior: object) -> tuple[Array, Array]:
    levels = levels_of(prior)
    return (prior.low, prior.high) if levels is None else (levels[0], levels[-1])


def largest(table: Array, neighbours: str, quantity: str) -> float:
    """Largest of a quantity over the rows and places of a table of log-likelihoods, by its definition."""
    if neighbours == "add_remove":
        return float((table.max(axis=1) - table.min(axis=1)).max() if quantity == "range" else np.abs(table).max())
    if quantity == "log_likelihood":
        return float((table.max(axis=0) - table.min(axis=0)).max())
    return max(float(np.ptp(table - row, axis=1).max()) for row in table)
