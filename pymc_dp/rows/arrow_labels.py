"""Labels that Arrow holds: which occur, and where. No text is checked for being UTF-8, so that none can fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp._optional import require

Places = npt.NDArray[np.int64]


def encoded(column: Any) -> tuple[list[str | int], Places]:
    """Return the labels that occur, each once, and the place of each row's among them, for a null that after the last.

    Parameters
    ----------
    column : pyarrow.Array
        Texts or whole numbers, or a dictionary of these, which may hold more than occurs, or one label twice. It is
        never written out: 2**31 bytes are more than some arrays of texts can hold.

    Notes
    -----
    Bytes that are no UTF-8 become the replacement character, as in ``bytes.decode(errors="replace")``: whether a column
    can be read must not depend on one of its rows.
    """
    if not arrow("pyarrow.types").is_dictionary(column.type):
        column = bytes_of(column).dictionary_encode()
    held = bytes_of(column.dictionary)
    places = _places(column.indices, len(held))
    used = np.flatnonzero(np.bincount(places, minlength=len(held) + 1)[: len(held)])
    of_labels: dict[str | int, int] = {}
    merged = np.full(len(held) + 1, -1, dtype=np.int64)
    for place, label in zip(used.tolist(), held.take(used).to_pylist(), strict=True):
        if label is not None:
            text = label.decode("utf-8", "replace") if isinstance(label, bytes) else label
            merged[place] = of_labels.setdefault(text, len(of_labels))
    merged[merged < 0] = len(of_labels)
    return list(of_labels), merged[places]


def listed(column: Any, size: int) -> Iterator[list[str | int | None]]:
    """Yield `size` labels at a time of an array, in one piece or several; None for a null."""
    for chunk in getattr(column, "chunks", [column]):
        for start in range(0, len(chunk), size):
            labels, places = encoded(chunk.slice(start, size))
            named = [*labels, None]
            yield [named[place] for place in places.tolist()]


def bytes_of(column: Any) -> Any:
    """Return texts as bytes, those of a dictionary written out, null where it has none; whole numbers as they are."""
    module = arrow()
    if module.types.is_dictionary(column.type):
        held = bytes_of(column.dictionary)
        places = _places(column.indices, len(held))
        return held.take(module.array(places, mask=places == len(held)))
    if module.types.is_integer(column.type) or module.types.is_large_binary(column.type):
        return column
    return column.cast(module.large_string()).cast(module.large_binary())


def _places(indices: Any, count: int) -> Places:
    """Return indices into a dictionary of `count`; `count` for a null, and for one beyond it in a broken file."""
    held = indices.fill_null(0).to_numpy(zero_copy_only=False)
    gone = indices.is_null().to_numpy(zero_copy_only=False) | (held < 0) | (held >= count)
    return np.where(gone, count, np.where(gone, 0, held).astype(np.int64))


def arrow(module: str = "pyarrow") -> Any:
    """Import a part of pyarrow, which stored rows and columns of it alone need."""
    return require(module, by="A stored table, dp.Parquet or dp.Table,")


__all__ = ["arrow", "bytes_of", "encoded", "listed"]
