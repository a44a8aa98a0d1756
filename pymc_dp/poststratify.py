"""From cells to the population: estimates of cells of a model, weighted by how many people each cell has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError


def poststratify(
    idata: xr.DataTree, cells: xr.DataArray | pd.Series[Any], *, var: str, by: str | Iterable[str] = ()
) -> xr.DataArray:
    """Return the mean of a variable over the people of a population, draw by draw.

    A survey reaches some groups more than others. A model by cells (state by age by education) says what each is like,
    and a census how many people it has: the mean over the census is the estimate for the population, and for each
    part of it.

    Parameters
    ----------
    idata : xarray.DataTree
        With a group ``posterior``, as `dp.sample` returns it.
    cells : xarray.DataArray or pandas.Series
        How many people each cell of the population has: dims, or levels of the index, named as dims of `var`, with the
        same labels in any order; >= 0. A dim of `var` that it does not have is kept. Public: a census, not the rows
        of the survey.
    var : str
        The variable of the posterior, one value for each cell: a probability, a mean, a rate.
    by : str or collection of str
        Dims to keep: ``"state"`` for an estimate per state.

    Returns
    -------
    xarray.DataArray
        Dims ``chain``, ``draw``, those of `by` and those that `cells` does not have. Its name is that of `var`.

    Raises
    ------
    ArgumentError
        For a variable that the posterior does not have, cells of other dims or labels, numbers that are negative or not
        finite, and parts of the population without people.

    Notes
    -----
    ``θ(part) = Σ N_c θ_c / Σ N_c`` over the cells c of a part (Gelman, Little 1997).

    **Guarantee.** Free: it reads released draws and a public table, and no row. The estimate is covered by the ε of the
    trace. Counts that come from the rows of the survey would void it.

    References
    ----------
    Gelman, Little (1997), Poststratification into many categories using hierarchical logistic regression, Survey
    Methodology 23, 127-135.

    Examples
    --------
    >>> import numpy as np, pandas as pd, xarray as xr, pymc_dp as dp
    >>> draws = xr.Dataset({"p": (("chain", "draw", "age"), [[[0.2, 0.6], [0.4, 0.8]]])}, {"age": ["young", "old"]})
    >>> people = pd.Series([300, 100], index=pd.Index(["young", "old"], name="age"))
    >>> dp.poststratify(xr.DataTree.from_dict({"posterior": draws}), people, var="p").values.round(3).tolist()
    [[0.3, 0.5]]
    """
    theta = _variable(idata, _validate.text("var", var))
    counts = _counts(cells)
    dims = [str(dim) for dim in theta.dims if dim not in ("chain", "draw")]
    for dim in counts.dims:
        if dim not in dims:
            raise ArgumentError(
                f"cells has the dim {dim!r}, and {var!r} has {', '.join(dims) or 'none'}. Name the levels of its index "
                f"after these.{_validate.nearest(dim, dims)}"
            )
    none = isinstance(by, list | tuple) and not by
    kept = [] if none else _validate.choices("by", by, [str(dim) for dim in counts.dims])
    weights = _aligned(theta, counts)
    summed = [dim for dim in counts.dims if dim not in kept]
    total = weights.sum(summed)
    if not bool((total > 0).all()):
        raise ArgumentError(
            "cells has no people in some part of the population, so there is no mean. Leave that part out of the "
            "variable, or of by."
        )
    found: xr.DataArray = ((theta * weights).sum(summed) / total).rename(var)
    return found


def _variable(idata: object, name: str) -> xr.DataArray:
    tree = _validate.instance("idata", idata, xr.DataTree, "Pass what dp.sample returned.")
    if "posterior" not in tree.children:
        raise ArgumentError("idata has no group 'posterior'. Pass what dp.sample returned.")
    held = tree["posterior"].to_dataset()
    known = [str(one) for one in held.data_vars]
    if name not in known:
        raise ArgumentError(
            f"var={name!r} is no variable of the posterior; known: {', '.join(known) or 'none'}. Compute it of these "
            f"by pm.Deterministic, with dims.{_validate.nearest(name, known)}"
        )
    return held[name]


def _counts(cells: object) -> xr.DataArray:
    if isinstance(cells, pd.Series):
        names = list(cells.index.names)
        if not all(isinstance(name, str) for name in names) or not cells.index.is_unique:
            raise ArgumentError(
                "cells must have an index with a name for each level, and each cell once. Write "
                "people.groupby(['state', 'age'])['n'].sum()."
            )
        cells = xr.DataArray.from_series(cells).fillna(0)
    if not isinstance(cells, xr.DataArray):
        raise ArgumentError(
            f"cells must be an xarray.DataArray or a pandas.Series indexed by the cells, got {_validate.shown(cells)}. "
            "Write people.set_index(['state', 'age'])['n']."
        )
    if not cells.dims or any(dim not in cells.coords for dim in cells.dims):
        raise ArgumentError("cells must have dims with labels. Give the array coords.")
    if cells.dtype.kind not in "iuf" or not bool(np.isfinite(cells).all()) or not bool((cells >= 0).all()):
        raise ArgumentError("cells must hold numbers of people: finite, and >= 0.")
    return cells


def _aligned(theta: xr.DataArray, counts: xr.DataArray) -> xr.DataArray:
    """Return the counts in the order of the cells of the model."""
    for dim in counts.dims:
        own = theta.indexes[dim] if dim in theta.indexes else pd.RangeIndex(theta.sizes[dim])
        other = counts.indexes[dim]
        for which, side, lacking in (
            ("the model has", "cells has not", own.difference(other)),
            ("cells has", "the model has not", other.difference(own)),
        ):
            if len(lacking):
                raise ArgumentError(
                    f"labels of {dim!r} differ: {which} {_validate.shown(lacking[0])}, and {side}. Use the same "
                    "labels, of the same type; a cell without people has the count 0."
                )
        counts = counts.reindex({dim: own})
    return counts


__all__ = ["poststratify"]
