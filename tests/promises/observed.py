"""Everything that anyone may see of a model and its releases, as one plain value, without the released numbers."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import cloudpickle
import numpy as np
import pymc as pm

import pymc_dp as dp

Plain = Any
"""Texts, numbers, and lists and dicts of these."""
Declared = Callable[[], dp.Domain]
Canaries = Collection[bytes]
EPSILON, DELTA = 1.0, 1e-6


def shown_by_sums(model: Any, domain: Declared, delta: float, canaries: Canaries) -> Plain:
    """Return what a release of sums shows at δ = 0."""
    return {"sums": outcome(lambda: released(model, domain(), 0.0, canaries, statistics=dp.Statistics()))}


def shown_by_gradients(model: Any, domain: Declared, delta: float, canaries: Canaries) -> Plain:
    """Return what is shown of noised gradients that no budget is left for: all checks come before."""
    return {"gradients": outcome(lambda: refused_by_ledger(model, domain(), DELTA))}


def shown_by_all(model: Any, domain: Declared, delta: float, canaries: Canaries) -> Plain:
    """Return all that is shown of a model, and of its release at a given δ."""
    return {
        **shown_by_sums(model, domain, delta, canaries),
        **shown_by_gradients(model, domain, delta, canaries),
        "explain": outcome(lambda: explained(model, domain(), delta)),
        "sensitivity": outcome(lambda: str(dp.sensitivity(model, domain()))),
        "release": outcome(lambda: released(model, domain(), delta, canaries)),
    }


def outcome(call: Callable[[], Plain]) -> Plain:
    """Return what a call returns and what it warns of, or what it raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = {"returned": call()}
        except Exception as error:
            problems = [str(problem) for problem in getattr(error, "problems", ())]
            found = {"raised": type(error).__name__, "says": str(error), "problems": problems}
    texts = [
        f"{warning.category.__name__}: {warning.message}"
        for warning in caught
        if not issubclass(warning.category, dp.errors.RepeatedReleaseWarning)  # each release here has its own ledger
        and "was released" not in str(warning.message)  # warns of what was released
    ]
    return {**found, "warnings": sorted(texts)}


def explained(model: Any, domain: dp.Domain, delta: float) -> Plain:
    """Return every text of ``dp.explain``."""
    found = dp.explain(model, domain, delta=delta)
    full = found.full()
    return {
        "text": str(found),
        "full": str(full),
        "frame": found.to_frame().to_dict("list"),
        "page": found._repr_html_(),
        "full page": full._repr_html_(),
    }


def refused_by_ledger(model: Any, domain: dp.Domain, delta: float) -> Plain:
    """Ask for noised gradients that no budget is left for: all checks come before."""
    ledger = ledger_of(domain, EPSILON / 1000, delta)
    dp.privatize(model, epsilon=EPSILON, delta=delta, domain=domain, statistics=dp.Gradients(), ledger=ledger)


def ledger_of(domain: dp.Domain, epsilon: float, delta: float) -> dp.Ledger:
    """Return a new ledger for the rows, or the persons, of a domain."""
    unit = None if domain.unit is None else domain.unit.column
    return dp.Ledger(epsilon, delta, neighbours=domain.neighbours, unit=unit)


def released(model: Any, domain: dp.Domain, delta: float, canaries: Canaries, **how: Any) -> Plain:
    """Return all of a private model but the released numbers."""
    with dp.testing.insecure_randomness(1):
        ledger = ledger_of(domain, EPSILON, delta)
        private = dp.privatize(
            model, epsilon=EPSILON, delta=delta, domain=domain, ledger=ledger, progressbar=False, **how
        )
    return {**described(private), "ledger": str(ledger), "held": held(private, canaries)}


def described(private: pm.Model) -> Plain:
    """Return names, shapes, dims, labels and dtypes of a private model, and its record."""
    release = dp.Release.of(private)
    start = private.initial_point(0)
    return {
        "variables": {name: [str(var.type), type(var.owner.op).__name__ if var.owner else ""] for name, var in
                      private.named_vars.items()},
        "dims": {name: list(dims) for name, dims in private.named_vars_to_dims.items()},
        "coords": {name: None if labels is None else list(map(str, labels)) for name, labels in private.coords.items()},
        "lengths": {name: int(length.eval()) for name, length in private.dim_lengths.items()},
        "start": {name: [list(np.shape(value)), str(np.asarray(value).dtype)] for name, value in start.items()},
        "deterministics": [var.name for var in private.deterministics],
        "potentials": [var.name for var in private.potentials],
        "record": without_released(plain(release.record.to_dict()), release),
        "tables": {name: [list(table.shape), str(table.dtype)] for name, table in release.tables.items()},
        "release": repr(release),
    }  # fmt: skip


def plain(item: Any) -> Plain:
    """Return lists for tuples, and dicts for other mappings."""
    if isinstance(item, Mapping):
        return {str(key): plain(one) for key, one in item.items()}
    return [plain(one) for one in item] if isinstance(item, list | tuple) else item


RELEASED = ("chi_squared", "clip_curvature", "clip_norm", "unresolved")
"""What the plan of a table of gradients says that was chosen by earlier gradients, which were released."""


def without_released(record: Plain, release: dp.Release) -> Plain:
    """Leave out of the record of released gradients what depends on these."""
    for table in record["tables"] if release.of_gradients else ():
        table["plan"] = {name: item for name, item in table["plan"].items() if name not in RELEASED}
        table["sensitivities"] = [re.sub(r"= \d[\d.e+-]*", "= ...", text) for text in table["sensitivities"]]
        del table["scales"], table["approximations"]
    return record


class _Seen(cloudpickle.Pickler):
    """Notes shapes and dtypes of all arrays of what it pickles."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.shapes: set[tuple[str, str]] = set()

    def persistent_id(self, item: object) -> None:
        if isinstance(item, np.ndarray) and item.dtype.kind in "biufcO":
            self.shapes.add((str(item.shape), str(item.dtype)))


def pickled(private: pm.Model) -> tuple[bytes, list[tuple[str, str]]]:
    """Return a model as bytes, and the shapes and dtypes of all arrays in it."""
    file = io.BytesIO()
    pickler = _Seen(file)
    pickler.dump(private)
    return file.getvalue(), sorted(pickler.shapes)


def held(private: pm.Model, canaries: Canaries) -> Plain:
    """Return the shapes of all arrays that a private model holds, and what else of the rows is in it."""
    data, shapes = pickled(private)
    return {"shapes": shapes, "canaries": sum(canary in data for canary in canaries)}


def canaries(table: dict[str, np.ndarray], public: Any) -> list[bytes]:
    """Return the bytes of all numbers of private columns that are not round, and of all texts."""
    found = set()
    for name, column in table.items():
        if name in public:
            continue
        if column.dtype.kind == "f":
            values = column[np.isfinite(column) & (column * 2**20 != np.round(column * 2**20))]
            found |= {value.tobytes() for value in values.ravel()}
        elif column.dtype.kind == "O":
            found |= {str(value).encode() for value in column}
    return sorted(found)


def differences(one: Plain, other: Plain, where: str = "") -> list[str]:
    """Return where two plain values differ, each with both sides."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other}, key=str)
        return [text for key in keys for text in differences(one.get(key), other.get(key), f"{where}/{key}")]
    if one == other or (one != one and other != other):
        return []
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [text for place, (a, b) in pairs for text in differences(a, b, f"{where}/{place}")]
    if isinstance(one, str) and isinstance(other, str):
        return [f"{where}: {_cut(one, other)}"]
    return [f"{where}: {str(one)[:300]} | {str(other)[:300]}"]


def _cut(one: str, other: str) -> str:
    """Return the lines in which two texts differ."""
    first, second = one.splitlines(), other.splitlines()
    if len(first) != len(second):
        only = [line for line in first if line not in second], [line for line in second if line not in first]
        return f"{_short(only[0])} | {_short(only[1])}"
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    return f"{_short([a for a, _ in pairs])} | {_short([b for _, b in pairs])}"


def _short(lines: list[str]) -> str:
    return re.sub(r"\s+", " ", " / ".join(lines))[:400]
