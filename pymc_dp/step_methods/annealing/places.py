"""The log-likelihood at many places of the parameter space at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph

from pymc_dp._special import special
from pymc_dp.families.row_sums import row_integers
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array, rows_of
from pymc_dp.step_methods.gibbs.compiled import Call, Functions
from pymc_dp.step_methods.gibbs.held_rows import CHUNK, HeldLikelihood
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods
from pymc_dp.step_methods.ops.compiled import compiled
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

HUGE = 1e300
Places = Mapping[str, Array]
"""Values of every free variable, places along the first axis."""


class LogLikelihood:
    """The sum of all rows' log-likelihoods, by exact sums or row by row.

    Parameters
    ----------
    likelihoods : Likelihoods
    functions : Functions
        Over the free variables of the same husk.
    """

    def __init__(self, likelihoods: Likelihoods, functions: Functions) -> None:
        self._functions = functions
        self._many = {
            symbol: pt.TensorType(symbol.type.dtype, (None, *symbol.type.shape))(f"{symbol.name}_places")
            for symbol in functions.symbols.values()
        }
        self._tables = [(table, self._of_table(table)) for table, _ in likelihoods.tables]
        self._held = [(item, self._of_rows(item)) for item in likelihoods.held]

    def _of_table(self, table: TableLikelihood) -> Call:
        sums, sizes = pt.matrix(f"{table.name}_sums"), pt.vector(f"{table.name}_sizes")
        (graph,) = self._functions.over_values([table.logp(sums, sizes).sum()])
        return self._made(graph, [sums, sizes])

    def _of_rows(self, likelihood: HeldLikelihood) -> Call:
        graph, rows = likelihood.over(self._functions)
        return self._made(graph, rows)

    def _made(self, graph: Variable, inputs: list[Variable]) -> Call:
        many = vectorize_graph([graph], self._many)
        return self._functions.call(many, [*self._many.values(), *inputs], make=compiled)

    def at(self, places: Places, sums: Mapping[str, ExactSums]) -> Array:
        """Return one log-likelihood per place, up to `constant`: (n_places,) array. **Private**.

        A row whose log-likelihood is not a finite number at every place counts for nothing.
        """
        count = len(next(iter(places.values())))
        values = {f"{name}_places": np.asarray(held) for name, held in places.items()}
        total = np.zeros(count)
        with np.errstate(all="ignore"):
            for table, call in self._tables:
                held = {f"{table.name}_sums": sums[table.name].sums, f"{table.name}_sizes": sums[table.name].sizes}
                total += call({**values, **held})[0]
            for likelihood, call in self._held:
                for columns, weights in likelihood.rows.parts(max(1, CHUNK // count)):
                    found = np.broadcast_to(call({**values, **columns})[0], (count, len(weights)))
                    total += np.where(np.isfinite(found).all(axis=0), found, 0.0) @ weights
        return _numbers(total)

    def constant(self, sums: Mapping[str, ExactSums]) -> float:
        """Return what `at` leaves out, which hangs on no parameter. **Private**."""
        terms = [CONSTANTS[table.family.distribution](table, sums[table.name]) for table, _ in self._tables]
        return float(_numbers(np.array(sum(terms))))


def _numbers(values: Array) -> Array:
    """Whatever floats do with private values, nothing later may fail for it."""
    return np.nan_to_num(values, posinf=HUGE, neginf=-HUGE)


def _nothing(table: TableLikelihood, sums: ExactSums) -> float:
    return 0.0


def _poisson(table: TableLikelihood, sums: ExactSums) -> float:
    """``- sum log x!`` of counts that are clamped as those in the sums are."""
    statistic = table.statistic
    assert isinstance(statistic, BoundedMoments)
    counts = row_integers(statistic, np.asarray(rows_of(table.observed.leaf), dtype=np.float64))[:, 0]
    return -float(special.gammaln(statistic.centre + statistic.unit * counts + 1).sum())


def _normal(table: TableLikelihood, sums: ExactSums) -> float:
    return -float(sums.sizes.sum()) * float(np.log(2 * np.pi)) / 2


CONSTANTS: dict[str, Callable[[TableLikelihood, ExactSums], float]] = {
    "bernoulli": _nothing,
    "categorical": _nothing,
    "poisson": _poisson,
    "normal": _normal,
}
"""Terms of a likelihood that sums leave out, for every family that has a range in closed form."""

__all__ = ["LogLikelihood", "Places"]
