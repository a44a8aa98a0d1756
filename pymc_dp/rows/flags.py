"""Columns that say which values of another are missing, read off that column before it is clamped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import override

import numpy as np

from pymc_dp.inspection.rows import FLAG, Column
from pymc_dp.rows.stored import Layout, Part, StoredRows


def flagged(stored: StoredRows, columns: Sequence[Column]) -> StoredRows:
    """Return a table with the indicators of ``dp.fill`` that a model has as columns and the table has not."""
    stored_names = stored.names
    known = {column.name: column for column in columns}
    sources = {name: name.removesuffix(FLAG) for name in known if name.endswith(FLAG) and name not in stored_names}
    wanted = {
        name: source
        for name, source in sources.items()
        if known[name].integer and source in stored_names and source in known and not known[source].integer
    }
    return Flagged(stored, wanted) if wanted else stored


class Flagged(StoredRows):
    """A table, and which values of some of its columns are missing: NaN, or no value at all.

    Parameters
    ----------
    stored : StoredRows
    sources : mapping of str to str
        From the name of an indicator to that of its column.

    Notes
    -----
    **Guarantee.** An indicator of a row is a function of the value of that row alone, and is there whether any value is
    missing or not.
    """

    def __init__(self, stored: StoredRows, sources: Mapping[str, str]) -> None:
        self._stored, self._sources = stored, dict(sources)
        self.once = stored.once  # type: ignore[misc]  # of this table, as of that

    @property
    @override
    def names(self) -> Collection[str]:
        return [*self._stored.names, *self._sources]

    @property
    @override
    def assumptions(self) -> tuple[str, ...]:
        return self._stored.assumptions

    @override
    def layouts(self) -> dict[str, Layout]:
        own = self._stored.layouts()
        return own | {
            name: replace(own[source], dtypes=(np.dtype(bool),) * len(own[source].dtypes))
            for name, source in self._sources.items()
        }

    @override
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        for block in self._stored.blocks(size):
            flags = {name: [_flags(part) for part in block[source]] for name, source in self._sources.items()}
            yield {**block, **flags}

    def __repr__(self) -> str:
        return repr(self._stored)


def _flags(part: Part) -> Part:
    values = part.values
    found = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    if part.missing is not None:
        found |= part.missing
    return Part(found, None)


__all__ = ["Flagged", "flagged"]
