"""The column that says whose row it is, where ε protects persons with several rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from pymc import Model
from pytensor.compile import SharedVariable

from pymc_dp import _validate
from pymc_dp._column_bounds import hull_of
from pymc_dp.domain import Domain
from pymc_dp.errors import DomainError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Findings, Inspection
from pymc_dp.inspection.rows import shape_of
from pymc_dp.inspection.taint import depends_on
from pymc_dp.unit import Unit

OWNERS = (
    "Give every row the number of its person, as pm.Data(name, codes) of whole numbers; floats are not the same where "
    "they look alike."
)

OF_ROWS = "this method accounts ε per row, not per person with several rows"
OF_PERSONS = (
    "Use dp.sample or dp.privatize without step=, which release exact sums or noised gradients; or leave unit= out: ε "
    "is then for one row, and a person with m rows has m times the ε."
)

CODE_BYTES = 4
NARROW = (
    "PyMC keeps whole numbers in 16 bits where floatX is 'float32'. Leave out rows whose code is below 0 and give "
    "unsigned ones, pm.Data(name, codes.astype('uint32')); or set pytensor.config.floatX = 'float64' before."
)
OF_ONE = (
    "Leave parameters of single persons out, or integrate over them in the likelihood (an overdispersed one, such as "
    "pm.BetaBinomial or pm.NegativeBinomial); the column {column} says whose row it is, and nothing else: "
    "dp.Domain(unit=dp.Unit({column!r}, max_rows={max_rows}), neighbours='add_remove', n_max={n_max})."
)
WRAPPED = (
    "{}: ids beyond ±2^31, if any, were changed by PyMC: use pandas.factorize(ids)[0], or pass ids by rows=. Changed "
    "ones that are negative count as nobody's rows, equal ones as one person's"
)
DECLARE = "Declare what is known beforehand, {}, which costs nothing. Nothing was spent."


def refuse_persons(domain: Domain | None, remedy: str = OF_PERSONS) -> None:
    """Raise for a domain with a unit, where a mechanism is accounted for rows."""
    if domain is not None and domain.unit is not None:
        raise UnsupportedModelError([Problem(where="Domain(unit=...)", what=OF_ROWS, remedy=remedy)])


def check_owner(findings: Findings) -> None:
    """Refuse a column that cannot say whose row it is, and note that it is private: nobody may see it."""
    unit = findings.domain.unit
    leaf: Any = None if unit is None else findings.model.named_vars.get(unit.column)
    if unit is None or leaf is None:  # it may be a column of stored rows
        return
    findings.private[unit.column] = None
    findings.private_variables.append(leaf)
    if not isinstance(leaf, SharedVariable) or leaf not in findings.model.data_vars:
        findings.problem(unit.column, "Domain(unit=...) names it, but it is no pm.Data", OWNERS)
    elif np.dtype(leaf.type.dtype).kind not in "iu":
        findings.problem(unit.column, f"it says whose row it is, but has dtype {leaf.type.dtype}", OWNERS)
    elif np.dtype(leaf.type.dtype).kind == "i" and np.dtype(leaf.type.dtype).itemsize < CODE_BYTES:
        what = f"it says whose row it is, but has dtype {leaf.type.dtype}, in which larger codes became other ones"
        findings.problem(unit.column, what, NARROW)
    elif leaf.type.ndim != 1 or shape_of(leaf)[0] != findings.n_rows:
        what = "it says whose row it is, but does not have one number for each row"
        findings.problem(unit.column, what, OWNERS)
    reached = any(depends_on(var, [leaf]) for var in [*findings.model.basic_RVs, *findings.model.potentials])
    if reached or leaf in findings.data_of.values():
        what = "it reaches a likelihood, or parameters: one for each person shows who is there"
        known = {"column": unit.column, "max_rows": unit.max_rows, "n_max": findings.domain.n_max}
        findings.problem(unit.column, what, OF_ONE.format(**known))


def check_levels_of_persons(findings: Findings, name: str, lengths: Iterable[int | None]) -> None:
    """Refuse a column that indexes as many parameters as there may be persons: it may hold their ids once more.

    Levels are compared with what is declared: `n_max`, and bounds or levels of the unit's column. Which ids there are
    is private, so that another column with the ids of fewer persons looks like one of groups.
    """
    unit, most = findings.domain.unit, findings.domain.n_max
    if unit is None or most is None:
        return
    bounds = findings.domain.bounds.get(unit.column)
    declared = len(findings.domain.levels.get(unit.column, ())) or (int(hull_of(bounds)[1]) + 1 if bounds else most)
    persons = min(most, max(declared, 2))
    if any(length is not None and length >= persons for length in lengths):
        known = {"column": unit.column, "max_rows": unit.max_rows, "n_max": most}
        what = f"it indexes as many parameters as there may be persons, {persons}: one for each shows who is there"
        findings.problem(name, what, OF_ONE.format(**known))


def ids_line(model: Model, unit: Unit | None) -> list[str]:
    """Say what PyMC does to large ids, where they are a ``pm.Data`` of the model: which ids there are is not looked at.

    PyMC keeps whole numbers in 32 bits with a sign before anybody else sees them; unsigned ones it leaves alone.
    """
    leaf: Any = None if unit is None else model.named_vars.get(unit.column)
    if unit is None or leaf is None or np.dtype(leaf.type.dtype).kind != "i":
        return []
    return [WRAPPED.format(unit.column)]


def owner_of(inspection: Inspection) -> Any:
    """Return the ``pm.Data`` that says whose row it is.

    Raises
    ------
    DomainError
        If the model has none: no row could be attributed to anybody.
    """
    unit, model = inspection.domain.unit, inspection.model
    assert unit is not None
    if unit.column not in model.named_vars:
        known = [str(var.name) for var in model.data_vars]
        raise DomainError(
            f"unit names {unit.column!r}, which is no pm.Data of the model (known: "
            f"{', '.join(map(repr, known)) or 'none'}).{_validate.nearest(unit.column, known)} {OWNERS}"
        )
    return model[unit.column]


__all__ = ["DECLARE", "OF_PERSONS", "OF_ROWS", "check_owner", "ids_line", "owner_of", "refuse_persons"]
