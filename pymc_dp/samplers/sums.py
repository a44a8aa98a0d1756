"""Exact sums of a model's rows in the kernel, and log-likelihoods as public linear functions of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_dp.accounting import Event
from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.layout import Layout, corners
from pymc_dp.kernel.tallies import Rows, Tally
from pymc_dp.kernel.totals import ByTotals, RowSums, Totals
from pymc_dp.rows.asked import tally_of
from pymc_dp.rows.gate import private_values, values_of
from pymc_dp.samplers.chain_account import NOT_BEGUN, ChainAccount
from pymc_dp.samplers.row_ratio import Place, Rule
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

COMPUTED = "computed from the bounds of what a row adds to the sums"
ROOM = 1 + 2.0**-20
"""By how much the range of a bit is widened: the kernel rounds that of a penalty to 2^24 units, and one more."""


class ModelSums:
    """Sums of all observed variables of a model, each by its cells. Holds no row.

    Parameters
    ----------
    tables : sequence of TableLikelihood
    inspection : Inspection
    released : collection of str
        Columns that are released, and keep rows in their cells as public ones do.

    Attributes
    ----------
    tables : tuple of TableLikelihood
    layout : Layout
    """

    def __init__(
        self, tables: Sequence[TableLikelihood], inspection: Inspection, released: Collection[str] = ()
    ) -> None:
        self.tables = tuple(tables)
        neighbours: Neighbours = inspection.domain.neighbours
        tallies = tuple(_tally(table, released) for table in tables)
        self.layout = Layout(tallies, neighbours, inspection.n_rows if neighbours == "replace" else None)

    def read(self) -> Totals:
        """Add up the rows, once. The budget was charged."""
        return Totals(self.layout, [_rows(table) for table in self.tables])

    def read_rows(self) -> RowSums:
        """Read what each row adds. The budget was charged."""
        return RowSums(self.layout, [_rows(table) for table in self.tables])

    def whole(self, slopes: Array) -> Array:
        """Return coefficients of the kernel's whole numbers, (n, size), for those of sums as `slopes_of` gives them."""
        parts, begin = [], 0
        for table in self.tables:
            width = table.cells.count * _width(table)
            held = slopes[:, begin : begin + width].reshape(len(slopes), table.cells.count, -1)
            with np.errstate(all="ignore"):  # what is no number stays none
                parts.append((held @ _units(table)).reshape(len(slopes), -1))
            begin += width
        return np.concatenate(parts, axis=1)

    def flat(self, held: Mapping[str, ExactSums]) -> Array:
        """Return sums in the order of `slopes_of`, of all tables: of simulated rows, which are public."""
        parts = []
        for table in self.tables:
            own, counts = held[table.name], isinstance(table.statistic, LevelCounts)
            parts.append((own.sums if counts else np.column_stack([own.sizes, own.sums])).ravel())
        return np.concatenate(parts)

    def placed(self, name: str, slopes: Array) -> Array:
        """Return coefficients of the whole numbers, (n, size), for those of one table's sums, (n, n_cells, n_sums)."""
        parts = []
        for table in self.tables:
            own = slopes if table.name == name else np.zeros((len(slopes), table.cells.count, _width(table)))
            parts.append(own.reshape(len(slopes), -1))
        return self.whole(np.concatenate(parts, axis=1))

    def added(self, rows: Sequence[Rows]) -> Array:
        """Return the whole numbers that simulated rows add up to: (size,); public."""
        parts = [tally.exact(own) for tally, own in zip(self.layout.tallies, rows, strict=True)]
        return np.concatenate([part.ravel() for part in parts]).astype(np.float64)

    def of_cells(self, numbers: Sequence[Array]) -> Array:
        """Return a number of each whole number, (size,), for those of the cells of each table."""
        pairs = zip(self.layout.tallies, numbers, strict=True)
        return np.concatenate([np.repeat(own, tally.sized + tally.reading.size) for tally, own in pairs])

    def of_rows(self, numbers: Sequence[float]) -> Array:
        """Return coefficients, (size,), of what adds up to a number for each row of each table."""
        parts = []
        for table, own in zip(self.tables, numbers, strict=True):
            if isinstance(table.statistic, LevelCounts):
                each = np.full(_width(table), own / table.statistic.per_row)
            else:
                each = np.concatenate([[own], np.zeros(_width(table) - 1)])
            parts.append(np.tile(each, table.cells.count))
        return np.concatenate(parts)

    def most(self, coefficients: Array) -> float:
        """Return the largest size of the numbers of one row that coefficients, (n, size), add up; public."""
        sizes = np.concatenate(
            [np.tile(np.abs(corners(one).at).max(axis=0), one.cells.count) for one in self.layout.tallies]
        )
        return float((np.abs(coefficients) * sizes).max(initial=0.0))


def _tally(table: TableLikelihood, released: Collection[str]) -> Tally:
    cells = table.cells
    columns = tuple(replace(one, public=one.public or one.name in released) for one in cells.columns)
    sized = not isinstance(table.statistic, LevelCounts)
    return tally_of(table.statistic, replace(cells, columns=columns), sized=sized)


def units_of(table: TableLikelihood) -> Iterator[tuple[int, ExactSums]]:
    """Yield made-up sums of every cell, of which one alone is not 0, and which: a function of them shows its slopes."""
    count, width = table.cells.count, len(table.statistic.labels)
    if not isinstance(table.statistic, LevelCounts):
        yield 0, ExactSums(sums=np.zeros((count, width)), sizes=np.ones(count))
    for place, unit in enumerate(np.eye(width)):
        if isinstance(table.statistic, LevelCounts):
            yield place, ExactSums(sums=np.tile(unit, (count, 1)), sizes=np.full(count, 1 / table.statistic.per_row))
        else:
            yield place + 1, ExactSums(sums=np.tile(unit, (count, 1)), sizes=np.zeros(count))


def _rows(table: TableLikelihood) -> Rows:
    return Rows([private_values(table.observed.leaf)], [values_of(column) for column in table.cells.columns])


def _width(table: TableLikelihood) -> int:
    """Return how many sums a cell has, the number of its rows among them."""
    return len(table.statistic.labels) + (not isinstance(table.statistic, LevelCounts))


def _units(table: TableLikelihood) -> Array:
    """Return what sums of one cell are made of: (n_sums, n_whole_numbers)."""
    found = np.eye(_width(table))
    if not isinstance(table.statistic, LevelCounts | ExposedCounts):
        found[1:, 0] = table.statistic.shifts
        found[1:, 1:] = np.diag(table.statistic.steps)
    return found


Over = Callable[[Sequence[Variable]], Sequence[Variable]]
"""Puts other variables into graphs for free ones."""


def slopes_of(table: TableLikelihood, over: Over) -> TensorVariable:
    """Return the derivatives of a log-likelihood in its sums, in which it is linear, cell by cell: a vector.

    That is what the density itself says, no copy. Number of rows first, but for counts; not a number outside of the
    support of the parameters, where the density is minus infinity with slope 0.
    """
    cells, columns = table.cells.count, len(table.statistic.labels)
    sums, sizes = pt.tensor("sums", shape=(cells, columns)), pt.tensor("sizes", shape=(cells,))
    logp = table.logp(sums, sizes)
    slopes = pytensor.grad(logp.sum(), [sums, sizes], disconnected_inputs="ignore", return_disconnected="zero")
    empty = {sums: np.zeros((cells, columns)), sizes: np.zeros(cells)}
    by_sum, by_size, level = clone_replace(list(over([*slopes, logp])), empty, rebuild_strict=False)
    inside = pt.switch(pt.eq(level, 0.0), 0.0, np.nan)[:, None]
    counts = isinstance(table.statistic, LevelCounts)
    found = by_sum if counts else pt.concatenate([by_size[:, None], by_sum], axis=1)
    return (found + inside).ravel()


class SumsPlace(Place, Protocol):
    """A state of a chain, and the derivatives of its log-likelihoods in their sums."""

    @property
    def coefficients(self) -> Array:
        """Those of `slopes_of`, of all observed variables."""


class KernelSums:
    """Sums of a model through the life of a step: read once, and held by what draws in a chain.

    Parameters
    ----------
    sums : ModelSums
    """

    def __init__(self, sums: ModelSums) -> None:
        self.sums = sums
        self._totals: Totals | None = None
        self._kernel: ByTotals | None = None
        self._pay: Grant | Pool | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what pays: a copy in another process begins its own chain."""
        return {**vars(self), "_kernel": None, "_pay": None}

    def compile(self) -> None:
        """Do nothing."""

    def load(self) -> None:
        """Add up the rows, once. The budget was charged."""
        self._totals = self.sums.read()

    def forget(self) -> None:
        """Let go of the sums."""
        self._totals = self._kernel = self._pay = None

    def opened(self, *paid: Event, stream: int | None = None) -> ByTotals:
        """Begin a chain, for which the parts `paid` were charged; return what draws in it, and is `kernel` then."""
        if self._totals is None:
            raise PrivacyError("The rows were not read; this is an error of pymc_dp.")
        self._kernel = ByTotals(self._totals, ChainAccount(self.sums.layout.neighbours, *paid), stream)
        return self._kernel

    @property
    def kernel(self) -> ByTotals:
        """What draws, in a chain that has begun."""
        if self._kernel is None:
            raise PrivacyError(NOT_BEGUN)
        return self._kernel


class SumsRatio(KernelSums):
    """g = l(θ') - l(θ), linear in exact sums: no pass over rows, and the kernel knows what one row can move.

    Parameters
    ----------
    sums : ModelSums
    """

    target = "the posterior, not tempered, where every possible row has positive density"
    proof = COMPUTED

    def __init__(self, sums: ModelSums) -> None:
        super().__init__(sums)
        self._layout = sums.layout

    def begin(self, paid: Sequence[Event], pay: Callable[[ByTotals], Grant | Pool]) -> None:
        """Begin a chain, for which the parts `paid` were charged; `pay` says what pays for its bits."""
        self._pay = pay(self.opened(*paid))

    @property
    def pays(self) -> Grant | Pool | None:
        """What pays for the bits of this chain; None before it began."""
        return self._pay

    def reach(self, here: SumsPlace, there: SumsPlace) -> float:
        """Return how far one row moves the sum; infinite where a chain may not go."""
        try:
            pair = np.concatenate([np.zeros((1, self._layout.size)), self._change(here, there)])
            return float(self._layout.choice(self._layout.exponents(pair, 1.0)).eta) * ROOM
        except ArgumentError:  # no numbers, or too far apart for them
            return math.inf

    def bit(self, here: SumsPlace, there: SumsPlace, beta: float) -> tuple[float, float]:
        """Return ε and δ of Metropolis's own bit; infinite and 1 where a chain may not go, or always be rejected."""
        try:
            exponents = self._layout.exponents(self._change(here, there), beta)
            event = self._layout.accepting(exponents, there.prior - here.prior)
        except ArgumentError:
            return math.inf, 1.0
        return float(event.epsilon), float(event.delta)

    def draw(self, rule: Rule, here: SumsPlace, there: SumsPlace, beta: float, **given: float) -> bool:
        """Draw a bit by one of the kernel's rules; `reach` found it possible. As `RowRatio.draw`."""
        change, public = self._change(here, there)[0], there.prior - here.prior
        return bool(getattr(self.kernel, rule)(change, beta=beta, public=public, pay=self._pay, **given))

    def _change(self, here: SumsPlace, there: SumsPlace) -> Array:
        return self.sums.whole((there.coefficients - here.coefficients)[None])


__all__ = ["COMPUTED", "KernelSums", "ModelSums", "SumsRatio", "slopes_of", "units_of"]
