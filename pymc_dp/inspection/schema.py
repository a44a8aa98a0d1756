"""The schema around a table: names, the arrays that are observed, how many rows there are and what counts them."""

from __future__ import annotations

import numpy as np
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import array_leaves, shape_of, unwrap
from pymc_dp.inspection.stated import can_state
from pymc_dp.inspection.vectors import entries_of


def check_names(findings: Findings) -> None:
    """Raise on names that the model does not have: a bound that is silently unused would protect nothing."""
    nameable = [var.name for var in findings.model.observed_RVs] + [var.name for var in findings.model.data_vars]
    # PyMC renames a column with missing values; check_masked reports the problem itself.
    nameable += [name.removesuffix("_observed") for name in nameable if name.endswith("_observed")]
    for argument, names in (
        ("bounds", findings.domain.bounds),
        ("norms", findings.domain.norms),
        ("public", sorted(findings.domain.public)),
        ("metric", findings.domain.metric.columns if findings.domain.metric else ()),
    ):
        for name in names:
            if name not in nameable:
                raise DomainError(
                    f"{argument} names {name!r}, which is neither an observed variable nor a pm.Data of the model "
                    f"(known: {', '.join(map(repr, nameable)) or 'none'}).{_validate.nearest(name, nameable)}"
                )
    _check_twice(findings)
    _check_arrays(findings)
    rows = findings.domain.rows
    if rows is not None and rows not in findings.model.dim_lengths:
        known = list(findings.model.dim_lengths)
        raise DomainError(
            f"rows={rows!r} is not a dimension of the model (known: {known}).{_validate.nearest(rows, known)}"
        )
    for name in findings.domain.public:
        if name in {var.name for var in findings.model.observed_RVs}:
            raise DomainError(
                f"public names the observed variable {name!r}: what a likelihood observes is protected. Leave it out."
            )


def _check_twice(findings: Findings) -> None:
    """Raise on two declarations of one column, by the name of the variable and by that of its pm.Data."""
    for rv in findings.model.observed_RVs:
        leaf = unwrap(findings.model.rvs_to_values[rv]).name
        for argument, given in (("bounds", findings.domain.bounds), ("norms", findings.domain.norms)):
            one, other = given.get(rv.name), given.get(leaf or "")
            if one is not None and other is not None and one != other:
                raise DomainError(
                    f"{argument} name one column twice, as {rv.name!r} {one} and as {leaf!r} {other}. Give the same "
                    f"{argument}."
                )


def _check_arrays(findings: Findings) -> None:
    """Raise on a norm of what is no array of rows of numbers."""
    model = findings.model
    values = {rv.name: unwrap(model.rvs_to_values[rv]) for rv in model.observed_RVs}
    for name in findings.domain.norms:
        leaf = values.get(name, model.named_vars.get(name))
        if leaf is None or leaf.type.ndim < 2 or not leaf.type.dtype.startswith("float"):
            raise DomainError(
                f"norms[{name!r}] is for an array of floats with several values per row, which {name!r} is not. Leave "
                "it out, and give bounds."
            )


def data_leaf(findings: Findings, rv: Variable) -> Variable | None:
    """Return the array that a variable observes; None where the model computes what is observed."""
    leaf = unwrap(findings.model.rvs_to_values[rv])
    if isinstance(leaf, Constant | SharedVariable):
        findings.private_variables += [leaf, rv]
        return leaf
    inner = list(array_leaves([leaf]))
    if len(inner) == 1 and inner[0].type.dtype != leaf.type.dtype:
        findings.private_variables += [inner[0], rv]
        findings.problem(
            rv.name,
            f"its values of dtype {inner[0].type.dtype} are cast to {leaf.type.dtype} inside the model, which "
            "may change them",
            f"Pass an array of dtype {leaf.type.dtype}.",
        )
        return None
    findings.private_variables += [rv, *array_leaves([leaf], [])]
    findings.problem(
        rv.name,
        "its observed values are computed inside the model (a minibatch or another expression)",
        "Pass the whole column as observed= or through pm.Data.",
    )
    return None


def check_masked(findings: Findings) -> None:
    """Refuse missing values: the number of parameters PyMC makes of them is itself a private count."""
    names = {var.name for var in findings.model.free_RVs}
    for rv in findings.model.observed_RVs:
        stem = (rv.name or "").removesuffix("_observed")
        if stem != rv.name and f"{stem}_unobserved" in names:
            findings.problem(
                stem,
                "it has masked or NaN values, and PyMC made a parameter of each, which shows how many are missing",
                "Fill the missing values with a public value, or add a level for 'missing', before building the model.",
            )


def count_rows(findings: Findings) -> int:
    """Return the number of rows of the one table that all observed variables must share; rows may be arrays."""
    lengths: dict[str, int] = {}
    for rv, leaf in findings.data_of.items():
        if leaf is None:
            continue
        shape = shape_of(leaf)
        if rv.type.ndim == 0:
            findings.problem(
                rv.name, "it is a scalar, so there is no axis that counts rows", "Observe one value per row."
            )
            continue
        if rv.type.ndim == len(shape):
            lengths[rv.name] = shape[0]
        else:
            _refuse_dimensions(findings, rv)
    if len(set(lengths.values())) > 1:
        shown = "of different lengths" if findings.domain.neighbours == "add_remove" else f"of lengths {lengths}"
        findings.problem(
            "model",
            f"the observed variables are {shown}, so no axis counts the rows of one table",
            "Keep one table per model: split the model, or join the tables.",
        )
    n_rows = next(iter(lengths.values()), 0)
    if findings.domain.neighbours == "replace" and lengths and n_rows == 0:
        remedy = "There is nothing to release; sample the prior instead. Where rows= holds the table, keep a dummy row."
        findings.problem("model", "the table has 0 rows", remedy)
    return n_rows


def check_dimensions(findings: Findings) -> None:
    """Refuse rows that are arrays, but for vectors of a distribution whose rows are: they have no sums."""
    for rv, leaf in findings.data_of.items():
        if leaf is not None and rv.type.ndim and len(shape_of(leaf)) not in (1, 1 + entries_of(rv)):
            _refuse_dimensions(findings, rv)


def _refuse_dimensions(findings: Findings, rv: Variable) -> None:
    way_out = "Write one observed variable per column, each with one value per row"
    way_out += ", or state what a row adds by dp.models.with_statistics." if can_state(rv) else "."
    findings.problem(rv.name, f"it has {rv.type.ndim} dimensions", way_out)


def find_row_dims(findings: Findings) -> frozenset[str]:
    """Return the dimensions that count rows: what has one of them may hold an entry per person."""
    dims = findings.model.named_vars_to_dims
    held = [leaf.name for leaf in findings.data_of.values() if leaf is not None and leaf.name]
    found = {dims[name][0] for name in [*(rv.name for rv in findings.model.observed_RVs), *held] if dims.get(name)}
    if findings.domain.rows is not None:
        for rv in findings.model.observed_RVs:
            if dims.get(rv.name) and dims[rv.name][0] != findings.domain.rows:
                findings.problem(
                    rv.name,
                    f"its rows are counted by {dims[rv.name][0]!r}, not by {findings.domain.rows!r}",
                    "Give every observed variable the dimension named in Domain(rows=...).",
                )
        found |= {findings.domain.rows}
    return frozenset(str(dim) for dim in found if dim is not None)


def check_reserved_names(findings: Findings) -> None:
    """Refuse names that the released model gives to its own variables."""
    taken = {*findings.model.named_vars, *findings.model.dim_lengths, *findings.model.coords}
    for rv in findings.model.observed_RVs:
        several = entries_of(rv) > 0 or rv.type.dtype.startswith("float")  # sums of one row, or so it may be
        own = ("cell", "statistic", "noise_scale", *(("sum", "noise_variance") if several else ()))
        for name in (f"{rv.name}_{part}" for part in own):
            if name in taken:
                findings.problem(rv.name, f"the name {name!r} is taken, which its release needs", f"Rename {name!r}.")


def dim_length(length: Variable) -> int:
    """Return the length of a dimension; one that follows the shape of a pm.Data is evaluated."""
    if isinstance(length, SharedVariable):
        return int(length.get_value())
    if isinstance(length, Constant):
        return int(np.asarray(length.data))
    return int(plain_function([], length)())
