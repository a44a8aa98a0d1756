"""What the plan of a lazy frame shows of operations that make one row of several ones, or several ones of one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

NODES = (
    *("AGGREGATE", "JOIN", "OVER", "SORT", "SLICE", "UNIQUE", "EXPLODE", "UNNEST", "PIVOT", "UNPIVOT", "MELT", "UNION"),
    *("ROW INDEX", "ROW COUNT", "MERGE", "MERGE_SORTED", "HCONCAT", "GATHER", "MAP", "PYTHON", "OPAQUE_PYTHON"),
)
"""Of plans of Polars; SORT is let through where nothing is cut from it."""
FUNCTIONS = (
    *("sum", "mean", "min", "max", "std", "var", "median", "quantile", "mode", "count", "len", "n_unique", "product"),
    *("first", "last", "head", "tail", "slice", "limit", "gather", "get", "implode", "explode", "flatten", "sample"),
    *("shuffle", "shift", "diff", "pct_change", "rank", "reverse", "sort", "sort_by", "arg_sort", "top_k", "bottom_k"),
    *("over", "unique", "is_unique", "is_duplicated", "is_first_distinct", "is_last_distinct", "value_counts", "hist"),
    *("interpolate", "interpolate_by", "forward_fill", "backward_fill", "fill_null_with_strategy", "qcut", "rle"),
    *("rle_id", "int_range", "search_sorted", "arg_min", "arg_max", "arg_unique", "map_batches", "python_udf"),
)
"""Of Polars, of other rows than the one at hand; beside these, all that begin with cum_, rolling_ and ewm_."""
OPERATORS = (
    *("AGGREGATE", "GROUP_BY", "JOIN", "PRODUCT", "WINDOW", "LIMIT", "TOP_N", "UNNEST", "SAMPLE", "DISTINCT", "UNION"),
    *("EXCEPT", "INTERSECT", "PIVOT", "CTE", "RECURSIVE", "INOUT"),
)
"""Of DuckDB."""
CLASSES = (
    *("Aggregate", "Join", "Window", "Limit", "Tail", "Offset", "Generate", "Sample", "Deduplicate", "Distinct"),
    *("Pivot", "Expand", "Union", "Intersect", "Except", "Map", "Python", "Arrow", "Pandas"),
)
"""Of nodes of Spark."""


def seen_by_polars(native: Any) -> str | None:
    """Read the plan as it was written, before it is optimized."""
    plan = re.sub(r"\"[^\"]*\"", '""', native.explain(optimized=False))
    nodes = [node for node in NODES if re.search(rf"\b{node}\b", plan)]
    if "SLICE" not in nodes and "SORT" in nodes:
        nodes.remove("SORT")
    called = sorted(set(re.findall(r"\b(\w+)\(", plan)))
    functions = [name for name in called if name in FUNCTIONS or name.startswith(("cum_", "rolling_", "ewm_"))]
    return ", ".join([*nodes, *functions]) or None


def seen_by_duckdb(native: Any) -> str | None:
    """Read the names of the operators of a plan."""
    try:
        names = list(_operators(json.loads(native.explain(format="json"))))
    except TypeError:  # before DuckDB 2: by the heads of the boxes
        names = re.findall(r"│\s+([A-Z_]{4,})\s+│", native.explain())
    found = [name for name in OPERATORS if any(name in operator for operator in names)]
    return ", ".join(found) or (None if names else "a plan that cannot be read")


def _operators(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for node in nodes:
        yield node["name"].strip().upper().replace(" ", "_")
        yield from _operators(node["children"])


def seen_by_spark(native: Any) -> str | None:
    """Read the first word of each line of the analyzed plan; that of a remote session is not at hand."""
    if not hasattr(native, "_jdf"):
        return None
    words = re.findall(r"^[\s:+\-|]*(\w+)", native._jdf.queryExecution().analyzed().toString(), re.MULTILINE)
    return ", ".join(name for name in CLASSES if any(name in word for word in words)) or None


SEEN: Mapping[str, Callable[[Any], str | None]] = {
    "Polars": seen_by_polars,
    "DuckDB": seen_by_duckdb,
    "Spark": seen_by_spark,
}


__all__ = ["SEEN"]
