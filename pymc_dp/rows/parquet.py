"""Rows in Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.rows.arrow_labels import encoded, pyarrow
from pymc_dp.rows.levels import LabelColumn, Levels, Tally
from pymc_dp.rows.stored import Layout, Part, StoredRows

BUFFER = 2**20
"""Bytes of a column that are read from a file at a time."""
ROWS = 65_536
"""Labels that are counted at a time."""
Item = str | Levels
Columns = Item | Sequence[Item]


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
        if not _validate.mapping("columns", columns):
            raise ArgumentError(
                "columns must map names of the model to columns of the file, got none. Write, for example, "
                '{"x": ["age", "income"], "y": "y"}.'
            )
        self.files = tuple(map(str, paths))
        self.columns = {name: _items(f"columns[{name!r}]", held) for name, held in columns.items()}
        for name, held in self.columns.items():
            if not held:
                raise ArgumentError(f"columns[{name!r}] must be the name of a column or a list of names, got none.")

    def __repr__(self) -> str:
        files = self.files[0] if len(self.files) == 1 else list(self.files)
        columns = {name: list(held) if isinstance(held, tuple) else held for name, held in self.columns.items()}
        return f"Parquet({files!r}, {columns!r})"

    @override
    def layouts(self) -> dict[str, Layout]:
        found = [(path, *self._schema(path)) for path in self._paths()]
        dtypes = [_dtypes(path, {item: types[_name(item)] for item in self._wanted}) for path, types, _ in found]
        for (path, _, _), others in zip(found, dtypes, strict=True):
            if others != dtypes[0]:
                raise ArgumentError(f"{path} has other dtypes than {found[0][0]}. Store them alike.")
        return {
            name: Layout(
                n_rows=sum(count for _, _, count in found),
                shape=(len(held),) if isinstance(held, tuple) else (),
                dtypes=tuple(dtypes[0][item] for item in _listed(held)),
            )
            for name, held in self.columns.items()
        }

    @override
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        for batch in self._batches(size, list(dict.fromkeys(map(_name, self._wanted)))):
            parts = {item: _part(batch.column(_name(item)), item) for item in self._wanted}
            yield {name: [parts[item] for item in _listed(held)] for name, held in self.columns.items()}

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
        return LabelColumn(column=held, whole=whole.pop(), n_rows=n_rows, tallies=lambda: self._tallies(held))

    def _tallies(self, name: str) -> Iterator[Tally]:
        for batch in self._batches(ROWS, [name]):
            labels, places = encoded(batch.column(name))
            yield dict(zip(labels, np.bincount(places).tolist(), strict=False))  # but of nulls, the last

    def _batches(self, size: int, names: list[str]) -> Iterator[Any]:
        for path in self._paths():
            try:
                yield from _opened(path).iter_batches(batch_size=size, columns=names, use_threads=False)
            except (OSError, pyarrow("pyarrow").ArrowException) as error:  # whose text may show a value
                raise PrivacyError(f"{path} cannot be read ({type(error).__name__}).") from None

    def _paths(self) -> tuple[str, ...]:
        """Return all files; those of a folder by their names."""
        return tuple(path for given in self.files for path in (_in_folder(given) if os.path.isdir(given) else (given,)))

    @property
    def _wanted(self) -> list[Item]:
        return list(dict.fromkeys(item for held in self.columns.values() for item in _listed(held)))

    def _schema(self, path: str) -> tuple[dict[str, Any], int]:
        """Return the types of the wanted columns, and the number of rows."""
        file = _opened(path)
        schema = file.schema_arrow
        problems = []
        for name in map(_name, self._wanted):
            if schema.names.count(name) != 1:
                count = "more than one column" if name in schema.names else "no column"
                problems.append(f"{count} {name!r}.{_validate.nearest(name, schema.names)}")
        if problems:
            raise ArgumentError(f"{path} has {' It has '.join(problems)}")
        return {name: schema.field(name).type for name in map(_name, self._wanted)}, int(file.metadata.num_rows)


def _items(argument: str, held: Any) -> Columns:
    if isinstance(held, str | Levels):
        return held
    given = _validate.several(argument, held)
    return tuple(item if isinstance(item, Levels) else _validate.text(f"each of {argument}", item) for item in given)


def _listed(held: Columns) -> tuple[Item, ...]:
    return (held,) if isinstance(held, str | Levels) else tuple(held)


def _name(item: Item) -> str:
    return item.column if isinstance(item, Levels) else item


def _in_folder(folder: str) -> list[str]:
    files = sorted(str(path) for path in Path(folder).iterdir() if path.suffix == ".parquet" and path.is_file())
    if not files or any(path.is_dir() for path in Path(folder).iterdir()):
        raise ArgumentError(
            f"{folder!r} must hold files *.parquet, and no folders, whose names may hold a column. List the files."
        )
    return files


def _opened(path: str) -> Any:
    try:
        # Buffered, so that not even a file of a single row group is read as a whole.
        return pyarrow("pyarrow.parquet").ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
    except (OSError, pyarrow("pyarrow").ArrowException) as error:
        raise ArgumentError(f"{path!r} cannot be opened as a Parquet file ({type(error).__name__}).") from None


def _dtypes(path: str, kinds: Mapping[Item, Any]) -> dict[Item, np.dtype[Any]]:
    """Return the dtypes that columns of some types are read with."""
    types, problems = pyarrow("pyarrow.types"), []
    for item, kind in kinds.items():
        if isinstance(item, Levels):
            item.require(whole=_whole(path, item.column, kind))
        elif not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
            problems.append(f"{item!r} of type {kind}, which is neither a number nor a boolean.")
    if problems:
        raise ArgumentError(
            f"{path} has {' It has '.join(problems)} Write labels as codes, by a public list of levels, {{'city': "
            "dp.Levels('city', [...])}, and everything else as numbers."
        )
    return {
        item: np.dtype(np.int64 if isinstance(item, Levels) else kind.to_pandas_dtype()) for item, kind in kinds.items()
    }


def _whole(path: str, name: str, kind: Any) -> bool:
    """Return whether labels of a type are whole numbers rather than texts."""
    types = pyarrow("pyarrow.types")
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(inner):
        return True
    if types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner):
        return False
    raise ArgumentError(
        f"{path} has {name!r} of type {kind}, which holds no labels: neither texts nor whole numbers. Write it as one "
        "of these."
    )


def _part(column: Any, item: Item) -> Part:
    """Return the values of a column, 0 where there is none, and where that is; the same is done whatever it holds."""
    if isinstance(item, Levels):
        labels, places = encoded(column)
        return Part(item.places([*labels, None])[places], None)
    filled = column.fill_null(pyarrow("pyarrow").scalar(0).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


__all__ = ["Parquet"]
