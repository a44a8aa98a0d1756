"""What the plan of a frame of Dask has beside operations that make each row of one row of a table.

Pandas chooses types of results by the values of a partition: where one whole number of NumPy is missing, all are floats
there; functions of NumPy on types of Arrow, floor division by a zero, a replacement in a column of floats of 32 bits
and texts of dates do likewise. So few operations are let through, on few types, whose results were seen to depend on
one row alone whatever else a partition holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TABLES = frozenset(("FromPandas", "ReadParquetFSSpec"))
"""Sources, without ReadParquetPyarrowFS: there, filters drop parts of files by statistics that leave out NaN."""
MOVED = frozenset(
    (
        *("ArrowStringConversion", "Projection", "Filter", "DropnaFrame", "Assign", "RenameFrame", "ColumnsSetter"),
        *("Drop", "ToFrame", "Repartition"),
    )
)
"""Operations that leave values as they are."""
COMPARED = frozenset(
    (*("LT", "LE", "GT", "GE", "EQ", "NE", "Between", "Isin", "IsNa", "NotNull"), *("And", "Or", "XOr", "Invert"))
)
"""Those whose results are booleans; in types of NumPy they are never missing."""
NUMBERS = frozenset(("Add", "Sub", "Mul", "Div", "Neg", "Abs", "AsType"))
"""Those of numbers and booleans alone."""
LISTED = "_DelayedExpr"
"""What `isin` holds its values in."""
ROWS = ("Filter", "DropnaFrame")
"""Those that leave rows out."""
NO_NULL = 'whole numbers or booleans in types of NumPy, which hold no missing values (use dtype_backend="pyarrow")'
FILTERS = "filters= of read_parquet, which see statistics of many rows (write frame[frame.x > 0])"
SEVERAL = "columns of several filters"


def seen_by_dask(native: Any) -> str | None:
    """Read the classes and types of the expression; columns that meet must be of the same filters, or go by index."""
    expression = native.expr
    nodes = [one for one in expression.walk() if type(one).__name__ != LISTED]
    found = {type(one).__name__ for one in nodes} - TABLES - MOVED - COMPARED - NUMBERS
    if not found:
        found = {what for one in nodes for what in _typed(one)}
    if not found and len(_filtered(expression)) > 1:
        found = {SEVERAL}
    return ", ".join(sorted(found)) or None


def has_no_null(kind: Any) -> bool:
    """Whether a type of pandas is one of whole numbers or booleans that turn into others where one is missing."""
    return isinstance(kind, np.dtype) and kind.kind in "iub"


def _typed(node: Any) -> list[str]:
    """Return what is in a node whose values may be of other types where another row holds something else."""
    name, found = type(node).__name__, []
    if any(has_no_null(kind) and not (kind.kind == "b" and name in COMPARED) for kind in _types(node)):
        found.append(NO_NULL)
    if name in TABLES and "filters" in node._parameters and node.operand("filters"):
        found.append(FILTERS)
    if name == "Filter" and len(_types(node.predicate)) != 1:
        found.append("a filter by several columns")
    below = [kind for one in _below(node) for kind in _types(one)]
    if name == "AsType":
        changed = [kind for pair in zip(_types(node), below, strict=True) if pair[0] != pair[1] for kind in pair]
        found += [f"a cast from or to {kind}" for kind in changed if not _is_number(kind)]
    elif name in NUMBERS:
        found += [f"{name} of {kind}" for kind in below if not _is_number(kind)]
    elif name in COMPARED:
        found += [f"{name} of {kind}" for kind in below if not (_is_number(kind) or _is_text(kind))]
    return found


def _below(node: Any) -> list[Any]:
    """Return what an expression is made of, of rows."""
    return [one for one in node.dependencies() if type(one).__name__ != LISTED]


def _types(node: Any) -> list[Any]:
    """Return the types of a frame, of a column, or none."""
    meta: Any = getattr(node, "_meta", None)
    return list(meta.dtypes) if hasattr(meta, "columns") else [meta.dtype] if hasattr(meta, "index") else []


def _is_number(kind: Any) -> bool:
    """Whether a type is one of numbers or booleans of NumPy, of pandas with nulls, or of Arrow."""
    return str(getattr(kind, "numpy_dtype", kind)) in PLAIN


def _is_text(kind: Any) -> bool:
    return str(kind) in ("str", "string") or str(kind).startswith(("string[", "large_string["))


PLAIN = frozenset(
    ("bool", "float32", "float64", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
)
"""Types of numbers and booleans, as NumPy calls them."""


def _filtered(expression: Any) -> set[str]:
    """Return what says which rows an expression has: the last filters, or tables, that it is made of."""
    below = set[str]()
    for one in _below(expression):
        below |= _filtered(one)
    if len(below) > 1 or not (below and type(expression).__name__ not in ROWS):
        return below if len(below) > 1 else {expression._name}
    return below


__all__ = ["has_no_null", "seen_by_dask"]
