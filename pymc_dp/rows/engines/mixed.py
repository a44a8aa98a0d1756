"""What the plan of a lazy frame has beside operations that make each row of one row of a table.

Lists say what is let through: columns, names, filters, sorts, casts, arithmetic, comparisons, choices and functions of
one value. All else is named, whether it mixes rows or is unknown, and so is a plan that cannot be read. Plans are read
as they were written, before any optimizer, whose choices depend on statistics of the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pymc_dp.rows.engines.mixed_dask import seen_by_dask
from pymc_dp.rows.engines.mixed_duckdb import seen_by_duckdb

UNREADABLE = "a plan that cannot be read"
LINES = (
    *(r"DF \[[^\n]*\]; PROJECT \S+ COLUMNS", r"(Parquet|IPC) SCAN \[[^\n]*\]", r"PROJECT \S+ COLUMNS"),
    r"ESTIMATED ROWS: \d+",
)
"""Of plans of Polars: tables, and what of them is read."""
HEADS = r"SELECT|FILTER|FROM|WITH_COLUMNS:|SORT BY|simple π \d+/\d+"
FUNCTIONS = frozenset(
    (
        *("col", "alias", "when", "then", "otherwise", "cast", "strict_cast", "is_null", "is_not_null", "is_nan"),
        *("is_not_nan", "is_finite", "is_infinite", "is_between", "is_close", "is_in", "fill_null", "clip", "abs"),
        *("sign", "exp", "log", "log1p", "sqrt", "cbrt", "pow", "negate", "not", "floor", "ceil", "round", "sin"),
        *("cos", "tan", "tanh", "max_horizontal", "min_horizontal", "sum_horizontal", "mean_horizontal"),
        *("any_horizontal", "all_horizontal", "coalesce", "replace", "replace_strict", "str.len_chars"),
        *("str.len_bytes", "str.lowercase", "str.uppercase", "str.to_lowercase", "str.to_uppercase"),
        *("str.strip_chars", "str.strip_chars_start", "str.strip_chars_end", "str.starts_with", "str.ends_with"),
        *("str.contains", "str.slice", "str.replace", "str.replace_all", "str.to_integer", "dt.year", "dt.month"),
        *("dt.day", "dt.hour", "dt.minute", "dt.weekday", "dt.ordinal_day", "dt.total_days"),
    )
)
"""Of Polars, of the row at hand alone."""
WORDS = frozenset(
    (
        *("dyn", "int", "float", "str", "true", "false", "null", "inf", "NaN", "nan", "v"),
        *("descending", "nulls_last", "maintain_order", "Boolean", "String", "Date", "Int8", "Int16", "Int32"),
        *("Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"),
    )
)
QUOTED = re.compile(r"(?<=[\[(, ])\"([^\"\n]*)\"(?=[\]),. ]|$)", re.MULTILINE)
"""A name or a text, where one can stand."""
WORD = re.compile(r"(?:(?<=\.)(?:str|dt)\.)?[A-Za-z_]\w*")
NUMBER = re.compile(r"(?<![\w.])\d+(\.\d+)?(e[+-]?\d+)?")
OF_SPARK = frozenset(
    (
        *("Project", "Filter", "Sort", "SortOrder", "SubqueryAlias", "View", "Repartition", "RepartitionByExpression"),
        *("LogicalRDD", "LocalRelation", "LogicalRelation", "HiveTableRelation"),
        *("AttributeReference", "Alias", "Literal", "Cast", "Add", "Subtract", "Multiply", "Divide", "IntegralDivide"),
        *("Remainder", "Pmod", "UnaryMinus", "UnaryPositive", "Abs", "And", "Or", "Not", "EqualTo", "EqualNullSafe"),
        *("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Between", "In", "InSet", "IsNull"),
        *("IsNotNull", "IsNaN", "NaNvl", "AtLeastNNonNulls", "CaseWhen", "If", "Coalesce", "NullIf", "NullIfResult"),
        *("With", "CommonExpressionDef", "CommonExpressionRef", "Greatest", "Least", "TryAdd", "TrySubtract"),
        *("TryMultiply", "TryDivide", "Exp", "Log", "Log1p", "Log10", "Log2", "Sqrt", "Pow", "Signum", "Floor", "Ceil"),
        *("Round", "BRound", "Upper", "Lower", "Length", "StringTrim", "StringTrimLeft", "StringTrimRight"),
        *("Substring", "Like", "RLike", "StartsWith", "EndsWith", "Contains", "Year", "Month", "DayOfMonth", "Hour"),
    )
)
"""Classes of nodes and expressions."""
FILES_OF_SPARK = ("Parquet", "ORC")
"""Formats of files that hold their schema: that of CSV and JSON may be made of rows."""


def seen_by_polars(native: Any) -> str | None:
    """Read the plan as text: each of its words is known, or named."""
    found = set[str]()
    kept = []
    for line in native.explain(optimized=False).splitlines():
        texts = re.match(r"\s*(Csv|Json|NDJson) SCAN\b", line)
        if texts:
            found.add("files of CSV or JSON, whose schema may be inferred from rows")
        kept.append("" if texts or any(re.fullmatch(known, line.strip()) for known in LINES[1:]) else line)
    text = QUOTED.sub(lambda one: "" if _balanced(one[1]) else one[0], "\n".join(kept))
    if '"' in text:
        return "a name or a text with quotes or brackets, which hides what is beside it (rename it)"
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        if re.fullmatch(LINES[0], line) and not WORD.search(line[4 : line.rindex("]")]):
            continue
        rest = NUMBER.sub("", re.sub(rf"^({HEADS})(?= |\[|$)", "", line))
        found.update(word for word in WORD.findall(rest) if word not in FUNCTIONS | WORDS)
        if re.search(r"[^\x00-\x7f…]|[{}]", rest) or re.search(r"is_in\(\[(?!\[)", rest):
            found.add("an expression that is not known")
    return _named(found)


def _balanced(text: str) -> bool:
    """Whether a text between quotes closes no bracket that it did not open: one that does is code between two texts."""
    depth = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return False
    return depth == 0


def seen_by_spark(native: Any) -> str | None:
    """Read the classes of the analyzed plan and its expressions; that of a remote session is not at hand."""
    if not hasattr(native, "_jdf"):
        return UNREADABLE
    plan = native._jdf.queryExecution().analyzed()
    classes = {name.rpartition(".")[2] for name in _classes(json.loads(plan.toJSON()))}
    found = {name for name in classes if name not in OF_SPARK} | (set() if classes else {UNREADABLE})
    leaves = plan.collectLeaves()
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            found |= {str(leaf.relation().fileFormat().toString())} - set(FILES_OF_SPARK)
    return _named(found)


def _classes(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("class"), str):
            yield node["class"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _classes(child)


def _named(found: set[str]) -> str | None:
    return ", ".join(sorted(found)) or None


SEEN: Mapping[str, Callable[[Any], str | None]] = {
    "Polars": seen_by_polars,
    "DuckDB": seen_by_duckdb,
    "Dask": seen_by_dask,
    "Spark": seen_by_spark,
}


__all__ = ["SEEN", "UNREADABLE", "seen_by_dask", "seen_by_duckdb", "seen_by_polars", "seen_by_spark"]
