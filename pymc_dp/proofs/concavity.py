"""Whether a row's log-likelihood is concave in the parameters, proved by composition rules.

Sums of concave terms, nonnegative multiples, and concave nondecreasing functions of concave ones are concave (Boyd,
Vandenberghe 2004, section 3.2): what is proved this way holds for every value of a row and everywhere in the supports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.intervals.expression import Expression, Tape
from pymc_dp.proofs.meeting_points import Meeting, hull, roles

OF_PARAMETERS = {"parameter", "joint", "public joint"}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is known of an expression as a function of the parameters, for any row.

    Attributes
    ----------
    convex, concave : bool
        Affine expressions are both.
    """

    convex: bool
    concave: bool

    @property
    def affine(self) -> bool:
        """Whether it is both."""
        return self.convex and self.concave


AFFINE = Shape(convex=True, concave=True)
UNKNOWN = Shape(convex=False, concave=False)


@dataclass(frozen=True, kw_only=True)
class Function:
    """A convex or concave function of one number.

    Attributes
    ----------
    convex : bool
        Else concave.
    rising : bool or None
        Nondecreasing, nonincreasing, or neither.
    domain : (low, high)
        Where this holds; beyond, nothing is claimed.
    """

    convex: bool
    rising: bool | None
    domain: tuple[float, float] = (-math.inf, math.inf)


POSITIVE, NEGATIVE = (0.0, math.inf), (-math.inf, 0.0)
FUNCTIONS: dict[str, Function] = {
    "Exp": Function(convex=True, rising=True),
    "Expm1": Function(convex=True, rising=True),
    "Softplus": Function(convex=True, rising=True),
    "Abs": Function(convex=True, rising=None),
    "Sqr": Function(convex=True, rising=None),
    "Cosh": Function(convex=True, rising=None),
    "GammaLn": Function(convex=True, rising=None, domain=POSITIVE),
    "Reciprocal": Function(convex=True, rising=False, domain=POSITIVE),
    "Log": Function(convex=False, rising=True, domain=POSITIVE),
    "Log1p": Function(convex=False, rising=True, domain=(-1.0, math.inf)),
    "Sqrt": Function(convex=False, rising=True, domain=POSITIVE),
    "LogSigmoid": Function(convex=False, rising=True),
    "LogNdtr": Function(convex=False, rising=True),
    "Log1mexp": Function(convex=False, rising=False, domain=NEGATIVE),
}


def shape_of(expression: Expression) -> Shape:
    """Return what composition rules prove about an expression, as a function of the parameters."""
    return _Rules().of(expression)


class _Rules:
    def __init__(self) -> None:
        self.known: dict[Expression, Shape] = {}

    def of(self, node: Expression) -> Shape:
        if node not in self.known:
            self.known[node] = self._find(node)
        return self.known[node]

    def _find(self, node: Expression) -> Shape:
        if not OF_PARAMETERS & roles(node):
            return AFFINE
        if isinstance(node.symbol, Meeting):
            return AFFINE if all(self.of(side.parameter).affine for side in node.symbol.sides) else UNKNOWN
        if node.symbol is not None:
            return AFFINE
        if node.kind == "moved":
            return _common([self.of(item) for item in node.inputs])
        if node.kind == "switch":
            return self._switched(node)
        if node.kind == "reduced":
            return self._reduced(node)
        if node.kind == "elementwise":
            return self._elementwise(node)
        return UNKNOWN

    def _switched(self, node: Expression) -> Shape:
        """A condition on the row alone only chooses; one on parameters joins its branches if they meet."""
        condition, yes, no = node.inputs
        known = _decided(condition)
        if known is not None:
            return self.of(yes if known else no)
        if node.name == "Joined":
            from pymc_dp.proofs.switches import argument

            found = argument(condition)
            return Shape(convex=False, concave=found is not None and self.of(found[0]).affine)
        if OF_PARAMETERS & roles(condition):
            return UNKNOWN
        return _common([self.of(yes), self.of(no)])

    def _reduced(self, node: Expression) -> Shape:
        inner = self.of(node.inputs[0])
        if node.name == "Sum":
            return inner
        if node.name in ("LogSumExp", "Max") and inner.convex:
            return Shape(convex=True, concave=False)
        if node.name == "Min" and inner.concave:
            return Shape(convex=False, concave=True)
        if node.name == "LogSoftmax" and inner.affine:
            return Shape(convex=False, concave=True)
        return UNKNOWN

    def _elementwise(self, node: Expression) -> Shape:
        inputs = [self.of(item) for item in node.inputs]
        match node.name:
            case "Add":
                return _common(inputs)
            case "Sub":
                return _common([inputs[0], _negated(inputs[1])])
            case "Neg":
                return _negated(inputs[0])
            case "Second" | "Identity" | "Cast":
                return inputs[-1]
            case "Mul":
                return self._multiplied(node.inputs)
            case "TrueDiv":
                if OF_PARAMETERS & roles(node.inputs[1]):
                    return UNKNOWN
                return _scaled(inputs[0], *_inverse(*_ends(node.inputs[1])))
            case "ScalarMaximum" | "Maximum":
                return Shape(convex=all(item.convex for item in inputs), concave=False)
            case "ScalarMinimum" | "Minimum":
                return Shape(convex=False, concave=all(item.concave for item in inputs))
        function = FUNCTIONS.get(node.name)
        return UNKNOWN if function is None else _composed(function, node.inputs[0], inputs[0])

    def _multiplied(self, factors: Sequence[Expression]) -> Shape:
        """A product with one factor that depends on parameters."""
        moving = [item for item in factors if OF_PARAMETERS & roles(item)]
        if len(moving) != 1:
            return UNKNOWN
        low, high = 1.0, 1.0
        for item in factors:
            if item is not moving[0]:
                ends = [a * b if a and b else 0.0 for a in (low, high) for b in _ends(item)]
                low, high = min(ends), max(ends)
        return _scaled(self.of(moving[0]), low, high)


def _decided(condition: Expression) -> bool | None:
    """Whether a condition holds for all rows and parameters, or for none; None where neither is proved."""
    tape = Tape([condition])
    found = tape.values(tape.low[None], tape.high[None])[condition]
    if found.flags.any() or found.low.min() != found.high.max():
        return None
    return bool(found.low.min())


def _ends(expression: Expression) -> tuple[float, float]:
    low, high = hull(expression)
    return float(np.min(low)), float(np.max(high))


def _inverse(low: float, high: float) -> tuple[float, float]:
    if low > 0 or high < 0:
        return 1 / high if high else 0.0, 1 / low if low else 0.0
    return -math.inf, math.inf


def _scaled(shape: Shape, low: float, high: float) -> Shape:
    if shape.affine or low >= 0:
        return shape
    return Shape(convex=shape.concave, concave=shape.convex) if high <= 0 else UNKNOWN


def _negated(shape: Shape) -> Shape:
    return _scaled(shape, -1.0, -1.0)


def _common(shapes: Sequence[Shape]) -> Shape:
    """Return what is known of all shapes: of their sum, and of any of them that a row chooses."""
    return Shape(convex=all(item.convex for item in shapes), concave=all(item.concave for item in shapes))


def _composed(function: Function, argument: Expression, inner: Shape) -> Shape:
    low, high = _ends(argument)
    if low < function.domain[0] or high > function.domain[1]:
        return UNKNOWN
    rising = function.rising
    if rising is None and function.convex:  # beyond its lowest point a convex even function has one direction
        rising = True if low >= 0 and _is_even(function) else False if high <= 0 else None
    keeps = inner.affine or (rising is True and (inner.convex if function.convex else inner.concave))
    turns = rising is False and (inner.concave if function.convex else inner.convex)
    if not (keeps or turns):
        return UNKNOWN
    return Shape(convex=function.convex, concave=not function.convex)


def _is_even(function: Function) -> bool:
    """Whether a function without direction is least at 0: all of the table but log gamma."""
    return function is not FUNCTIONS["GammaLn"]


__all__ = ["FUNCTIONS", "OF_PARAMETERS", "Function", "Shape", "shape_of"]
