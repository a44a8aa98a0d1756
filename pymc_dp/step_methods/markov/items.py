"""Released counts of a hidden Markov model as flat arrays: one item per field and cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymc import Model
from pytensor.compile import SharedVariable

from pymc_dp.inspection.hidden_markov import Emission
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import TableRecord
from pymc_dp.transforms.privatize import record_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """What is public about the counts of every field in every cell. Levels are padded to those of the widest field.

    Attributes
    ----------
    fields : tuple of str
    levels : (n_fields,) integer array
    field, place : (n_items,) integer arrays
        Field of each item, and the place of its state.
    first, order : (n_places + 1,) and (n_items,) integer arrays
        Items of place p: ``order[first[p]:first[p + 1]]``.
    released : (n_items, n_levels) array
        Noised counts; NaN where none was released.
    scales : (n_fields, n_levels) array
        Of the noise; 0 where none was released, or the counts are treated as exact.
    gaussian : bool
        Whether the noise is Gaussian.
    bounds : (n_items,) array
        Size of each item, or a bound on it.
    parts : (n_fields,) array
        0 where sizes are public; else the parts that rows are split into, which give a size its prior.
    """

    fields: tuple[str, ...]
    levels: Array
    field: Array
    place: Array
    first: Array
    order: Array
    released: Array
    scales: Array
    gaussian: bool
    bounds: Array
    parts: Array

    @classmethod
    def exact(
        cls, fields: tuple[str, ...], levels: Array, place: Array, counts: Sequence[Array], n_places: int
    ) -> Items:
        """Lay out counts that are known, (n_cells, n_levels) for each field, padded to the same width."""
        lengths = [len(item) for item in counts]
        return cls(
            fields=fields,
            levels=levels,
            field=np.repeat(np.arange(len(fields)), lengths),
            place=place,
            **_by_place(place, n_places),
            released=np.concatenate(counts),
            scales=np.zeros((len(fields), counts[0].shape[1])),
            gaussian=False,
            bounds=np.concatenate(counts).sum(axis=1),
            parts=np.zeros(len(fields)),
        )

    @property
    def noised(self) -> bool:
        """Whether the counts behind the released ones are unknown."""
        return bool(self.scales.any())

    @property
    def octaves(self) -> Array:
        """Powers of 2 that moves of counts go up to in each field: a few scales of the noise, or all rows."""
        largest = np.array([self.bounds[self.field == f].max(initial=1) for f in range(len(self.fields))])
        reach = np.minimum(4 * self.scales.max(axis=1), largest)
        return np.floor(np.log2(np.maximum(reach, 1.0))).astype(np.int64)

    def taken(self) -> Array:
        """Return released counts as if they were exact, with the one that follows from a public size."""
        counts = self.released.copy()
        dropped = np.isnan(counts[:, 0])
        counts[dropped, 0] = self.bounds[dropped] - np.nansum(counts[dropped], axis=1)
        return np.nan_to_num(counts)

    def nearest(self) -> Array:
        """Return whole counts near to the released ones that some rows have."""
        counts = np.maximum(self.taken(), 0)
        totals = counts.sum(axis=1)
        wanted = np.where(self.parts[self.field] == 0, self.bounds, np.minimum(np.rint(totals), self.bounds))
        shares = counts / np.where(totals > 0, totals, 1.0)[:, None]
        whole = np.floor(wanted[:, None] * shares)
        whole[np.arange(len(whole)), shares.argmax(axis=1)] += wanted - whole.sum(axis=1)
        return whole


def items_of(private: Model, emissions: Mapping[str, Emission], n_places: int) -> Items | None:
    """Take the tables of a private model; None where one of them holds anything but counts of categories."""
    found = record_of(private)
    assert found is not None
    record, values = found
    tables = [table for table in record.tables if table.name in emissions]
    levels = [emissions[table.name].profile.shape[-1] for table in tables]
    plain = all(_is_plain(table, n) for table, n in zip(tables, levels, strict=True))
    noised = {record.noise_aware and any(table.scales) for table in tables}
    if not plain or len(tables) != len(emissions) or len(noised) != 1:
        return None
    held = values if record.noise_aware else {name: _observed(private, name) for name in values}
    widest = max(levels)
    place = np.concatenate([emissions[table.name].places for table in tables])
    scales = [_wide(np.array([table.scales]), widest, n)[0] for table, n in zip(tables, levels, strict=True)]
    return Items(
        fields=tuple(table.name for table in tables),
        levels=np.array(levels, dtype=np.int64),
        field=np.repeat(np.arange(len(tables)), [len(held[table.name]) for table in tables]),
        place=place,
        **_by_place(place, n_places),
        released=np.concatenate([_wide(held[table.name], widest, n) for table, n in zip(tables, levels, strict=True)]),
        scales=np.nan_to_num(np.stack(scales)) * noised.pop(),
        gaussian=record.tables[0].plan["noise"] == "gaussian",
        bounds=np.concatenate([np.asarray(table.plan["groups"], dtype=np.float64) for table in tables]),
        parts=np.array([0.0 if table.sizes_public else float(max(table.plan["n_private"], 2)) for table in tables]),
    )


def _by_place(place: Array, n_places: int) -> dict[str, Array]:
    """Return where the items of each place are."""
    counts = np.bincount(place, minlength=n_places)
    return {"first": np.concatenate([[0], np.cumsum(counts)]), "order": np.argsort(place, kind="stable")}


def _is_plain(table: TableRecord, n_levels: int) -> bool:
    statistic: Mapping[str, Any] = table.plan["statistic"]
    counted = statistic.get("kind") == "counts" and statistic.get("trials") is None
    return counted and len(statistic["labels"]) == n_levels and table.likelihood == "categorical"


def _observed(private: Model, name: str) -> Array:
    """Return the table that a private model takes for exact."""
    held: Any = private.rvs_to_values[private[name]]
    return np.asarray(held.get_value() if isinstance(held, SharedVariable) else held.data, dtype=np.float64)


def _wide(table: Array, width: int, n_levels: int) -> Array:
    """Put released columns at their levels, the first of which may not be released."""
    wide = np.full((len(table), width), np.nan)
    wide[:, n_levels - table.shape[1] : n_levels] = table
    return wide


__all__ = ["Items", "items_of"]
