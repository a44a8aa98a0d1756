"""Tables of events by region and month, each event with a few fields: war logs, collisions, admissions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymc_dp import _validate
from pymc_dp._optional import require
from pymc_dp.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

OTHER = "other"
READERS = {".csv": "read_csv", ".gz": "read_csv", ".parquet": "read_parquet"}


def read_events(
    source: pd.DataFrame | str | Path,
    *,
    region: str,
    date: str,
    fields: Mapping[str, Sequence[Any]],
    regions: Sequence[Any],
    first_month: str,
    last_month: str,
    indicators: Mapping[str, Sequence[str]] | None = None,
) -> pd.DataFrame:
    """Read a table of events, such as a war log, for models of regions and months.

    Every list of levels is an argument, for it must be public: levels, regions and months that are read from the rows
    would show which values occur in them.

    Parameters
    ----------
    source : pandas.DataFrame or path
        One row is one event. Paths end in .csv, .csv.gz or .parquet.
    region, date : str
        Columns of the region and of the date: dates, or text in ISO form, such as 2004-01-30.
    fields : mapping of str to sequence
        Levels of each categorical column. Any other value, missing ones too, counts as the level "other" where that is
        among them, and else as the first.
    regions : sequence
        Regions to be kept, in their order. Events elsewhere are left out.
    first_month, last_month : str
        First and last month to be kept, such as "2004-01". Other events, and those without a date, are left out.
    indicators : mapping of str to sequence of str, optional
        New fields with the levels 0 and 1: whether any of these columns is above 0. Counts of the dead, wounded and
        detained of one side make one indicator (Foulds et al. 2016, section 5). Missing counts are treated as 0.

    Returns
    -------
    pandas.DataFrame
        Integer columns ``region`` and ``month``, counted from 0, and one for each field and indicator. The names of
        all levels, in their order, are in ``attrs["levels"]``: coords for a model.

    Raises
    ------
    ArgumentError
        If a column is missing, a list of levels is empty or has a level twice, or the months are no months.

    Notes
    -----
    **What this does to privacy.** Events are kept or left out by region and date alone. Their number is taken for
    public under ``"replace"``: with ``Domain(public=("region", "month"))`` so are both columns, and what ε protects is
    what an event says beside them. Where region or date of an event are to be protected too, keep all rows: list every
    region, and months from the first possible to the last possible one.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 5 and appendix E.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame(
    ...     {
    ...         "where": ["north", "south", "north", "sea"],
    ...         "when": ["2004-01-30", "2004-02-01", "2004-02-09", "2004-02-10"],
    ...         "type": ["patrol", "attack", "parade", "attack"],
    ...         "killed": [0, 2, 0, 1],
    ...         "wounded": [1, 0, 0, 3],
    ...     }
    ... )
    >>> events = read_events(
    ...     log,
    ...     region="where",
    ...     date="when",
    ...     fields={"type": ["attack", "patrol", "other"]},
    ...     regions=["north", "south"],
    ...     first_month="2004-01",
    ...     last_month="2004-02",
    ...     indicators={"casualties": ["killed", "wounded"]},
    ... )
    >>> events.to_dict("list")
    {'region': [0, 1, 0], 'month': [0, 1, 1], 'type': [1, 0, 2], 'casualties': [1, 1, 0]}
    >>> events.attrs["levels"]["month"]
    ['2004-01', '2004-02']
    """
    pandas = require("pandas", by="read_events")
    table = _table(pandas, source)
    _validate.text("region", region), _validate.text("date", date)
    regions = _validate.several("regions", regions)
    fields = _lists("fields", fields)
    indicators = _lists("indicators", {} if indicators is None else indicators)
    _require_columns(table, [region, date, *fields, *(name for names in indicators.values() for name in names)])
    months = _months(pandas, first_month, last_month)
    levels = {"region": list(regions), "month": months, **{name: list(known) for name, known in fields.items()}}
    _check_levels(levels, indicators)
    period = pandas.to_datetime(table[date], errors="coerce", format="ISO8601").dt.strftime("%Y-%m")
    found = pandas.DataFrame({"region": _codes(table[region], regions), "month": _codes(period, months)})
    for name, known in fields.items():
        codes = _codes(table[name], known)
        found[name] = codes.where(codes >= 0, list(known).index(OTHER) if OTHER in known else 0)
    for name, columns in indicators.items():
        found[name] = (table[list(columns)].fillna(0) > 0).any(axis=1).astype("int64").to_numpy()
        levels[name] = ["no", "yes"]
    found = found[(found["region"] >= 0) & (found["month"] >= 0)].reset_index(drop=True)
    found.attrs = {"levels": levels}
    return found


def _table(pandas: Any, source: pd.DataFrame | str | Path) -> pd.DataFrame:
    if isinstance(source, pandas.DataFrame):
        found: pd.DataFrame = source.reset_index(drop=True)
        return found
    path = _validate.path("source", source, READERS)
    if not path.is_file():
        raise ArgumentError(f"source names no file: {_validate.shown(path)}. Give a path, or a DataFrame.")
    read: pd.DataFrame = getattr(pandas, READERS[path.suffix])(path)
    return read


def _lists(name: str, given: Any) -> dict[str, list[Any]]:
    """Return a mapping of names to lists."""
    return {key: _validate.several(f"{name}[{key!r}]", held) for key, held in _validate.mapping(name, given).items()}


def _require_columns(table: pd.DataFrame, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise ArgumentError(
            f"source has no column {', '.join(map(str, missing))}, which region, date, fields or indicators name. It "
            f"has {', '.join(map(str, table.columns))}."
        )


def _months(pandas: Any, first: str, last: str) -> list[str]:
    for name, month in (("first_month", first), ("last_month", last)):
        _validate.text(name, month)
    try:
        found = [str(month) for month in pandas.period_range(first, last, freq="M")]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"first_month and last_month must be months such as '2004-01': {error}.") from None
    if not found:
        raise ArgumentError("last_month is before first_month. Exchange them.")
    return found


def _check_levels(levels: Mapping[str, Sequence[Any]], indicators: Mapping[str, Sequence[str]]) -> None:
    for name, known in levels.items():
        if not known or not all(isinstance(one, Hashable) for one in known) or len(set(known)) < len(known):
            raise ArgumentError(
                f"The levels of {name} must be one or more, each once; got {len(known)}. Correct regions, or fields."
            )
    twice = sorted(set(levels) & set(indicators))
    if twice:
        raise ArgumentError(f"{', '.join(twice)} cannot be both a field and an indicator. Rename the indicator.")


def _codes(column: pd.Series, levels: Sequence[Any]) -> pd.Series:
    """Return the place of each value among its levels, -1 where it is none of them."""
    places = {level: place for place, level in enumerate(levels)}
    found: pd.Series = column.map(places).fillna(-1).astype("int64")
    return found


__all__ = ["read_events"]
