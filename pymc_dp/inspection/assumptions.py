"""The list of what is assumed public, for the user to read: a release protects nothing that stands on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pytensor.graph.basic import Variable

from pymc_dp.inspection.clamped import clamped
from pymc_dp.inspection.findings import Findings, Observed, by_hand
from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.inspection.precise import question
from pymc_dp.inspection.public_parts import may_keep
from pymc_dp.inspection.rows import Array, plain_numbers
from pymc_dp.inspection.schema import dim_length

ASSUMED = "dp_assumed"
"""Attribute of a model that was made from another: what was taken as public on the way."""


def list_assumptions(findings: Findings, observed: Sequence[Observed], kept: Sequence[str]) -> list[str]:
    """Return one line for everything that the guarantee takes as known beforehand, so that users can object."""
    model, domain = findings.model, findings.domain
    free, lines = list(model.free_RVs), list(getattr(model, ASSUMED, ()))
    ask = question if not hasattr(model, ASSUMED) else _silent  # numbers on the way were asked about there
    shown = partial(_shown, ask=ask, n_rows=findings.n_rows if domain.neighbours == "replace" else None)
    if domain.neighbours == "replace":
        lines.append(number_of_rows(findings.n_rows))
    else:
        lines.append(f"bound on the number of rows: n_max = {domain.n_max}")
    for rv in free:
        numbers = shown(plain_numbers(rv.owner.inputs, [var for var in free if var is not rv]))
        if numbers:
            lines.append(f"numbers in the prior of {rv.name}: {numbers}")
    for item in observed:
        ends = _ends(item)
        rows = findings.axis.among([item.variable], stop=free)
        numbers = shown(plain_numbers(ends, [*free, *findings.private_variables], rows))
        if numbers:
            lines.append(f"numbers in the likelihood of {item.name}: {numbers}")
    for rv in model.basic_RVs:
        if by_hand(rv, [var for var in model.basic_RVs if var is not rv]):
            lines.append(f"the functions that {rv.name} is written with, and numbers in them")
    for potential in model.potentials:
        lines.append(f"the Potential {potential.name}")
    for rv, initval in model.rvs_to_initial_values.items():
        if initval is not None:
            lines.append(f"initial value of {rv.name}")
    for det in model.deterministics:
        numbers = shown(plain_numbers([det], free)) if may_keep(findings, det, kept) else ""
        if numbers:
            lines.append(f"numbers in {det.name}: {numbers}")
    for name in kept:
        lines.append(f"pm.Data {name}")
    for name in findings.public:
        lines.append(f"public column {name}")
    for name, (low, high) in domain.bounds.items():
        lines.append(f"bounds of {name}: ({low:g}, {high:g}){ask([low, high])}")
    for name, norm in domain.norms.items():
        lines.append(f"norm of a row of {name}: at most {norm:g}{ask(norm)}")
    if domain.metric is not None:
        lines.append(f"the metric, and its weights: ρ = {domain.metric}")
    for name, (low, high) in clamped(model).items():
        lines.append(f"log-likelihood of a row of {name}: clipped to ({low:g}, {high:g})")
    keepable = [*free, *(model[name] for name in kept), *model.potentials]
    keepable += [det for det in model.deterministics if may_keep(findings, det, kept)]
    used = {dim for var in keepable for dim in model.named_vars_to_dims.get(var.name) or ()}
    for dim, length in model.dim_lengths.items():
        labels = " and its labels" if model.coords.get(dim) is not None else ""
        if dim in findings.row_dims:
            lines.append(f"dimension {dim}: the rows (its labels are people and are left out)")
        elif dim in used:
            lines.append(f"dimension {dim}: length {dim_length(length)}{labels}")
    return lines


def number_of_rows(n_rows: int) -> str:
    """Return the line that says how many rows there are, where that is public."""
    return f"number of rows: {n_rows}"


def _ends(observed: Observed) -> Sequence[Variable]:
    """Graphs of a likelihood, for the numbers in them."""
    if observed.design is not None:
        return likelihood_of(observed.variable)[1] or ()
    return observed.parameters if observed.cumulative is None else observed.cumulative.numbers


def _silent(numbers: object) -> str:
    return ""


def _shown(arrays: Any, ask: Callable[[Array], str], n_rows: int | None, most: int = 8) -> str:
    """Write numbers, those first that look computed.

    An array as long as the table is refused, and no text reads it. Where the number of rows is private, none is read:
    which of them is as long would tell it.
    """
    texts: dict[str, bool] = {}
    for array in arrays:
        asked = ask(array) if array.size == 1 or (n_rows is not None and n_rows not in array.shape) else ""
        if array.size == 1:
            texts[f"{array.item():.6g}{asked}"] = not asked
        elif array.size:
            texts[f"an array of {array.ndim} dimension(s){asked}"] = not asked
    shown = sorted(texts, key=lambda text: texts[text])
    return ", ".join(shown if len(shown) <= most else [*shown[:most], f"and {len(shown) - most} more"])
