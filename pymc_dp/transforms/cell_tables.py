"""The log density of a release, given one parameter of each cell, as tables: made when its graph is first asked for.

Given a release, the log density of a cell is a function of its parameter alone. Its table takes the length of a few
multiplications to evaluate, where the integral over exact sums takes thousands. What is tabulated is the graph of
`ReleaseDensity` itself, or, for counts of two levels, the functions that it calls. It stays for other values than the
release, for second derivatives, and where a table cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, override

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.panels import Panels
from pymc_dp.transforms.released_logp import ReleasedLogp

LEAST, HALF = 1e-16, 0.5
"""Of the share of a chart."""
Form = Callable[[TensorVariable, TensorVariable], TensorVariable]


class TableLogp(ReleasedLogp):
    """Log density of the tabulated release, one entry per cell.

    Its `density` is the same as a graph of a released table and a parameter.
    """

    kernel = "pymc_dp.transforms.panel_kernels:table_logp"
    slopes = (0,)
    by_cells = True

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        found: TensorVariable = self.density(inputs[1], inputs[0])
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """Which function of the parameter panels are laid over, see `panel_kernels`.

    Attributes
    ----------
    kind : float
        One of those of the class.
    centre, width : float
        Of positive and of real parameters.
    low, high : float
        Least and largest parameter that the likelihood has.
    """

    PROBABILITY: ClassVar[float] = 0.0
    LOG_ODDS: ClassVar[float] = 1.0
    POSITIVE: ClassVar[float] = 2.0
    REAL: ClassVar[float] = 3.0
    kind: float
    centre: float = 1.0
    width: float = 1.0
    low: float = 0.0
    high: float = 1.0

    @property
    def numbers(self) -> Array:
        """What the kernel takes."""
        return np.array([self.kind, self.centre, self.width, self.low, self.high])


@dataclass(frozen=True, kw_only=True, eq=False)
class CellTables:
    """Tables of all cells of one release.

    Attributes
    ----------
    release : (n_cells, n_columns) array
    chart : Chart
    panels : Panels
        Two rows to a cell.
    """

    release: Array
    chart: Chart
    panels: Panels

    def logp(self, value: TensorVariable, parameter: TensorVariable, form: Form) -> TensorVariable:
        """Log density of every cell: (n_cells,) tensor."""
        return TableLogp(form).log_density(parameter, value, *self._held)

    @cached_property
    def _held(self) -> list[TensorVariable]:
        """Of shapes that no compiled model knows, since each release has other panels."""
        panels = self.panels
        return [
            held(self.release),
            held(self.chart.numbers),
            *(held(item, shape=(None,)) for item in (panels.starts, panels.ends, panels.numbers)),
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {name: item for name, item in self.__dict__.items() if name != "_held"}


__all__ = ["CellTables", "Chart", "TableLogp"]
