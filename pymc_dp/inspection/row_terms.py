"""The log-likelihood as a sum of terms, one per row: for samplers that clip what a row adds, whatever it holds.

Statistics need discrete columns and known families. Here a row may hold any arrays, and its density may be any graph,
as long as the rows are proved to be kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.utils import MissingInputError

from pymc_dp.domain import Domain
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.beside_likelihoods import check_likelihood
from pymc_dp.inspection.clamped import unclamped
from pymc_dp.inspection.findings import Findings, Inspection, Observed
from pymc_dp.inspection.inspect import begin, conclude, read_schema
from pymc_dp.inspection.likelihoods import freeze_dims, likelihood_of
from pymc_dp.inspection.metric_columns import check_known, check_metric
from pymc_dp.inspection.row_columns import Implied, RowColumn, implied_by, row_column
from pymc_dp.inspection.row_density import density, marked, per_row, unchecked
from pymc_dp.inspection.row_level import row_level_arrays
from pymc_dp.inspection.rows import reached
from pymc_dp.inspection.shared import kept_while_shared
from pymc_dp.inspection.taint import RowFlow, trace_rows
from pymc_dp.inspection.triangular import filled

SEPARATE = (
    "Keep rows apart: combine row-level arrays elementwise, by X @ b, by sums along other axes, or as an index into a "
    "parameter."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowTerm:
    """The log-likelihood of one observed variable, as a graph over stand-ins of the free variables.

    Attributes
    ----------
    name : str
    logp : Variable
        (n_rows, ...) graph over `RowInspection.stand_ins` and the leaves of the columns; parameter checks left out.
    checked : Variable
        The same with PyMC's parameter checks left in: what must be proved before `logp` is the density anywhere.
    flow : RowFlow
        Where rows vary in `logp`.
    """

    name: str
    logp: Variable
    checked: Variable
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


@kept_while_shared
def inspect_rows(model: Model, domain: Domain | None = None, *, per_unit: bool = False) -> RowInspection:
    """Inspect a model for the terms of its rows; never raises for what it finds in it, but collects the problems.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain, optional
        Defaults to ``Domain()``: replace-one-row neighbours, no bounds.
    per_unit : bool
        Whether the caller accounts ε per unit of ``domain.metric``. If not, a metric is a problem.

    Notes
    -----
    Reads shapes and dtypes of private arrays, never a value. Private data must reach nothing but the likelihoods, as
    for `inspect`; unlike there, columns may be continuous, of several dimensions and without bounds. Public columns are
    read, for the range of their values.
    """
    findings = begin(model, domain)
    check_known(findings, per_unit=per_unit)
    read_schema(findings, wide=True)
    frozen = freeze_dims(findings)
    stand_ins = tuple(pt.TensorType(rv.type.dtype, frozen.get(rv, rv).type.shape)(rv.name) for rv in model.free_RVs)
    leaves: dict[Variable, list[Implied]] = {}
    terms, observed = [], []
    for rv in model.observed_RVs:
        term = _term(findings, rv, frozen, stand_ins, leaves)
        if term is not None:
            terms.append(term)
            observed.append(_observed(findings, rv))
    flows = [term.flow for term in terms]
    columns = [row_column(findings, leaf, place, flows, found) for place, (leaf, found) in enumerate(leaves.items())]
    _check_norms(findings, leaves)
    check_metric(findings, [((column.name, *column.aliases), column.public) for column in columns])
    inspection = conclude(findings, observed)
    return RowInspection(
        **{item.name: getattr(inspection, item.name) for item in fields(Inspection)},
        terms=tuple(terms),
        columns=tuple(columns),
        stand_ins=stand_ins,
    )


def _observed(findings: Findings, rv: Variable) -> Observed:
    distribution, parameters = likelihood_of(unclamped(rv))
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


def _check_norms(findings: Findings, leaves: Mapping[Variable, object]) -> None:
    """Refuse a norm that nothing keeps."""
    held = {str(rv.name): leaf for rv, leaf in findings.data_of.items()}
    for name in findings.domain.norms:
        if held.get(name, findings.model[name]) not in leaves:
            findings.problem(name, "its norm is not used: it is no column that a likelihood reads", "Leave it out.")


def _term(
    findings: Findings,
    rv: Variable,
    frozen: dict[Variable, Variable],
    stand_ins: Sequence[Variable],
    leaves: dict[Variable, list[Implied]],
) -> RowTerm | None:
    findings.private[rv.name] = None
    if findings.data_of[rv] is None:
        return None
    lengths = {length: frozen[length] for length in findings.model.dim_lengths.values() if length in frozen}
    values = findings.model.rvs_to_values
    others = {other: values[other] for other in findings.data_of if other is not rv}
    free = dict(zip(findings.model.free_RVs, stand_ins, strict=True))
    axis = findings.axis
    try:
        (plain,), _ = rebuild(list(filled([rv])), {**lengths, **others, **free})
        whole = density(plain, values[rv])
        checked = per_row(whole, axis)
        logp = unchecked(checked)
        _check_lengths(findings, rv, {**others, **free})
    except NotImplementedError:
        findings.problem(rv.name, "PyMC has no log-density for it", "Use a distribution with one, or pm.CustomDist.")
        return None
    except (ValueError, TypeError, IndexError):  # of PyTensor, about lengths
        findings.problem(
            rv.name,
            "its density cannot be written for one row: lengths do not fit, or a value that is repeated for every row "
            "is joined with a column",
            "Leave shape= out, and add what all rows have in common as a term of its own: intercept + X @ b.",
        )
        return None
    except MissingInputError:
        findings.problem(
            rv.name,
            ("its density depends on something that is not a variable of the model"),
            "Register it with a name.",
        )
        return None
    check_likelihood(findings, rv.name, "density holds", [checked], stand_ins)
    levels = {**dict.fromkeys(stand_ins), **row_level_arrays(findings, rv, [checked], stand_ins, axis, wide=True)}
    flow = trace_rows([logp], levels)
    # What is repeated for every row may only meet rows one by one; a sum of it would not be the same without.
    repeated, markers = marked(unchecked(whole), axis)
    for text in (*flow.problems, *trace_rows([repeated], {**levels, **markers}).problems):
        findings.problem(rv.name, text, SEPARATE)
    if not flow.problems and logp.type.ndim == 0:
        findings.problem(rv.name, "it is one term for all rows together, so it does not factorise over rows", SEPARATE)
    elif not flow.problems and flow.axes[logp] not in (None, 0):
        findings.problem(rv.name, "its terms vary over rows along an axis other than the first", "Let rows be axis 0.")
    for leaf in (leaf for leaf, axis in levels.items() if axis is not None):
        leaves.setdefault(leaf, []).extend(implied_by(unclamped(plain)) if leaf is findings.data_of[rv] else [])
    return RowTerm(name=rv.name, logp=logp, checked=checked, flow=flow)


def _check_lengths(findings: Findings, rv: Variable, known: Mapping[Variable, Variable]) -> None:
    """Refuse a density that uses the number of rows as a value; under ``add_remove`` the length of any dimension."""
    counts = {
        length
        for dim, length in findings.model.dim_lengths.items()
        if dim in findings.row_dims or findings.domain.neighbours == "add_remove"
    }
    stand_ins = {length: pt.scalar(dtype=length.type.dtype) for length in counts}
    (plain,), _ = rebuild(list(filled([rv])), {**known, **stand_ins})
    logp = per_row(unchecked(density(plain, findings.model.rvs_to_values[rv])), findings.axis)
    # A density written by hand may hold the length itself.
    own = {length for length in counts if not isinstance(length, Constant)}
    if {*stand_ins.values(), *own} & set(reached([logp])):
        findings.problem(
            rv.name,
            "the number of rows is used as a value in its likelihood",
            "Write a number that is known beforehand, or take it out.",
        )


__all__ = ["RowColumn", "RowInspection", "RowTerm", "inspect_rows", "per_row"]
