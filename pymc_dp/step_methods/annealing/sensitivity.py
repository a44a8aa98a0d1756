"""How far one row can move the log-likelihood over all parameters together: what weights along a path pay for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.remedies import problem_of
from pymc_dp.proofs.row_likelihood import RowLikelihood
from pymc_dp.proofs.row_ranges import Proof, prove_range, prove_sensitivity
from pymc_dp.step_methods.gibbs.boxes import Box
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods
from pymc_dp.step_methods.ops.from_sums import table_range
from pymc_dp.step_methods.table_rounding import rounding, rounding_problem, with_rounding
from pymc_dp.transforms.likelihood import TableLikelihood


def sensitivity_of(likelihoods: Likelihoods, neighbours: Neighbours, *, sizes: bool) -> dict[str, RowRange]:
    """Bound the range R of one row's log-likelihood over all free variables, and Δl where `sizes` are wanted.

    Reads nothing private.

    Returns
    -------
    dict of str to RowRange
        For each observed variable; those of one row add up.

    Raises
    ------
    UnsupportedModelError
        With every likelihood that a row can move by any amount, as far as is proved.
    """
    found = {table.name: _of_table(table, boxes, neighbours) for table, boxes in likelihoods.tables}
    problems = [
        _unbounded(name) for name, one in found.items() if math.isinf(max(one.value, one.sensitivity if sizes else 0.0))
    ]
    for item in likelihoods.held:
        held = _of_rows(item.row, neighbours, sizes=sizes)
        if isinstance(held, Problem):
            problems.append(held)
        else:
            found[item.name] = held
    if problems:
        raise UnsupportedModelError(problems)
    return found


def _of_table(table: TableLikelihood, boxes: Sequence[Box], neighbours: Neighbours) -> RowRange:
    if table.cells.count == 0:
        return RowRange(value=0.0, sensitivity=0.0, reason="no rows")
    ends = [(box.low, box.high) for box in boxes]
    found, off = table_range(table, ends, neighbours), rounding(table, ends)
    if (problem := rounding_problem(found, off, table.name)) is not None:
        raise UnsupportedModelError([problem])
    return with_rounding(found, off)


def _of_rows(row: RowLikelihood, neighbours: Neighbours, *, sizes: bool) -> RowRange | Problem:
    spread = prove_range(row, neighbours)
    if math.isinf(spread.value):
        return problem_of(row, lambda other: prove_range(other, neighbours), spread)
    size = prove_sensitivity(row, neighbours) if sizes else Proof(value=math.inf, attained=0.0)
    if sizes and math.isinf(size.value):
        return Problem(
            where=row.name,
            what=f"its log-likelihood itself has no proved bound, only its range over parameters has: {size.obstacle}",
            remedy="Leave out marginal_likelihood=True, give narrower bounds, or bound every row by dp.clamp.",
        )
    reason = f"proved from the graph of {row.name}, to within {spread.gap:.1%}"
    return RowRange(value=spread.value, sensitivity=size.value, reason=reason)


def _unbounded(name: str) -> Problem:
    return Problem(
        where=name,
        what="one row can move its log-likelihood by any amount",
        remedy="Bound the parameter space by public numbers, with dp.truncate, away from the ends of their range.",
    )


__all__ = ["sensitivity_of"]
