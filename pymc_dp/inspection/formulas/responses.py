"""What the left side of a formula observes: one column, or several, and what each of them means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from formulae.terms.call import Call
from formulae.terms.call_resolver import LazyOperator, LazyValue, LazyVariable

from pymc_dp.errors import Problem
from pymc_dp.inspection.formulas.design import PublicTable
from pymc_dp.inspection.formulas.row_wise import constant

Kind = Literal["column", "trials", "counts", "limited"]
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("p", "prop", "proportion"), "trials"),
    **dict.fromkeys(("c", "counts"), "counts"),
    **dict.fromkeys(("constrained", "truncated"), "limited"),
}
"""Functions of formulae and bambi that a response is written with, and what they make of it."""
REFUSED = {
    "censored": (
        "it does not say when other rows would have been censored, on which what is expected of them depends",
        "Write the model with PyMC: pm.Censored(..., upper=end), end a column of the times up to which rows are seen.",
    ),
}
"""Those that cannot be released, why, and what to do."""
FORMS: Mapping[Kind, str] = {
    "trials": "p(successes, trials), trials a column or a whole number",
    "counts": "counts(a, b, ...) with a column for each category",
    "limited": "truncated(y, lb=..., ub=...), limits numbers or columns",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LeftSide:
    """What a formula observes.

    Attributes
    ----------
    kind : str
        "column" for a column, or one number that is computed from columns row by row.
    columns : tuple of str
        Columns of the data frame, as the function takes them: the observed one first, or all counts.
    numbers : mapping of str to float
        Arguments that are numbers: trials, lb, ub.
    limits : mapping of str to str
        Limits that are columns.
    """

    kind: Kind
    columns: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> tuple[str, ...]:
        """Columns that hold whole numbers, whatever their dtype."""
        return self.columns if self.kind in ("trials", "counts") else ()

    def fitting(self, table: PublicTable) -> PublicTable:
        """Return a public table without what bambi refuses to build: more successes than trials."""
        if self.kind != "trials":
            return table
        successes = self.columns[0]
        most = self.numbers["trials"] if "trials" in self.numbers else table.frame[self.columns[1]]
        return replace(table, frame=table.frame.assign(**{successes: np.minimum(table.frame[successes], most)}))


def left_side(term: Any, names: frozenset[str]) -> LeftSide | Problem | None:
    """Return what a response term observes; None where it is a call that is none of bambi's responses.

    Parameters
    ----------
    term : formulae.terms.terms.Term
    names : frozenset of str
        Columns of the data frame.
    """
    (component, *_) = term.components
    if not isinstance(component, Call):
        return LeftSide(kind="column", columns=(component.name,))
    call = component.call
    callee = getattr(call, "callee", "")
    if callee in REFUSED:
        what, remedy = REFUSED[callee]
        return Problem(where=term.name, what=what, remedy=remedy)
    kind = KINDS.get(callee)
    if kind is None:
        return None
    found = _read(kind, call, names)
    if found is None:
        what = "it is not written with columns of the data frame and numbers alone"
        return Problem(where=term.name, what=what, remedy=f"Write {FORMS[kind]}.")
    return found


def _read(kind: Kind, call: Any, names: frozenset[str]) -> LeftSide | None:
    keys = {"trials": ("y", "trials"), "limited": ("x", "lb", "ub")}.get(kind)
    labels = keys if keys is not None else tuple(map(str, range(len(call.args))))
    if len(call.args) > len(labels):
        return None
    given = {**dict(zip(labels, call.args, strict=False)), **call.kwargs}
    columns = {key: part.name for key, part in given.items() if isinstance(part, LazyVariable) and part.name in names}
    rest = {key: part for key, part in given.items() if key not in columns}
    if labels[0] not in columns or not set(given) <= set(labels):
        return None
    if not all(
        str(part) == "None" or (isinstance(part, LazyValue | LazyOperator) and constant(part, names))
        for part in rest.values()
    ):
        return None
    numbers = {key: part.eval({}, None) for key, part in rest.items() if str(part) != "None"}
    if not all(isinstance(value, int | float) for value in numbers.values()):
        return None
    if kind == "limited":
        limits = {key: name for key, name in columns.items() if key != "x"}
        return LeftSide(kind=kind, columns=(columns["x"],), numbers=numbers, limits=limits)
    complete = set(given) == set(labels) and not (numbers and kind != "trials")
    return LeftSide(kind=kind, columns=tuple(columns.values()), numbers=numbers) if complete else None


def check_labels(side: LeftSide, table: PublicTable) -> Iterator[Problem]:
    """Yield why a column of a response cannot hold what bambi expects there."""
    if side.kind != "column":
        for name in (*side.columns, *side.limits.values()):
            if table.columns[name].levels is not None:
                what = "it has labels, where the response needs numbers"
                yield Problem(where=name, what=what, remedy="Give a column of numbers.")


__all__ = ["LeftSide", "check_labels", "left_side"]
