"""What a data frame declares of its columns by their types. No row of it is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import DomainError

Label = str | int
BOOLEAN = ("False", "True")
"""Levels of a column of booleans, whose codes are their values."""
OF_ROWS = "holds texts, or objects, whose levels only its rows would tell: give a public list of them, {list}"
OF_SOME_ROWS = "is categorical, and its categories are those of its rows: give a public list of them, {list}"
UNCLEAR = (
    "is categorical without an order, and nothing tells whether its categories were written down or made of its rows "
    "(astype('category')): if nobody looked at the rows for them, say so, public_levels=[{name!r}], or declare them in "
    "their order, pd.CategoricalDtype([...], ordered=True); else give a public list of them, {list}"
)
OF_INTERVALS = (
    "is categorical, and its categories are intervals, whose ends may be those of its rows (cut, qcut): cut at public "
    "edges and name what is between them, cut(..., labels=[...]), or give a public list of names, {list}"
)
UNKNOWN = "__UNKNOWN_CATEGORIES__"
"""What Dask has in place of categories that it would have to look for."""


def levels_of(
    frame: object, columns: object, given: Mapping[str, Sequence[Label]], public: Collection[str]
) -> tuple[list[str], dict[str, tuple[Label, ...]]]:
    """Return the columns of a data frame that are asked for, and levels of those whose types have some.

    Parameters
    ----------
    frame : data frame
        Of any kind that narwhals knows.
    columns : sequence of str or None
        None for all.
    given : mapping of str to sequence
        Public levels of columns whose types have none, or others.
    public : collection of str
        Columns of categories that are public, though their type may have been made of the rows.

    Raises
    ------
    DomainError
        For columns of labels without public levels, all at once; for names that the frame does not have.
    """
    empty, types = _without_rows(frame)
    known = [name for name in types if isinstance(name, str)]
    asked = known if columns is None else _validate.names("columns", columns)
    for argument, names in (("columns", asked), ("levels", given), ("public_levels", public)):
        for name in names:
            if name not in known:
                raise DomainError(
                    f"{argument} names {name!r}, which is no column of the data frame (known: "
                    f"{', '.join(map(repr, known)) or 'none'}).{_validate.nearest(name, known)}"
                )
    found, problems = dict[str, tuple[Label, ...]](), dict[str, str]()
    for name in asked:
        levels = tuple(given[name]) if name in given else _declared(name, types[name], empty, name in public)
        if isinstance(levels, str):
            problems[name] = levels
        elif levels:
            found[name] = levels
    if problems:
        kept = [name for name in asked if name not in problems]
        others = f"Or leave out what the model does not use: columns={kept!r}. No row was read."
        raise DomainError(" ".join([*_refusals(problems), others]))
    return asked, found


def _refusals(problems: Mapping[str, str]) -> Iterator[str]:
    for name, problem in problems.items():
        yield f"{name!r} {problem.format(name=name, list=f'levels={{{name!r}: [...]}}')}."


def _without_rows(frame: object) -> tuple[Any, Mapping[Any, Any]]:
    """Return the frame without its rows, and its types: of some, narwhals would look at values to tell them."""
    import narwhals.stable.v2 as nw

    made: Any = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that read frames
        try:
            with suppress(TypeError):
                made = nw.from_native(frame, pass_through=True)
            if isinstance(made, nw.DataFrame | nw.LazyFrame):
                empty = made.head(0)
                return empty, empty.collect_schema()
        except nw.exceptions.DuplicateError:
            raise DomainError("frame must have columns of different names. Rename one.") from None
    raise DomainError(
        f"frame must be a data frame, of pandas, Polars, PyArrow or DuckDB for example, got {_validate.shown(frame)}."
    )


def _declared(name: str, kind: Any, empty: Any, public: bool) -> tuple[Label, ...] | str:
    """Return the levels of a type, none of a number; or what is in the way."""
    import narwhals.stable.v2 as nw

    if kind == nw.Boolean:
        return BOOLEAN
    if kind == nw.Enum and (empty.implementation.is_polars() or empty.implementation.is_duckdb()):
        return tuple(kind.categories)
    if kind in (nw.Enum, nw.Categorical):
        categories = getattr(getattr(empty.to_native()[name], "dtype", None), "categories", None)
        if categories is None or empty.implementation.is_polars() or UNKNOWN in list(categories):
            return OF_SOME_ROWS
        if type(categories.dtype).__name__ == "IntervalDtype":
            return OF_INTERVALS
        # Who says in which order levels are has written them down, as bambi's models take it too.
        return tuple(map(_label, categories)) if public or kind == nw.Enum else UNCLEAR
    return OF_ROWS if kind in (nw.String, nw.Object, nw.Unknown) else ()


def _label(category: Any) -> Any:
    return category.item() if isinstance(category, np.generic) else category


__all__ = ["BOOLEAN", "Label", "levels_of"]
