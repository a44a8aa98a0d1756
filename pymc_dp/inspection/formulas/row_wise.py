"""Whether a formula computes each row of its design from that row alone: read from the formula, never from values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from formulae.terms.call import Call
from formulae.terms.call_resolver import (
    LazyCall,
    LazyOperator,
    LazyValue,
    LazyVariable,
    get_function_from_module,
)
from formulae.terms.terms import GroupSpecificTerm, Intercept

from pymc_dp.errors import Problem

ELEMENTWISE = {
    **dict.fromkeys(("abs", "absolute", "arctan", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "fabs"), 1),
    **dict.fromkeys(("floor", "log", "log10", "log1p", "log2", "negative", "reciprocal", "rint", "sign", "sin"), 1),
    **dict.fromkeys(("sinh", "sqrt", "square", "tan", "tanh", "trunc"), 1),
    **dict.fromkeys(("divide", "fmax", "fmin", "maximum", "minimum", "multiply", "power", "subtract"), 2),
    **dict.fromkeys(("clip", "where"), 3),
}
"""Functions of NumPy that work entry by entry, and how many arguments do: one more may be where results are put."""
SHORT = ("abs", "exp", "exp2", "log", "log10", "log2")
"""Those that bambi knows without ``np.``."""
STATEFUL = ("center", "scale", "standardize")
"""Transforms that learn numbers from the first table they see, the public one, and keep them."""
BASES = ("bs", "poly")
"""Those that make several columns, which within another expression could be spread over other rows."""
PROCESS = "hsgp"
"""The one of a Gaussian process: centre, scale and boundary are learned in public too."""
CODINGS = ("C", "S", "T")
CONTRASTS = ("Sum", "Treatment")
BEFOREHAND = "Compute it beforehand, row by row, as a column of the data frame, and give that column bounds."
Found = tuple[str, str]


def check_terms(terms: Iterable[Any], labelled: Iterable[str], names: Iterable[str], env: Any) -> Iterator[Problem]:
    """Yield every reason why a row of the design may depend on other rows, or on numbers that nobody declared.

    Parameters
    ----------
    terms : iterable of formulae terms
        As the formula has them, before they have seen a table.
    labelled : iterable of str
        Columns of the data frame that hold declared labels.
    names : iterable of str
        Every column of the data frame.
    env : formulae.environment.Environment
        Where the formula looks up functions.
    """
    declared = frozenset(labelled)
    check = _Check(declared, frozenset(names), env)
    for term in terms:
        for component in _components(term):
            for what, remedy in check.component(component):
                yield Problem(where=component.name, what=what, remedy=remedy)
        if isinstance(term, GroupSpecificTerm):
            yield from _groups(term, declared)


def _components(term: Any) -> list[Any]:
    if isinstance(term, GroupSpecificTerm):
        return [*_components(term.expr), *_components(term.factor)]
    return [] if isinstance(term, Intercept) else list(term.components)


def _groups(term: GroupSpecificTerm, labelled: frozenset[str]) -> Iterator[Problem]:
    for component in term.factor.components:
        if isinstance(component, Call) or component.name not in labelled:
            yield Problem(
                where=term.name,
                what=f"its groups are the values of {component.name} that occur in rows",
                remedy=f"Make a column of declared labels beforehand. {declare(component.name)}",
            )


def declare(name: str) -> str:
    """Return how labels of a column are declared."""
    return f'Declare them: data["{name}"] = data["{name}"].astype(pd.CategoricalDtype([...], ordered=True)).'


class _Check:
    """One walk over the calls of a formula."""

    def __init__(self, labelled: frozenset[str], names: frozenset[str], env: Any) -> None:
        self.labelled, self.names, self.env = labelled, names, env

    def component(self, component: Any) -> Iterator[Found]:
        if not isinstance(component, Call):
            return
        if "/" in component.name:
            yield "PyMC has no names with a slash", "Write np.divide(a, b) in place of a / b."
        call = component.call
        if isinstance(call, LazyCall) and call.callee == "offset":
            yield from self._arguments(call, 1)
        elif isinstance(call, LazyCall) and call.callee in BASES:
            yield from self._learned(call)
        elif isinstance(call, LazyCall) and call.callee == PROCESS:
            yield from self._process(call)
        elif isinstance(call, LazyCall) and call.callee in CODINGS:
            yield from self._coded(call)
        else:
            yield from self.expression(call)

    def expression(self, part: Any) -> Iterator[Found]:
        match part:
            case LazyValue():
                return
            case LazyVariable():
                if part.name not in self.names:
                    yield (
                        f"{part.name} is no column of the data frame: what it holds may come from rows",
                        "Write the number itself into the formula.",
                    )
            case LazyOperator():
                for argument in part.args:
                    yield from self.expression(argument)
            case LazyCall():
                yield from self.call(part)
            case _:
                yield f"{part} is not known to work row by row", BEFOREHAND

    def call(self, call: LazyCall) -> Iterator[Found]:
        short = call.callee.removeprefix("numpy.").removeprefix("np.")
        if call.callee == "I":
            yield from self._arguments(call, 1)
        elif call.callee in STATEFUL:
            yield from self._learned(call)
        elif short in ELEMENTWISE and (short != call.callee or short in SHORT):
            if self._resolved(call.callee) is not getattr(np, short):
                yield f"{call.callee} is not NumPy's function here", f"Write np.{short}, or do so beforehand."
            yield from self._arguments(call, ELEMENTWISE[short])
        else:
            yield f"{call.callee}(...) is not known to work row by row", BEFOREHAND

    def _resolved(self, callee: str) -> Any:
        try:
            return get_function_from_module(callee, self.env)
        except (AttributeError, KeyError):
            return None

    def _arguments(self, call: LazyCall, count: int) -> Iterator[Found]:
        if call.kwargs or len(call.args) != count:
            yield f"{call.callee}(...) is known with {count} argument(s) in order, and no named ones", BEFOREHAND
        for argument in [*call.args, *call.kwargs.values()]:
            yield from self.expression(argument)

    def _learned(self, call: LazyCall) -> Iterator[Found]:
        if not call.args:
            yield f"{call.callee}(...) is known with the column as its first argument", BEFOREHAND
        yield from self._constants(call)
        for argument in call.args[:1]:
            yield from self.expression(argument)

    def _process(self, call: LazyCall) -> Iterator[Found]:
        for argument in call.args:
            yield from self.expression(argument)
        by = call.kwargs.get("by")
        if by is not None and getattr(by, "name", "") not in self.labelled:
            yield f"the groups of {call} are the values that occur in rows", declare(str(by))
        for name, argument in call.kwargs.items():
            if name != "by" and not constant(argument, self.names):
                yield f"{call} has an argument that is no number or label", "Write it into the formula."

    def _coded(self, call: LazyCall) -> Iterator[Found]:
        first = call.args[0] if call.args else None
        name = getattr(first, "name", "") if isinstance(first, LazyVariable) else ""
        if name not in self.labelled:
            yield (
                f"the levels of {call} are the values that occur in rows",
                f"Make a column of declared labels beforehand. {declare(name or 'column')}",
            )
        yield from self._constants(call)

    def _constants(self, call: LazyCall) -> Iterator[Found]:
        for argument in [*call.args[1:], *call.kwargs.values()]:
            if not constant(argument, self.names):
                yield f"{call} has an argument that is no number or label", "Write it into the formula."


def constant(part: Any, columns: frozenset[str]) -> bool:
    """Whether an argument is a number, a label or a contrast; columns come before all that has their name."""
    match part:
        case LazyValue():
            return True
        case LazyOperator():
            return all(constant(argument, columns) for argument in part.args)
        case LazyCall():
            known = part.callee in CONTRASTS
            return known and all(constant(argument, columns) for argument in [*part.args, *part.kwargs.values()])
        case LazyVariable():
            return part.name in ("True", "False", "None", *CONTRASTS) and part.name not in columns
    return False


__all__ = ["check_terms", "constant", "declare"]
