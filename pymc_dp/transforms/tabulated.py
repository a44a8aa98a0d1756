"""Where the log density of a release takes a table: one unknown parameter per cell, and the value is the release.

Tables of noised counts of two levels: by their probability, for public and private sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families import CountFamily, MomentFamily
from pymc_dp.families.constants import number
from pymc_dp.families.statistic import ExposedCounts
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_sizes import Sizes, size_nodes
from pymc_dp.transforms.cell_tables import HALF, LEAST, CellTables, Chart, Evaluate, tabulate
from pymc_dp.transforms.exposed_counts import exposed_densities
from pymc_dp.transforms.family_tables import family_tables
from pymc_dp.transforms.few_rows import FewCells, FewRows
from pymc_dp.transforms.noised_count import noise_numbers

if TYPE_CHECKING:
    from pymc_dp.transforms.density import ReleaseDensity


LEAST_RATE = 1e-20
"""Of the largest rate."""
FEW_AT_ONCE = 256
"""Cells of few rows in one call: each takes the memory of the product of all sums with the values of a row."""


def count_tables(release: Array, scale: float, sizes: Sizes, chart: Chart) -> CellTables:
    """Tabulate what `noise_aware.counts_logp` returns.

    Parameters
    ----------
    release : (n_cells, 1 or 2) array
        Counts of the second level alone where the size is public.
    scale : float
    sizes : Sizes
    chart : Chart
        Of probabilities or of log odds.
    """
    evaluate = (_of_public_size if sizes.public else _of_private_size)(release, scale, sizes)
    left, right = (np.full(2 * len(release), np.sqrt(end)) for end in (LEAST, HALF))
    return CellTables(release=release, chart=chart, panels=tabulate(evaluate, left, right))


def _of_public_size(release: Array, scale: float, sizes: Sizes) -> Evaluate:
    from pymc_dp.transforms.count_table_kernels import noised_counts  # numba takes long to import

    noise = noise_numbers(sizes.kind, scale)

    def evaluate(rows: Array, u: Array) -> Array:
        cells = np.repeat(rows // 2, u.shape[1])
        odds = (np.log(u**2) - np.log1p(-(u**2))) * np.where(rows % 2, -1.0, 1.0)[:, None]
        sizes_of = np.asarray(sizes.bound, dtype=np.float64)[cells]
        found: Array = noised_counts(release[cells, 0], odds.ravel(), sizes_of, *noise)
        return found.reshape(u.shape)

    return evaluate


def _of_private_size(release: Array, scale: float, sizes: Sizes) -> Evaluate:
    from pymc_dp.transforms.level_kernels import levels_of_private_size

    given = tables_by_rate(release, scale, sizes)

    def evaluate(rows: Array, u: Array) -> Array:
        cells = np.repeat(rows // 2, u.shape[1])
        ends = np.where((rows % 2 == 0)[:, None], [1 - u**2, u**2], [u**2, 1 - u**2])
        shares = np.ascontiguousarray(ends.reshape(2, -1).T)
        found: Array = levels_of_private_size(shares, release[cells], cells.astype(float), release, *given)[0]
        return found.reshape(u.shape)

    return evaluate


def tables_by_rate(release: Array, scale: float, sizes: Sizes) -> tuple[Array, ...]:
    """Return rates of all counts of a cell of private size, and tables of single counts: what kernels take.

    Returns
    -------
    tuple of arrays
        Roots of the rates over the largest one and logarithms of their weights, (n_cells, n_nodes); and `Panels` of the
        Poisson counts of every cell, one after the other, in the root of the rate over that largest one.
    """
    from pymc_dp.transforms.count_table_kernels import poisson_counts

    nodes = size_nodes(pt.constant(release).sum(axis=-1), scale, release.shape[1], sizes)
    rates, log_weights = plain_function([], nodes)()
    most = rates.max(axis=1)
    noise, values, top = noise_numbers(sizes.kind, scale), release.ravel(), np.log(np.repeat(most, release.shape[1]))

    def evaluate(rows: Array, u: Array) -> Array:
        at = np.repeat(rows, u.shape[1])
        found: Array = poisson_counts(values[at], top[at] + np.log(u**2).ravel(), *noise)
        return found.reshape(u.shape)

    panels = tabulate(evaluate, *(np.full(len(values), np.sqrt(end)) for end in (LEAST_RATE, 1.0)))
    return np.sqrt(rates / most[:, None]), log_weights, panels.starts, panels.ends, panels.numbers


ALL = float(np.finfo(float).max)
LOG_ODDS = Chart(kind=Chart.LOG_ODDS, low=-ALL, high=ALL)
PROBABILITIES = Chart(kind=Chart.PROBABILITY, low=0.0, high=1.0)
Known = tuple[float | None, ...]
"""Values of parameters, None for the unknown one."""


def tabulated_logp(
    density: ReleaseDensity, value: TensorVariable, given: Sequence[TensorVariable]
) -> TensorVariable | None:
    """Log density of every cell by tables; None where the value is another one, or there is no table.

    Parameters
    ----------
    density : ReleaseDensity
    value : (n_cells, n_columns) tensor
    given : tensors
        Parameters of the likelihood.
    """
    release = density.release
    if release is None or not holds(value, release):
        return None
    form, parameter = OneUnknown.of(density, given) or (None, None)
    if form is None or parameter is None:
        return None
    if form.key not in density.tables:
        density.tables[form.key] = form.table(release)
    table = density.tables[form.key]
    return None if table is None else table.logp(value, _per_cell(parameter, len(release)), form)


def holds(value: Variable, release: Array) -> bool:
    """Whether a variable holds the release: models are copied, and variables of copies are others."""
    if isinstance(value, SharedVariable):
        return np.array_equal(value.get_value(borrow=True), release)
    return isinstance(value, Constant) and np.array_equal(value.data, release)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneUnknown:
    """The density given the one parameter that is not a number.

    Attributes
    ----------
    density : ReleaseDensity
    known : Known
    chart : Chart, optional
        Of the probability of the second of two counts, or of the logarithm of its odds. For sums it is looked for.
    """

    density: ReleaseDensity
    known: Known
    chart: Chart | None = None

    @classmethod
    def of(cls, density: ReleaseDensity, given: Sequence[TensorVariable]) -> tuple[Self, TensorVariable] | None:
        """Return it and the unknown: of a yes or no, or of one sum; None where the parameters leave no single one."""
        if not density.noise_aware or density.both:
            return None
        if isinstance(density.family, CountFamily) and density.family.event_ndims == (0,):
            odds = _log_odds(given[0])
            chart, found = (PROBABILITIES, given[0]) if odds is None else (LOG_ODDS, odds)
            return cls(density=density, known=(None,), chart=chart), found
        known = tuple(map(number, given))
        one_sum = isinstance(density.family, MomentFamily) and len(density.statistic.labels) == 1
        one_sum = one_sum or isinstance(density.statistic, ExposedCounts)
        if not one_sum or not density.scales.any() or known.count(None) != 1:
            return None
        return cls(density=density, known=known), given[known.index(None)]

    @property
    def key(self) -> Any:
        """What tables differ by."""
        return self.known, self.chart is not None and self.chart.kind

    def __call__(self, value: TensorVariable, parameter: TensorVariable) -> TensorVariable:
        """Return it as a graph."""
        by_odds = self.chart is not None and self.chart.kind == Chart.LOG_ODDS
        at = pt.sigmoid(parameter) if by_odds else parameter
        return self.density.graph(
            value, *(at if item is None else pt.constant(np.array([item])) for item in self.known)
        )

    def table(self, release: Array) -> CellTables | None:
        """Tabulate it, if it can be."""
        if self.chart is not None:
            return count_tables(release, float(self.density.scales[0]), self.density.sizes, self.chart)
        return family_tables(self._at, release, self._supported)

    def _at(self, release: Array, cells: Array, parameters: Array) -> Array:
        """Log densities of cells at parameters."""
        if isinstance(self.density.statistic, ExposedCounts):
            of = replace(self.density.sizes, bound=np.asarray(self.density.sizes.bound)[cells])
            return exposed_densities(release[cells], parameters, self.density.scales, of)
        few, found = self.density.few, np.empty(len(cells))
        for part in few.parts:
            which = part.cells[cells]
            found[which] = self._of_few(part, release, cells[which], parameters[which])
        many = ~few.cells[cells]
        if many.any():
            found[many] = self._of_many(release, cells[many], parameters[many])
        return found

    def _of_few(self, few: FewCells, release: Array, cells: Array, parameters: Array) -> Array:
        bound = np.asarray(self.density.sizes.bound, dtype=np.float64)
        sums, function = few.rows.about_origin(release[:, -1], bound), _of_few(few.rows)
        parts = [slice(i, i + FEW_AT_ONCE) for i in range(0, max(len(cells), 1), FEW_AT_ONCE)]
        return np.concatenate(
            [function(sums[cells[i]], few.log_weights[cells[i]], *self._filled(parameters[i])) for i in parts]
        )

    def _of_many(self, release: Array, cells: Array, parameters: Array) -> Array:
        """Take sums for normal; cells share their points, so moments are found once for all of them."""
        points, which = np.unique(parameters, return_inverse=True)
        means, covariances = self.density.moments(*self._filled(points))
        sizes = self.density.sizes
        known = [np.asarray(item, dtype=np.float64) for item in (sizes.bound, sizes.seen) if item is not None]
        given = (release[cells], means[0][which], covariances[0, 0][which], *(item[cells] for item in known))
        return _of_moments(_Key(self.density))(*given, sizes.rate)

    def _supported(self, parameters: Array) -> Array:
        given = [pt.constant(item) for item in self._filled(parameters)]
        found: Array = plain_function([], self.density.family.supported(given))()
        return found

    def _filled(self, parameters: Array) -> list[Array]:
        return [parameters if at is None else np.full(len(parameters), at) for at in self.known]


def _log_odds(p: TensorVariable) -> TensorVariable | None:
    """Return x where p is ``sigmoid(x)``."""
    node = p.owner
    if node is None or not isinstance(node.op, Elemwise) or not isinstance(node.op.scalar_op, Sigmoid):
        return None
    found: TensorVariable = node.inputs[0]
    return found


def _per_cell(parameter: TensorVariable, count: int) -> TensorVariable:
    return parameter + pt.zeros(count) if parameter.type.shape == (1,) and count > 1 else parameter


class _Key:
    """A density, up to what differs between its releases: equal ones share a function."""

    def __init__(self, density: ReleaseDensity) -> None:
        self.density, sizes = density, density.sizes
        self._parts = (
            *(type(density), type(density.family), density.statistic, tuple(density.scales)),
            *(sizes.public, sizes.seen is None, float(sizes.noise), sizes.kind),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)


@lru_cache(maxsize=8)
def _of_moments(key: _Key) -> Callable[..., Array]:
    """Return the log density given the moments of a row as a function in which a cell is an entry of all inputs."""
    density = key.density
    value, bound, seen = pt.matrix("value", shape=(None, len(density.scales))), pt.vector("bound"), pt.vector("seen")
    mean, variance = pt.vector("mean"), pt.vector("variance")
    shown: Any = None if density.sizes.seen is None else seen
    rate: Any = pt.scalar("rate")
    symbolic: dict[str, Any] = {"bound": bound, "rate": rate, "seen": shown}
    entries = replace(density, release=None, sizes=replace(density.sizes, **symbolic))
    inputs = [value, mean, variance, bound, *([] if shown is None else [seen]), rate]
    found: Callable[..., Array] = plain_function(inputs, entries.of_moments(value, [mean], [[variance]]))
    return found


@lru_cache(maxsize=8)
def _of_few(rows: FewRows) -> Callable[..., Array]:
    """Return the same of cells of few rows, given parameters of the likelihood."""
    sums, log_weights = pt.vector("sums"), pt.matrix("log_weights", shape=(None, len(rows.sizes)))
    given = [pt.vector(f"parameter_{i}") for i in range(len(rows.family.event_ndims))]
    found: Callable[..., Array] = plain_function([sums, log_weights, *given], rows.logp(sums, log_weights, given))
    return found


__all__ = ["OneUnknown", "count_tables", "holds", "tables_by_rate", "tabulated_logp"]
