"""Sums of coefficients times functions of a row: what arithmetic makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.inspection.computed.expressions import ONE, Formula, Number, applied

EXPANDED = range(2, 5)
"""Powers of a sum with parameters in it that are written out."""
MOST_TERMS = 1000

Coefficient = Any
"""A float, or a graph of parameters and of columns that are indices."""


class NotLinear(Exception):
    """A graph is no sum of coefficients times functions of a row, as far as is known here."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What one number of a graph is.

    Attributes
    ----------
    held : mapping of Formula to Coefficient
        Functions of the row, and what each is multiplied by.
    formula : Formula or None
        The number as a function of the row alone, as it is written, where it is one.
    """

    held: Mapping[Formula, Coefficient]
    formula: Formula | None = None

    @classmethod
    def of(cls, formula: Formula) -> Terms:
        """Return a function of the row as it stands."""
        if isinstance(formula, Number):
            return cls(held={ONE: formula.value} if formula.value else {}, formula=formula)
        return cls(held={formula: 1.0}, formula=formula)

    def require(self) -> Formula:
        """Return the number as a function of the row alone."""
        if self.formula is None:
            raise NotLinear
        return self.formula


def summed(inputs: Sequence[Terms]) -> Terms:
    """Return a sum; of functions of the row alone one as it is written, too."""
    held: dict[Formula, Coefficient] = {}
    for item in inputs:
        for formula, coefficient in item.held.items():
            held[formula] = held[formula] + coefficient if formula in held else coefficient
    formulas = [item.formula for item in inputs]
    made = formulas[0]
    for other in formulas[1:]:
        made = None if made is None or other is None else applied(ops.Add, made, other)
    return Terms(held=held, formula=made)


def _difference(inputs: Sequence[Terms]) -> Terms:
    first, second = inputs
    both = summed([first, Terms(held=_scaled(second.held, -1.0))])
    known = first.formula is not None and second.formula is not None
    return Terms(held=both.held, formula=applied(ops.Sub, first.require(), second.require()) if known else None)


def _negative(inputs: Sequence[Terms]) -> Terms:
    (given,) = inputs
    formula = None if given.formula is None else applied(ops.Neg, given.formula)
    return Terms(held=_scaled(given.held, -1.0), formula=formula)


def _scaled(held: Mapping[Formula, Coefficient], factor: Coefficient) -> dict[Formula, Coefficient]:
    return {formula: _by(coefficient, factor) for formula, coefficient in held.items()}


def _by(one: Coefficient, other: Coefficient) -> Coefficient:
    if isinstance(one, float) and one == 1:
        return other
    return one if isinstance(other, float) and other == 1 else one * other


def multiplied(inputs: Sequence[Terms]) -> Terms:
    """Return a product: functions of the row alone are one factor, the terms of the others are multiplied out."""
    alone = [item for item in inputs if item.formula is not None]
    found = _of_rows_alone(alone)
    for item in inputs:
        if item.formula is None:
            found = _expanded(found, item)
    return found


def _of_rows_alone(inputs: Sequence[Terms]) -> Terms:
    formula = applied(ops.Mul, *(item.require() for item in inputs)) if inputs else ONE
    factor = float(np.prod([item.formula.value for item in inputs if isinstance(item.formula, Number)]))
    moving = [item for item in inputs if not isinstance(item.formula, Number)]
    if not moving:
        return Terms.of(formula)
    if len(moving) == 1:
        return Terms(held=_scaled(moving[0].held, factor), formula=formula)
    bases = [_apart(item) for item in moving]
    whole = applied(ops.Mul, *(base for base, _ in bases))
    return Terms(held={whole: factor * float(np.prod([scale for _, scale in bases]))}, formula=formula)


def _apart(item: Terms) -> tuple[Formula, float]:
    """Return a function of the row alone as another one times a number."""
    ((base, scale),) = item.held.items() if len(item.held) == 1 else [(item.require(), 1.0)]
    return base, scale


def _expanded(found: Terms, item: Terms) -> Terms:
    """Multiply by terms with parameters; beside another function of the row a sum stays whole, ``(x - 3) * z``."""
    alone = found.formula is not None and len(found.held) > 1
    whole = {found.require(): 1.0} if alone else found.held
    parts = [
        Terms(held={applied(ops.Mul, one, other): _by(c, d)})
        for other, d in item.held.items()
        for one, c in (found.held if other == ONE else whole).items()
    ]
    if len(parts) > MOST_TERMS:
        raise NotLinear
    return Terms(held=summed(parts).held) if parts else Terms(held={})


def quotient(inputs: Sequence[Terms]) -> Terms:
    """Return a quotient by a number, by a function of the row, or by parameters alone."""
    first, second = inputs
    if second.formula == Number(0.0):
        raise NotLinear
    if isinstance(second.formula, Number):
        return Terms(held=_scaled(first.held, 1 / second.formula.value))
    if second.formula is not None:
        return Terms(held={applied(ops.TrueDiv, formula, second.formula): c for formula, c in first.held.items()})
    if list(second.held) != [ONE]:
        raise NotLinear
    return Terms(held={formula: c / second.held[ONE] for formula, c in first.held.items()})


def _power(inputs: Sequence[Terms]) -> Terms:
    exponent = inputs[1].formula if len(inputs) > 1 else Number(2.0)
    if not isinstance(exponent, Number) or exponent.value not in EXPANDED:
        raise NotLinear
    return multiplied([inputs[0]] * int(exponent.value))


def _choice(inputs: Sequence[Terms]) -> Terms:
    """Return ``switch(c, p, q)`` of parameters as ``q + c (p - q)``: c is 0 or 1."""
    condition, yes, no = inputs
    one = Terms.of(applied(ops.NEQ, condition.require(), Number(0.0)))
    if getattr(condition.formula, "kind", None) in TRUTHS:
        one = condition
    return summed([no, multiplied([one, _difference([Terms(held=yes.held), no])])])


TRUTHS = (ops.EQ, ops.NEQ, ops.LT, ops.LE, ops.GT, ops.GE, ops.AND, ops.OR, ops.XOR, ops.Invert)
SUMS: dict[type, Callable[[Sequence[Terms]], Terms]] = {ops.Add: summed, ops.Sub: _difference, ops.Neg: _negative}
PRODUCTS: dict[type, Callable[[Sequence[Terms]], Terms]] = {
    ops.TrueDiv: quotient,
    ops.Sqr: _power,
    ops.Pow: _power,
    ops.Switch: _choice,
}


def vector_of(terms: Terms, leaves: Mapping[Formula, Variable]) -> Variable:
    """Return a graph with one number a row, from what stands for each function of the row."""
    parts = []
    for formula, coefficient in terms.held.items():
        factor = coefficient if isinstance(coefficient, Variable) else pt.constant(np.float64(coefficient))
        parts.append(factor if formula == ONE else factor * leaves[formula])
    return pt.add(*parts) if len(parts) > 1 else parts[0] if parts else pt.constant(0.0)


__all__ = ["PRODUCTS", "SUMS", "NotLinear", "Terms", "multiplied", "quotient", "summed", "vector_of"]
