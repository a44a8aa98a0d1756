"""Noised tables that others made: what was published and how it was noised, as the makers state it.

The first table holds cells; each further one holds noised sums of the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.accounting import Budget
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import MAX_CELLS
from pymc_dp.inspection.rows import Array
from pymc_dp.release.postprocessing import Summed, require_unchanged
from pymc_dp.release.record import STATED, ReleaseRecord, TableRecord

PUBLISHED = "published"
"""Kind of a table, in records."""
NOISES_OF_OTHERS = {
    "discrete laplace": ("laplace", "discrete Laplace"),
    "discrete gaussian": ("gaussian", "discrete Gaussian"),
    "laplace": ("laplace", "Laplace"),
    "gaussian": ("gaussian", "Gaussian"),
}
"""Kind of each noise, as in `Statistics`, and its name in texts."""
WRITE = 'Write dp.Release.of_counts({"count": table}, scale=..., dims="area", ...).'
CHANGED = (
    "{}: values were changed after the noise was added (rounded, cut off at 0, or made to add up), as was stated. They "
    "are treated as if they were not: intervals may be too narrow, and estimates biased, most of all in small cells."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """One table.

    Attributes
    ----------
    name : str
    values, scales : array
        Of the same shape.
    dims : tuple of str
    labels : mapping of str to list
        Of the cells along dims, where they are known.
    groups : mapping of str to (str, list)
        Labels beside those of a dim: the dim, and one label for each of its cells.
    """

    name: str
    values: Array
    scales: Array
    dims: tuple[str, ...]
    labels: Mapping[str, list[Any]]
    groups: Mapping[str, tuple[str, list[Any]]]

    @property
    def cell_labels(self) -> tuple[str, ...]:
        """One text per cell, in the order of the raveled table."""
        known = [self.labels.get(dim, range(size)) for dim, size in zip(self.dims, self.values.shape, strict=True)]
        texts = [[f"{dim}={label}" for label in labels] for dim, labels in zip(self.dims, known, strict=True)]
        if not texts:
            return ("all cells",)
        return tuple(", ".join(texts[axis][i] for axis, i in enumerate(at)) for at in np.ndindex(self.values.shape))


def published(
    values: object,
    scale: object,
    *,
    noise: object,
    dims: object,
    made_by: object,
    guarantee: object,
    budget: object,
    postprocessed: object,
) -> tuple[ReleaseRecord, dict[str, Array]]:
    """Return the record and the tables of `Release.of_counts`; arguments are those.

    Raises
    ------
    ArgumentError
    """
    kind, title = NOISES_OF_OTHERS[_validate.choice("noise", noise, NOISES_OF_OTHERS)]
    who, what = _stated("made_by", made_by), _stated("guarantee", guarantee)
    if budget is not None:
        _validate.instance("budget", budget, Budget, "Write dp.Budget(epsilon, delta), or leave it out.")
    changed = _validate.flag("postprocessed", postprocessed)
    tables = _tables(values, scale, dims)
    places = [None, *(sums_of(table, tables[0]) for table in tables[1:])]
    whole = title.startswith("discrete")
    if not changed:
        cells = tables[0]
        sums = [
            Summed(name=table.name, values=table.values.ravel(), scales=table.scales.ravel(), places=place)
            for table, place in zip(tables, places, strict=True)
            if place is not None
        ]
        require_unchanged(cells.name, cells.values.ravel(), cells.scales.ravel(), sums, kind=kind, whole=whole)
    epsilon = budget.epsilon if isinstance(budget, Budget) else math.inf
    record = ReleaseRecord(
        epsilon=epsilon,
        delta=budget.delta if isinstance(budget, Budget) else 0.0,
        guarantee=STATED,
        arithmetic=STATED,
        neighbours=STATED,
        noise=title,
        noise_aware=True,
        event={},
        tables=tuple(
            _record(table, place, kind=kind, epsilon=epsilon, changed=changed)
            for table, place in zip(tables, places, strict=True)
        ),
        assumptions=(f"kind and scale of the noise of {', '.join(table.name for table in tables)}, as {who} states",),
        left_out=(),
        maker={"made_by": who, "guarantee": what, "budget": budget is not None, "postprocessed": changed},
    )
    return record, {table.name: table.values.reshape(-1, 1) for table in tables}


def _record(table: Published, places: Array | None, *, kind: str, epsilon: float, changed: bool) -> TableRecord:
    scales = table.scales.ravel()
    same = scales.size > 0 and bool((scales == scales[0]).all())
    return TableRecord(
        name=table.name,
        likelihood="published" if places is None else "published sums of cells",
        cell_dim=f"{table.name}_cell",
        column_dim=f"{table.name}_value",
        cells=table.cell_labels,
        columns=("value",),
        scales=(float(scales[0]),) if same else tuple(map(float, scales)),
        epsilon=epsilon,
        sensitivities=("as its makers state",),
        sizes_public=False,
        plan={
            "kind": PUBLISHED,
            "noise": kind,
            "dims": list(table.dims),
            "shape": list(table.values.shape),
            "labels": {dim: list(labels) for dim, labels in table.labels.items()},
            "places": None if places is None else places.tolist(),
        },
        approximations=(CHANGED.format(table.name),) if changed else (),
    )


def _stated(name: str, value: object) -> str:
    """Return what only the user can know, as a text."""
    if not isinstance(value, str) or not value.strip():
        example = '"US Census Bureau"' if name == "made_by" else '"zCDP, rho = 2.56, for one person"'
        raise ArgumentError(
            f"{name} must be a text that is not empty, got {_validate.shown(value)}: the report has to name it. "
            f"Write {name}={example}, for example."
        )
    return value.strip()


def _tables(values: object, scale: object, dims: object) -> list[Published]:
    if isinstance(values, xr.Dataset):
        values = {str(name): table for name, table in values.data_vars.items()}
    if isinstance(values, xr.DataArray) and values.name is not None:
        values = {str(values.name): values}
    if not isinstance(values, Mapping) or not values:
        raise ArgumentError(
            f"values must map the name of a likelihood to its table, got {_validate.shown(values)}. {WRITE}"
        )
    _validate.mapping("values", values)
    names = list(values)
    found = [_table(name, values[name], _of("scale", scale, name, names), dims, names) for name in names]
    if sum(table.values.size for table in found) > MAX_CELLS:
        raise ArgumentError(f"values hold more than {MAX_CELLS} cells. Give the tables that the model needs.")
    if not found[0].scales.any():
        raise ArgumentError(f"scale is 0 for all of {names[0]}: nothing was noised. Give observed= to the model.")
    return found


def _of(argument: str, given: object, name: str, names: list[str]) -> object:
    """Return what an argument says about one table, if it says it of each by name."""
    if not isinstance(given, Mapping):
        return given
    if missing := [one for one in names if one not in given]:
        raise ArgumentError(f"{argument} says nothing about {missing[0]!r}. Give it for each of {names}.")
    if extra := [one for one in given if one not in names]:
        raise ArgumentError(f"{argument} names {_validate.shown(extra[0])}, which values do not hold ({names}).")
    return given[name]


def _table(name: str, value: object, scale: object, dims: object, names: list[str]) -> Published:
    labels: dict[str, list[Any]] = {}
    groups: dict[str, tuple[str, list[Any]]] = {}
    shown = f"values[{name!r}]"
    if isinstance(value, xr.DataArray):
        if dims is not None:
            raise ArgumentError("dims names the cells of plain arrays, but values has dims of its own. Leave dims out.")
        own = tuple(map(str, value.dims))
        for coord, found in value.coords.items():
            if found.ndim == 1 and str(coord) == found.dims[0]:
                labels[str(coord)] = found.to_numpy().tolist()
            elif found.ndim == 1:
                groups[str(coord)] = (str(found.dims[0]), found.to_numpy().tolist())
        value = value.to_numpy()
    else:
        own = _dims(name, dims, names)
    plain = _validate.array(shown, value, (0, 1, 2, 3, 4)).astype(np.float64)
    if plain.ndim != len(own):
        raise ArgumentError(
            f"dims must name each axis of {shown}, which has {plain.ndim}: got {own}. {WRITE} A total has dims=()."
        )
    if not np.isfinite(plain).all() or not plain.size:
        raise ArgumentError(f"{shown} must hold finite numbers. Leave out cells that were not published.")
    wide = _validate.array("scale", scale, (0, 1, 2, 3, 4)).astype(np.float64)
    if wide.ndim and wide.shape != plain.shape:
        raise ArgumentError(
            f"scale must be one number, or one for each cell of {shown}: {plain.shape}, got {wide.shape}. Of several "
            "tables, map their names to scales."
        )
    if not (np.isfinite(wide).all() and (wide >= 0).all()):
        raise ArgumentError(
            "scale must be finite and >= 0: b of Laplace noise, the standard deviation of Gaussian noise, 0 where a "
            "value is exact."
        )
    return Published(
        name=name, values=plain, scales=np.broadcast_to(wide, plain.shape), dims=own, labels=labels, groups=groups
    )


def _dims(name: str, dims: object, names: list[str]) -> tuple[str, ...]:
    if dims is None:
        raise ArgumentError(f"dims must name the cells, as in the model. {WRITE}")
    if not isinstance(dims, Mapping) and len(names) > 1:
        raise ArgumentError(f"dims must map each of {names} to the dims of its table; a total has none, ().")
    given = _of("dims", dims, name, names)
    found = (given,) if isinstance(given, str) else tuple(_validate.names("dims", given))
    if len(set(found)) < len(found):
        raise ArgumentError(f"dims names {found[0]!r} twice. Name each axis of a table once.")
    return tuple(map(str, found))


def sums_of(table: Published, cells: Published) -> Array:
    """Return the place in a table of sums of each of the raveled cells.

    Raises
    ------
    ArgumentError
        If the dims of `table` are neither dims of the cells nor labels beside these.
    """
    codes, sizes = [], table.values.shape
    axes = np.indices(cells.values.shape)
    for dim, size in zip(table.dims, sizes, strict=True):
        if dim in cells.dims:
            axis, own = cells.dims.index(dim), cells.labels.get(dim)
            if cells.values.shape[axis] != size or (dim in table.labels and own not in (None, table.labels[dim])):
                raise ArgumentError(
                    f"{table.name} must have the cells of {cells.name} along {dim!r}, in the same order. Sort both."
                )
            codes.append(axes[axis])
        elif dim in cells.groups and dim in table.labels:
            along, labels = cells.groups[dim]
            places = {label: place for place, label in enumerate(table.labels[dim])}
            if unknown := [label for label in labels if label not in places]:
                raise ArgumentError(f"{table.name} has no cell {unknown[0]!r} along {dim!r}. Give each group a cell.")
            codes.append(np.array([places[label] for label in labels])[axes[cells.dims.index(along)]])
        else:
            raise ArgumentError(
                f"{table.name} must hold sums of {cells.name}, the first table, but {dim!r} is none of its dims "
                f"{cells.dims}. For groups of cells give both as xarray.DataArray, the first with a coordinate "
                f"{dim!r} along its dim. Tables of something else are a release of their own: "
                "dp.condition(model, [one, other])."
            )
    flat = np.ravel_multi_index(codes, sizes).ravel() if codes else np.zeros(cells.values.size, dtype=np.int64)
    if len(set(flat.tolist())) < table.values.size:
        raise ArgumentError(f"{table.name} has cells that no cell of {cells.name} is in. Leave these out.")
    return np.asarray(flat, dtype=np.int64)


__all__ = ["NOISES_OF_OTHERS", "PUBLISHED", "Published", "published"]
