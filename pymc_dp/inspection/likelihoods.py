"""One observed variable: which likelihood it has, and the row-level arrays that reach its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import MakeVector, get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.random.op import RandomVariable

from pymc_dp._column_bounds import hull_of
from pymc_dp.errors import Problem
from pymc_dp.inspection.causes import refuse_latents
from pymc_dp.inspection.columns import find_columns
from pymc_dp.inspection.computed.indices import Indexed, with_computed_indices
from pymc_dp.inspection.cumulative import Cumulative, cumulative_graphs, own_numbers, row_wise
from pymc_dp.inspection.design import REGRESSIONS, find_design, is_design, numeric_columns
from pymc_dp.inspection.exposures import EXPOSED, exposure_of
from pymc_dp.inspection.findings import Findings, Observed, title_of
from pymc_dp.inspection.leaves import by_leaf
from pymc_dp.inspection.made_by_pymc import parameters_without_arrays, without_arrays
from pymc_dp.inspection.row_density import ClampedRV, kept_apart, per_row, unchecked, unclamped
from pymc_dp.inspection.row_level import row_level_arrays
from pymc_dp.inspection.rows import reached, rebuild, shape_of, unwrap
from pymc_dp.inspection.schema import check_likelihood, dim_length, entries_of
from pymc_dp.inspection.stated import statement_of
from pymc_dp.inspection.taint import PER_ROW, RowFlow, depends_on, label, trace_rows, way_out
from pymc_dp.inspection.totals import WITH_TOTALS, totals_of

SEPARATE = "Index a parameter by a discrete column of the table, p[column], and keep every other step elementwise."
COUNTED = (
    "the number of rows is used as a value in its likelihood",
    "Write a number that is known beforehand, or take it out.",
)
PLAIN = "[rng],[size],(),()->[rng],()"
"""Signature of a distribution of two numbers that is written as a graph, such as ``pm.Weibull``."""


def likelihood_of(rv: Variable) -> tuple[str, tuple[Variable, ...] | None]:
    """Return the name of a likelihood and its parameters, or None where it is no plain distribution."""
    op: Any = rv.owner.op
    if isinstance(op, ClampedRV):
        return "clamped by dp.clamp", None
    name = getattr(op, "name", None) or type(op).__name__
    if statement_of(rv) is not None:
        return f"{title_of(rv)} of stated statistics", tuple(op.dist_params(rv.owner))
    third_party = type(op).__module__.partition(".")[0] not in ("pytensor", "pymc")
    if third_party or isinstance(op, CustomDistRV):  # whatever its class_name says, its density is the user's own
        return "a density of its own", None
    if isinstance(op, SymbolicRandomVariable) and op.extended_signature == PLAIN:
        return str(name), parameters_without_arrays(rv, rv.owner.inputs[2:])
    if not isinstance(op, RandomVariable) or op.ndim_supp != entries_of(rv):
        return str(name), None
    return str(name), parameters_without_arrays(rv, op.dist_params(rv.owner))


def freeze_dims(findings: Findings) -> dict[Variable, Variable]:
    """Map the model's variables to ones with static shapes: of dims other than rows, and of public arrays without rows.

    Both are public schema.
    """
    lengths: dict[Variable, Variable] = {
        length: pt.constant(np.int64(dim_length(length)))
        for length in findings.model.dim_lengths.values()
        if not isinstance(length, Constant)
    }
    lengths |= {leaf: pt.specify_shape(leaf, shape_of(leaf)) for leaf in _public_without_rows(findings)}
    keep = {rv: rv for rv in findings.model.observed_RVs}
    ends: list[Variable] = list(findings.model.free_RVs)
    for rv in findings.model.observed_RVs:
        ends += likelihood_of(rv)[1] or ()
    known = rebuild(ends, {**lengths, **keep})[1]
    shapes = {rv: _shape_by_dims(findings, rv, known.get(rv, rv)) for rv in findings.model.free_RVs}
    stand_ins: dict[Variable, Variable] = {
        rv: pt.TensorType(rv.type.dtype, shape)(rv.name) for rv, shape in shapes.items() if shape is not None
    }
    return rebuild(ends, {**lengths, **keep, **stand_ins})[1] if stand_ins else known


def static_lengths(model: Model, frozen: Mapping[Variable, Variable]) -> dict[Variable, Variable]:
    """Return what stands for lengths of dims, and for public arrays whose shape is known, of what was frozen."""
    return {var: frozen[var] for var in (*model.dim_lengths.values(), *model.data_vars) if var in frozen}


def _public_without_rows(findings: Findings) -> list[Variable]:
    dims, found = findings.model.named_vars_to_dims, []
    held = [unwrap(value) for rv, value in findings.model.rvs_to_values.items() if rv in findings.model.observed_RVs]
    lengths = {shape_of(leaf)[:1] for leaf in held if isinstance(leaf, Constant | SharedVariable)}
    for leaf in findings.model.data_vars:
        own = list(dims.get(leaf.name or "") or ())
        by_dims = bool(own) and own[0] not in findings.row_dims
        by_length = findings.domain.neighbours == "replace" and shape_of(leaf)[:1] not in lengths
        if leaf.name in findings.domain.public and leaf.type.ndim and (by_dims or by_length):
            found.append(leaf)
    return found


def _shape_by_dims(findings: Findings, rv: Variable, frozen: Variable) -> tuple[int, ...] | None:
    """Shape of a free variable whose operation does not say it itself (``pm.Truncated``), else None.

    Read off the dims, or off a constant size: both are schema.
    """
    if None not in frozen.type.shape:
        return None
    dims = findings.model.named_vars_to_dims.get(rv.name)
    if dims is not None:
        if None in dims:
            return None
        return tuple(dim_length(findings.model.dim_lengths[dim]) for dim in dims)
    size = frozen.owner.inputs[1] if frozen.owner is not None and len(frozen.owner.inputs) > 1 else None
    if size is None or size.owner is None or not isinstance(size.owner.op, MakeVector):
        return None
    try:
        parts = tuple(int(get_underlying_scalar_constant_value(item)) for item in size.owner.inputs)
    except NotScalarConstantError:
        return None
    return parts if len(parts) == rv.type.ndim else None


def observe(findings: Findings, rv: Variable, frozen: Mapping[Variable, Variable]) -> Observed | None:
    """Return what a likelihood is once its rows are proved separable; None where it cannot be released at all."""
    findings.private[rv.name] = None
    leaf = findings.data_of[rv]
    distribution, parameters = likelihood_of(rv)
    if parameters is None and leaf is not None and has_rows_of_numbers(rv):
        return _observe_cumulative(findings, rv, frozen)
    if parameters is None or leaf is None:
        what = f"its likelihood ({distribution}) is not a plain distribution of independent rows"
        if leaf is not None:
            findings.problem(rv.name, what, "Use one of the likelihoods that dp.explain lists, with one value per row.")
        return None
    if rv.type.ndim != 1 + entries_of(rv):
        if entries_of(rv) and rv.type.ndim < 2:
            what = f"it is one row alone (of the likelihood {title_of(rv)}), so there is no axis that counts rows"
            findings.problem(rv.name, what, "Observe one vector per row, rows along the first axis.")
        return None
    if entries_of(rv):
        _check_vectors(findings, rv, leaf, parameters)
    now = [frozen.get(var, var) for var in parameters]
    free = [frozen.get(var, var) for var in findings.model.free_RVs]
    others = [var for var in findings.model.observed_RVs if var is not rv]
    distribution, _ = likelihood_of(rv)
    along = [var for var, own in zip(now, rv.owner.op.ndims_params, strict=True) if var.type.ndim > own]
    arrays = row_level_arrays(
        findings, rv, now, [*free, *others], findings.axis, along=along, wide=distribution in REGRESSIONS
    )
    row_level = {**_levels(now, free, others), **arrays}
    flow = trace_rows(now, row_level)
    texts = [*flow.problems, *([PER_ROW] * any(_has_entries(flow, var) for var in now))]
    stands = dict(zip(free, findings.model.free_RVs, strict=True))
    if refuse_latents(findings, rv, now, row_level, stands, texts):
        return None
    for text in flow.problems:
        findings.problem(rv.name, text, way_out(text, SEPARATE))
    for var in now:
        if flow.axes[var] not in (None, 0):
            findings.problem(
                rv.name, "a parameter varies over rows along an axis other than the first", "Let rows be axis 0."
            )
        if _has_entries(flow, var):
            findings.problem(
                rv.name,
                f"{label(var)} has an entry of its own for every row ({PER_ROW})",
                "Let rows share parameters: index them by a column with a few public levels.",
            )
    check_likelihood(findings, rv.name, "parameters hold", now, [*free, *others])
    totals = totals_of(findings, distribution, now, row_level)
    if totals is not None:
        distribution, parameters, now = WITH_TOTALS[distribution], parameters[1:], now[1:]
        row_level = {var: axis for var, axis in row_level.items() if var is not totals.leaf}
    exposure = exposure_of(findings, rv.name, distribution, now, row_level, flow, free)
    if isinstance(exposure, Problem):
        findings.problem(exposure.where, exposure.what, exposure.remedy, exposure.kind)
        return None
    if exposure is not None:
        distribution, totals, row_level, flow = EXPOSED, exposure.column, dict(exposure.row_level), exposure.flow
        now = [exposure.rate]
        parameters = tuple(rebuild(now, stands)[0])
    indexed = with_computed_indices(findings, rv.name, now, row_level, flow, free)
    if is_design(findings, distribution, indexed.row_level):
        return _observe_design(findings, rv, indexed, stands)
    columns = [*find_columns(findings, rv, indexed.row_level, indexed.flow), *indexed.columns]
    variable = rv
    if indexed.columns:
        old, parameters, now = parameters, tuple(rebuild(indexed.ends, stands)[0]), indexed.ends
        (variable,), _ = rebuild([rv], dict(zip(old, parameters, strict=True)))  # of no row but by its columns
    return Observed(
        name=rv.name,
        variable=variable,
        leaf=leaf,
        distribution=distribution,
        parameters=tuple(parameters),
        free=tuple(depends_on(var, findings.model.free_RVs) for var in parameters),
        columns=tuple(columns),
        static_shapes=tuple(tuple(var.type.shape) for var in now),
        bounds=_bounds(findings, rv),
        totals=totals,
    )


def _has_entries(flow: RowFlow, var: Variable) -> bool:
    """Whether a parameter is free of rows and yet has more than one entry along their axis."""
    return flow.axes[var] is None and not flow.problems and not all(var.type.broadcastable[:1])


def _levels(
    ends: Sequence[Variable], free: Sequence[Variable], others: Sequence[Variable]
) -> dict[Variable, int | None]:
    """Return the variables that `ends` depend on: free ones do not vary over rows, other observed ones do."""
    reached_openly = set(ancestors(list(ends), blockers=[*free, *others]))
    return {**dict.fromkeys(free), **{other: 0 for other in others if other in reached_openly}}


def _observe_design(
    findings: Findings, rv: Variable, indexed: Indexed, free: Mapping[Variable, Variable]
) -> Observed | None:
    """Return a regression on continuous columns, its indices as columns."""
    row_level, flow = indexed.row_level, indexed.flow
    if any(findings.data_of.get(var, var) is None for var in row_level):  # a problem by itself
        return None
    numeric = numeric_columns(row_level, flow)
    discrete = {var: axis for var, axis in row_level.items() if var not in numeric}
    wide = [var for var, axis in discrete.items() if axis is not None and var.type.ndim > 1]
    for var in wide:
        shown = repr(var.name) if var.name else "an unnamed array"
        what = f"{shown} has {var.type.ndim} dimensions and is an index"
        findings.problem(rv.name, what, "Wrap each of its columns in its own pm.Data.")
    if wide:
        return None
    found = find_columns(findings, rv, discrete, flow)
    if len(found) < len(by_leaf(findings, discrete)):  # a problem by itself
        return None
    columns = [*found, *indexed.columns]
    indices = [var for column in columns for var in column.stand_ins]
    distribution, _ = likelihood_of(rv)
    design = find_design(findings, rv.name, distribution, indexed.ends, numeric, indices, free, flow)
    if design is None:
        return None
    return Observed(
        name=rv.name,
        variable=rv,
        leaf=findings.data_of[rv],
        distribution=distribution,
        columns=tuple(columns),
        bounds=_bounds(findings, rv),
        design=design,
    )


def has_rows_of_numbers(rv: Variable) -> bool:
    """Whether a random variable has one number per row, as far as its operation says."""
    op = rv.owner.op
    return isinstance(op, RandomVariable | SymbolicRandomVariable) and op.ndim_supp == 0 and rv.type.ndim == 1


def _observe_cumulative(findings: Findings, rv: Variable, frozen: Mapping[Variable, Variable]) -> Observed | None:
    """Return what a likelihood is that has no parameters of its own: a distribution function, read from the model."""
    model = findings.model
    others = [var for var in model.observed_RVs if var is not rv]
    stand_ins = dict(zip(model.free_RVs, stand_ins_of(findings, frozen), strict=True))
    free, known = list(stand_ins.values()), {**{other: other for other in others}, **stand_ins}
    lengths = static_lengths(model, frozen)
    at = pt.tensor("at", shape=(None,), dtype=rv.type.dtype)
    axis = findings.axis.beside(at)
    try:
        plain = rebuild(list(without_arrays([rv], known)), {**known, **lengths})[0][0]
        below, graphs = cumulative_graphs(plain, at, axis)
    except Exception:  # of PyMC, or of a density written by hand
        findings.problem(
            rv.name,
            f"its likelihood ({title_of(rv)}) is not a plain distribution, and it has no known distribution function "
            "(logcdf), which counting its values in bins needs",
            "Use a distribution with one (mixtures, censored and truncated ones have it where their parts do), or give "
            "logcdf to pm.CustomDist.",
        )
        return None
    single = [per_row(graph, axis) for graph in graphs]
    row_level = {**_levels(single, free, others), **row_level_arrays(findings, rv, single, [*free, *others], axis)}
    if counts_rows(findings, rv, known, lambda plain: cumulative_graphs(plain, at, axis)[1], beside=[at]):
        findings.problem(rv.name, *COUNTED)
    plainly = [unchecked(graph) for graph in single]
    flow, problems = kept_apart(plainly, graphs, {**row_level, at: 0}, axis)
    if not problems and any(graph.type.ndim != 1 or flow.axes[graph] != 0 for graph in plainly):
        problems.append("its terms are not one number per row")
    if refuse_latents(findings, rv, plainly, row_level, {stand: var for var, stand in stand_ins.items()}, problems):
        return None
    for text in problems[:1]:  # others follow from it
        findings.problem(rv.name, text, way_out(text, SEPARATE))
    columns = find_columns(findings, rv, row_level, flow)
    check_likelihood(findings, rv.name, "density holds", single, [*free, *others])
    if problems:
        return None
    found = row_wise(below, {**row_level, at: 0}, at)
    back = {stand_in: var for var, stand_in in stand_ins.items()}
    findings.cumulatives[rv] = cumulative = Cumulative(
        at=at, below=rebuild([found], back)[0][0], numbers=own_numbers(plain, below)
    )
    return Observed(
        name=rv.name,
        variable=rv,
        leaf=findings.data_of[rv],
        distribution=title_of(rv),
        columns=tuple(columns),
        bounds=_bounds(findings, rv),
        cumulative=cumulative,
    )


def stand_ins_of(findings: Findings, frozen: Mapping[Variable, Variable]) -> tuple[Variable, ...]:
    """Return a plain variable per free variable of the model, of its static shape."""
    free = findings.model.free_RVs
    return tuple(pt.TensorType(rv.type.dtype, frozen.get(rv, rv).type.shape)(rv.name) for rv in free)


def counts_rows(
    findings: Findings,
    rv: Variable,
    known: Mapping[Variable, Variable],
    densities: Callable[[Variable], Sequence[Variable]],
    *,
    beside: Sequence[Variable] = (),
    every: bool = False,
) -> bool:
    """Whether `densities` of a random variable use the number of rows as a value; with `every`, any dimension's length.

    What stands for the variables of the model is `known`; `beside` are others that count rows.
    """
    dims = findings.model.dim_lengths.items()
    counts = {length for dim, length in dims if every or dim in findings.row_dims}
    stand_ins = {length: pt.scalar(dtype=length.type.dtype) for length in counts}
    (plain,), _ = rebuild(list(without_arrays([rv], known)), {**known, **stand_ins})
    axis = findings.axis.beside(*beside)
    ends = [unchecked(per_row(density, axis)) for density in densities(plain)]
    # A density written by hand may hold the length itself.
    own = {length for length in counts if not isinstance(length, Constant)}
    return bool({*stand_ins.values(), *own} & set(reached(ends)))


def _bounds(findings: Findings, rv: Variable) -> tuple[float, float] | None:
    leaf, bounds = findings.data_of[rv], findings.domain.bounds
    found = bounds.get(rv.name) or bounds.get((None if leaf is None else leaf.name) or "")
    return None if found is None else hull_of(found)


def _check_vectors(findings: Findings, rv: Variable, leaf: Variable, parameters: Sequence[Variable]) -> None:
    """Require that one axis of each parameter counts rows, and that vectors of parameters are as long as rows."""
    lengths = {shape_of(leaf)[-1]}
    for var, ndim in zip(parameters, rv.owner.op.ndims_params, strict=True):
        if statement_of(rv) is None:
            lengths |= {length for length in var.type.shape[var.type.ndim - ndim :] if length is not None}
        if var.type.ndim != 1 + ndim:
            findings.problem(
                rv.name,
                "a parameter has more axes than one that counts rows and those of one row",
                "Give every row a vector of parameters, selected by p[column].",
            )
    if len(lengths) > 1:
        findings.problem(
            rv.name,
            f"its rows and parameters are vectors of lengths {sorted(lengths)}",
            "Observe as many entries as its parameters have.",
        )


def check_row_counts(findings: Findings) -> None:
    """Refuse likelihoods that use the length of the row dimension as a number."""
    lengths = {length for dim, length in findings.model.dim_lengths.items() if dim in findings.row_dims}
    for rv in findings.model.observed_RVs:
        if lengths & set(reached(likelihood_of(rv)[1] or (), findings.model.free_RVs)):
            findings.problem(rv.name, *COUNTED)


def likelihood_alone(findings: Findings, rv: Variable) -> Observed:
    """Return an observed variable by its likelihood alone, without what sums of it would need."""
    distribution, parameters = likelihood_of(unclamped(rv))
    leaf = findings.data_of[rv]
    assert leaf is not None
    return Observed(
        name=rv.name,
        variable=rv,
        leaf=leaf,
        distribution=distribution,
        parameters=tuple(parameters or ()),
    )
