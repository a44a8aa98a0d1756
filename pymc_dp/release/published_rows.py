"""A published table of counts by level as a table that a likelihood of rows has: one row is one person, or answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pymc_dp.errors import Problem
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import LevelCounts, OwnTotals
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord
from pymc_dp.release.statistics import family_of
from pymc_dp.release.written import facts_of

SURE = 6.0
"""Standard deviations of noise that the number of rows is taken to be away from the published one, at most."""
SIZES = (
    "{}: how many rows a cell has is known from the published counts alone; there are at most {} rows in all, {} "
    "standard deviations of the noise above the published number."
)


def counts_rows(record: ReleaseRecord, likelihood: str, name: str) -> bool:
    """Whether the first table counts rows by the levels of a likelihood: its last dim has the name of that.

    Parameters
    ----------
    record : ReleaseRecord
        Of tables that others noised.
    likelihood : str
        In the model.
    name : str
        Of the table in the release.
    """
    dims = record.tables[0].plan["dims"]
    return bool(dims) and dims[-1] in (likelihood, name)


def of_rows(record: ReleaseRecord, values: Array, observed: Observed) -> tuple[ReleaseRecord, Array] | Problem:
    """Return the record of a table of rows, and the table: one row per cell, a column per level of the likelihood.

    Parameters
    ----------
    record : ReleaseRecord
        Of tables that others noised; the first one's last dim are levels, the others columns that index parameters.
    values : (n_cells, 1) array
        Of the first table.
    observed : Observed
        A likelihood with counts for its statistics.
    """
    table, *others = record.tables
    plan, shape = table.plan, tuple(table.plan["shape"])
    family = family_of(observed)
    statistic = None if family is None else family.statistic(observed, sizes_known=False)
    if not isinstance(statistic, LevelCounts) or isinstance(statistic, OwnTotals):
        return _misfit(observed, f"rows of a {observed.title} likelihood are not counted by levels")
    if statistic.n_levels != shape[-1]:
        return _misfit(observed, f"it has {statistic.n_levels} levels, the table {shape[-1]}")
    if len(table.scales) > 1:
        return _misfit(observed, "each count has noise of its own scale, and rows need one scale for the table")
    if others:
        return _misfit(observed, f"there are sums of cells ({', '.join(one.name for one in others)}) beside the counts")
    n_cells = int(np.prod(shape[:-1], dtype=int))
    scale = float(table.scales[0])
    deviation = scale * np.sqrt((2.0 if plan["noise"] == "laplace" else 1.0) * values.size)
    bound = max(1, int(np.ceil(values.sum() + SURE * deviation)))
    levels = np.indices(shape[:-1]).reshape(len(shape) - 1, n_cells)
    labels = [plan["labels"].get(dim) for dim in plan["dims"][:-1]]
    count = len(statistic.labels)
    cells = tuple(
        ", ".join(
            f"{dim}={own[place] if own else place}"
            for dim, own, place in zip(plan["dims"], labels, places, strict=False)
        )
        or "all rows"
        for places in levels.T.tolist()
    )
    made = replace(
        table,
        likelihood=f"{observed.title}, published",
        column_dim=f"{table.name}_statistic",
        cells=cells,
        columns=tuple(f"count of {label}" for label in statistic.labels),
        scales=(scale,) * count,
        approximations=(*table.approximations, SIZES.format(table.name, bound, int(SURE))),
        plan=_plan(plan, statistic, levels, labels, bound, scale),
    )
    return replace(record, tables=(made,)), values.reshape(n_cells, count)


def _plan(
    plan: Any, statistic: RowStatistic, levels: Array, labels: list[list[Any] | None], bound: int, scale: float
) -> dict[str, Any]:
    """Return what `release.written.written` writes of a table of counts whose cells have private sizes."""
    n_cells = levels.shape[1]
    stated = {"l1": 1, "l2_squared": 1, "shifts": None, "reason": "as its makers state"}
    block = {
        "columns": list(range(len(statistic.labels))),
        "steps": [1.0] * len(statistic.labels),
        "scale": scale,
        "sensitivity": stated,
    }
    return {
        "statistic": facts_of(statistic),
        "columns": plan["dims"][:-1],
        "public_columns": [],
        "levels": levels.tolist(),
        "labels": [
            None if own is None else [str(own[place]) for place in row]
            for own, row in zip(labels, levels.tolist(), strict=True)
        ],
        "sizes": None,
        "groups": [bound] * n_cells,
        "n_private": n_cells,
        "gram": None,
        "reach": 0.0,
        "boxed": False,
        "noise": plan["noise"],
        "blocks": [block],
    }


def _misfit(observed: Observed, what: str) -> Problem:
    return Problem(
        where=observed.name,
        what=f"the published table does not say what this likelihood needs: {what}",
        remedy="Write a likelihood of cells, with the dims of the table: pm.Poisson(name, ..., dims=...).",
    )


__all__ = ["counts_rows", "of_rows"]
