"""A model of the gallery, the table it is for, and what a sensible user would declare of that table."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm

import pymc_dp as dp

Columns = Mapping[str, np.ndarray]
GALLERY: dict[str, Entry] = {}
"""Every model, by its name, in the order in which they were written."""
DELTA = 1e-5
EPSILON = 100.0


class Table:
    """Columns as an author's data frame has them: ``d["y"]`` is an array.

    ``d.x`` is one too, until the advice for arrays without a name is followed: then it is ``pm.Data("x", ...)``.
    """

    def __init__(self, columns: Columns, *, named: bool) -> None:
        self._columns, self._named, self._made = columns, named, {}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._columns:
            raise AttributeError(name)
        if not self._named:
            return self._columns[name]
        if name not in self._made:
            taken = name in pm.modelcontext(None).coords
            self._made[name] = pm.Data(f"{name}_idx" if taken else name, self._columns[name])
        return self._made[name]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A model as its authors write it, of a book or collection.

    `given` is for ``dp.Domain``: bounds of what the model does not name are left out. Of `locations` and `scales` the
    medians, or those of logarithms, are compared. `says` is what the text of a refusal must tell to do, which
    `remedied` does; empty where the model is accepted, or refused for good.
    """

    name: str
    source: str
    build: Callable[[Table], Any]
    rows: Callable[[np.random.Generator], Columns]
    given: Mapping[str, Any]
    locations: Sequence[str]
    scales: Sequence[str] = ()
    says: str = ""
    remedied: Entry | None = None
    named: bool = False

    def model(self) -> Any:
        """Build it on its simulated table, the same at every call."""
        columns = self.rows(np.random.default_rng(zlib.crc32(self.rows.__name__.encode())))
        return self.build(Table(columns, named=self.named))

    def domain(self, model: Any) -> dp.Domain:
        """Return what is public about a row: bounds of what the model names."""
        known = set(model.named_vars) if isinstance(model, pm.Model) else set(model.data.columns)
        given = dict(self.given)
        given["bounds"] = {name: pair for name, pair in given.get("bounds", {}).items() if name in known}
        given["public"] = [name for name in given.get("public", ()) if name in known]
        return dp.Domain(**given)


def entry(
    source: str, rows: Callable[..., Columns], *, locations: str, scales: str = "", **given: Any
) -> Callable[[Callable[[Table], Any]], Callable[[Table], Any]]:
    """Put a model into the gallery.

    `locations` and `scales` are names with blanks between them, `given` is for its domain.
    """

    def put(build: Callable[[Table], Any]) -> Callable[[Table], Any]:
        GALLERY[build.__name__] = Entry(
            name=build.__name__,
            source=source,
            build=build,
            rows=rows,
            given=given,
            locations=tuple(locations.split()),
            scales=tuple(scales.split()),
        )
        return build

    return put


def standardize(x: np.ndarray) -> np.ndarray:
    """As every book does before its model."""
    return (x - x.mean()) / x.std()


def expit(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def remedied(name: str, *, says: str, build: Callable[[Table], Any] | None = None, **given: Any) -> None:
    """Add what a refusal tells to do to a model: name columns, another `build`, a wider domain."""
    one = GALLERY[name]
    changed = replace(one, build=build or one.build, given={**one.given, **given}, named=True)
    GALLERY[name] = replace(one, says=says, remedied=changed)
