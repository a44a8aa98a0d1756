"""Rows in Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.labels import Coded
from pymc_dp.rows.arrow import is_text, part_of
from pymc_dp.rows.arrow_labels import arrow, encoded
from pymc_dp.rows.columns import (
    Columns,
    Item,
    by_model,
    every_entry,
    given_columns,
    laid_out,
    name_of,
    names_of,
    no_labels,
    require_named,
    require_numbers,
    shown_columns,
)
from pymc_dp.rows.levels import LabelColumn, Levels
from pymc_dp.rows.stored import Layout, Part, StoredRows

BUFFER = 2**20
"""Bytes of a column that are read from a file at a time."""
ROWS = 65_536
"""Labels that are read at a time."""


@final
class Parquet(StoredRows):
    """Columns of Parquet files as rows of a model: ``rows=dp.Parquet("table.parquet", {...})``.

    Parameters
    ----------
    files : str, Path or sequence of them
        One file, several with the same columns, one after the other, or a folder of such files, ``*.parquet``, without
        folders in it.
    columns : mapping of str to str, Levels or a sequence of them
        For each row-level column of the model, by the name of its ``pm.Data`` or of the observed variable: the column
        of the file, or, where a row of the model holds several values, the columns that these are in. ``dp.Levels``
        stand for a column of labels, which become codes.

    Raises
    ------
    ArgumentError
        Where it is used, if a file is missing or is no Parquet file, a column is not in it, or its values are
        neither numbers nor booleans, or, where levels are given, neither texts nor whole numbers.
    ImportError
        Where it is used, if pyarrow is not installed.

    Notes
    -----
    Files are read in blocks, without pandas: once for a sampler, once a gradient for ``dp.Gradients``. A null is
    clamped as NaN is: to the middle of the bounds, or to level 0 of an index or a category; how many there are never
    shows. The schema, and the number of rows under ``neighbours="replace"``, are public.

    Labels (strings, dictionaries) need a public list of levels, `Levels`; a label that is not among them, or null, is
    of the last level. Dates and decimals are refused.

    Examples
    --------
    >>> Parquet("table.parquet", {"x": ["age", "income"], "y": "y"})
    Parquet('table.parquet', {'x': ['age', 'income'], 'y': 'y'})
    >>> Parquet("table.parquet", {"city": Levels("city", ["Oslo", "Rome"])})
    Parquet('table.parquet', {'city': Levels('city', ['Oslo', 'Rome'], other='other')})
    """

    def __init__(self, files: str | Path | Sequence[str | Path], columns: Mapping[str, Columns]) -> None:
        paths: Any = [files] if isinstance(files, str | Path) else files
        if not isinstance(paths, Sequence) or not paths or not all(isinstance(path, str | Path) for path in paths):
            raise ArgumentError(f"files must be a path or a sequence of paths, got {_validate.shown(files)}.")
        self.files = tuple(map(str, paths))
        self.columns = given_columns(columns)

    def __repr__(self) -> str:
        files = self.files[0] if len(self.files) == 1 else list(self.files)
        return f"Parquet({files!r}, {shown_columns(self.columns)!r})"

    @override
    def layouts(self) -> dict[str, Layout]:
        found = [(path, *self._schema(path)) for path in self._paths()]
        wanted = every_entry(self.columns)
        dtypes = [_dtypes(path, {item: types[name_of(item)] for item in wanted}) for path, types, _ in found]
        for (path, _, _), others in zip(found, dtypes, strict=True):
            if others != dtypes[0]:
                raise ArgumentError(f"{path} has other dtypes than {found[0][0]}. Store them alike.")
        return laid_out(self.columns, sum(count for _, _, count in found), dtypes[0])

    @override
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        wanted = every_entry(self.columns)
        for batch in self._batches(size, names_of(wanted)):
            parts = {item: part_of(batch.column(name_of(item)), item) for item in wanted}
            yield by_model(self.columns, parts)

    @override
    def labels(self, name: str) -> LabelColumn:
        held = self.columns.get(name)
        if not isinstance(held, str):
            what = "no column" if held is None else "more than the name of a column of labels for"
            raise ArgumentError(f"rows has {what} {name!r}. Write dp.Parquet(files, {{{name!r}: {name!r}}}).")
        found = [(path, *self._schema(path)) for path in self._paths()]
        whole = {_whole(path, held, types[held]) for path, types, _ in found}
        if len(whole) > 1:
            raise ArgumentError(f"{held!r} holds whole numbers in some of the files and texts in others.")
        n_rows = sum(count for _, _, count in found)
        return LabelColumn(column=held, whole=whole.pop(), n_rows=n_rows, read=lambda: self._coded(held))

    def _coded(self, name: str) -> Iterator[Coded]:
        for batch in self._batches(ROWS, [name]):
            yield Coded(*encoded(batch.column(name)))

    def _batches(self, size: int, names: list[str]) -> Iterator[Any]:
        for path in self._paths():
            try:
                yield from _opened(path).iter_batches(batch_size=size, columns=names, use_threads=False)
            except (OSError, arrow().ArrowException) as error:  # whose text may show a value
                raise PrivacyError(f"{path} cannot be read ({type(error).__name__}).") from None

    def _paths(self) -> tuple[str, ...]:
        """Return all files; those of a folder by their names."""
        return tuple(path for given in self.files for path in (_in_folder(given) if os.path.isdir(given) else (given,)))

    def _schema(self, path: str) -> tuple[dict[str, Any], int]:
        """Return the types of the wanted columns, and the number of rows."""
        file = _opened(path)
        schema = file.schema_arrow
        wanted = every_entry(self.columns)
        require_named(path, wanted, schema.names)
        return {name: schema.field(name).type for name in names_of(wanted)}, int(file.metadata.num_rows)


def _in_folder(folder: str) -> list[str]:
    files = sorted(str(path) for path in Path(folder).iterdir() if path.suffix == ".parquet" and path.is_file())
    if not files or any(path.is_dir() for path in Path(folder).iterdir()):
        raise ArgumentError(
            f"{folder!r} must hold files *.parquet, and no folders, whose names may hold a column. List the files."
        )
    return files


def _opened(path: str) -> Any:
    parquet, pyarrow = arrow("pyarrow.parquet"), arrow()
    try:
        # Buffered, so that not even a file of a single row group is read as a whole.
        return parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
    except (OSError, pyarrow.ArrowException) as error:
        raise ArgumentError(f"{path!r} cannot be opened as a Parquet file ({type(error).__name__}).") from None


def _dtypes(path: str, kinds: Mapping[Item, Any]) -> dict[str, np.dtype[Any]]:
    """Return the dtypes that columns of numbers and of texts are read with; those of levels need none."""
    types, others = arrow("pyarrow.types"), {}
    for item, kind in kinds.items():
        if isinstance(item, Levels):
            item.require(whole=_whole(path, item.column, kind))
        elif not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or is_text(kind)):
            others[item] = str(kind)
    require_numbers(path, others)
    return {
        item: np.dtype(object if is_text(kind) else kind.to_pandas_dtype())
        for item, kind in kinds.items()
        if not isinstance(item, Levels)
    }


def _whole(path: str, name: str, kind: Any) -> bool:
    """Return whether labels of a type are whole numbers rather than texts."""
    types = arrow("pyarrow.types")
    if types.is_integer(kind.value_type if types.is_dictionary(kind) else kind):
        return True
    if is_text(kind):
        return False
    raise no_labels(path, name, str(kind))


__all__ = ["Parquet"]
