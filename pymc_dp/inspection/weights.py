"""The columns that say how much a row counts in a likelihood: survey weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytensor
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import DomainError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Findings, Inspection
from pymc_dp.inspection.leaves import declared
from pymc_dp.inspection.rows import Column, fitted, shape_of

BY_GRADIENTS = "Use statistics=dp.Gradients(), with a delta > 0."
UNWEIGHTED = "this method does not weigh rows"
WEIGHED = (
    "Use dp.sample or dp.privatize without step=, best with statistics=dp.Gradients() and a delta > 0; or leave "
    "weights= out: every row then counts once."
)
NUMBERS = "Give every row its weight, as pm.Data(name, weights), or a column of rows=."
WHOLE_ROWS = (
    "Noised gradients are of rows as a whole: name every observed variable, and one column for all of them, as in "
    'weights={"y": "w", "z": "w"}.'
)
PSEUDO_POSTERIOR = "pseudo-posterior"
"""What a posterior is called in which rows count by their survey weights."""
PSEUDO = (
    f"{PSEUDO_POSTERIOR}: the log-likelihood of a row of {{response}} is multiplied by {{column}}, its weight. It is "
    "about the population that the weights stand for"
)

UNCLAIMED = (
    "intervals are those of as many rows as the weights add up to, and claim no coverage: the variance of sampling is "
    "released by dp.Gradients alone"
)


def refuse_weights(domain: Domain | None) -> None:
    """Raise for a domain with weights, where rows are not weighed: they would count once each without a word."""
    if domain is not None and domain.weights:
        raise UnsupportedModelError([Problem(where="Domain(weights=...)", what=UNWEIGHTED, remedy=WEIGHED)])


def check_weighed(findings: Findings, weighted: bool = False) -> None:
    """Note the same as a problem of a model, where the caller does not weigh rows."""
    if findings.domain.weights and not weighted:
        findings.problem("Domain(weights=...)", UNWEIGHTED, WEIGHED)


def check_weights(findings: Findings) -> None:
    """Refuse columns that cannot be weights, and note that they are private.

    Raises
    ------
    DomainError
        If a weight is of nothing that the model observes.
    """
    observed = [str(rv.name) for rv in findings.model.observed_RVs]
    for response, name in findings.domain.weights.items():
        if response not in observed:
            raise DomainError(
                f"weights names {response!r}, which is no observed variable of the model (known: "
                f"{', '.join(map(repr, observed))}).{_validate.nearest(response, observed)}"
            )
        leaf: Any = findings.model.named_vars.get(name)
        if leaf is None:  # it may be a column of stored rows
            continue
        findings.private[name] = None
        findings.private_variables.append(leaf)
        if not isinstance(leaf, SharedVariable) or leaf not in findings.model.data_vars:
            findings.problem(name, "Domain(weights=...) names it, but it is no pm.Data", NUMBERS)
        elif np.dtype(leaf.type.dtype).kind not in "fiu":
            findings.problem(name, f"it is a weight, but has dtype {leaf.type.dtype}", NUMBERS)
        elif leaf.type.ndim != 1 or shape_of(leaf)[0] != findings.n_rows:
            findings.problem(name, "it is a weight, but does not have one number for each row", NUMBERS)
        elif leaf in findings.data_of.values():
            findings.problem(name, "it is a weight, and observed too", NUMBERS)


def weight_columns(findings: Findings) -> dict[str, Column]:
    """Return the column by which rows of each observed variable are weighed, of those that are."""
    found: dict[str, Column] = {}
    for name in dict.fromkeys(findings.domain.weights.values()):
        leaf: Any = findings.model.named_vars.get(name)
        if leaf is None:
            leaf = _stands_for(name, findings.n_rows)
            findings.private[name] = None
            findings.private_variables.append(leaf)
        column = declared(findings, leaf, name)
        assert column.bounds is not None
        ends = fitted(column.bounds, np.dtype(leaf.type.dtype))
        if ends is None:
            findings.problem(name, f"its bounds hold no value of its dtype, {leaf.type.dtype}", "Widen them.")
        found[name] = replace(column, bounds=ends)
    return {response: found[name] for response, name in findings.domain.weights.items()}


def find_weight(findings: Findings, weights: Mapping[str, Column], columns: list[Column]) -> int | None:
    """Return the place of the column by which rows are weighed as a whole, which is added where no likelihood reads it.

    None where they are not weighed.
    """
    if not weights:
        return None
    if set(weights) != {str(rv.name) for rv in findings.model.observed_RVs} or len(set(weights.values())) > 1:
        findings.problem("Domain(weights=...)", f"it weighs {', '.join(weights)} alone, or differently", WHOLE_ROWS)
    column, leaves = next(iter(weights.values())), [column.leaf for column in columns]
    if column.leaf in leaves:
        return leaves.index(column.leaf)
    columns.append(column)
    return len(columns) - 1


def _stands_for(name: str, n_rows: int) -> Variable:
    """Return what stands in the model for a column of stored rows: ones, which are never read."""
    return pytensor.shared(np.ones(n_rows), name=name)


def require_weights(inspection: Inspection) -> None:
    """Raise where weights are neither in the model nor beside it.

    Raises
    ------
    DomainError
    """
    known = [str(var.name) for var in inspection.model.data_vars]
    for name in inspection.domain.weights.values():
        if name not in known:
            raise DomainError(
                f"weights names {name!r}, which is no pm.Data of the model (known: "
                f"{', '.join(map(repr, known)) or 'none'}).{_validate.nearest(name, known)} {NUMBERS}"
            )


__all__ = [
    "BY_GRADIENTS",
    "PSEUDO",
    "PSEUDO_POSTERIOR",
    "UNCLAIMED",
    "check_weighed",
    "check_weights",
    "find_weight",
    "refuse_weights",
    "require_weights",
    "weight_columns",
]
