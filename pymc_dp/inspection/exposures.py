"""Counts over an exposure: a column of the table by which the rate of a Poisson likelihood is multiplied."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pytensor.scalar.basic as ops
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.errors import Problem
from pymc_dp.inspection.computed.columns import computed_column
from pymc_dp.inspection.computed.expressions import Entry
from pymc_dp.inspection.computed.linear_forms import LinearForms
from pymc_dp.inspection.computed.terms import NotLinear
from pymc_dp.inspection.design import is_design
from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.leaves import declared, range_held
from pymc_dp.inspection.rows import Column, fitted
from pymc_dp.inspection.taint import RowFlow, depends_on, trace_rows

EXPOSED = "poisson with exposure"
"""What such a likelihood is called: its parameter is the rate of one unit of exposure."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Exposure:
    """The rate of a row is ``column * rate``, the second of which no number of the row is in but for its indices.

    Attributes
    ----------
    column : Column
        With public bounds, 0 or more.
    rate : Variable
        Of one unit of exposure.
    row_level : mapping of Variable to int or None
        Arrays that reach it, and the axis of each that counts rows.
    flow : RowFlow
        Of it.
    """

    column: Column
    rate: Variable
    row_level: Mapping[Variable, int | None]
    flow: RowFlow


def exposure_of(
    findings: Findings,
    name: str,
    distribution: str,
    parameters: Sequence[Variable],
    row_level: Mapping[Variable, int | None],
    flow: RowFlow,
    free: Collection[Variable],
) -> Exposure | Problem | None:
    """Return the exposure of a Poisson likelihood; a problem where it has no bounds that fit, None where there is none.

    ``exposure * exp(a[group])`` and ``exp(a[group] + log(exposure))`` are taken apart alike. A column that the rate
    depends on in another way too is no exposure, nor is one beside columns of numbers, which make a regression.

    Parameters
    ----------
    findings : Findings
    name : str
        Of the observed variable.
    distribution : str
    parameters : sequence of Variable
    row_level : mapping of Variable to int or None
        Arrays that reach the parameters, and free variables.
    flow : RowFlow
        Of the parameters.
    free : collection of Variable
        Free variables as they stand in the parameters.
    """
    if distribution != "poisson" or flow.problems:
        return None
    (whole,) = parameters
    indices = set(ancestors([use.index for use in flow.index_uses])) if flow.index_uses else set()
    numbers = [
        leaf
        for leaf, axis in row_level.items()
        if axis == 0
        and leaf.owner is None
        and leaf.type.ndim == 1
        and leaf not in indices
        and leaf not in findings.data_of.values()
    ]
    split = _Split(numbers=numbers, others={*free, *(var for var in row_level if var not in numbers)})
    rate = split.within(whole)
    factors = split.factors
    if not factors:
        return None
    rate = pt.ones((1,)) if rate is None else rate
    above = set(ancestors([rate]))
    leaves = [leaf for leaf in numbers if depends_on(_product(factors), [leaf])]
    left = {var: axis for var, axis in row_level.items() if axis is None or var in above}
    if above & set(leaves) or is_design(findings, distribution, left):
        return None
    column = _column(findings, name, factors, leaves, flow, {*free, *indices})
    if column is None or isinstance(column, Problem):
        return column
    return Exposure(column=column, rate=rate, row_level=left, flow=trace_rows([rate], left))


@dataclass(kw_only=True)
class _Split:
    """A graph as a product of functions of the row alone, which are collected, and of all the rest.

    Attributes
    ----------
    numbers : list of Variable
        Columns that are no index.
    others : set of Variable
        What a function of the row alone is not of.
    factors : list of Variable
    """

    numbers: list[Variable]
    others: set[Variable]
    factors: list[Variable] = field(default_factory=list)

    def within(self, var: Variable, *, log: bool = False, below: bool = False) -> Variable | None:
        """Return what is left of a product, or of a sum that is a logarithm; None where nothing is.

        Parameters
        ----------
        var : Variable
        log : bool
            Whether it is the logarithm of a factor of the rate.
        below : bool
            Whether the rate is divided by it.
        """
        node = var.owner
        if node is not None and isinstance(node.op, ViewOp):
            return self.within(node.inputs[0], log=log, below=below)
        kind = type(node.op.scalar_op) if node is not None and isinstance(node.op, Elemwise) else None
        inputs = node.inputs if node is not None else []
        if kind is ops.Exp and not log:
            inner = self.within(inputs[0], log=True, below=below)
            return None if inner is None else pt.exp(inner)
        if kind is ops.Neg and log:
            inner = self.within(inputs[0], log=True, below=not below)
            return None if inner is None else -inner
        if kind is (ops.Add if log else ops.Mul):
            parts = [self.within(part, log=log, below=below) for part in inputs]
            kept = [part for part in parts if part is not None]
            return reduce(pt.add if log else pt.mul, kept) if kept else None
        if kind is (ops.Sub if log else ops.TrueDiv):
            above, under = (self.within(part, log=log, below=below != bool(i)) for i, part in enumerate(inputs))
            if under is None:
                return above
            first = (0.0 if log else 1.0) if above is None else above
            return first - under if log else first / under
        if not self._of_the_row(var):
            return var
        factor = var if not log else inputs[0] if kind is ops.Log else pt.exp(var)
        self.factors.append(1 / factor if below else factor)
        return None

    def _of_the_row(self, var: Variable) -> bool:
        above = set(ancestors([var], blockers=list(self.others)))
        return bool(above & set(self.numbers)) and not above & self.others and var.type.ndim == 1


def _product(factors: Sequence[Variable]) -> Variable:
    return reduce(pt.mul, factors)


def _column(
    findings: Findings,
    name: str,
    factors: Sequence[Variable],
    leaves: Sequence[Variable],
    flow: RowFlow,
    given: Collection[Variable],
) -> Column | Problem | None:
    """Return a product of functions of the row as a column with bounds, 0 or more; None where it is no known one."""
    held = {leaf: declared(findings, leaf, f"unnamed exposure of {name}", [leaf]) for leaf in leaves}
    if any(column.norm is not None for column in held.values()):
        return None
    flags = {leaf: replace(one, bounds=(0.0, 1.0)) for leaf, one in held.items() if leaf.type.dtype == "bool"}
    held |= {leaf: one for leaf, one in flags.items() if held[leaf].bounds is None}
    if missing := [column for column in held.values() if column.bounds is None and not column.public]:
        return _unbounded(name, missing[0]) if missing[0].leaf.name else None
    for leaf, column in held.items():
        bounds = range_held(findings, leaf) if column.bounds is None else column.bounds
        kept = None if bounds is None else fitted(bounds, np.dtype(leaf.type.dtype))
        if kept is None:
            return None
        held[leaf] = replace(column, bounds=kept)
    forms = LinearForms(columns=held, axes=flow.axes, given=given, hidden={*findings.private_variables})
    try:
        formula = forms.of(_product(factors)).require()
    except NotLinear:
        return None
    if isinstance(formula, Entry):
        found: Column | Problem = formula.column
    else:
        found = computed_column(name, formula, "float64", taken={str(column.name) for column in held.values()})
    if isinstance(found, Problem) or found.bounds is None:
        return found if isinstance(found, Problem) else None
    low, high = found.bounds
    return found if low >= 0 and high > 0 else _negative(name, found)


def _unbounded(name: str, column: Column) -> Problem:
    return Problem(
        where=name,
        what=f"the exposure {column.name!r} has no public bounds, so one row could move its sum by any amount",
        remedy=f"Give a range above 0: Domain(bounds={{{column.name!r}: (low, high)}}); if anyone may know it, "
        f"Domain(public=[{column.name!r}]).",
        kind="declaration",
    )


def _negative(name: str, column: Column) -> Problem:
    low, high = column.bounds or (0.0, 0.0)
    own = sorted({source.name for source in column.sources if not source.public})
    remedy = f"Domain(bounds={{{own[0]!r}: (low, high)}})" if own else "another column"
    return Problem(
        where=name,
        what=f"its exposure {column.name} may be anything in ({low:g}, {high:g}), and an exposure is > 0",
        remedy=f"Give bounds within which it is: {remedy}. What lies beyond is clamped.",
    )


__all__ = ["EXPOSED", "exposure_of"]
