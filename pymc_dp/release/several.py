"""Several releases as one: their names, and what together they cost a row of each data set."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pymc_dp.errors import RepeatedReleaseWarning
from pymc_dp.release.paid import PACKAGE
from pymc_dp.release.record import GUARANTEES, STATED, ReleaseRecord, TableRecord, read_record

SEVERAL = "several"
"""What a record says in which several releases differ."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """One of several releases.

    Attributes
    ----------
    label : str
    record : ReleaseRecord
        Its tables have the names that they have among those of all releases.
    names : mapping of str to str
        From these names to those of the release itself.
    """

    label: str
    record: ReleaseRecord
    names: Mapping[str, str]

    def written(self) -> dict[str, Any]:
        """Return it in JSON types, without its tables."""
        plain = replace(self.record, tables=()).to_dict()
        found: dict[str, Any] = json.loads(
            json.dumps({"label": self.label, "names": dict(self.names), "record": plain})
        )
        return found


def together(parts: Sequence[Labelled]) -> ReleaseRecord:
    """Return the record of several releases.

    Notes
    -----
    **Guarantee.** ε and δ are those of one row of one data set: the most that the releases of any one data set add up
    to (basic composition). A row in two data sets loses the sum; nothing here can tell.
    """
    records = [part.record for part in parts]
    losses = [(epsilon, delta) for _, _, epsilon, delta in data_sets([part.written() for part in parts])]
    return ReleaseRecord(
        epsilon=max(epsilon for epsilon, _ in losses),
        delta=max(delta for _, delta in losses),
        guarantee=min((record.guarantee for record in records), key=GUARANTEES.index),
        arithmetic=STATED if any(record.arithmetic == STATED for record in records) else records[0].arithmetic,
        neighbours=SEVERAL if any(map(_of_persons, records)) else _common([one.neighbours for one in records]),
        noise=", ".join(dict.fromkeys(record.noise for record in records)),
        noise_aware=all(record.noise_aware for record in records),
        event={},
        tables=tuple(table for record in records for table in record.tables),
        assumptions=tuple(_assumed(parts)),
        left_out=tuple(dict.fromkeys(name for record in records for name in record.left_out)),
        sources=tuple(part.written() for part in parts),
    )


def data_sets(sources: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str], float, float]]:
    """Yield each data set by name, with the labels of its releases, and the sums of their ε and δ."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for place, source in enumerate(sources):
        ledger = source["record"].get("ledger")
        key: tuple[str, ...] = (ledger["ledger"], ledger["dataset"]) if ledger else (str(place),)
        found.setdefault(key, []).append(source)
    for key, own in found.items():
        epsilon, delta = (math.fsum(one["record"][name] for one in own) for name in ("epsilon", "delta"))
        name = key[1] if len(key) > 1 else f"that of {own[0]['label']}, not named"
        yield name, [one["label"] for one in own], epsilon, delta


def warn_of_shared_rows(parts: Sequence[Labelled]) -> None:
    """Say so where the ledgers of several releases name one data set.

    Warns
    -----
    RepeatedReleaseWarning
    """
    for name, labels, epsilon, delta in data_sets([part.written() for part in parts]):
        if len(labels) > 1:
            at = f", δ = {delta:g}" if delta else ""
            warnings.warn(
                f"Releases {' and '.join(labels)} are both of the data set {name!r}, by their ledger: the same rows "
                f"may be in each. Then the posterior counts them more than once, and its intervals are too narrow; a "
                f"row has lost ε = {epsilon:g}{at} in all. Nothing is wrong if they are of other rows.",
                RepeatedReleaseWarning,
                skip_file_prefixes=(PACKAGE,),
            )


def _assumed(parts: Sequence[Labelled]) -> Iterator[str]:
    """Yield what all releases assume, then what each assumes beside."""
    common = [text for text in parts[0].record.assumptions if all(text in one.record.assumptions for one in parts)]
    yield from common
    for part in parts:
        yield from (f"release {part.label}: {text}" for text in part.record.assumptions if text not in common)


def apart(record: ReleaseRecord) -> list[Labelled]:
    """Return what `together` was given: the records of releases as one."""
    tables = {table.name: table for table in record.tables}
    return [
        Labelled(
            label=source["label"],
            record=replace(
                read_record({**source["record"], "tables": []}), tables=tuple(tables[name] for name in source["names"])
            ),
            names=source["names"],
        )
        for source in record.sources
    ]


def renamed(table: TableRecord, name: str) -> TableRecord:
    """Return a table of another name, with dims of its own."""
    own = table.name
    said = (f"{name}{text.removeprefix(own)}" if text.startswith(f"{own}:") else text for text in table.approximations)
    return replace(
        table,
        name=name,
        cell_dim=f"{name}{table.cell_dim.removeprefix(own)}",
        column_dim=f"{name}{table.column_dim.removeprefix(own)}",
        approximations=tuple(said),
    )


def _of_persons(record: ReleaseRecord) -> bool:
    return (record.domain or {}).get("unit") is not None


def _common(values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else SEVERAL


__all__ = ["Labelled", "apart", "data_sets", "renamed", "together", "warn_of_shared_rows"]
