"""The log-likelihood as a sum of terms, one per row: for samplers that clip what a row adds, whatever it holds.

Statistics need discrete columns and known families. Here a row may hold any arrays, and its density may be any graph,
as long as the rows are proved to be kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.utils import MissingInputError

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.beside_likelihoods import check_likelihood
from pymc_dp.inspection.clamped import unclamped
from pymc_dp.inspection.columns import Implied, implied_by, row_column
from pymc_dp.inspection.findings import Findings, Observed, RowTerm
from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.inspection.row_density import density, marked, per_row, unchecked
from pymc_dp.inspection.row_level import row_level_arrays
from pymc_dp.inspection.rows import Column, reached
from pymc_dp.inspection.taint import trace_rows
from pymc_dp.inspection.triangular import filled

SEPARATE = (
    "Keep rows apart: combine row-level arrays elementwise, by X @ b, by sums along other axes, or as an index into a "
    "parameter."
)


def follow_rows(
    findings: Findings, frozen: Mapping[Variable, Variable]
) -> tuple[tuple[Variable, ...], list[RowTerm], list[Column]]:
    """Follow every density; return what stands for the free variables, the terms, and the columns of the table.

    Private data must reach nothing but the likelihoods, as for sums; unlike there, columns may be continuous, of
    several dimensions and without bounds. Public columns are read, for the range of their values.
    """
    stand_ins = tuple(
        pt.TensorType(rv.type.dtype, frozen.get(rv, rv).type.shape)(rv.name) for rv in findings.model.free_RVs
    )
    leaves: dict[Variable, list[Implied]] = {}
    followed = [_term(findings, rv, frozen, stand_ins, leaves) for rv in findings.model.observed_RVs]
    terms = [term for term in followed if term is not None]
    flows = [term.flow for term in terms]
    columns = [row_column(findings, leaf, place, flows, found) for place, (leaf, found) in enumerate(leaves.items())]
    return stand_ins, terms, columns


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
        free=(),
        columns=(),
        static_shapes=(),
        bounds=None,
    )


def _term(
    findings: Findings,
    rv: Variable,
    frozen: Mapping[Variable, Variable],
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


__all__ = ["follow_rows", "likelihood_alone"]
