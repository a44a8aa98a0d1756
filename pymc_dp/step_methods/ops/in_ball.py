"""Exact draws of the coefficients of a normal regression in a ball, by the kernel: from sums of products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.affine import slopes_of
from pymc_dp.inspection.findings import Observed, RowInspection
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import BALL, Prior, constant_values, priors_of
from pymc_dp.inspection.rows import Array, Column, known_rows, rebuild
from pymc_dp.kernel import Grant, Kernel, NormalInBall, RowMap, Table
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.samplers.chain_account import NOT_BEGUN, granted
from pymc_dp.samplers.rows import ModelRows
from pymc_dp.step_methods.ops.grid import by_name
from pymc_dp.step_methods.row_range import RowRange

MOST, SHARPEST = 1000, 1e-100
"""Coefficients; and the least sd of noise and prior, whose square is a number."""


class Line(NamedTuple):
    """The mean of a row, ``<z, offset + slopes θ>``, z = (1, entries of its columns): arrays of public numbers."""

    offset: Array
    slopes: Array


class RegressionPosterior:
    """A posterior of coefficients in a ball, of a normal likelihood whose sd is known.

    Parameters
    ----------
    family : NormalInBall
        With the precision of the prior.
    line : Line
    rows : ModelRows
    predictors : sequence of Column
        In the order of the entries of z.
    observed : Observed
    prior : Prior
    neighbours : {"replace", "add_remove"}

    Attributes
    ----------
    name : str
        Of the observed variable.
    """

    words = "independent and exact: a normal distribution within a ball, from sums of products that the kernel adds"
    exact = True

    def __init__(
        self,
        family: NormalInBall,
        line: Line,
        rows: ModelRows,
        predictors: Sequence[Column],
        observed: Observed,
        prior: Prior,
        neighbours: str,
    ) -> None:
        self._family, self._line, self._rows, self._prior = family, line, rows, prior
        self.name = observed.name
        self._leaves = [column.leaf for column in predictors], observed.leaf
        self._neighbours = neighbours
        self._map: RowMap | None = None
        self._paid: tuple[Kernel, Grant] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is compiled behind, and what pays: a copy in another process begins its own chain."""
        return {**vars(self), "_map": None, "_paid": None}

    @classmethod
    def of(cls, inspection: RowInspection, prior_model: Model) -> Self | None:
        """Find the form of the likelihood and of the prior; None where they are others, or a column has no bounds."""
        sums, priors = inspection.inspected.sums, priors_of(prior_model)
        weighted = inspection.weight is not None or bool(sums.weights)
        if inspection.domain.metric is not None or weighted or sums.problems:
            return None
        if prior_model.potentials or len(sums.observed) != 1 or len(priors) != 1:
            return None
        (observed,), (prior,) = sums.observed, priors
        design = observed.design
        if design is None or observed.columns or not design.identity or observed.distribution != "normal":
            return None
        if prior.distribution != BALL or prior.constants is None or prior.radius is None or len(prior.shape) != 1:
            return None
        known = None if design.dispersion is None else constant_values([design.dispersion], design.free)
        line = _line(observed, prior.size) if prior.size <= MOST else None
        if known is None or line is None:
            return None
        noise, own = (float(np.min(sd)) for sd in (known[0], prior.constants[0]))
        if np.ptp(known[0]) or not SHARPEST < min(noise, own) <= max(noise, own) < 1 / SHARPEST:
            return None
        rows = ModelRows(inspection, prior_model)
        held = {column.leaf: column for column in rows.columns.values()}
        if not {observed.leaf, *(column.leaf for column in design.predictors)} <= set(held):
            return None
        predictors = [held[column.leaf] for column in design.predictors]
        longest, farthest = _reach(line, predictors, held[observed.leaf])
        if not (0 < longest < math.inf and 0 < farthest < math.inf):
            return None
        family = NormalInBall(
            width=prior.size,
            radius=prior.radius,
            longest=longest,
            farthest=farthest,
            precision=noise**-2,
            prior=own**-2,
        )
        return cls(family, line, rows, predictors, observed, prior, inspection.domain.neighbours)

    @property
    def range(self) -> RowRange:
        """The range of a row in closed form, and Δl."""
        found = self._family
        size = float_up(found.range("add_remove"))
        reach = found.longest * found.radius
        return RowRange(
            value=float_up(found.range(self._neighbours)),
            sensitivity=max(size, found.precision * (found.farthest + reach) ** 2 / 2 * (1 + 1e-12)),
            reason=f"in closed form, of a regression with |θ| <= {found.radius:.6g}, rows no longer than "
            f"{found.longest:.6g} and |y| <= {found.farthest:.6g}; the kernel holds each row within these",
        )

    def compile(self) -> RowMap:
        """Compile what reads a row, once."""
        if self._map is None:
            self._map = self._rows.row_map(self._numbers(), [])
        return self._map

    def _numbers(self) -> Any:
        """Return x and y of one row, in multiples of the longest and of the farthest that there may be."""
        inputs = {column.leaf: self._rows.inputs[name] for name, column in self._rows.columns.items()}
        predictors, response = self._leaves
        entries = [pt.ones(1), *(inputs[leaf].reshape((-1,)).astype("float64") for leaf in predictors)]
        z, y = pt.concatenate(entries), inputs[response].reshape((-1,)).astype("float64")
        x = pt.dot(z, pt.constant(self._line.slopes / self._family.longest))
        rest = (y - pt.dot(z, pt.constant(self._line.offset))) / self._family.farthest
        return pt.concatenate([x, rest])

    def read(self) -> Table:
        """Read the rows, once. The budget must have been charged."""
        return self._rows.table()

    def begin(self, held: Table, paid: Event, steps: int) -> None:
        """Begin a chain of so many draws, each of which `paid` was charged for."""
        self._paid = granted(held, self._neighbours, paid, steps)

    def forget(self) -> None:
        """Let go of the rows."""
        self._paid = None

    def check(self, inverse: float) -> None:
        """Refuse, before the charge, what floats cannot hold."""
        self._family.check_floats(inverse)

    def draw(self, rng: np.random.Generator, held: Table, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw the coefficients with the likelihood to the power `inverse`, in the kernel's own randomness."""
        if self._paid is None:
            raise PrivacyError(NOT_BEGUN)
        kernel, grant = self._paid
        family = replace(self._family, prior=self._family.prior * (inverse if temper_prior else 1.0))
        return by_name([self._prior], kernel.draw(self.compile(), [], family, beta=inverse, pay=grant))


def _line(observed: Observed, size: int) -> Line | None:
    """Return the mean as an affine function of so many coefficients; None where it is none."""
    design = observed.design
    assert design is not None
    if len(design.free) != 1:
        return None
    intercepts, slopes = design.coefficients({}, 1)
    at = pt.vector("at", shape=(size,))
    (first, second), _ = rebuild([intercepts, slopes], {design.free[0]: at})
    entries = [first[0], *(second[0, i] for i in range(design.width))]
    found = [slopes_of(entry, [at]) for entry in entries]
    each = [slope[0] for slope in found if slope is not None]
    if len(each) < len(entries):
        return None
    values = np.concatenate([np.ravel(value) for value in plain_function([at], [*entries, *each])(np.zeros(size))])
    if not np.isfinite(values).all():
        return None
    return Line(values[: len(entries)].astype(np.float64), values[len(entries) :].reshape(len(entries), size))


def _reach(line: Line, predictors: Sequence[Column], response: Column) -> tuple[float, float]:
    """Return bounds of |x| and |y|, x = slopes' z and y the response less <z, offset>; infinite where there are none.

    Entries of z with bounds are parts of their own, those that have a norm together are one. Parts of x that share no
    coefficient are orthogonal, and their squares add up; of others lengths do.
    """
    parts, start = [(slice(0, 1), 1.0)], 1
    for column in predictors:
        whole = slice(start, start + column.width)
        norm = _longest(column) if column.public and column.norm is None else column.norm
        if norm is not None:
            parts.append((whole, norm))
        else:
            each = np.maximum(*(np.abs(end) for end in column.ends)).ravel()
            parts += [(slice(start + i, start + i + 1), float(most)) for i, most in enumerate(each)]
        start = whole.stop
    lengths = np.array([_times(np.linalg.norm(line.slopes[part], 2), most) for part, most in parts])
    used = np.array([(line.slopes[part] != 0).any(axis=0) for part, _ in parts])
    apart = (used.sum(axis=0) <= 1).all()
    longest = math.sqrt(float((lengths**2).sum())) if apart else float(lengths.sum())
    moved = sum(_times(np.linalg.norm(line.offset[part]), most) for part, most in parts[1:])
    low, high = (float(end.ravel()[0]) - line.offset[0] for end in response.ends)
    return longest, max(abs(low), abs(high)) + moved


def _longest(column: Column) -> float | None:
    """Return the largest norm of the rows of a public array, which may be looked at."""
    values = np.asarray(column.clamped(known_rows(column)), dtype=np.float64)
    if column.integer or values.ndim < 2 or not values.size or not np.isfinite(values).all():
        return None
    scale = float(np.abs(values).max()) or 1.0  # no square is rounded to 0, or to infinity
    return scale * float(np.linalg.norm(values.reshape(len(values), -1) / scale, axis=1).max()) * (1 + 1e-12)


def _times(slope: Any, most: float) -> float:
    return 0.0 if slope == 0 else float(slope) * most


__all__ = ["RegressionPosterior"]
