"""Counts whose total is a column of the table: of a binomial likelihood ``n``, of a multinomial one too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.leaves import declared, range_held
from pymc_dp.inspection.rows import Column, fitted, reached, unwrap

SUCCESSES, COUNTS = "binomial with totals", "multinomial with totals"
WITH_TOTALS = {"binomial": SUCCESSES, "multinomial": COUNTS}
"""What such a likelihood is called: its parameters are probabilities alone."""


def totals_of(
    findings: Findings, distribution: str, parameters: Sequence[Variable], row_level: Mapping[Variable, int | None]
) -> Column | None:
    """Return the column of totals of a likelihood, where these are one, with public bounds, and used for nothing else.

    Parameters
    ----------
    findings : Findings
    distribution : str
    parameters : sequence of Variable
    row_level : mapping of Variable to int or None
        Arrays that reach the parameters, and the axis of each that counts rows.
    """
    if distribution not in WITH_TOTALS:
        return None
    total, *others = parameters
    leaf = unwrap(total)
    if leaf.owner is not None or row_level.get(leaf) != 0 or leaf.type.ndim != 1:
        return None
    if leaf in findings.data_of.values() or leaf in set(reached(others)):
        return None
    column = declared(findings, leaf, "unnamed totals")
    bounds = range_held(findings, leaf) if column.bounds is None and column.public else column.bounds
    kept = None if bounds is None or not column.integer else fitted(bounds, np.dtype(leaf.type.dtype))
    return replace(column, bounds=kept, norm=None) if kept is not None and kept[0] >= 0 and kept[1] >= 1 else None


__all__ = ["COUNTS", "SUCCESSES", "WITH_TOTALS", "totals_of"]
