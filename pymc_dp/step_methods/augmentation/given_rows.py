"""Updates of the free variables given augmented rows: exact draws where they are conjugate, else slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.step_methods.augmentation.tables import Table
from pymc_dp.step_methods.base import Point
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.conjugacy import Dependents, conjugate
from pymc_dp.step_methods.gibbs.conjugate_draws import Conjugate
from pymc_dp.step_methods.gibbs.likelihoods import box_of, table_boxes
from pymc_dp.step_methods.gibbs.released import ReleasedScan
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.likelihood import ExactSums, sums_logp


class ScanGivenRows(ReleasedScan):
    """A scan of the posterior of the free variables given exact sums of unclamped rows, over the value variables.

    Parameters
    ----------
    private : pymc.Model
    tables : sequence of Table
        In the order of `given`: sums and sizes of each.
    """

    def __init__(self, private: Model, tables: Sequence[Table]) -> None:
        terms: list[Variable] = [private.logp(vars=[*private.free_RVs, *private.potentials])]
        inputs: list[Variable] = []
        for table in tables:
            sums, sizes = pt.matrix(f"{table.name}_sums"), pt.vector(f"{table.name}_sizes")
            given = private.replace_rvs_by_values(list(table.parameters))
            terms.append(sums_logp(table.family, table.statistic, given, table.n_cells, sums, sizes).sum())
            inputs += [sums, sizes]
        super().__init__(private, logp=pt.add(*terms), inputs=inputs)
        self.tables = [table.name for table in tables]
        self.exact = _conjugate(private, tables)
        self._values = Values(private)
        self._back = plain_function(private.value_vars, private.replace_rvs_by_values(private.free_RVs))

    @override
    def update(self, rng: np.random.Generator, point: Point, name: str) -> Array:
        if name not in self.exact:
            return super().update(rng, point, name)
        values = dict(zip(self._values.names, map(np.asarray, self._back(*map(point.get, self.names))), strict=True))
        pairs = zip(self.given[::2], self.given[1::2], strict=True)
        held = {table: ExactSums(sums=one, sizes=n) for table, (one, n) in zip(self.tables, pairs, strict=True)}
        update = self.exact[name]
        values[update.name] = update.draw(rng, values, held, 1.0)
        return self._values.move(point, values)[name]


def _conjugate(private: Model, tables: Sequence[Table]) -> dict[str, Conjugate]:
    """Return exact updates by the names of value variables, where they are proved; none where a rule is missing."""
    priors = priors_of(private)
    free = {prior.variable: box_of(prior) for prior in priors}
    held: Any = tables  # of a `TableLikelihood`, what is asked for stands in a `Table` under the same names
    functions = Functions(private, {prior.name: prior.shape for prior in priors})
    try:
        bounded = [(table, table_boxes(table, free)) for table in held]
    except UnknownOperation:
        return {}
    found = [conjugate(prior, Dependents.of(prior, free, bounded, (), private.potentials), free) for prior in priors]
    return {
        str(private.rvs_to_values[item.prior.variable].name): item.compile(functions)
        for item in found
        if item is not None
    }


__all__ = ["ScanGivenRows"]
