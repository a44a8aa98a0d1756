"""What the plan of a relation of DuckDB has beside operations that make each row of one row of a table.

Its logical plan, bound and not optimized, comes as JSON from the relation's own connection. Files of Parquet and tables
of Arrow or pandas cannot be written so: for the plan, empty tables of the same columns take their places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

OPERATORS = frozenset(
    (
        *("LOGICAL_PROJECTION", "LOGICAL_FILTER", "LOGICAL_ORDER_BY", "LOGICAL_GET", "LOGICAL_DUMMY_SCAN"),
        *("LOGICAL_EMPTY_RESULT", "LOGICAL_MATERIALIZED_CTE", "LOGICAL_CTE_REF"),
    )
)
EXPRESSIONS = frozenset(
    (
        *("BOUND_REF", "BOUND_COLUMN_REF", "BOUND_CONSTANT", "BOUND_FUNCTION", "BOUND_CASE", "BOUND_OPERATOR"),
        *("BOUND_CONJUNCTION", "BOUND_CAST", "BOUND_COMPARISON", "BOUND_BETWEEN"),
    )
)
FUNCTIONS = frozenset(
    (
        *("+", "-", "*", "/", "//", "%", "**", "^", "=", "<>", "!=", "<", "<=", ">", ">=", "__cast"),
        *("IS DISTINCT FROM", "IS NOT DISTINCT FROM", "add", "subtract", "multiply", "divide", "mod", "fmod"),
        *("abs", "sign", "ceil", "ceiling", "floor", "round", "trunc", "sqrt", "cbrt", "exp", "ln", "log", "log2"),
        *("log10", "pow", "power", "sin", "cos", "tan", "greatest", "least", "isnan", "isinf", "isfinite"),
        *("~~", "!~~", "~~*", "!~~*", "||", "concat", "lower", "upper", "lcase", "ucase", "trim", "ltrim", "rtrim"),
        *("length", "strlen", "substring", "substr", "left", "right", "prefix", "suffix", "starts_with", "ends_with"),
        *("contains", "replace", "regexp_matches", "year", "month", "day", "hour", "date_part", "date_diff"),
        *("datediff", "date_trunc"),
    )
)
"""Of the row at hand alone; macros are written out in the plan."""
PSEUDO = 2**63
"""Numbers of columns from here on are those of rows, files and the like."""
SOURCE = "__duckdb_source_"
"""Tables of Arrow and pandas, in the text of a query."""
READERS = ("read_parquet", "parquet_scan")
PARAMETERS = ("binary_as_string", "hive_partitioning", "union_by_name", "filename", "file_row_number")
VIEW = "pymc_dp_plan"
SHORT = "skip_default := true, skip_empty := true, skip_null := true"
ALONE = "files or tables that are not plain, or a view of these: give a table, or a Parquet file by its name"


def seen_by_duckdb(native: Any) -> str | None:
    """Read the logical plan, not optimized."""

    def asked(query: str) -> list[tuple[Any, ...]]:
        return list(native.query(VIEW, query).fetchall())

    def plan_of(query: str) -> Mapping[str, Any]:
        text = f"select json_serialize_plan({_text(query)}, {SHORT}, optimize := false)"
        return dict(json.loads(asked(text)[0][0]))

    query = native.sql_query()
    found = plan_of(query)
    if not found.get("plans"):
        emptied = _emptied(query, asked)
        found = {} if emptied is None else plan_of(emptied)
    if not found.get("plans"):
        return ALONE
    return ", ".join(sorted(set(_unknown(found["plans"])))) or None


def _unknown(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        kind, type_ = node.get("expression_class"), str(node.get("type", ""))
        if kind is not None:
            if kind not in EXPRESSIONS:
                yield str(kind)
            elif kind == "BOUND_FUNCTION" and _function(node) not in FUNCTIONS:
                yield _function(node)
        elif (type_.startswith("LOGICAL_") or "children" in node) and type_ not in OPERATORS:
            yield type_ or "an operator that is not known"
        elif type_ == "LOGICAL_GET":
            yield from _of_scan(node)
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _unknown(child)


def _function(node: Mapping[str, Any]) -> str:
    path = node.get("qname", {}).get("path") or [node.get("name", "")]
    return str(path[-1]) if len(path) == 1 or path[:-1] == ["system", "main"] else ".".join(map(str, path))


def _of_scan(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a scan reads beside the columns of a table."""
    if _function(node) != "seq_scan":
        yield f"a scan by {_function(node) or 'a function that is not known'}"
    columns = node.get("column_indexes", node.get("column_ids"))
    if columns is None or any(number >= PSEUDO for number in _numbers(columns)):
        yield "a column of the engine's own, such as rowid"


def _numbers(node: Any) -> Iterator[int]:
    for child in node.values() if isinstance(node, Mapping) else node:
        if isinstance(child, Mapping | list):
            yield from _numbers(child)
        elif isinstance(child, int):
            yield child


# --- sources that a plan cannot be written of -----------------------------------------------------------------------


def _emptied(query: str, asked: Callable[[str], list[tuple[Any, ...]]]) -> str | None:
    """Return a query with empty tables of the same columns for its files and tables in memory; None where it cannot."""

    def parsed(text: str) -> dict[str, Any]:
        return dict(json.loads(asked(f"select json_serialize_sql({_text(text)}, {SHORT})")[0][0]))

    def written(statement: Mapping[str, Any]) -> str:
        return str(asked(f"select json_deserialize_sql({_text(json.dumps(statement))})")[0][0])

    def of_source(node: Mapping[str, Any]) -> dict[str, Any]:
        one = parsed("select * from t")
        one["statements"][0]["node"]["from_table"] = dict(node)
        columns = asked(f"describe {written(one)}")
        listed = ", ".join(f"cast(null as {kind}) as {_name(name)}" for name, kind, *_ in columns)
        found = parsed(f"select * from (select {listed} where false) as t")
        table: dict[str, Any] = found["statements"][0]["node"]["from_table"]
        return table | {"alias": node.get("alias") or node.get("table_name", "")}

    def replaced(node: Any) -> Any:
        if isinstance(node, Mapping):
            if _is_source(node, asked):
                return of_source(node)
            return {key: replaced(child) for key, child in node.items()}
        return [replaced(child) for child in node] if isinstance(node, list) else node

    tree = parsed(query)
    return written(replaced(tree)) if tree.get("statements") else None


def _is_source(node: Mapping[str, Any], asked: Callable[[str], list[tuple[Any, ...]]]) -> bool:
    if node.get("type") == "BASE_TABLE" and len(node.get("qualified_name", {}).get("path", [""])) == 1:
        name = str(node.get("table_name", ""))
        known = name.startswith(SOURCE) or name.endswith(".parquet")
        return known and not asked(f"select 1 from duckdb_views() where view_name = {_text(name)}")
    if node.get("type") != "TABLE_FUNCTION" or node.get("function", {}).get("function_name") not in READERS:
        return False
    return all(map(_plain, node["function"].get("arguments", [])))


def _plain(argument: Mapping[str, Any]) -> bool:
    """Whether an argument of a reader is files, or adds no column of its own: the number of a row, say."""
    given, name = argument["expression"], argument.get("name")
    if not name and given.get("type") == "COMPARE_EQUAL":  # name = value
        (name,), given = given["left"].get("column_names", [""]), given["right"]
    if not name:
        return given.get("class") == "CONSTANT" or given.get("function_name") == "list_value"
    value = given.get("literal", given.get("value", {}))
    text = str(value.get("text", value.get("value", ""))).lower()
    return name in PARAMETERS[:3] or (name in PARAMETERS[3:] and text == "false")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


__all__ = ["seen_by_duckdb"]
