"""The schema around a table: names, the arrays that are observed, how many rows there are and what counts them.

Distributions whose row is a vector: which of them are known, and how their axes are laid out.

Everything beside the likelihoods: priors, Potentials and initial values must not be reached by the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pymc import Model
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import support_point
from pymc.logprob.basic import logp as pm_logp
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.inspection.causes import latent_of_rows
from pymc_dp.inspection.declared_bounds import check_pairs
from pymc_dp.inspection.declared_levels import check_levels
from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.privacy_rule import arrays_of, in_prior, is_data, is_named, way_to_name, way_to_name_in_prior
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.rows import array_leaves, opaque, reached, same_array, shape_of, unwrap, values_read
from pymc_dp.inspection.stated import can_state, statement_of
from pymc_dp.inspection.taint import depends_on, label

BEFOREHAND = "Priors and other terms must not use the rows; use numbers known beforehand."
OF_ROWS = (
    "Write it as a likelihood of rows: pm.Censored('y', dist, lower=None, upper=end, observed=y), where values are "
    "censored; else pm.CustomDist('y', ..., logp=logp, observed=y)."
)
VECTORS = {"multinomial": (0, 1), "dirichlet": (1,), "multivariate_normal": (1, 2)}
"""Axes of each of their parameters for one row."""


def entries_of(rv: Variable) -> int:
    """Return the number of axes of one row of a plain distribution: 1 where a row is a vector, else 0."""
    op: Any = rv.owner.op
    if statement_of(rv) is not None:
        return 1
    return int(isinstance(op, RandomVariable) and VECTORS.get(op.name or "") == tuple(op.ndims_params))


def names_of_columns(model: Model) -> list[str]:
    """Return the names by which a domain may speak of the columns of a model."""
    nameable = [str(var.name) for var in (*model.observed_RVs, *model.data_vars)]
    # PyMC renames a column with missing values; check_masked reports the problem itself.
    return nameable + [name.removesuffix("_observed") for name in nameable if name.endswith("_observed")]


def check_names(findings: Findings) -> None:
    """Raise on names that the model does not have: a bound that is silently unused would protect nothing."""
    nameable, free = names_of_columns(findings.model), [str(rv.name) for rv in findings.model.free_RVs]
    nameable += findings.domain.weights.values()  # which may be columns of stored rows
    for argument, names in (
        ("bounds", findings.domain.bounds),
        ("norms", findings.domain.norms),
        ("public", sorted(findings.domain.public)),
        ("metric", findings.domain.metric.columns if findings.domain.metric else ()),
    ):
        for name in names:
            if name not in [*nameable, *(free if argument == "public" else [])]:
                raise DomainError(
                    f"{argument} names {name!r}, which is neither an observed variable nor a pm.Data of the model "
                    f"(known: {', '.join(map(repr, nameable)) or 'none'}).{_validate.nearest(name, nameable)}"
                )
    check_pairs(findings)
    _check_twice(findings)
    _check_arrays(findings)
    check_levels(findings)
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
    findings.apart = len(lengths) > 1 and not _tied(findings, list(lengths))
    if findings.apart and findings.domain.neighbours == "add_remove":
        findings.cause("model", NOT_TIED.format(_few(list(lengths))), TIE)
        findings.settled = True  # what else would be said depends on these lengths
    elif len(set(lengths.values())) > 1:
        shown = "of different lengths" if findings.domain.neighbours == "add_remove" else f"of lengths {lengths}"
        findings.problem(
            "model",
            f"the observed variables are {shown}, so no axis counts the rows of one table",
            f"Join them to one table, with a column that says where a row belongs: {_joined(list(lengths))}; or split "
            "the model.",
        )
    n_rows = next(iter(lengths.values()), 0)
    if findings.domain.neighbours == "replace" and lengths and n_rows == 0:
        remedy = "There is nothing to release; sample the prior instead. Where rows= holds the table, keep a dummy row."
        findings.problem("model", "the table has 0 rows", remedy)
    return n_rows


NOT_TIED = "nothing says that {} have the same rows, and their lengths, which are private, must not say it"
TIE = (
    "If they have, say so: pm.Model(coords={'row': range(len(y))}), and dims='row' for each of them. Else write a "
    "model of each."
)


def _few(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} and others"


def _tied(findings: Findings, names: Sequence[str]) -> bool:
    """Whether the model says that observed variables have the same rows: by dims, or by arrays that they share.

    Lengths are not compared.
    """
    model, dims = findings.model, findings.model.named_vars_to_dims
    if len({(dims.get(name) or (None,))[0] for name in names} - {None}) == 1 and all(dims.get(name) for name in names):
        return True
    groups = list[set[object]]()
    for name in names:
        rv, value, leaf = model[name], model.rvs_to_values[model[name]], findings.data_of[model[name]]
        known = {var: True for var in (rv, value, leaf) if var is not None}
        meeting = RowAxis(known=known, n_rows=None).among([rv], stop=model.free_RVs)
        read = set(model.observed_RVs).intersection(ancestors([rv], blockers=model.free_RVs))
        own = {*known, *meeting, *read} - set(model.free_RVs)
        arrays = {same_array(var) if isinstance(var, Constant) else var for var in own}
        others = [group for group in groups if not group.isdisjoint(arrays)]
        groups = [group for group in groups if group not in others] + [arrays.union(*others)]
    return len(groups) == 1


def _joined(names: Sequence[str]) -> str:
    """Return code that writes two groups of unequal length as one table."""
    first, second = names[:2]
    return (
        f"group = np.repeat([0, 1], [len({first}), len({second})]); values = np.concatenate([{first}, {second}]); then "
        "pm.Normal('y', mu[pm.Data('group', group)], sigma, observed=values), with mu of shape 2"
    )


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
    findings.row_dims = frozenset(str(dim) for dim in found if dim is not None)
    free, axis = findings.model.free_RVs, findings.axis
    meeting = axis.among(findings.model.observed_RVs, stop=free)
    named = [*findings.model.data_vars, *findings.model.deterministics]
    found |= {dims[var.name][0] for var in named if var in meeting and dims.get(var.name)}
    findings.on_rows = meeting | axis.among(findings.model.deterministics, stop=free)
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


def check_priors(findings: Findings) -> None:
    """Refuse rows in priors, Potentials and initial values: no noise covers them there."""
    model = findings.model
    free = list(model.free_RVs)
    for rv in free:
        dims = model.named_vars_to_dims.get(rv.name) or ()
        if any(dim in findings.row_dims for dim in dims) and rv.name not in findings.causes:
            latent_of_rows(findings, rv)
        _check_unread(findings, rv)
        if rv.name in findings.causes:
            continue  # what its prior depends on, likelihoods may
        others = [var for var in free if var is not rv]
        ends = [*_inputs(rv), *_hidden_parts(findings, rv)]
        own = _declared_shape(findings, rv)
        _check_lengths(findings, rv, others)
        _check_reach(findings, rv.name, f"the prior of {rv.name!r}", ends, others, strict=False, own_shape=own)
    for potential in model.potentials:
        before = len(findings.problems)
        _check_lengths(findings, potential, free)
        _check_reach(findings, potential.name, f"the Potential {potential.name!r}", [potential], free, strict=True)
        first = findings.problems[before : before + 1]  # others follow from it
        findings.problems[before:] = [replace(one, kind="cause") for one in first]
    for rv, initval in model.rvs_to_initial_values.items():
        if isinstance(initval, Variable):
            _check_reach(findings, rv.name, f"the initial value of {rv.name!r}", [initval], free, strict=True)
        elif initval is not None and not isinstance(initval, str):
            shape = np.shape(initval)
            declared = tuple(np.shape(initval)) == _declared_shape(findings, rv)
            if (
                findings.domain.neighbours == "replace"
                and findings.n_rows > 1
                and findings.n_rows in shape
                and not declared
            ):
                findings.problem(rv.name, "its initial value has one entry per row", "Leave initval out.")


def check_likelihood(
    findings: Findings, where: str, holder: str, ends: Sequence[Variable], stop: Sequence[Variable]
) -> None:
    """Refuse what a likelihood may not hold other than through `stop`: opaque operations, unregistered draws."""
    check_operations(findings, where, f"the likelihood of {where!r}", ends, stop)
    for var in ancestors(list(ends), blockers=list(stop)):
        if var.owner is not None and isinstance(var.owner.op, RandomVariable) and var not in stop:
            findings.problem(
                where,
                f"its {holder} a random draw that is not a variable of the model",
                "Register the variable with a name.",
            )


def check_operations(
    findings: Findings, where: str, what: str, ends: Sequence[Variable], stop: Sequence[Variable]
) -> None:
    """Refuse what cannot be looked into: Python code, and shared variables that the model does not know."""
    for name in opaque(ends, stop):
        findings.problem(where, f"operation {name} reaches {what} and may hold anything", "Use PyTensor's operations.")
    known = {*findings.model.data_vars, *findings.model.dim_lengths.values(), *findings.private_variables}
    for var in reached(ends, stop):
        if isinstance(var, SharedVariable) and isinstance(var.type, TensorType) and var not in known:
            findings.problem(
                where,
                f"a shared variable ({label(var)}) that is no pm.Data of the model reaches {what}",
                "If it is public, register it by pm.Data.",
            )


def _check_reach(
    findings: Findings,
    where: str,
    what: str,
    ends: Sequence[Variable],
    stop: Sequence[Variable],
    *,
    strict: bool,
    own_shape: tuple[int, ...] | None = None,
) -> None:
    check_operations(findings, where, what, ends, stop)
    private = [var for var in findings.private_variables if var not in stop]
    found = set(reached(ends, stop))
    for var in private:
        if var in found:
            otherwise = OF_ROWS if strict else _named_or_beforehand(findings, where, var)
            findings.problem(where, f"private data ({label(var)}) reach {what}", otherwise)
    for leaf in arrays_of(findings, ends, stop, single=strict and findings.single_row):
        if leaf in private or is_named(findings, leaf):
            continue
        shown = repr(leaf.name) if leaf.name else "an unnamed array"
        if strict:
            density = where in {potential.name for potential in findings.model.potentials}
            otherwise = f"{OF_ROWS[:1].lower()}{OF_ROWS[1:]}" if density else "leave it out."
            findings.problem(where, f"{shown} reaches {what} and may hold rows", way_to_name(findings, leaf, otherwise))
            continue
        standing = in_prior(findings, where, leaf, own_shape)
        if standing in ("private", "refused"):
            findings.private_variables.append(leaf)
            why = "is not named in Domain(public=)" if standing == "private" else "may hold rows"
            findings.problem(where, f"{shown} reaches {what} and {why}", _named_or_beforehand(findings, where, leaf))


def _check_unread(findings: Findings, rv: Variable) -> None:
    """Refuse a variable of an undeclared length that no likelihood reads, where the number of rows is private."""
    model = findings.model
    if findings.domain.neighbours == "replace" or not rv.type.ndim:
        return
    dims = model.named_vars_to_dims.get(rv.name) or ()
    named = bool(dims) and all(model.coords.get(dim) is not None for dim in dims)
    if not named and not any(depends_on(end, [rv]) for end in [*model.observed_RVs, *model.potentials]):
        what = "no likelihood reads it, and its length may be the number of rows"
        findings.problem(rv.name, what, "Give it dims with coords, or leave it out.")


def _check_lengths(findings: Findings, end: Variable, stop: Sequence[Variable]) -> None:
    """Refuse the length of a dimension as a value of a prior or a Potential."""
    if reads_lengths(findings, [end], stop):
        findings.problem(str(end.name), "it uses the length of a dimension as a value", BEFOREHAND)


def reads_lengths(findings: Findings, ends: Sequence[Variable], stop: Sequence[Variable]) -> bool:
    """Whether the length of a dimension is read as a value, where it may be the private number of rows."""
    lengths = set(findings.model.dim_lengths.values())
    hidden = findings.domain.neighbours == "add_remove"
    return hidden and not lengths.isdisjoint(values_read(ends, stop, lengths=False))


def _named_or_beforehand(findings: Findings, where: str, leaf: Variable) -> str:
    """Return what to write for an array that a prior reads: of a column of the table, that it must not."""
    dims = findings.model.named_vars_to_dims.get(leaf.name or "") or ()
    column = leaf in findings.on_rows or any(dim in findings.row_dims for dim in dims)
    named = isinstance(leaf, Constant) or is_data(findings, leaf)
    named = named and not (column or leaf in findings.data_of.values())
    return way_to_name_in_prior(findings, where, leaf) if named else BEFOREHAND


def _declared_shape(findings: Findings, rv: Variable) -> tuple[int, ...] | None:
    """Lengths of the named dims of a free variable: an array of this shape in its prior belongs to these dims."""
    dims = findings.model.named_vars_to_dims.get(rv.name)
    if not dims or None in dims:
        return None
    return tuple(dim_length(findings.model.dim_lengths[dim]) for dim in dims)


def _hidden_parts(findings: Findings, rv: Variable) -> list[Variable]:
    """Graphs of a prior that are not inputs of its random variable: its transform, and a hand-written density."""
    value = findings.model.rvs_to_values[rv]
    parts: list[Variable] = []
    transform = findings.model.rvs_to_transforms.get(rv)
    try:
        if transform is not None:
            parts.append(transform.backward(value, *rv.owner.inputs))
            parts.append(transform.log_jac_det(value, *rv.owner.inputs))
        if isinstance(rv.owner.op, CustomSymbolicDistRV):
            parts += [pm_logp(rv, rv.type()), support_point(rv)]
        followed = not isinstance(rv.owner.op, CustomDistRV)
    except Exception:
        followed = False
    if not followed:
        findings.problem(
            rv.name,
            "its density or transform is Python code, which cannot be followed",
            "Use a distribution and a transform of PyMC, or pm.CustomDist(dist=...).",
        )
    return parts


def _inputs(rv: Variable) -> list[Variable]:
    """Inputs of a random variable that can carry data: all but a constant size."""
    return [var for place, var in enumerate(rv.owner.inputs) if not (place == 1 and isinstance(var, Constant))]


__all__ = ["VECTORS", "entries_of"]
