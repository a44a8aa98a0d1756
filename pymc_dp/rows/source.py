"""Where the rows of a release are: in the model, in a stored table, in files of persons. They are moved as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import final

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.long_rows import BLOCK
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel.tallies import LENGTHS, Part, Rows, Source
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.gate import private_values, values_of
from pymc_dp.rows.passes import Passes, cast
from pymc_dp.rows.person_files import PersonFiles
from pymc_dp.rows.stored import Part as StoredPart

Parts = Iterator[Callable[[], Part]]


def part_of(asked: Sequence[Asked], held: Mapping[Variable, Array], owners: Array | None = None) -> Part:
    """Return rows for all sums at once, from the columns of the table by their leaves; computed columns are computed.

    **Private**.
    """
    return Part([one.rows(lambda column: column.of(lambda source: held[source.leaf])) for one in asked], owners)


@final
class RowsOfModel:
    """Rows that a model holds.

    Parameters
    ----------
    asked : sequence of Asked
    owner : Variable, optional
        What holds whose row each is.
    """

    def __init__(self, asked: Sequence[Asked], owner: Variable | None = None) -> None:
        self._asked, self._owner = asked, owner

    def totals(self) -> None:
        """Nobody else adds them up."""

    def parts(self) -> Parts:
        """Yield all rows; where columns are computed, a block at a time, so that none is as long as the table."""
        owners = None if self._owner is None else private_values(self._owner)
        held = {column.leaf: values_of(column) for one in self._asked for column in one.columns}
        if owners is not None or not any(one.computed for one in self._asked):
            yield partial(part_of, self._asked, held, owners)
            return
        lengths = {len(values) for values in held.values()}
        if len(lengths) != 1:
            raise PrivacyError(LENGTHS)
        (n_rows,) = lengths
        for start in range(0, max(n_rows, 1), BLOCK):
            yield partial(part_of, self._asked, {leaf: rows[start : start + BLOCK] for leaf, rows in held.items()})


@final
class StoredSource:
    """Rows of a stored table: an engine adds them up, or they come in blocks.

    Parameters
    ----------
    asked : sequence of Asked
    passes : Passes
    passed : callable
        Called with the number of rows that an engine added up.
    """

    def __init__(
        self, asked: Sequence[Asked], passes: Passes, passed: Callable[[int], None] = lambda rows: None
    ) -> None:
        self._asked, self._passes, self._passed = asked, passes, passed

    def totals(self) -> list[Array] | None:
        """Return exact sums where an engine adds them up."""
        found = self._passes.totals(self._asked)
        if found is not None:
            self._passed(self._passes.n_rows)
        return found

    def parts(self) -> Parts:
        """Yield blocks of rows as they are stored, or, of persons, those of a file of whole persons."""
        columns = self._passes.columns
        if self._passes.owner is not None:
            with PersonFiles(self._passes, cast) as files:
                for owners, values in files.parts():
                    held = {column.leaf: rows for column, rows in zip(columns, values, strict=True)}
                    yield partial(part_of, self._asked, held, owners)
            return
        for stored in self._passes.parts(self._passes.sums_size):
            yield partial(self._part, stored)

    def _part(self, stored: Sequence[Sequence[StoredPart]]) -> Part:
        parts = {column.leaf: part for column, part in zip(self._passes.columns, stored, strict=True)}
        wanted: dict[Variable, Column] = {}  # with the bounds by which missing values are replaced
        for column in (column for one in self._asked for column in one.columns):
            wanted.setdefault(column.leaf, column)
        return part_of(self._asked, {leaf: cast(column, parts[leaf]) for leaf, column in wanted.items()})


@final
class NodesTogether:
    """Rows of a network, or an engine's counts by family: those of all nodes as one, as the kernel takes them.

    Parameters
    ----------
    source : Source
        Of sums for each node. The levels of its parents are what these observe, and are not handed over twice.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def totals(self) -> list[Array] | None:
        """Return counts by family, one family after another, where an engine counts."""
        found = self._source.totals()
        return None if found is None else [np.concatenate([counts.reshape(1, -1) for counts in found], axis=1)]

    def parts(self) -> Parts:
        """Yield all rows, with an array for each node."""
        for part in self._source.parts():
            yield partial(_together, part)


def _together(part: Callable[[], Part]) -> Part:
    rows, owners = part()
    return Part([Rows([one.values[0] for one in rows], [])], owners)


__all__ = ["NodesTogether", "RowsOfModel", "StoredSource", "part_of"]
