"""What differs between two traces: whatever depends on the row that changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr


def differing(a: xr.DataTree, b: xr.DataTree) -> list[str]:
    """Return every path at which two trees differ: groups, variables, dtypes, dims, values, attributes, encodings.

    Parameters
    ----------
    a, b : xarray.DataTree
        For instance from two neighbouring tables with the same ``testing.insecure_randomness``: whatever differs must
        be a declared release, or follow from one.

    Returns
    -------
    list of str
        Paths such as ``/posterior/p`` or ``/privacy@created_at``; empty if the trees are equal.

    Notes
    -----
    **Guarantee.** None: two trees were compared. What differs depends on the row that changed, or on randomness that
    was not held fixed.

    Examples
    --------
    >>> a = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": ("draw", [0.1, 0.2])}, attrs={"n": 1})})
    >>> b = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": ("draw", [0.1, 0.3])}, attrs={"n": 1})})
    >>> differing(a, b)
    ['/posterior/p']
    """
    first, second = dict(_entries(a)), dict(_entries(b))
    shared = {path for path in first.keys() & second.keys() if _same(first[path], second[path])}
    return [path for path in dict.fromkeys([*first, *second]) if path not in shared]


def _entries(tree: xr.DataTree) -> Iterator[tuple[str, Any]]:
    for node in tree.subtree:
        path = node.path.rstrip("/")
        dataset = node.to_dataset(inherit=False)
        yield f"{path}/", dict(dataset.sizes)
        for name, variable in dataset.variables.items():
            kind = "index" if name in dataset.coords else "variable"
            yield f"{path}/{name}", (kind, variable.dims, str(variable.dtype), np.asarray(variable.values))
            yield from ((f"{path}/{name}@{key}", value) for key, value in variable.attrs.items())
            yield from ((f"{path}/{name}#{key}", value) for key, value in variable.encoding.items())
        yield from ((f"{path}@{key}", value) for key, value in dataset.attrs.items())
        yield from ((f"{path}#{key}", value) for key, value in dataset.encoding.items())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        if x.dtype.kind in "fc":
            return x.tobytes() == y.tobytes() or bool(np.array_equal(x, y, equal_nan=True))
        return bool(np.array_equal(x, y))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)
