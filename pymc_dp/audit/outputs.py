"""What a mechanism returns, laid out as columns over its runs, so that any kind of output can be compared."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp._display import scalar_name
from pymc_dp.errors import ArgumentError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
ABSENT = "(absent)"
NUMBER = "(a number)"


@dataclass(frozen=True)
class Raised:
    """An exception as an output: whoever sees the mechanism fail sees its kind and its text."""

    kind: str
    text: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Outputs of several runs.

    Attributes
    ----------
    runs : int
        How many.
    numbers : dict of str to (runs,) float64 array
        By the path of a number in the output; NaN where a run has no number there.
    labels : dict of str to (runs,) array of str
        By the path of anything else.
    raw : sequence
        The outputs themselves.
    """

    runs: int
    numbers: Mapping[str, Floats]
    labels: Mapping[str, Array]
    raw: Sequence[Any] | Array = field(repr=False)

    def number(self, path: str) -> Floats:
        """Return a column of numbers, NaN where there are none."""
        found = self.numbers.get(path)
        return np.full(self.runs, np.nan) if found is None else found

    def label(self, path: str) -> Array:
        """Return a column of labels, which say ``(absent)`` where the output has nothing at this path."""
        found = self.labels.get(path)
        if found is not None:
            return found
        held = self.numbers.get(path)
        fill = np.array([ABSENT, NUMBER], dtype=object)
        return fill[np.zeros(self.runs, dtype=int) if held is None else (~np.isnan(held)).astype(int)]


def tabulate(outputs: Sequence[Any] | Array) -> Columns:
    """Lay out the outputs of several runs.

    Parameters
    ----------
    outputs : sequence, or array whose first axis counts runs
        Each a number, text, array, mapping, sequence, dataclass, or object with ``to_dict``, nested as need be.

    Raises
    ------
    ArgumentError
        For an output of another kind, whose text may differ from run to run for no reason (a memory address).

    Notes
    -----
    Numbers are rounded to float64: what only the low bits of larger integers tell is not seen, and nothing is made up.
    """
    stacked = _stack(outputs)
    if stacked is not None:
        flat = stacked.reshape(len(stacked), -1).astype(np.float64)
        shape = stacked.shape[1:]
        names = [scalar_name("output", index) for index in np.ndindex(shape)]
        shapes = {"shape of output": np.full(len(flat), str(shape), dtype=object)} if shape else {}
        return Columns(runs=len(flat), numbers=dict(zip(names, flat.T, strict=True)), labels=shapes, raw=outputs)
    runs = len(outputs)
    numbers_: dict[str, Floats] = {}
    labels: dict[str, Array] = {}
    for run, output in enumerate(outputs):
        for path, value in _flatten(output, "output"):
            if isinstance(value, str):
                if path not in labels:
                    held = numbers_.get(path, np.full(runs, np.nan))
                    labels[path] = np.where(np.isnan(held), ABSENT, NUMBER).astype(object)
                labels[path][run] = value
            else:
                numbers_.setdefault(path, np.full(runs, np.nan))[run] = value
                if path in labels:
                    labels[path][run] = NUMBER
    return Columns(runs=runs, numbers=numbers_, labels=labels, raw=outputs)


def _stack(outputs: Sequence[Any] | Array) -> Array | None:
    """Return the outputs as one numeric array, or None where they are not all numbers or arrays of one shape."""
    if isinstance(outputs, np.ndarray):
        return outputs if outputs.dtype.kind in "biuf" else None
    kinds = {type(output) for output in outputs}
    if not kinds or not all(issubclass(kind, int | float | np.number | np.bool_ | np.ndarray) for kind in kinds):
        return None
    shapes = {np.shape(output) for output in outputs}
    try:
        array = np.array(outputs) if len(shapes) == 1 else None
    except (ValueError, OverflowError):
        return None
    return array if array is not None and array.dtype.kind in "biuf" else None


def _flatten(value: Any, path: str) -> Iterator[tuple[str, float | str]]:
    """Yield (path, number or text) for every part of one output."""
    if isinstance(value, str | bytes):
        yield path, value if isinstance(value, str) else repr(value)
    elif value is None or isinstance(value, np.datetime64 | np.timedelta64):
        yield path, str(value)
    elif isinstance(value, Raised):
        yield f"exception of {path}", value.kind
        yield f"text of the exception of {path}", value.text
    elif isinstance(value, numbers.Real | np.bool_):
        yield path, _float(value)
    elif isinstance(value, numbers.Complex):
        yield f"{path}.real", float(value.real)
        yield f"{path}.imag", float(value.imag)
    elif isinstance(value, Mapping):
        yield f"length of {path}", float(len(value))
        for key, item in value.items():
            yield from _flatten(item, f"{path}[{key!r}]")
    elif isinstance(value, np.ndarray):
        yield f"shape of {path}", str(value.shape)
        for index, item in np.ndenumerate(value):
            yield from _flatten(item, scalar_name(path, index))
    elif isinstance(value, set | frozenset):
        yield path, ", ".join(sorted(map(repr, value)))
    elif isinstance(value, Sequence):
        yield f"length of {path}", float(len(value))
        for place, item in enumerate(value):
            yield from _flatten(item, f"{path}[{place}]")
    elif dataclasses.is_dataclass(value):
        for part in dataclasses.fields(value):
            yield from _flatten(getattr(value, part.name), f"{path}.{part.name}")
    elif hasattr(value, "to_dict"):
        yield from _flatten(value.to_dict(), path)
    else:
        raise ArgumentError(
            f"{path} is of type {type(value).__name__}, which cannot be compared between runs. Let the mechanism "
            "return numbers, text, arrays, or dicts, lists and dataclasses of them."
        )


def _float(value: Any) -> float | str:
    try:
        return float(value)
    except OverflowError:
        return str(value)
