"""Labels as codes: a public list of levels, and columns of labels as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
from pymc_dp._frames import Label
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.labels import Block
from pymc_dp.rows.arrow_labels import listed
from pymc_dp.rows.gate import require_open

BLOCK = 65_536
"""Labels that are held as Python objects at a time."""
KINDS = "an array of texts (dtype str or object) or of whole numbers, or a pandas or Polars series of them"
SHOWN = 8


@final
class Levels:
    """Levels of a column of labels, in a public order, and a last one for every other label.

    Parameters
    ----------
    column : str
        Name of the column of labels.
    labels : sequence of str or int
        The public list of levels: texts, or whole numbers.
    other : str or None
        Name of the level of all other labels, and of missing ones. None for none: they count as the first level.

    Attributes
    ----------
    labels : tuple of str
        Names of all levels, for ``coords``: those of the list as texts, then `other`.
    named : tuple of str or int
        The list, in the order of its codes.

    Raises
    ------
    ArgumentError
        If levels are not all texts or all whole numbers, occur twice, or if `other` is one of them.

    Notes
    -----
    Use ``coords={"city": levels.labels}``, and as values of the column either ``levels.codes(values)``, or
    ``dp.Parquet(files, {"city": levels})``, where labels become codes as they are read.

    **Guarantee.** The code of a row depends on the label of that row alone. The list is public: one that was made of
    the rows (``unique()``) shows who is in the table; ``dp.find_levels`` finds one at a cost.

    Examples
    --------
    >>> levels = Levels("city", ["Oslo", "Rome"])
    >>> levels.labels, levels.codes(np.array(["Rome", "Paris", "Oslo"]))
    (('Oslo', 'Rome', 'other'), array([1, 2, 0]))
    """

    column: str
    labels: tuple[str, ...]
    named: tuple[Label, ...]
    other: str | None

    def __init__(self, column: str, labels: Sequence[Label], *, other: str | None = "other") -> None:
        self.column = _validate.text("column", column)
        self.other = None if other is None else _validate.text("other", other)
        self.named = tuple(map(_label, _validate.several("labels", labels)))
        if len({type(label) for label in self.named}) > 1:
            raise ArgumentError("labels must be all texts or all whole numbers, got both. Write them alike.")
        self.labels = tuple(map(str, self.named)) + (() if self.other is None else (self.other,))
        if len(set(self.labels)) < len(self.labels):
            raise ArgumentError(f"labels must differ from each other and from other={self.other!r}. Name each once.")
        if not self.labels:
            raise ArgumentError("labels must name at least one level, or other=... the level of everything.")
        self._counts: tuple[int, ...] = ()

    @classmethod
    def found(cls, column: str, counts: Mapping[Label, int], *, other: str) -> Self:
        """Return levels with their noised counts, in the order of their labels."""
        named = sorted(counts)
        made = cls(column, named, other=other)
        made._counts = tuple(counts[label] for label in named)
        return made

    @property
    def counts(self) -> dict[str, int]:
        """Noised number of rows of each level that ``dp.find_levels`` found; empty for a list that was given."""
        return dict(zip(self.labels, self._counts, strict=False))

    @property
    def rest(self) -> int:
        """The code of every other label, and of a missing one."""
        return 0 if self.other is None else len(self.named)

    @property
    def whole(self) -> bool | None:
        """Whether levels are whole numbers rather than texts; None where there are none."""
        return isinstance(self.named[0], int) if self.named else None

    def codes(self, values: Any) -> npt.NDArray[np.int64]:
        """Return the level of each label, as its place in `labels`.

        Parameters
        ----------
        values : (n_rows,) array or series
            Texts or whole numbers, as the levels are; what is None, NaN or no text in an array of objects is missing.

        Returns
        -------
        (n_rows,) int64 array

        Raises
        ------
        ArgumentError
            For values of another dtype.
        """
        held = Labels.of("values", values)
        self.require(whole=held.whole)
        blocks = [self.places(block) for block in held.batches()]
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.int64)

    def places(self, labels: Sequence[Label | None]) -> npt.NDArray[np.int64]:
        """Return the level of each of some labels, None for a missing one, each by itself."""
        places = {label: place for place, label in enumerate(self.named)}
        return np.fromiter((places.get(label, self.rest) for label in labels), np.int64, len(labels))  # type: ignore[arg-type]

    def require(self, *, whole: bool) -> None:
        """Raise ArgumentError where a column of labels holds whole numbers and the levels are texts, or the reverse."""
        if self.whole is not None and self.whole != whole:
            kinds = ("texts", "whole numbers")
            raise ArgumentError(
                f"The levels of {self.column!r} are {kinds[self.whole]}, and its values {kinds[whole]}. Write the "
                "levels as the values are."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Levels) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.column, self.named, self.other, self._counts

    def __repr__(self) -> str:
        shown = repr(list(self.named[:SHOWN]))
        if len(self.named) > SHOWN:
            shown = f"{shown[:-1]}, ... {len(self.named)} in all]"
        return f"Levels({self.column!r}, {shown}, other={self.other!r})"


def _label(label: object) -> Label:
    if isinstance(label, str):
        return str.__str__(label)
    if isinstance(label, int | np.integer) and not isinstance(label, bool):
        return int(label)
    raise ArgumentError(f"each of labels must be a text or a whole number, got {_validate.shown(label)}.")


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LabelColumn:
    """A column of labels, wherever it is stored.

    Attributes
    ----------
    column : str
        Its name there.
    whole : bool
        Whether labels are whole numbers rather than texts. Public.
    n_rows : int
        Public under ``neighbours="replace"`` alone.
    read : callable
        Yields the labels of some rows at a time. **Private**.
    """

    column: str
    whole: bool
    n_rows: int
    read: Callable[[], Iterator[Block]]

    def blocks(self) -> Iterator[Block]:
        """Yield the labels of some rows at a time. **Private**: the budget must have been charged."""
        require_open()
        yield from self.read()


Read = Callable[[], Iterator[list[Label | None]]]
"""Yields some labels at a time, None for a missing one. **Private**."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """A column of labels in memory, of which no value was looked at.

    Attributes
    ----------
    whole : bool
        Whether labels are whole numbers.
    n_rows : int
    read : callable
        See `Read`. Whether it fails depends on no value.
    """

    whole: bool
    n_rows: int
    read: Read

    @classmethod
    def of(cls, name: str, values: Any) -> Labels:
        """Return what an argument holds; raise ArgumentError for what cannot hold labels."""
        if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
            if values.ndim == 1 and values.dtype.kind in "OUTiu":
                plain, whole = values.view(np.ndarray), values.dtype.kind in "iu"
                return cls(whole=whole, n_rows=len(plain), read=lambda: _numbers(plain) if whole else _objects(plain))
            raise ArgumentError(
                f"{name} must be {KINDS}, got dtype {kind_of(values.dtype)} and {values.ndim} axes. Write labels as "
                "texts."
            )
        series = nw.from_native(values, series_only=True, pass_through=True)
        if not isinstance(series, nw.Series):
            raise ArgumentError(f"{name} must be {KINDS}, got {_validate.shown(values)}.")
        native = series.to_native()
        if hasattr(native, "cat") and hasattr(native.dtype, "categories") and not series.implementation.is_polars():
            held = cls.of(f"categories of {name}", native.dtype.categories.to_series())
            return cls(whole=held.whole, n_rows=len(series), read=lambda: _categories(held, native.cat.codes))
        # Of objects, narwhals would look at values to tell their kind.
        objects = getattr(native, "dtype", None) == np.dtype(object)
        kind: Any = nw.Object() if objects else series.dtype
        if kind.is_integer() and kind not in (nw.Int128, nw.UInt128):
            numbers = lambda: _numbers(series.fill_null(0).to_numpy(), series.is_null().to_numpy())  # noqa: E731
            return cls(whole=True, n_rows=len(series), read=numbers)
        if kind in (nw.String, nw.Object, nw.Categorical, nw.Enum):
            return cls(whole=False, n_rows=len(series), read=lambda: _texts(series))
        raise ArgumentError(f"{name} must be {KINDS}, got a series of {kind}. Write labels as texts.")

    def batches(self) -> Iterator[list[Label | None]]:
        """Yield some labels at a time, None for a missing one. **Private**."""
        return self.read()


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, for texts without their length: that of the longest one is private."""
    return {"U": "str", "S": "bytes", "V": "void"}.get(dtype.kind, dtype.name)


def _numbers(values: npt.NDArray[Any], missing: npt.NDArray[Any] | None = None) -> Iterator[list[Label | None]]:
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK].tolist()
        if missing is not None:
            absent = missing[start : start + BLOCK].tolist()
            block = [None if gone else label for label, gone in zip(block, absent, strict=True)]
        yield block


def _objects(values: npt.NDArray[Any]) -> Iterator[list[Label | None]]:
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK].tolist()
        yield [str.__str__(label) if isinstance(label, str) else None for label in block]


def _categories(held: Labels, codes: Any) -> Iterator[list[Label | None]]:
    """Yield labels by their codes, -1 for a missing one."""
    named = [*(label for block in held.batches() for label in block), None]
    for block in _numbers(codes.to_numpy()):
        yield [named[code] for code in block]  # type: ignore[index]


def _texts(series: Any) -> Iterator[list[Label | None]]:
    """Yield texts of a series. Where an engine holds bytes, they are decoded here: it would refuse what is no UTF-8."""
    native = series.to_native()
    if series.implementation.is_polars() and series.dtype != nw.Object:
        binary = series.cast(nw.String).cast(nw.Binary)
        for start in range(0, len(binary), BLOCK):
            block = binary[start : start + BLOCK].to_list()
            yield [None if label is None else label.decode("utf-8", "replace") for label in block]
    elif series.implementation.is_pyarrow():
        yield from listed(native, BLOCK)
    elif type(native.dtype).__name__ == "ArrowDtype" or str(getattr(native.dtype, "storage", "")).startswith("pyarrow"):
        yield from listed(native.array.__arrow_array__(), BLOCK)
    else:
        yield from _objects(np.fromiter(series.to_list(), dtype=object, count=len(series)))


def label_column(rows: Any, column: str) -> LabelColumn:
    """Return a column of labels of a table in memory: a mapping of arrays or series, or a data frame.

    Raises
    ------
    ArgumentError
    """
    try:
        table: Any = rows if isinstance(rows, Mapping) else nw.from_native(rows, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ArgumentError("rows must have columns of different names, got one name twice. Rename a column.") from None
    if not isinstance(table, Mapping | nw.DataFrame):
        raise ArgumentError(
            "rows must map names to arrays of labels, or be a data frame or dp.Parquet(...), got "
            f"{_validate.shown(rows)}."
        )
    names = [name for name in (table if isinstance(table, Mapping) else table.columns) if isinstance(name, str)]
    if column not in names:
        known = ", ".join(map(repr, names[:SHOWN])) or "none"
        raise ArgumentError(f"rows has no column {column!r} (known: {known}).{_validate.nearest(column, names)}")
    held = Labels.of(f"rows[{column!r}]", table[column])
    return LabelColumn(column=column, whole=held.whole, n_rows=held.n_rows, read=held.batches)


__all__ = ["Label", "LabelColumn", "Labels", "Levels", "kind_of", "label_column"]
