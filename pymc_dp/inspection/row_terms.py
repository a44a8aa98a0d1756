"""The log-likelihood as a sum of terms, one per row: for samplers that clip what a row adds, whatever it holds.

Statistics need discrete columns and known families. Here a row may hold any arrays, and its density may be any graph,
as long as the rows are proved to be kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytensor.graph.basic import Variable
from pytensor.graph.utils import MissingInputError

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.beside_likelihoods import check_likelihood
from pymc_dp.inspection.clamped import unclamped
from pymc_dp.inspection.columns import Implied, implied_by, row_column
from pymc_dp.inspection.findings import Findings, Observed, RowTerm
from pymc_dp.inspection.likelihoods import COUNTED, counts_rows, likelihood_of, stand_ins_of
from pymc_dp.inspection.row_density import density, kept_apart, per_row, unchecked
from pymc_dp.inspection.row_level import row_level_arrays
from pymc_dp.inspection.rows import Column
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
    stand_ins = stand_ins_of(findings, frozen)
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
    values, value = findings.model.rvs_to_values, findings.model.rvs_to_values[rv]
    others = {other: values[other] for other in findings.data_of if other is not rv}
    free = dict(zip(findings.model.free_RVs, stand_ins, strict=True))
    axis, hidden = findings.axis, findings.domain.neighbours == "add_remove"
    try:
        (plain,), _ = rebuild(list(filled([rv])), {**lengths, **others, **free})
        whole = density(plain, value)
        checked = per_row(whole, axis)
        logp = unchecked(checked)
        counted = counts_rows(findings, rv, {**others, **free}, lambda rv: [density(rv, value)], every=hidden)
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
    if counted:
        findings.problem(rv.name, *COUNTED)
    check_likelihood(findings, rv.name, "density holds", [checked], stand_ins)
    levels = {**dict.fromkeys(stand_ins), **row_level_arrays(findings, rv, [checked], stand_ins, axis, wide=True)}
    flow, problems = kept_apart([logp], [whole], levels, axis)
    for text in problems:
        findings.problem(rv.name, text, SEPARATE)
    if not flow.problems and logp.type.ndim == 0:
        findings.problem(rv.name, "it is one term for all rows together, so it does not factorise over rows", SEPARATE)
    elif not flow.problems and flow.axes[logp] not in (None, 0):
        findings.problem(rv.name, "its terms vary over rows along an axis other than the first", "Let rows be axis 0.")
    for leaf in (leaf for leaf, axis in levels.items() if axis is not None):
        leaves.setdefault(leaf, []).extend(implied_by(unclamped(plain)) if leaf is findings.data_of[rv] else [])
    return RowTerm(name=rv.name, logp=logp, checked=checked, flow=flow)


__all__ = ["follow_rows", "likelihood_alone"]
