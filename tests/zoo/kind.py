"""A kind of model: how it is written, the table it is for, and what its user declares about that table."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pymc as pm

import pymc_dp as dp

Table = dict[str, np.ndarray]
Relation = Literal["replace", "add_remove"]
RELATIONS: tuple[Relation, ...] = ("replace", "add_remove")
ZOO: dict[str, Kind] = {}
"""Every kind, by its name, in the order in which they were written."""
N, PERSONS, N_MAX = 32, 16, 500
"""Rows of the tables, persons among them, and the public bound on both.

One row more than 32 makes an array longer than the unnamed arrays that are assumed public.
"""
BOUNDS: Mapping[str, Any] = {
    "x": (0, 1),
    "z": (-1, 1),
    "X": (-1, 1),
    "g": (0, 2),
    "g1": (1, 3),
    "h": (0, 3),
    "month": (0, 11),
    "y": (-2, 2),
    "vector": (-2, 2),
    "count": (0, 9),
    "yes": (0, 1),
    "share": (0.05, 0.95),
    "wait": (0.1, 5),
    "rating": (0, 3),
    "choice": (0, 2),
    "hours": (1, 10),
    "weight": (0, 4),
}
"""Public bounds of the columns of `people`, as far as they have some."""
OBSERVED = frozenset({"y", "vector", "count", "yes", "share", "wait", "rating", "choice", "votes"})
"""Columns that are outcomes: PyMC makes latent variables of values that these do not have."""


@functools.cache
def _people(n: int) -> Table:
    rng = np.random.default_rng(zlib.crc32(b"people"))
    rows = np.arange(n)
    x, z, y = rng.uniform(0, 1, n), rng.uniform(-1, 1, n), rng.uniform(-2, 2, n)
    g = rng.integers(0, 2, n)
    if n > 2:
        x[0], x[-1], z[-1], y[1], y[2] = 0.0, 1.0, -1.0, 2.0, -2.0
        g[n // 2] = 2
    return {
        "x": x,
        "z": z,
        "X": rng.uniform(-1, 1, (n, 3)),
        "g": g,
        "g1": g + 1,
        "h": rng.integers(0, 4, n),
        "month": rows % 12,
        "y": y,
        "vector": rng.uniform(-2, 2, (n, 2)),
        "count": rng.integers(0, 10, n),
        "yes": rng.integers(0, 2, n),
        "share": rng.uniform(0.1, 0.9, n),
        "wait": rng.uniform(0.2, 4, n),
        "rating": rng.integers(0, 4, n),
        "choice": rng.integers(0, 3, n),
        "votes": rng.multinomial(10, [0.2, 0.3, 0.5], n),
        "hours": rng.uniform(1, 10, n),
        "weight": rng.uniform(0, 4, n),
        "who": rows % PERSONS,
        "name": np.array([f"person {place} of the table" for place in rows], dtype=object),
        "order": np.where(rows == n - 1, 0, rows),
        "flat": np.where(rows == n - 1, 1, 0),
    }


def people(n: int = N) -> Table:
    """Return a table of persons, always the same: columns of every sort, with one row that is special in each.

    The row in the middle is the only one of group 2. The first and the last row have the extremes of `x`. Without the
    last row, `order` counts the rows and `flat` is 0 everywhere.
    """
    return {name: column.copy() for name, column in _people(n).items()}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    name, about : str
    build : callable
        Makes the model of a table; whatever its user computes from the table is computed here.
    table : callable
        Makes the table.
    bounded : tuple of str
        Columns with public bounds, those of `BOUNDS`.
    declared : mapping
        Other arguments of ``dp.Domain``.
    public : tuple of str
        Public columns. Under ``add_remove`` a row brings its own values, so that they are private there, with bounds.
    arrays : tuple of str
        Public arrays that have no row axis, under both relations.
    delta : float
    relations : tuple of str
    careless : bool
        Whether its user computes from the rows what the library has to take for public: labels, numbers of a prior. Its
        texts then differ with the rows, and nothing could notice.
    """

    name: str
    about: str
    build: Callable[[Table], Any]
    table: Callable[[], Table] = people
    bounded: tuple[str, ...] = ()
    declared: Mapping[str, Any] = field(default_factory=dict)
    public: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    delta: float = 0.0
    relations: tuple[Relation, ...] = RELATIONS
    careless: bool = False

    def domain(self, relation: Relation) -> dp.Domain:
        """Return what a user of this model declares under a relation between neighbours."""
        hidden = relation == "add_remove"
        bounded = [*self.bounded, *(self.public if hidden else ())]
        given: dict[str, Any] = {
            "bounds": {name: BOUNDS[name] for name in bounded},
            "public": [*self.arrays, *(() if hidden else self.public)],
            **self.declared,
        }
        return dp.Domain(neighbours=relation, n_max=N_MAX if hidden else None, **given)


def kind(
    bounded: str = "",
    *,
    public: str = "",
    arrays: str = "",
    relations: Sequence[Relation] = RELATIONS,
    delta: float = 0.0,
    table: Callable[[], Table] = people,
    careless: bool = False,
    **declared: Any,
) -> Callable[[Callable[[Table], Any]], Callable[[Table], Any]]:
    """Enter the function below as a kind of model; names are separated by spaces, as in `Kind`."""

    def enter(build: Callable[[Table], Any]) -> Callable[[Table], Any]:
        name = build.__name__
        assert build.__doc__, f"{name} has no docstring"
        assert name not in ZOO, f"{name} is defined twice"
        ZOO[name] = Kind(
            name=name,
            about=build.__doc__,
            build=build,
            table=table,
            bounded=tuple(bounded.split()),
            declared=declared,
            public=tuple(public.split()),
            arrays=tuple(arrays.split()),
            delta=delta,
            relations=tuple(relations),
            careless=careless,
        )
        return build

    return enter


def model_of(build: Callable[[Table], Any]) -> Callable[[Table], pm.Model]:
    """Let a function that adds variables to the model of the context return this model."""

    @functools.wraps(build)
    def built(table: Table) -> pm.Model:
        with pm.Model() as model:
            build(table)
        return model

    return built


def entry(*names: Any, **declared: Any) -> Callable[[Callable[[Table], None]], Callable[[Table], pm.Model]]:
    """Enter a function that adds variables to an empty model, as `kind` does."""
    return lambda build: kind(*names, **declared)(model_of(build))
