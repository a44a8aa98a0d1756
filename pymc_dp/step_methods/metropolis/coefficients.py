"""The likelihood as a linear function of exact sums: its public coefficients at any state, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import PrivacyError
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.interpreted import kept_while_shared, plain_function, start_of
from pymc_dp.inspection.rows import Array, reached
from pymc_dp.proofs.closed_form_ranges import RowTable, row_groups
from pymc_dp.transforms.likelihood import TableLikelihood

Point = dict[str, Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """One state of a chain and everything public there.

    Attributes
    ----------
    values : (n_values,) array
        All free variables on the unconstrained scale, one after the other.
    prior : float
        Log density of the prior, Jacobian included.
    coefficients : (n_coefficients,) array
        η(θ) of all observed variables; not a number where a parameter is outside of its support.
    """

    values: Array
    prior: float
    coefficients: Array

    @property
    def possible(self) -> bool:
        """Whether a chain may be here."""
        return bool(np.isfinite(self.prior)) and bool(np.isfinite(self.coefficients).all())


class Coefficients:
    """Compiled map from values to prior density and coefficients; holds no row.

    Parameters
    ----------
    prior_model : pymc.Model
    tables : sequence of TableLikelihood
    quick : bool
        Compile for a look, not for a chain.
    """

    def __init__(self, prior_model: Model, tables: Sequence[TableLikelihood], *, quick: bool = False) -> None:
        start = start_of(prior_model)
        self.names = tuple(str(var.name) for var in prior_model.value_vars)
        self.value_names = {str(var.name): str(prior_model.rvs_to_values[var].name) for var in prior_model.free_RVs}
        self._shapes = [np.shape(start[name]) for name in self.names]
        self._edges = np.cumsum([0, *(int(np.prod(shape)) for shape in self._shapes)])
        parts = [part for table in tables for part in _coefficients(prior_model, table)]
        outputs = [prior_model.logp().reshape((1,)), *parts]
        (joined,), values = pm.pytensorf.join_nonshared_inputs(
            point=start, outputs=[pt.concatenate(outputs)], inputs=prior_model.value_vars
        )
        if any(var.owner is not None and isinstance(var.owner.op, RandomVariable) for var in reached([joined])):
            raise PrivacyError(
                "A prior or likelihood would be evaluated at a random place; this is an error of pymc_dp."
            )
        made = partial(plain_function, few=True) if quick else partial(pytensor.function, on_unused_input="ignore")
        self._function = made([values], joined)
        self._function.trust_input = True
        self.start = self.at(self.flatten(start))

    @property
    def dimension(self) -> int:
        """Number of unconstrained values."""
        return int(self._edges[-1])

    def at(self, values: Array) -> Place:
        """Evaluate at one state."""
        found = self._function(values)
        return Place(values=values, prior=float(found[0]), coefficients=found[1:])

    def flatten(self, point: Mapping[str, Array]) -> Array:
        """Put the values of a point one after the other."""
        return np.concatenate([np.zeros(0), *(np.ravel(point[name]) for name in self.names)])

    def point(self, values: Array, like: Point) -> Point:
        """Return a point with the keys of `like`, in its order: PyMC reads values by position."""
        new = dict(like)
        for name, shape, begin, end in zip(self.names, self._shapes, self._edges[:-1], self._edges[1:], strict=True):
            new[name] = np.array(values[begin:end].reshape(shape), dtype=like[name].dtype)
        return new

    def spread(self, sizes: Mapping[str, Array]) -> Array:
        """Put one number per value, given by the name of the value, one after the other."""
        parts = zip(self.names, self._shapes, strict=True)
        return np.concatenate(
            [
                np.zeros(0),
                *(np.ravel(np.broadcast_to(np.asarray(sizes[name], dtype=float), shape)) for name, shape in parts),
            ]
        )


def row_table(table: TableLikelihood) -> RowTable:
    """Return what is public about one observed variable's rows."""
    return RowTable(statistic=table.statistic, groups=row_groups(table.cells))


def exact_sums(statistic: RowStatistic, integers: Array) -> list[Fraction]:
    """Put exact sums in the order of the coefficients, without rounding. **Private**.

    Parameters
    ----------
    statistic : RowStatistic
    integers : (n_cells, n_integers) int64 array
        Sums of rows in grid steps, the number of rows first but for counts.
    """
    if isinstance(statistic, LevelCounts):
        return [Fraction(count) for count in integers.ravel().tolist()]
    return [one for size, *sums in integers.tolist() for one in (Fraction(size), *_powers(statistic, size, sums))]


def _powers(statistic: RowStatistic, size: int, sums: Sequence[int]) -> list[Fraction]:
    assert isinstance(statistic, BoundedMoments)
    parts = zip(statistic.powers, sums, statistic.steps, statistic.shifts, strict=True)
    found = {power: whole * Fraction(step) + size * Fraction(shift) for power, whole, step, shift in parts}
    return [found.get(power, Fraction(0)) for power in (1, 2)]


def exact_product(change: Array, sums: Sequence[Fraction]) -> Fraction:
    """Return the sum of products of finite floats and exact sums, without rounding. **Private**.

    Examples
    --------
    >>> exact_product(np.array([1e30, 1.0, -1e30]), [Fraction(1), Fraction(3), Fraction(1)])
    Fraction(3, 1)
    """
    terms, top = list[tuple[int, int]](), 0
    for one, whole in zip(change.tolist(), sums, strict=True):
        numerator, denominator = one.as_integer_ratio()  # of floats, the latter is a power of 2
        shift = (denominator * whole.denominator).bit_length() - 1
        terms.append((numerator * whole.numerator, shift))
        top = max(top, shift)
    return Fraction(sum(term << (top - shift) for term, shift in terms), 1 << top)


coefficients_of = kept_while_shared(Coefficients)


def _coefficients(prior_model: Model, table: TableLikelihood) -> list[TensorVariable]:
    """Derivatives of the log-likelihood in its sums, in which it is linear: what the density itself says, no copy."""
    cells, columns = table.cells.count, len(table.statistic.labels)
    sums, sizes = pt.tensor("sums", shape=(cells, columns)), pt.tensor("sizes", shape=(cells,))
    logp = table.logp(sums, sizes)
    slopes = pytensor.grad(logp.sum(), [sums, sizes], disconnected_inputs="ignore", return_disconnected="zero")
    # Outside of its support the density is minus infinity with slope 0: the 0 becomes not a number.
    at_values = prior_model.replace_rvs_by_values([*slopes, logp])
    empty = {sums: np.zeros((cells, columns)), sizes: np.zeros(cells)}
    *found, level = clone_replace(at_values, empty, rebuild_strict=False)
    inside = pt.switch(pt.eq(level, 0.0), 0.0, np.nan)[:, None]
    if isinstance(table.statistic, LevelCounts):
        return [(found[0] + inside).ravel()]
    moments = _powers_graph(table.statistic, found[0])
    return [(pt.stack([found[1], *moments], axis=-1) + inside).ravel()]


def _powers_graph(statistic: RowStatistic, columns: TensorVariable) -> list[TensorVariable]:
    assert isinstance(statistic, BoundedMoments)
    found = {power: columns[:, place] for place, power in enumerate(statistic.powers)}
    return [found.get(power, pt.zeros_like(columns[:, 0])) for power in (1, 2)]


__all__ = ["Coefficients", "Place", "coefficients_of", "exact_product", "exact_sums", "row_table"]
