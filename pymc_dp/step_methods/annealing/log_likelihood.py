"""The log-likelihood at many places of the parameter space at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.families.closed_form import Base
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.batched import vectorized
from pymc_dp.inspection.known_levels import levels_of
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.rows.gate import private_values
from pymc_dp.rows.sums import row_integers
from pymc_dp.step_methods.gibbs.compiled import Call, Functions
from pymc_dp.step_methods.gibbs.held_rows import HeldLikelihood
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods
from pymc_dp.step_methods.gibbs.plan import ENFORCED, anywhere
from pymc_dp.step_methods.gibbs.supports import box_of
from pymc_dp.step_methods.numpy_functions import compiled
from pymc_dp.step_methods.row_functions import RangeBound
from pymc_dp.step_methods.row_functions.fitting import fitting_range
from pymc_dp.step_methods.row_functions.limits import unit_of
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

HUGE = 1e300
TRIES = 64
"""Public places at which rows are tried."""
MOST_ROWS = 2**32
"""Of a table whose constants are added up."""
Places = Mapping[str, Array]
"""Values of every free variable, places along the first axis."""


class LogLikelihood:
    """The sum of all rows' log-likelihoods, by exact sums or row by row, in whole numbers within what is charged.

    Parameters
    ----------
    likelihoods : Likelihoods
    functions : Functions
        Over the free variables of the same prior model.
    proved : mapping of str to RowRange
        What is proved of each observed variable; Δl is infinite where it is not charged.

    Attributes
    ----------
    charged : dict of str to RowRange
        The same, no less, for rows that are held one by one: enforced on every row.
    """

    def __init__(self, likelihoods: Likelihoods, functions: Functions, proved: Mapping[str, RowRange]) -> None:
        self._functions = functions
        self._many = {
            symbol: pt.TensorType(symbol.type.dtype, (None, *symbol.type.shape))(f"{symbol.name}_places")
            for symbol in functions.symbols.values()
        }
        self._tables = [(table, self._of_table(table)) for table, _ in likelihoods.tables]
        self._held = [(item, self._of_rows(item)) for item in likelihoods.held]
        self.charged = dict(proved)
        tries = _anywhere(functions.prior_model) if likelihoods.held else {}
        self._bounds = {item.name: self._fit(item, call, tries) for item, call in self._held}
        for table, _ in self._tables:
            room = 2 * _unit_of_constant(table)
            self.charged[table.name] = replace(proved[table.name], sensitivity=proved[table.name].sensitivity + room)

    def _of_table(self, table: TableLikelihood) -> Call:
        sums, sizes = pt.matrix(f"{table.name}_sums"), pt.vector(f"{table.name}_sizes")
        (graph,) = self._functions.over_values([table.logp(sums, sizes).sum()])
        return self._made(graph, [sums, sizes])

    def _of_rows(self, likelihood: HeldLikelihood) -> Call:
        graph, rows = likelihood.over(self._functions)
        return self._made(graph, rows)

    def _fit(self, item: HeldLikelihood, call: Call, tries: Places) -> RangeBound:
        """Make a bound that charges no less than what is proved, and cuts off nothing of public rows."""
        proved, each = self.charged[item.name], partial(_each, item, call, tries)
        places = next(iter(tries.values()))
        tried = each(places, item.tried)
        bound = fitting_range(
            [tried],
            [(one, [one.at(each, places, item.tried)]) for one in item.references([tried])],
            range_=proved.value,
            neighbours=item.neighbours,
            n_rows=item.most,
            size=proved.sensitivity if math.isfinite(proved.sensitivity) else None,
        )
        charge, reason = bound.limit.size_charge, proved.reason + ENFORCED
        self.charged[item.name] = RowRange(value=bound.charge, sensitivity=charge, reason=reason)
        return bound

    def _made(self, graph: Variable, inputs: list[Variable]) -> Call:
        many = vectorized([graph], self._many)
        return self._functions.call(many, [*self._many.values(), *inputs], make=compiled)

    def at(self, places: Places, sums: Mapping[str, ExactSums]) -> Array:
        """Return one log-likelihood per place, up to `constant`: (n_places,) array. **Private**.

        A row whose log-likelihood is NaN or infinite counts for what is subtracted from all rows.
        """
        count = len(next(iter(places.values())))
        values = {f"{name}_places": np.asarray(held) for name, held in places.items()}
        total = np.zeros(count)
        with np.errstate(all="ignore"):
            for table, call in self._tables:
                held = {f"{table.name}_sums": sums[table.name].sums, f"{table.name}_sizes": sums[table.name].sizes}
                total += call({**values, **held})[0]
            for likelihood, call in self._held:
                each, rows = partial(_each, likelihood, call, places), likelihood.rows
                total += self._bounds[likelihood.name].total(each, np.arange(count), rows.columns, rows.weights)
        return _numbers(total)

    def constant(self, sums: Mapping[str, ExactSums]) -> float:
        """Return what `at` leaves out of exact sums, which depends on no parameter. **Private**."""
        terms = [_constant(table, sums[table.name]) for table, _ in self._tables]
        return float(_numbers(np.array(sum(terms))))

    def public_constant(self) -> float:
        """Return what `at` leaves out of rows that are held one by one, whose number is public where there is any."""
        return float(sum(self._bounds[item.name].level * item.most for item, _ in self._held))


def _each(likelihood: HeldLikelihood, call: Call, places: Places, _: Array, rows: Sequence[Array]) -> Array:
    """Log-likelihood of every row at some places, as floats return them: (n_places, n_rows) array. **Private**."""
    values = {f"{name}_places": np.asarray(held) for name, held in places.items()}
    with np.errstate(all="ignore"):
        (found,) = call({**values, **likelihood.named(rows)})
    return np.broadcast_to(found, (len(next(iter(places.values()))), len(rows[0])))


def _anywhere(prior_model: Model) -> dict[str, Array]:
    """Return public places, the ends of all supports first."""
    rng, priors = np.random.default_rng(0), priors_of(prior_model)
    known = [(prior, box_of(prior), levels_of(prior)) for prior in priors]
    drawn = [[anywhere(*item, turn, rng) for item in known] for turn in range(TRIES)]
    return {
        prior.name: np.stack([values[place] for values in drawn]).astype(prior.variable.type.dtype)
        for place, prior in enumerate(priors)
    }


def _numbers(values: Array) -> Array:
    """Whatever floats do with private values, nothing later may fail for it."""
    return np.nan_to_num(values, posinf=HUGE, neginf=-HUGE)


def _constant(table: TableLikelihood, sums: ExactSums) -> float:
    """Terms free of the parameters that sums leave out of all rows, as these are clamped. **Private**."""
    base, statistic = _base(table), table.statistic
    if not callable(base):
        assert base is not None
        return base * float(sums.sizes.sum())
    assert isinstance(statistic, BoundedMoments)
    steps = row_integers(statistic, np.asarray(private_values(table.observed.leaf), dtype=np.float64))[:, 0]
    unit = _unit_of_constant(table)
    each = np.rint(base(statistic.centre + statistic.unit * steps) / unit)
    return int(each.astype(np.int64).sum()) * unit


def _unit_of_constant(table: TableLikelihood) -> float:
    """Return what the constants of rows are whole multiples of; 0 where all rows have the same."""
    base, statistic = _base(table), table.statistic
    if not callable(base) or not isinstance(statistic, BoundedMoments):
        return 0.0
    ends = np.array([statistic.low, statistic.high])
    return unit_of(max(1.0, float(np.abs(base(ends)).max())), MOST_ROWS)


def _base(table: TableLikelihood) -> Base | None:
    form = table.family.closed_form
    return None if form is None else form.base


__all__ = ["LogLikelihood", "Places"]
