"""All latents of the rows at once: each a choice that the kernel makes by what its own row adds to the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.families.cells import Cells
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.gibbs_sums import ChoiceOfRows
from pymc_dp.samplers.sums import ModelSums
from pymc_dp.step_methods.gibbs.by_sums import SumsUpdate
from pymc_dp.step_methods.gibbs.grid import Values
from pymc_dp.step_methods.gibbs.row_latents import RowLatent
from pymc_dp.transforms.likelihood import TableLikelihood


class Apart:
    """The tables that a latent is a column of, by cells that do not know of it.

    Parameters
    ----------
    tables : sequence of TableLikelihood
    latent : RowLatent
    inspection : Inspection
    released : collection of str
        All latents: like a public column, the others keep a row in its cells.

    Attributes
    ----------
    sums : ModelSums
    places : list of (n_levels, n_cells) arrays
        For each table the cell of each level in each of these cells.
    """

    def __init__(
        self, tables: Sequence[TableLikelihood], latent: RowLatent, inspection: Inspection, released: Sequence[str]
    ) -> None:
        found = [_without(table.cells, latent.name) for table in tables]
        self.places = [places for _, places in found]
        merged = [replace(table, cells=cells) for table, (cells, _) in zip(tables, found, strict=True)]
        self.sums = ModelSums(merged, inspection, released)


def _without(cells: Cells, name: str) -> tuple[Cells, Array]:
    """Return cells without a column, and where each of its levels was in each of them."""
    place = [column.name for column in cells.columns].index(name)
    codes = cells.lookup.reshape([len(column.levels) for column in cells.columns])
    by_level = np.moveaxis(codes, place, 0).reshape(codes.shape[place], -1)
    kept = (by_level >= 0).all(axis=0)
    places = by_level[:, kept]
    columns, levels = list(cells.columns), [level[places[0]] for level in cells.levels]
    del columns[place], levels[place]
    return replace(
        cells,
        columns=tuple(columns),
        lookup=np.where(kept, np.cumsum(kept) - 1, -1),
        levels=tuple(levels),
        sizes=None,
        groups=cells.groups[places[0]],
    ), places


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LatentUpdate(SumsUpdate):
    """All latents of the rows, each by the exponential mechanism on its own row.

    Attributes
    ----------
    prior : callable
        Probabilities of the levels given the other variables.
    apart : Apart
    slopes : callable
        From the values of the other variables to the derivatives of each table's log-likelihood in its sums.
    """

    kind: ClassVar[str] = "one latent per row, released"
    prior: Callable[[Values], Sequence[Array]]
    apart: Apart
    slopes: Callable[[Values], Sequence[Array]]

    @override
    def asked(self, values: Values, element: int) -> ChoiceOfRows:
        (given,) = self.prior(values)
        with np.errstate(divide="ignore"):
            public = np.log(given if given.ndim else np.array([1 - given, given]))
        parts = []
        for places, slopes in zip(self.apart.places, self.slopes(values), strict=True):
            count = int(places.max()) + 1
            parts.append(np.reshape(slopes, (count, -1))[places].reshape(len(places), -1))
        sums = self.apart.sums
        coefficients = sums.whole(np.concatenate(parts, axis=1))
        return ChoiceOfRows(of=self.of, rows=sums, coefficients=coefficients, public=public)

    def most_beta(self, states: Sequence[Values]) -> float:
        """Return about the largest β <= 1 at which the kernel holds what a row adds, at all of some states; public."""
        with np.errstate(all="ignore"):
            return min(self.asked(values, 0).most_beta for values in states)


def moved_rows(latents: Sequence[RowLatent], tables: Sequence[TableLikelihood], values: Mapping[str, Array]) -> None:
    """Let rows stand in the cells of their latents, which are released."""
    names = {latent.name for latent in latents}
    for column in (column for table in tables for column in table.cells.columns):
        if column.name in names:
            column.leaf.set_value(np.asarray(values[column.name], dtype=column.leaf.type.dtype))


__all__ = ["Apart", "LatentUpdate", "moved_rows"]
