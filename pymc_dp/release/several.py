"""Several releases as one: their names, and what together they cost a row of each data set."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pymc_dp.errors import RepeatedReleaseWarning
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.release.paid import PACKAGE
from pymc_dp.release.record import GUARANTEES, STATED, ReleaseRecord, TableRecord, read_record

SEVERAL = "several"
"""What a record says in which several releases differ."""
MAY_SHARE = "may_share"
"""Key of a release of which no ledger is known: its rows may be those of any other."""
WIDEST = 700.0
"""ε up to which e^ε is a float."""
ROUNDED = 1 + 1e-12
"""Above what rounding may take away."""


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
        """Return it in JSON types, without its tables; and say so where no ledger is known."""
        plain = replace(self.record, tables=()).to_dict()
        shared = {} if account_of(plain) else {MAY_SHARE: True}
        found: dict[str, Any] = json.loads(
            json.dumps({"label": self.label, "names": dict(self.names), "record": plain, **shared})
        )
        return found


def together(parts: Sequence[Labelled]) -> ReleaseRecord:
    """Return the record of several releases.

    Notes
    -----
    **Guarantee.** ε and δ are those of one row of one data set: the most that the releases of any one data set add up
    to (basic composition). Releases are of one data set where one ledger paid for them, and of two where two ledgers
    did. A release of which no ledger is known may be of any data set, and is added to each (`data_sets`). A row in two
    data sets loses the sum; nothing here can tell.
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


def account_of(record: Mapping[str, Any]) -> str:
    """Return the identity of the ledger that paid, from a record in JSON types; "" where none is known."""
    ledger = record.get("ledger")
    return str(ledger["ledger"] if ledger else record.get("account", ""))


def data_sets(sources: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[str], float, float]]:
    """Yield each data set by name, with the labels of its releases, and the sums of their ε and δ.

    Those of which no ledger is known belong to every data set here, except where an earlier version put releases
    together: it took each for a data set of its own, and its record says no more than that.
    """
    shared = [source for source in sources if source.get(MAY_SHARE)]
    found: dict[str, list[Mapping[str, Any]]] = {}
    for place, source in enumerate(sources):
        if not source.get(MAY_SHARE):
            found.setdefault(account_of(source["record"]) or str(place), []).append(source)
    for own in found.values() or [[]]:
        releases = [*own, *shared]
        ledger = releases[0]["record"].get("ledger")
        name = ledger["dataset"] if ledger else f"that of {releases[0]['label']}, not named"
        yield name, [one["label"] for one in releases], *_added_up([one["record"] for one in releases])


def _added_up(records: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the sums of ε and of δ, rounded up; where relations differ, those of replacing a row in each."""
    relations = {_relation(record) for record in records if record["neighbours"] != STATED}
    losses = [(record["epsilon"], record["delta"]) for record in records]
    if len(relations) > 1:
        losses = [_of_replacing(record) for record in records]
    epsilon = math.inf if any(math.isinf(loss) for loss, _ in losses) else _sum(loss for loss, _ in losses)
    return epsilon, _sum(delta for _, delta in losses)


def _relation(record: Mapping[str, Any]) -> tuple[str, str | None]:
    unit = (record.get("domain") or {}).get("unit")
    return record["neighbours"], None if unit is None else unit["column"]


def _of_replacing(record: Mapping[str, Any]) -> tuple[float, float]:
    """Return ε and δ of replacing a row: where rows or persons come and go, of one that goes and one that comes."""
    epsilon, delta = record["epsilon"], record["delta"]
    if record["neighbours"] in ("replace", STATED):
        return epsilon, delta
    if delta == 0:
        return 2 * epsilon, delta
    both = delta * (1 + math.exp(min(epsilon, WIDEST))) * ROUNDED
    return (2 * epsilon, both) if both < 1 else (math.inf, delta)


def _sum(numbers: Iterable[float]) -> float:
    return float_up(sum(map(decimal, numbers), Fraction(0)))


def warn_of_shared_rows(parts: Sequence[Labelled]) -> None:
    """Say so where one ledger paid for several releases, and where no ledger says whose rows some are.

    Warns
    -----
    RepeatedReleaseWarning
    """
    sources = [part.written() for part in parts]
    shared = [source["label"] for source in sources if source.get(MAY_SHARE)]
    for name, labels, epsilon, delta in data_sets(sources):
        if len(labels) - len(shared) > 1:
            own = " and ".join(labels[: len(labels) - len(shared)])
            _warn(
                f"One ledger paid for releases {own}, of the data set {name!r}: the same rows may be in each. Then the "
                f"posterior counts them more than once, and its intervals are too narrow. A row has lost "
                f"{_loss(epsilon, delta)} in all. The posterior is right if they are of other rows."
            )
    unknown = [part.label for part in parts if part.label in shared and part.record.maker is None]
    if unknown:
        most = max(data_sets(sources), key=lambda found: found[2:])
        _warn(
            f"No ledger is known of release {' and '.join(unknown)}: the same rows may be in the others. So the losses "
            f"add up, to {_loss(*most[2:])}. If rows are in several, the posterior counts them more than once, and "
            "its intervals are too narrow. If they are of other rows, release each data set with a ledger of its own."
        )


def _warn(text: str) -> None:
    warnings.warn(text, RepeatedReleaseWarning, skip_file_prefixes=(PACKAGE,))


def _loss(epsilon: float, delta: float) -> str:
    return f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")


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


__all__ = ["MAY_SHARE", "Labelled", "account_of", "apart", "data_sets", "renamed", "together", "warn_of_shared_rows"]
