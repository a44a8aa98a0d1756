"""Where the rows of a walk are: in the model, in made-up arrays, in a stored table, or in files by person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

from pymc_dp._progress import reading
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.owners import owner_of
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.gate import opened_gate, private_values, read
from pymc_dp.rows.passes import Passes
from pymc_dp.rows.person_files import PersonFiles
from pymc_dp.rows.persons import Grouped, grouped
from pymc_dp.rows.spool import Scratch, spooled

Held = Sequence[Array] | Grouped
Blocks = Callable[[], Iterable[Any]]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WalkRows:
    """Rows as the kernel goes through them: moved, clamped one by one, and nothing else.

    Attributes
    ----------
    inspection : RowInspection
    size : int
        Rows at a time; of persons about so many.
    stored : Passes, optional
        A table beside the model.
    held : arrays or Grouped, optional
        Made-up rows, which are public.
    scratch : Scratch
        Where a table is copied.
    shown : bool
        Whether there is a bar of the rows that are copied, unless their number is private: that of persons always is.
    """

    inspection: RowInspection
    size: int
    stored: Passes | None = None
    held: Held | None = None
    scratch: Scratch = field(default_factory=Scratch)
    shown: bool = False

    @property
    def relation(self) -> str:
        """That of the domain."""
        return self.inspection.domain.relation

    def count(self, block: Held) -> int:
        """Return how many rows, or persons, a block has."""
        return len(block.edges) - 1 if isinstance(block, Grouped) else len(block[0])

    @contextmanager
    def opened(self) -> Iterator[Blocks]:
        """Have the rows at hand: what is read once only is in a copy meanwhile. Reads private data."""
        if self.held is not None:
            yield self._of(self.held)
            return
        domain = self.inspection.domain
        with opened_gate():
            if self.stored is None:
                yield self._of(self._of_model())
            elif self.stored.owner is not None:
                with PersonFiles.of(self.stored, domain.rows_of_one, self.scratch) as files:
                    yield partial(files.chunks, self.size)
            elif not self.stored.stored.once:
                yield partial(self.stored.chunks, self.size)
            else:
                with reading(self.shown, self.stored.n_rows, domain.neighbours, "rows copied") as advance:
                    copy = spooled(self.stored, scratch=self.scratch, passed=advance)
                try:
                    yield self._of(copy)
                finally:
                    copy.spool.remove()

    def _of(self, held: Held) -> Blocks:
        return partial(held.chunks, self.size) if isinstance(held, Grouped) else partial(_blocks, held, self.size)

    def _of_model(self) -> Held:
        """Return the columns of the model, clamped."""
        columns, unit = [read(column) for column in self.inspection.columns], self.inspection.domain.unit
        return columns if unit is None else grouped(private_values(owner_of(self.inspection)), columns, unit.max_rows)


def _blocks(columns: Sequence[Array], size: int) -> Iterator[list[Array]]:
    return ([column[start : start + size] for column in columns] for start in range(0, len(columns[0]), size))


__all__ = ["WalkRows"]
