"""One pass over the rows of a network: counts of the configurations of each family, then sums of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import final, override

import numpy as np

from pymc_dp.kernel.arguments import keep
from pymc_dp.kernel.characters import Coefficients
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.readings import STRIPES, Reading, Sums, loops, plain
from pymc_dp.kernel.shapes import Array


@final
@dataclass(frozen=True, eq=False)
class Configurations(Reading):
    """Levels of nodes, from an array for each: counts of each family's configurations, of which coefficients are made.

    A value that is no level counts as level 0. What is added up are the counts, in the order of the families, the
    levels of each one's last node running fastest.
    """

    coefficients: Coefficients

    def __post_init__(self) -> None:
        if type(self.coefficients) is not Coefficients:  # exactly: another class would state its own move
            raise ArgumentError("coefficients must be Coefficients.")
        keep(self, widths=(1,) * len(self.coefficients.levels))

    @property
    @override
    def shape(self) -> Coefficients:
        return self.coefficients

    @property
    def _sizes(self) -> list[int]:
        return [prod(self.coefficients.shape(family)) for family in self.coefficients.families]

    @property
    @override
    def size(self) -> int:
        return sum(self._sizes)

    @override
    def begin(self, cells: int, *, sized: bool) -> Sums:
        if sized or cells != 1:
            raise ArgumentError("Coefficients of a network are of all rows together, and of no cells.")
        none = np.zeros((STRIPES, 0), dtype=np.int64)
        sums = _Sums(none, none)
        sums.tables = [np.zeros((STRIPES, size), dtype=np.int64) for size in self._sizes]
        return sums

    @override
    def add(self, code: Array, arrays: Sequence[Array], sums: Sums) -> None:
        assert isinstance(sums, _Sums)
        values, levels = [plain(held) for held in arrays], self.coefficients.levels
        for family, table in zip(self.coefficients.families, sums.tables, strict=True):
            for place, node in enumerate(family):
                loops().fold(code, values[node], 0, levels[node] - 1, False, place == 0)
            loops().tally(code, len(code), table)

    @override
    def end(self, sums: Sums) -> Array:
        assert isinstance(sums, _Sums)
        return np.concatenate([table.sum(axis=0) for table in sums.tables])[None]

    @override
    def released(self, total: Array) -> Array:
        edges = pairwise(accumulate(self._sizes, initial=0))
        shapes = [self.coefficients.shape(family) for family in self.coefficients.families]
        tables = [total[0, slice(*ends)].reshape(shape) for ends, shape in zip(edges, shapes, strict=True)]
        return self.coefficients.combined(tables)[None]

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        raise ArgumentError("Rows of a network are counted, and have no weights.")


class _Sums(Sums):
    """What one thread fills: counts of each family, (STRIPES, n_configurations). **Private**."""

    tables: list[Array]
