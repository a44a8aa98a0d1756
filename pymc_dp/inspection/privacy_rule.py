"""What counts as private: the rule, in one place. No value is looked at to decide.

1. What is observed, and every ``pm.Data``, is private, unless ``Domain(public=)`` names the ``pm.Data``. So is every
   array with the row axis that a likelihood reads. ``Domain(public=)`` may also name a variable: its prior has then
   whatever arrays it has, for ``pm.ICAR`` and others take no ``pm.Data``.
2. What an operation of PyTensor makes of numbers, ``pt.zeros(4)``, ``pt.eye(3)``, ``pt.arange(12)``, is public: the
   graph holds the operation and its numbers, and no array.
3. An array without a name, of at most `MOST_NUMBERS` numbers, is assumed public whatever its values, and is listed as
   such. In a likelihood it must not have the row axis.
4. A longer one is refused, with the line to paste.

In a prior an array without a name must not be as long as the table, unless the dims of its variable are. Under
``add_remove`` a length must not be compared with the number of rows: there a prior has such an array only if it fits
dims, and a likelihood has none.

Potentials and initial values may hold rows in ways that no analysis sees. Every array in them must be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from pytensor.graph.basic import Constant, Variable

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.rows import array_leaves, reached, shape_of

MOST_NUMBERS = 32
"""How many numbers an array without a name may hold and still be assumed public."""
Standing = Literal["named", "assumed", "private", "refused"]
"""Of an array: named in ``Domain(public=)``, assumed public, private, or neither and refused."""
RULE = (
    "What is observed is private. Every pm.Data is private unless Domain(public=) names it.",
    "An array of a likelihood with an entry per row is private.",
    f"Another array without a name is assumed public up to {MOST_NUMBERS} numbers. A longer one is refused.",
)
"""As `dp.explain` states it."""


def is_data(findings: Findings, leaf: Variable) -> bool:
    """Whether an array is a ``pm.Data`` of the model."""
    return leaf in findings.model.data_vars


def is_named(findings: Findings, leaf: Variable) -> bool:
    """Whether ``Domain(public=)`` names an array. It can name a ``pm.Data`` only."""
    return is_data(findings, leaf) and leaf.name in findings.domain.public


def arrays_of(
    findings: Findings, ends: Iterable[Variable], stop: Iterable[Variable] = (), *, single: bool = False
) -> Iterator[Variable]:
    """Yield the arrays on the way to `ends` that the rule is about, and every ``pm.Data`` that is a single number."""
    stop = list(stop)
    yield from array_leaves(ends, stop, single=single)
    yield from (var for var in reached(ends, stop) if is_data(findings, var) and not var.type.ndim)


def in_likelihood(findings: Findings, leaf: Variable, *, on_rows: bool) -> Standing:
    """Return the standing of an array that a likelihood reads."""
    if is_named(findings, leaf):
        return "named"
    if on_rows or not isinstance(leaf, Constant):
        return "private"
    settled = findings.domain.neighbours == "replace" and findings.n_rows not in shape_of(leaf)
    return _unnamed(leaf, settled=settled)


def in_prior(findings: Findings, name: str, leaf: Variable, own_shape: tuple[int, ...] | None) -> Standing:
    """Return the standing of an array that the prior of a variable reads, whose dims have the lengths `own_shape`."""
    if is_named(findings, leaf):
        return "named"
    if not isinstance(leaf, Constant):
        return "private"
    if name in findings.domain.public:
        return "named"
    shape = shape_of(leaf)
    fits = own_shape is not None and _broadcasts(shape, own_shape)
    settled = fits or (findings.domain.neighbours == "replace" and findings.n_rows not in shape)
    return _unnamed(leaf, settled=settled)


def _unnamed(leaf: Constant, *, settled: bool) -> Standing:
    """Return the standing of an array without a name, if it is settled that it is no column. Its size decides."""
    return "assumed" if settled and int(np.prod(shape_of(leaf))) <= MOST_NUMBERS else "refused"


def way_to_name_in_prior(findings: Findings, name: str, leaf: Variable) -> str:
    """Return what to write for an array that anyone may know, and that the prior of a variable reads."""
    if is_data(findings, leaf):
        return way_to_name(findings, leaf)
    return (
        f"If anyone may know it: dp.Domain(public=[{name!r}]), for all arrays of this prior. Else leave it out. What "
        "is written as pt.zeros, pt.ones, pt.eye or pt.arange needs no name."
    )


def way_to_name(findings: Findings, leaf: Variable, otherwise: str = "leave it out.") -> str:
    """Return what to write for an array that anyone may know, or else."""
    name = leaf.name or "x"
    named = f"dp.Domain(public=[{name!r}])"
    if is_data(findings, leaf):
        return f"If anyone may know it: {named}. Else {otherwise}"
    return (
        f"If anyone may know it: {name} = pm.Data({name!r}, {name}) in the model, {named}. Else {otherwise} What is "
        "written as pt.zeros, pt.ones, pt.eye or pt.arange needs no name."
    )


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array has one entry per entry of a variable, or per entry of its last axes."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


__all__ = [
    "RULE",
    "arrays_of",
    "in_likelihood",
    "in_prior",
    "is_data",
    "is_named",
    "way_to_name",
    "way_to_name_in_prior",
]
