"""Rows in Parquet files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.rows.stored import Layout, Part, StoredRows

BUFFER = 2**20
"""Bytes of a column that are read from a file at a time."""
Columns = str | Sequence[str]


@final
class Parquet(StoredRows):
    """Columns of Parquet files as rows of a model: ``rows=dp.Parquet("table.parquet", {...})``.

    Parameters
    ----------
    files : str, Path or sequence of them
        One file, several with the same columns, one after the other, or a folder of such files, ``*.parquet``, without
        folders in it.
    columns : mapping of str to str or sequence of str
        For each row-level column of the model, by the name of its ``pm.Data`` or of the observed variable: the column
        of the file, or, where a row of the model holds several values, the columns that these are in.

    Raises
    ------
    ArgumentError
        Where it is used, if a file is missing or is no Parquet file, a column is not in it, or its values are
        neither numbers nor booleans.
    ImportError
        Where it is used, if pyarrow is not installed.

    Notes
    -----
    Files are read in blocks, without pandas: once for a sampler, once a gradient for ``dp.Gradients``. A null is
    clamped as NaN is: to the middle of the bounds, or to level 0 of an index or a category; how many there are never
    shows. The schema, and the number of rows under ``neighbours="replace"``, are public.

    Labels (strings, dictionaries), dates and decimals are refused: write codes, by a public list of levels.

    Examples
    --------
    >>> Parquet("table.parquet", {"x": ["age", "income"], "y": "y"})
    Parquet('table.parquet', {'x': ['age', 'income'], 'y': 'y'})
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
        self.columns = {
            name: held if isinstance(held, str) else tuple(_validate.names(f"columns[{name!r}]", held))
            for name, held in columns.items()
        }
        for name, held in self.columns.items():
            if not held:
                raise ArgumentError(f"columns[{name!r}] must be the name of a column or a list of names, got none.")

    def __repr__(self) -> str:
        files = self.files[0] if len(self.files) == 1 else list(self.files)
        columns = {name: held if isinstance(held, str) else list(held) for name, held in self.columns.items()}
        return f"Parquet({files!r}, {columns!r})"

    @override
    def layouts(self) -> dict[str, Layout]:
        paths = self._paths()
        found = [self._schema(path) for path in paths]
        n_rows = sum(count for _, count in found)
        first = found[0][0]
        for path, (dtypes, _) in zip(paths, found, strict=True):
            if dtypes != first:
                raise ArgumentError(f"{path} has other dtypes than {paths[0]}. Store them alike.")
        return {
            name: Layout(
                n_rows=n_rows,
                shape=() if isinstance(held, str) else (len(held),),
                dtypes=tuple(first[item] for item in _listed(held)),
            )
            for name, held in self.columns.items()
        }

    @override
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        for path in self._paths():
            try:
                for batch in _opened(path).iter_batches(batch_size=size, columns=self._wanted, use_threads=False):
                    parts = {name: _part(batch.column(name)) for name in self._wanted}
                    yield {name: [parts[item] for item in _listed(held)] for name, held in self.columns.items()}
            except (OSError, _pyarrow("pyarrow").ArrowException) as error:  # whose text may show a value
                raise PrivacyError(f"{path} cannot be read ({type(error).__name__}).") from None

    def _paths(self) -> tuple[str, ...]:
        """Return all files; those of a folder by their names."""
        return tuple(path for given in self.files for path in (_in_folder(given) if os.path.isdir(given) else (given,)))

    @property
    def _wanted(self) -> list[str]:
        return list(dict.fromkeys(item for held in self.columns.values() for item in _listed(held)))

    def _schema(self, path: str) -> tuple[dict[str, np.dtype[Any]], int]:
        """Return the dtypes of the wanted columns, and the number of rows."""
        file = _opened(path)
        schema = file.schema_arrow
        problems = []
        for name in self._wanted:
            if schema.names.count(name) != 1:
                count = "more than one column" if name in schema.names else "no column"
                problems.append(f"{count} {name!r}.{_validate.nearest(name, schema.names)}")
            elif not _plain(schema.field(name).type):
                problems.append(f"{name!r} of type {schema.field(name).type}, which is neither a number nor a boolean.")
        if problems:
            raise ArgumentError(
                f"{path} has {' It has '.join(problems)} Write labels as codes, by a public list of levels, and "
                "everything else as numbers."
            )
        return {name: np.dtype(schema.field(name).type.to_pandas_dtype()) for name in self._wanted}, int(
            file.metadata.num_rows
        )


def _listed(held: Columns) -> tuple[str, ...]:
    return (held,) if isinstance(held, str) else tuple(held)


def _in_folder(folder: str) -> list[str]:
    files = sorted(str(path) for path in Path(folder).iterdir() if path.suffix == ".parquet" and path.is_file())
    if not files or any(path.is_dir() for path in Path(folder).iterdir()):
        raise ArgumentError(
            f"{folder!r} must hold files *.parquet, and no folders, whose names may hold a column. List the files."
        )
    return files


def _opened(path: str) -> Any:
    parquet, pyarrow = _pyarrow("pyarrow.parquet"), _pyarrow("pyarrow")
    try:
        # Buffered, so that not even a file of a single row group is read as a whole.
        return parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
    except (OSError, pyarrow.ArrowException) as error:
        raise ArgumentError(f"{path!r} cannot be opened as a Parquet file ({type(error).__name__}).") from None


def _plain(kind: Any) -> bool:
    types = _pyarrow("pyarrow.types")
    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or _text(kind))


def _text(kind: Any) -> bool:
    """Whether values are texts: such a column may say whose row it is, and nothing else."""
    types = _pyarrow("pyarrow.types")
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _part(column: Any) -> Part:
    """Return the values of a column, 0 where there is none, and where that is; the same is done whatever it holds.

    Texts are passed on as bytes, for they need not be Unicode.
    """
    nothing: Any = 0
    arrow = _pyarrow("pyarrow")
    if _text(column.type):
        column, nothing = column.cast(arrow.large_binary()), b""
    filled = column.fill_null(arrow.scalar(nothing).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


def _pyarrow(module: str) -> Any:
    """Import a part of pyarrow, which only this needs."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        message = "dp.Parquet needs pyarrow, which cannot be imported. Install it: pip install pyarrow"
        raise ImportError(message) from error


__all__ = ["Parquet"]
