"""Where the log density of a release takes a table: one unknown parameter per cell, and the value is the release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.math import Sigmoid
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families import CountFamily, MomentFamily
from pymc_dp.families.known import number
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_tables import CellTables, Chart
from pymc_dp.transforms.count_tables import count_tables
from pymc_dp.transforms.family_tables import family_tables

if TYPE_CHECKING:
    from pymc_dp.transforms.density import ReleaseDensity

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
    form, parameter = _two_levels(density, given) or _one_unknown(density, given) or (None, None)
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
class CountForm:
    """The density of two counts given the probability of the second, or the logarithm of its odds."""

    density: ReleaseDensity
    chart: Chart

    @property
    def key(self) -> Any:
        """What tables differ by."""
        return self.chart.kind

    def __call__(self, value: TensorVariable, parameter: TensorVariable) -> TensorVariable:
        """Return it as a graph."""
        p = pt.sigmoid(parameter) if self.chart.kind == Chart.LOG_ODDS else parameter
        ndims = self.density.family.event_ndims
        return self.density.graph(value, p if ndims == (0,) else pt.stack([1 - p, p], axis=-1))

    def table(self, release: Array) -> CellTables | None:
        """Tabulate it."""
        return count_tables(release, float(self.density.scales[0]), self.density.sizes, self.chart)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneUnknownForm:
    """The density of one sum given the one parameter that is not a number."""

    density: ReleaseDensity
    known: Known

    @property
    def key(self) -> Any:
        """What tables differ by."""
        return self.known

    def __call__(self, value: TensorVariable, parameter: TensorVariable) -> TensorVariable:
        """Return it as a graph."""
        given = [parameter if at is None else pt.constant(np.array([at])) for at in self.known]
        return self.density.graph(value, *given)

    def table(self, release: Array) -> CellTables | None:
        """Tabulate it, if it can be."""
        return family_tables(self._at, release, self._supported)

    def _at(self, release: Array, cells: Array, parameters: Array) -> Array:
        """Log densities of cells at parameters; cells share their points, so moments are found once for all of them."""
        points, which = np.unique(parameters, return_inverse=True)
        means, covariances = self.density.moments(*self._filled(points))
        sizes = self.density.sizes
        known = [np.asarray(item, dtype=np.float64) for item in (sizes.bound, sizes.seen) if item is not None]
        given = (release[cells], means[0][which], covariances[0, 0][which], *(item[cells] for item in known))
        return _of_moments(_Key(self.density))(*given)

    def _supported(self, parameters: Array) -> Array:
        given = [pt.constant(item) for item in self._filled(parameters)]
        found: Array = plain_function([], self.density.family.supported(given))()
        return found

    def _filled(self, parameters: Array) -> list[Array]:
        return [parameters if at is None else np.full(len(parameters), at) for at in self.known]


def _two_levels(density: ReleaseDensity, given: Sequence[TensorVariable]) -> tuple[CountForm, TensorVariable] | None:
    statistic, family = density.statistic, density.family
    two = isinstance(family, CountFamily) and isinstance(statistic, LevelCounts) and statistic.n_levels == 2
    if not two or family.event_ndims != (0,) or not density.noise_aware or density.both:
        return None
    (p,) = given
    inner = _log_odds(p)
    if inner is None:
        return CountForm(density=density, chart=PROBABILITIES), p
    return CountForm(density=density, chart=LOG_ODDS), inner


def _one_unknown(
    density: ReleaseDensity, given: Sequence[TensorVariable]
) -> tuple[OneUnknownForm, TensorVariable] | None:
    one_sum = isinstance(density.family, MomentFamily) and len(density.statistic.labels) == 1
    if not (one_sum and density.noise_aware and density.scales.any()):
        return None
    known = tuple(number(item) for item in given)
    unknown = [item for item, at in zip(given, known, strict=True) if at is None]
    return (OneUnknownForm(density=density, known=known), unknown[0]) if len(unknown) == 1 else None


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
            *(type(density), density.statistic, tuple(density.scales)),
            *(sizes.public, sizes.n_private, sizes.seen is None, float(sizes.noise), sizes.kind),
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
    symbolic: Any = bound
    entries = replace(density, release=None, sizes=replace(density.sizes, bound=symbolic, seen=shown))
    inputs = [value, mean, variance, bound, *([] if shown is None else [seen])]
    found: Callable[..., Array] = plain_function(inputs, entries.of_moments(value, [mean], [[variance]]))
    return found


__all__ = ["CountForm", "OneUnknownForm", "holds", "tabulated_logp"]
