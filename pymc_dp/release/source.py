"""What is public about the rows that a release reads: those of a model, or of a table without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

from pymc_dp.domain import Domain


class Source(Protocol):
    """Rows as they are known to whoever charges for them: an `Inspection`, or a `TableSource`."""

    @property
    def schema(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns by which rows are known again, and to which a ledger may be limited."""

    @property
    def n_rows(self) -> int:
        """How many; public under ``"replace"`` alone."""

    @property
    def domain(self) -> Domain:
        """What is public about one row."""


@final
@dataclass(frozen=True, kw_only=True)
class TableSource:
    """A table without a model, as a `Source`."""

    schema: tuple[tuple[str, str], ...]
    n_rows: int
    domain: Domain


__all__ = ["Source", "TableSource"]
