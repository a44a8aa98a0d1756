"""Released tables for data augmentation: integers, their noise, and where the rows of a cell come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.families import FAMILIES, Family
from pymc_dp.families.features import BoundedFeatures, Feature
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, TableRecord
from pymc_dp.release.written import is_network
from pymc_dp.transforms.privatize import record_of

MOST_ROWS = 100_000
UNNAMED = "unnamed column of "
Statistic = LevelCounts | BoundedMoments | BoundedFeatures


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """One released table and the likelihood of its rows; public numbers and graphs only.

    Attributes
    ----------
    name : str
    distribution : str
        Name of the likelihood's random operation.
    statistic : Statistic
    parameters : tuple of Variable
        Of each cell, over the free variables of the private model.
    columns : tuple of str
        What the cells are made of.
    cells : (n_groups, n_levels) int64 array
        Cell of the rows that share public levels, at each private level.
    group_sizes : (n_groups,) int64 array
        Public number of rows that share public levels.
    sized : bool
        Whether the number of rows of each cell is released, in front of the sums.
    dropped : bool
        Whether the count of the first level is left out, as the others say it.
    released : (n_cells, n_columns) int64 array
        In grid steps.
    scales : (n_columns,) array
        Of the noise, in grid steps.
    gaussian : bool
        Whether the noise is Gaussian.
    """

    name: str
    distribution: str
    statistic: Statistic
    parameters: tuple[Variable, ...]
    columns: tuple[str, ...]
    cells: Array
    group_sizes: Array
    sized: bool
    dropped: bool
    released: Array
    scales: Array
    gaussian: bool

    @classmethod
    def of(cls, model: Model, described: TableRecord, value: Array) -> Table:
        """Take one table out of a private model; there must be no `table_problems`."""
        plan, rv = described.plan, model[described.name]
        cells, group_sizes = _layout(plan)
        steps, scales = np.ones(len(described.columns)), np.zeros(len(described.columns))
        for block in plan["blocks"]:
            steps[block["columns"]], scales[block["columns"]] = block["steps"], block["scale"]
        statistic = statistic_of(plan["statistic"])
        assert statistic is not None
        n_levels = statistic.n_levels if isinstance(statistic, LevelCounts) else 0
        return cls(
            name=described.name,
            distribution=described.likelihood,
            statistic=statistic,
            parameters=tuple(rv.owner.op.dist_params(rv.owner)[:-1]),  # the last are the scales of the noise
            columns=tuple(plan["columns"]),
            cells=cells,
            group_sizes=group_sizes,
            sized=not n_levels and plan["sizes"] is None,
            dropped=len(described.columns) < n_levels,
            released=np.rint(value / steps).astype(np.int64),
            scales=scales,
            gaussian=plan["noise"] == "gaussian",
        )

    @property
    def family(self) -> Family:
        """The likelihood."""
        return FAMILIES[self.distribution]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.cells.size

    @property
    def width(self) -> int:
        """Number of released columns."""
        return self.released.shape[1]

    @cached_property
    def groups(self) -> Array:
        """Group of every row: (n_rows,) integers."""
        return np.repeat(np.arange(len(self.group_sizes)), self.group_sizes)


def tables_of(model: Model) -> tuple[Table, ...]:
    """Return the tables of a private model whose record has no problems."""
    found = record_of(model)
    assert found is not None
    record, values = found
    return tuple(Table.of(model, described, values[described.name]) for described in record.tables)


def record_problems(record: ReleaseRecord) -> list[Problem]:
    """Say why the rows behind a release cannot be augmented. Reads its record alone."""
    if record.sources or record.maker:
        return [
            _problem(
                "the release",
                "it is one of several, or was made by others: there is no one table of rows to augment",
                "Sample the model by pm.sample.",
            )
        ]
    if (record.domain or {}).get("weights"):
        what = "rows count by their weights, and augmented rows have none"
        return [_problem("the release", what, "Sample the model by pm.sample.")]
    if record.neighbours != "replace":
        return [
            _problem(
                "the release",
                "the number of rows is private, but data augmentation has to know it",
                'Use Domain(neighbours="replace") if the number of rows is public.',
            )
        ]
    if not record.noise_aware:
        return [
            _problem(
                "the release",
                "the private model treats the release as exact sums, but data augmentation accounts for the noise",
                "Leave noise_aware=False out.",
            )
        ]
    tables = [table for table in record.tables if not is_network(table.plan)]
    return [*(problem for table in record.tables for problem in table_problems(table)), *_shared(tables)]


def table_problems(table: TableRecord) -> list[Problem]:
    """Say why the rows behind one table cannot be augmented."""
    if is_network(table.plan):
        return [_problem(table.name, "data augmentation cannot sample the rows behind the coefficients of a network")]
    found = []
    family = FAMILIES.get(table.likelihood)
    if family is None or not family.draws_rows or statistic_of(table.plan["statistic"]) is None:
        found.append(
            _problem(
                table.name,
                f"data augmentation cannot sample rows of a {table.likelihood} likelihood with the statistics "
                f"{', '.join(table.columns)}",
            )
        )
    if not all(table.scales):
        found.append(_problem(table.name, "there is no noise in the release, so that hardly any rows agree with it"))
    if (n := int(_layout(table.plan)[1].sum())) > MOST_ROWS:
        found.append(
            _problem(
                table.name,
                f"every scan redraws all {n} rows, more than {MOST_ROWS}",
                "Sample it with pm.sample alone: sums of so many rows are normal to good accuracy.",
            )
        )
    return found


def statistic_of(written: Mapping[str, Any]) -> Statistic | None:
    """Return the statistic of a plan in JSON types; None where it is none of one number per row."""
    facts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in written.items()
    }
    if facts.get("kind") == "features" and len(facts["names"]) == 1:
        features = tuple(Feature(**{**item, "columns": tuple(item["columns"])}) for item in facts.pop("features"))
        return BoundedFeatures(**facts, features=features)
    kind: type[Statistic] | None = {"counts": LevelCounts, "moments": BoundedMoments}.get(facts.get("kind", ""))
    return None if kind is None else kind(**facts)


def parent_of(name: str, columns: Sequence[str], others: Mapping[str, Sequence[str]]) -> str | None:
    """Return the observed variable that is the one column of another's cells, as the class of naive Bayes is."""
    (column,) = columns if len(columns) == 1 else (None,)
    return column if column in others and column != name else None


def _layout(plan: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return the cells of each public group, and the number of its rows."""
    groups = np.asarray(plan["groups"], dtype=np.int64)
    places = [place for place, column in enumerate(plan["columns"]) if column in plan["public_columns"]]
    if not places:
        return np.arange(len(groups)).reshape(1, -1), groups[:1]
    levels = np.array([plan["levels"][place] for place in places])
    _, first, group = np.unique(levels, axis=1, return_index=True, return_inverse=True)
    cells = np.argsort(group.ravel(), kind="stable").reshape(len(first), plan["n_private"])
    return cells, groups[first]


def _shared(tables: Sequence[TableRecord]) -> list[Problem]:
    """Refuse tables whose rows share private columns in a way that data augmentation does not cover."""
    columns = {table.name: tuple(table.plan["columns"]) for table in tables}
    private = {
        table.name: {item for item in columns[table.name] if item not in table.plan["public_columns"]}
        for table in tables
    }
    plans = {table.name: table.plan for table in tables}
    found = []
    for table in tables:
        own = private[table.name]
        parent = parent_of(table.name, columns[table.name], columns)
        observed = [item for item in own if item in columns]
        if parent is not None and private[parent]:
            found.append(_problem(table.name, f"{parent!r}, which indexes it, is indexed by a private column itself"))
        elif parent is not None and not _are_levels(plans[parent]["statistic"], table.plan["levels"][0]):
            found.append(_problem(table.name, f"its cells are not the levels of {parent!r}, which indexes it"))
        elif parent is None and observed:
            found.append(_problem(table.name, f"it is indexed by {observed[0]!r} and by another column"))
        elif any(own & private[name] and columns[name] != columns[table.name] for name in columns):
            found.append(_problem(table.name, "it shares some, but not all of its columns with another table"))
        elif sum(map(bool, private.values())) > 1 and any(item.startswith(UNNAMED) for item in own):
            found.append(
                _problem(
                    table.name,
                    "whether it shares its unnamed private column with another table is not known",
                    "Wrap the column in pm.Data.",
                )
            )
    return found


def _are_levels(statistic: Mapping[str, Any], cells: Sequence[int]) -> bool:
    return statistic["kind"] == "counts" and list(cells) == list(range(len(statistic["labels"])))


def _problem(where: str, what: str, remedy: str = "Sample it with pm.sample alone.") -> Problem:
    return Problem(where=where, what=what, remedy=remedy)


__all__ = ["Table", "parent_of", "record_problems", "statistic_of", "tables_of"]
