"""The log-likelihood as a sum of terms, one per row: for samplers that clip what a row adds, whatever it holds.

Statistics need discrete columns and known families. Here a row may hold any arrays, and its density may be any graph,
as long as the rows are proved to be kept apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.graph.utils import MissingInputError
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.random.basic import CategoricalRV
from pytensor.tensor.shape import Shape_i

from pymc_dp.domain import Domain
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.findings import Findings, Inspection, Observed
from pymc_dp.inspection.inspect import begin, conclude, read_schema
from pymc_dp.inspection.likelihoods import freeze_dims, likelihood_of
from pymc_dp.inspection.reach import check_likelihood
from pymc_dp.inspection.rows import Array, array_leaves, reached, rows_of, shape_of
from pymc_dp.inspection.taint import RowFlow, trace_rows

SEPARATE = (
    "Keep rows apart: combine row-level arrays elementwise, by X @ b, by sums along other axes, or as an index into a "
    "parameter."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowColumn:
    """An array of the table: axis 0 counts rows.

    Attributes
    ----------
    name : str
    leaf : Variable
        The constant or shared variable that holds it.
    bounds : (low, high) or None
        Where values are clamped, NaN going to the middle.
    """

    name: str
    leaf: Variable
    bounds: tuple[float, float] | None

    def read(self) -> Array:
        """Return a clamped, contiguous copy. Reads private data: the budget must have been charged."""
        return self.clamped(rows_of(self.leaf))

    def clamped(self, values: Array) -> Array:
        """Return a contiguous copy of `values`, with the dtype of the column, within its bounds."""
        dtype = np.dtype(self.leaf.type.dtype)
        if self.bounds is None or dtype.kind == "b":
            return np.array(values, dtype=dtype, order="C")
        low, high = self.bounds
        if dtype.kind in "iu":
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
            ends = (max(int(np.ceil(low)), int(least)), min(int(np.floor(high)), int(most)))
            return np.ascontiguousarray(np.clip(values, *ends), dtype=dtype)
        filled = np.where(np.isnan(values), low + (high - low) / 2, values)
        return np.ascontiguousarray(np.clip(filled, low, high), dtype=dtype)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowTerm:
    """The log-likelihood of one observed variable, as a graph over stand-ins of the free variables.

    Attributes
    ----------
    name : str
    logp : Variable
        (n_rows, ...) graph over `RowInspection.stand_ins` and the leaves of the columns; parameter checks left out.
    flow : RowFlow
        Where rows vary in it.
    """

    name: str
    logp: Variable
    flow: RowFlow


@dataclass(frozen=True, kw_only=True, eq=False)
class RowInspection(Inspection):
    """An inspection for samplers that see rows one by one.

    Attributes
    ----------
    terms : tuple of RowTerm
    columns : tuple of RowColumn
    stand_ins : tuple of Variable
        One plain variable per free variable of the model, in their order.
    """

    terms: tuple[RowTerm, ...]
    columns: tuple[RowColumn, ...]
    stand_ins: tuple[Variable, ...]


def inspect_rows(model: Model, domain: Domain | None = None) -> RowInspection:
    """Inspect a model for the terms of its rows; never raises for what it finds in it, but collects the problems.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain, optional
        Defaults to ``Domain()``: replace-one-row neighbours, no bounds.

    Notes
    -----
    Reads shapes and dtypes of private arrays, never a value. Private data must reach nothing but the likelihoods, as
    for `inspect`; unlike there, columns may be continuous, of several dimensions and without bounds.
    """
    findings = begin(model, domain)
    read_schema(findings, wide=True)
    frozen = freeze_dims(findings)
    stand_ins = tuple(
        pt.tensor(rv.name, shape=frozen.get(rv, rv).type.shape, dtype=rv.type.dtype) for rv in model.free_RVs
    )
    leaves: dict[Variable, None] = {}
    terms, observed = [], []
    for rv in model.observed_RVs:
        term = _term(findings, rv, frozen, stand_ins, leaves)
        if term is not None:
            terms.append(term)
            observed.append(_observed(findings, rv))
    inspection = conclude(findings, observed)
    return RowInspection(
        **{item.name: getattr(inspection, item.name) for item in fields(Inspection)},
        terms=tuple(terms),
        columns=tuple(_column(findings, leaf, place) for place, leaf in enumerate(leaves)),
        stand_ins=stand_ins,
    )


def _observed(findings: Findings, rv: Variable) -> Observed:
    distribution, parameters = likelihood_of(rv)
    leaf = findings.data_of[rv]
    assert leaf is not None
    return Observed(
        name=rv.name,
        variable=rv,
        leaf=leaf,
        distribution=distribution,
        parameters=tuple(parameters or ()),
        free=(),
        columns=(),
        static_shapes=(),
        bounds=None,
    )


def _column(findings: Findings, leaf: Variable, place: int) -> RowColumn:
    names = [rv.name for rv, held in findings.data_of.items() if held is leaf]
    names = [leaf.name, *names] if leaf.name else names
    bounds = next((findings.domain.bounds[name] for name in names if name in findings.domain.bounds), None)
    return RowColumn(name=names[0] if names else f"unnamed array {place}", leaf=leaf, bounds=bounds)


def _term(
    findings: Findings,
    rv: Variable,
    frozen: dict[Variable, Variable],
    stand_ins: Sequence[Variable],
    leaves: dict[Variable, None],
) -> RowTerm | None:
    findings.private[rv.name] = None
    if findings.data_of[rv] is None:
        return None
    lengths = {length: frozen[length] for length in findings.model.dim_lengths.values() if length in frozen}
    values = findings.model.rvs_to_values
    others = {other: values[other] for other in findings.data_of if other is not rv}
    free = dict(zip(findings.model.free_RVs, stand_ins, strict=True))
    try:
        (plain,), _ = rebuild([rv], {**lengths, **others, **free})
        density = unchecked(_density(plain, values[rv]))
        logp = per_row(density, findings.n_rows)
        _check_lengths(findings, rv, {**others, **free})
    except NotImplementedError:
        findings.problem(rv.name, "PyMC has no log-density for it", "Use a distribution with one, or pm.CustomDist.")
        return None
    except MissingInputError:
        findings.problem(rv.name, "its density hangs on what is no variable of the model", "Register it with a name.")
        return None
    observed = {leaf for leaf in findings.data_of.values() if leaf is not None}
    check_likelihood(findings, rv.name, "density holds", [logp], stand_ins)
    levels = {**dict.fromkeys(stand_ins), **_row_level(findings, rv, logp, stand_ins, observed)}
    flow = trace_rows([logp], levels)
    # What is repeated for every row may only meet rows one by one; a sum of it would not be the same without.
    marked, markers = _marked(density, findings.n_rows)
    for text in (*flow.problems, *trace_rows([marked], {**levels, **markers}).problems):
        findings.problem(rv.name, text, SEPARATE)
    if not flow.problems and logp.type.ndim == 0:
        findings.problem(rv.name, "it is one term for all rows together, so that rows do not separate", SEPARATE)
    elif not flow.problems and flow.axes[logp] not in (None, 0):
        findings.problem(rv.name, "its terms vary over rows along an axis other than the first", "Let rows be axis 0.")
    leaves.update({leaf: None for leaf, axis in levels.items() if axis is not None})
    return RowTerm(name=rv.name, logp=logp, flow=flow)


def _density(rv: Variable, value: Variable) -> Variable:
    """Return the log-density of every value: PyMC's own, but for the categorical, whose steps mix rows by indexing."""
    if isinstance(rv.owner.op, CategoricalRV):
        (p,) = rv.owner.op.dist_params(rv.owner)
        levels = pt.arange(p.type.shape[-1] or p.shape[-1], dtype="int64")
        return pt.sum(pt.switch(pt.eq(value[..., None], levels), pt.log(p), 0.0), axis=-1)
    return pm.logp(rv, value, warn_rvs=False)


def _check_lengths(findings: Findings, rv: Variable, known: Mapping[Variable, Variable]) -> None:
    """Refuse a density that uses the number of rows as a value; under ``add_remove`` the length of any dimension."""
    counts = {
        length
        for dim, length in findings.model.dim_lengths.items()
        if dim in findings.row_dims or findings.domain.neighbours == "add_remove"
    }
    marked = {length: pt.scalar(dtype=length.type.dtype) for length in counts}
    (plain,), _ = rebuild([rv], {**known, **marked})
    density = per_row(unchecked(_density(plain, findings.model.rvs_to_values[rv])), findings.n_rows)
    # A density written by hand may hold the length itself.
    if {*marked.values(), *(length for length in counts if not isinstance(length, Constant))} & set(reached([density])):
        findings.problem(
            rv.name,
            "the number of rows is used as a value in its likelihood",
            "Write a number that is known beforehand, or take it out.",
        )


def unchecked(density: Variable) -> Variable:
    """Return a density without parameter checks.

    An error raised for one row would show that row: where a parameter is invalid, the gradient is whatever it is, and
    is clipped.
    """
    return _replaced(density, lambda node, inputs: inputs[0] if isinstance(node.op, CheckAndRaise) else None)


def per_row(density: Variable, n_rows: int) -> Variable:
    """Return a density without what only repeats a value for every row: it broadcasts against the rows as before."""

    def single(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if isinstance(node.op, Alloc) and _one_per_row(node.outputs[0], n_rows):
            return _not_repeated(inputs[0], inputs[1:])
        return None

    return _replaced(density, single)


def _marked(density: Variable, n_rows: int) -> tuple[Variable, dict[Variable, int | None]]:
    """Return the density with a row-level column added to whatever it repeats for every row, and these columns."""
    markers: dict[Variable, int | None] = {}

    def with_marker(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if not isinstance(node.op, Alloc) or not _one_per_row(node.outputs[0], n_rows):
            return None
        marker = pt.tensor("repeated", shape=(None, *(1,) * (node.outputs[0].type.ndim - 1)), dtype="float64")
        markers[marker] = 0
        return _not_repeated(inputs[0], inputs[1:]) + marker

    return _replaced(density, with_marker), markers


def _replaced(density: Variable, rule: Callable[[Apply, Sequence[Variable]], Variable | None]) -> Variable:
    memo: dict[Variable, Variable] = {}
    for node in toposort([density]):
        inputs = [memo.get(var, var) for var in node.inputs]
        new = rule(node, inputs)
        if new is not None:
            memo[node.outputs[0]] = new
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            changed = {old: new for old, new in zip(node.inputs, inputs, strict=True) if old is not new}
            memo.update(zip(node.outputs, rebuild(node.outputs, changed)[0], strict=True))
    return memo.get(density, density)


def _one_per_row(repeated: Variable, n_rows: int) -> bool:
    """Whether an array was given the length of the table, as a number or as the length of a column."""
    if repeated.type.shape[:1] == (n_rows,):
        return True
    length = repeated.owner.inputs[1] if len(repeated.owner.inputs) > 1 else None
    if length is None or length.owner is None or not isinstance(length.owner.op, Shape_i) or length.owner.op.i != 0:
        return False
    column = length.owner.inputs[0]
    return isinstance(column, Constant | SharedVariable) and shape_of(column)[:1] == (n_rows,)


def _not_repeated(value: Variable, shape: Sequence[Variable]) -> Variable:
    missing = len(shape) - value.type.ndim
    if missing:
        value = pt.expand_dims(value, tuple(range(missing)))
    rest = list(zip(value.type.broadcastable[1:], shape[1:], strict=True))
    if not any(flag and getattr(length, "data", None) != 1 for flag, length in rest):
        return value
    return pt.alloc(value, value.shape[0] if not value.type.broadcastable[0] else 1, *shape[1:])


def _row_level(
    findings: Findings, rv: Variable, logp: Variable, stand_ins: Sequence[Variable], observed: set[Variable]
) -> dict[Variable, int | None]:
    """Classify the arrays that reach a density: columns (axis 0), and public arrays without the row axis (None)."""
    dims_of, found = findings.model.named_vars_to_dims, dict[Variable, int | None]()
    openly = set(ancestors([logp], blockers=list(stand_ins)))
    for leaf in array_leaves([logp], stand_ins, single=findings.single_row):
        name, shape = leaf.name, shape_of(leaf)
        dims = dims_of.get(name or "")
        shown = repr(name) if name else f"an unnamed array of dtype {leaf.type.dtype}"
        public = name in findings.domain.public and leaf in findings.model.data_vars
        on_rows = shape[0] == findings.n_rows if not (dims and findings.row_dims) else dims[0] in findings.row_dims
        if leaf in observed:
            on_rows = True
            if public:
                findings.problem(
                    rv.name,
                    f"{name!r} is declared public, but it is also what a likelihood observes",
                    "Leave it out of Domain(public=...): what is observed is protected.",
                )
        elif public:
            findings.public[str(name)] = None
        else:
            findings.private[name or f"unnamed array in {rv.name}"] = None
            findings.private_variables.append(leaf)
            if on_rows and dims:
                findings.row_dims |= {str(dims[0])}
        if leaf not in openly:
            findings.problem(
                rv.name,
                f"an array inside a composite operation ({shown}) reaches the likelihood",
                "Write the expression with plain PyTensor operations, so that it can be followed.",
            )
        elif on_rows and shape[0] != findings.n_rows:
            findings.problem(
                rv.name,
                f"{shown} and the observed values have different numbers of rows",
                "Give every column of the table the same length, for example by one pm.set_data for all.",
            )
        elif not on_rows and not public:
            findings.problem(
                rv.name,
                f"{shown} reaches the likelihood and does not have the row axis, so the influence of a row on "
                "it is unknown",
                "If it is public, wrap it in pm.Data and name it in Domain(public=...); if it comes from the rows, "
                "take it out.",
            )
        found[leaf] = 0 if on_rows else None
        if on_rows:
            findings.row_leaves.add(leaf)
    return found


__all__ = ["RowColumn", "RowInspection", "RowTerm", "inspect_rows", "per_row"]
