"""The observed variable of a model that is written from a formula, and the columns that it needs beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pymc as pm
from bambi.backend.utils import get_distribution_from_likelihood
from bambi.families.univariate import Bernoulli
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.formulas.design import PublicTable, design_columns
from pymc_dp.inspection.formulas.responses import LeftSide
from pymc_dp.inspection.rows import Array, Bounds

ROWS = "__obs__"
"""Bambi's name of the dimension that counts rows."""
LARGEST = 2.0**31 - 1
"""Count that PyMC, which casts observed whole numbers to 32 bits, takes for what it is."""


class Writing(Protocol):
    """A model in the making."""

    spec: Any
    table: PublicTable
    rows: pd.DataFrame
    model: Model
    bounds: dict[str, Bounds]

    def hold(self, label: str, values: Array, shown: Array, bounds: Bounds | None, names: set[str]) -> Variable: ...


class Observing:
    """What families of bambi take for the array of the response: they find columns in it, and no number.

    Parameters
    ----------
    writing : Writing
    side : LeftSide
    """

    def __init__(self, writing: Writing, side: LeftSide) -> None:
        self._writing, self._side = writing, side
        term = writing.spec.response_term
        self._name: str = term.alias or term.name

    def squeeze(self) -> Observing:
        """Return itself."""
        return self

    def __getitem__(self, key: tuple[slice, int]) -> Any:
        """Return what a column is: itself for the observed one, the trials for the other."""
        return self if key[1] == 0 else self._trials()

    def sum(self, axis: int) -> Variable:
        """Return how many a row counts in all."""
        columns, frame = self._side.columns, self._writing.table.frame
        ends = np.array([self._writing.table.columns[name].bounds for name in columns]).sum(axis=0)
        shown = frame[list(columns)].to_numpy(dtype=np.float64).sum(axis=1)
        total = self._writing.rows[list(columns)].to_numpy(dtype=np.float64).sum(axis=1)
        bounds = (float(ends[0]), float(min(ends[1], LARGEST)))
        return self._writing.hold(f"{self._name}_total", _counts(total), shown, bounds, set(columns))

    def write(self, parameters: Mapping[str, Any]) -> None:
        """Write the observed variable, given the parameters by bambi's names."""
        family = self._writing.spec.family
        change = getattr(family, "transform_backend_kwargs", dict)
        try:
            given = change({"observed": self, "dims": (ROWS,), **parameters})
        except Exception:  # of a family of a user, which takes it for numbers
            what = f"{family.name} computes something from the response"
            remedy = "Leave it out of transform_backend_kwargs, or write the model with PyMC."
            raise UnsupportedModelError([Problem(where="family", what=what, remedy=remedy)]) from None
        given = {name: part for name, part in given.items() if name not in ("observed", "dims")}
        distribution = get_distribution_from_likelihood(family.likelihood)
        plain = distribution.dist(**given) if hasattr(distribution, "dist") else None
        whole = plain is not None and plain.type.dtype.startswith("int")
        values, dims = self._values(), [ROWS]
        if values.ndim == 2:
            dims.append(f"{self._name}_dim")
            self._writing.model.add_coord(dims[-1], self._writing.spec.response_term.levels)
        # Beyond, a cast would warn of a value, or wrap it.
        observed = {"observed": _counts(values) if whole else np.array(values, dtype=np.float64), "dims": dims}
        if self._side.kind == "limited":
            pm.Truncated(self._name, plain, **self._limits(), **observed)
        else:
            distribution(self._name, **given, **observed)

    def _column(self, name: str) -> Array:
        return np.asarray(self._writing.rows[name].to_numpy(dtype=np.float64))

    def _held(self, label: str, name: str, *, whole: bool) -> Variable:
        values, column = self._column(name), self._writing.table.columns[name]
        shown = self._writing.table.frame[name].to_numpy()
        return self._writing.hold(label, _counts(values) if whole else values, shown, column.bounds, {name})

    def _trials(self) -> Any:
        if "trials" in self._side.numbers:
            return np.int64(self._side.numbers["trials"])
        name = self._side.columns[1]
        return self._held(f"{name}_trials", name, whole=True)

    def _values(self) -> Array:
        writing, side = self._writing, self._side
        term = writing.spec.response_term
        if not side.columns:
            (column,) = design_columns(term.term, writing.table, writing.rows)
            writing.bounds[self._name] = column.bounds
            return column.values
        name = side.columns[0]
        public = writing.table.columns[name]
        if public.levels is not None:
            codes = writing.rows[name].cat.codes.to_numpy()
            return codes if term.success is None else np.asarray(writing.rows[name] == term.success)
        if side.kind == "counts":
            ends = [writing.table.columns[one].bounds for one in side.columns]
            writing.bounds[self._name] = min(low for low, _ in ends), max(high for _, high in ends)
            return np.column_stack([self._column(one) for one in side.columns])
        if not isinstance(writing.spec.family, Bernoulli):
            writing.bounds[self._name] = public.bounds
        values = self._column(name)
        if side.kind != "trials":
            return values
        trials = side.numbers["trials"] if "trials" in side.numbers else self._column(side.columns[1])
        return np.minimum(values, trials)

    def _limits(self) -> dict[str, Any]:
        found = {}
        for key, end in (("lb", "lower"), ("ub", "upper")):
            limit = self._side.limits.get(key)
            own = None if limit is None else self._held(f"{limit}_data", limit, whole=False)
            found[end] = self._side.numbers.get(key) if limit is None else own
        return found


def _counts(values: Array) -> Array:
    return np.rint(np.clip(values, 0, LARGEST)).astype(np.int64)


__all__ = ["ROWS", "Observing"]
