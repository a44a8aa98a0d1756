"""Canaries: values and labels that occur nowhere else, planted in the data and looked for in what comes out.

What differs between two traces: whatever depends on the row that changed.
"""

from __future__ import annotations

import functools
import logging
import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CellType, FunctionType, MethodType
from typing import Any, final

import numpy as np
import numpy.typing as npt
import xarray as xr

from pymc_dp.errors import ArgumentError

Array = npt.NDArray[Any]
Canary = float | int | str
DIGITS = 5
"""A text shows a number if it agrees with it in so many significant digits; fewer may agree by chance."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_MAX_DEPTH = 30


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Planted:
    """A column with canaries in it.

    Attributes
    ----------
    values : (n_rows,) array
        A copy of the column, some rows replaced.
    canaries : tuple
        What replaced them.

    Examples
    --------
    >>> found = plant([3, 1, 2], rows=[1])
    >>> found.values.tolist() == [3, found.canaries[0], 2]
    True
    """

    values: Array
    canaries: tuple[Canary, ...]


def plant(column: npt.ArrayLike, *, rows: Sequence[int] = (0,), low: float = 0.0, high: float = 1.0) -> Planted:
    """Replace some rows of a column by values that are easy to recognise.

    Parameters
    ----------
    column : (n_rows,) array
        Of floats, integers or text.
    rows : sequence of int
        Which rows.
    low, high : float
        Where a float canary lies: within the bounds to get past the clamp, beyond them to look for raw rows.

    Returns
    -------
    Planted
        Its integers have nine digits, so that they lie outside of any index; they fit int32. Labels begin with
        ``canary``.

    Raises
    ------
    ArgumentError
        For columns too narrow for a canary (booleans, int8), or of another kind.

    Notes
    -----
    **Guarantee.** None: a value that is not found may show in another form.

    Examples
    --------
    >>> plant([0.5, 0.25, 0.75], rows=[1], low=0, high=10).canaries
    (4.18792434...,)
    >>> plant(["Ann", "Bob"]).canaries
    ('canary-618033988',)
    """
    values = np.array(column)
    kind = values.dtype.kind
    if kind in "iu" and values.dtype.itemsize < 4:
        raise ArgumentError(f"A column of dtype {values.dtype} is too narrow for a canary. Use int32, int64 or floats.")
    if kind not in "iufUO":
        raise ArgumentError(f"A canary needs a column of numbers or text, got dtype {values.dtype}.")
    if kind == "U":
        values = values.astype(object)
    for place, row in enumerate(rows):
        number = 618_033_988 + 1_234_577 * place
        if kind == "f":
            values[row] = low + (high - low) * (0.05 + 0.9 * math.modf(0.4097693718283 + place * 0.6180339887498949)[0])
        else:
            values[row] = number if kind in "iu" else f"canary-{number}"
    # Read back, because a float32 column holds the canary rounded: this is what may come out.
    return Planted(values=values, canaries=tuple(values[list(rows)].tolist()))


def contains_canary(obj: object, canaries: Iterable[Canary]) -> list[str]:
    """Return where canaries occur in an object; the paths name no value.

    Parameters
    ----------
    obj : object
        DataTree, Dataset, DataArray, arrays, mappings, sequences, text, log records, warnings, exceptions, models or
        any other object. Values, coordinates, names, attributes, encodings, dict keys, texts (``repr``, ``str``,
        message) and, where it can be pickled, the pickle are looked through, for floats as float64, float32 and
        decimal text, for integers as int64, int32 and text, and for labels as text.
    canaries : iterable of float, int or str

    Returns
    -------
    list of str
        One path per find; empty if nothing was found.

    Notes
    -----
    **Guarantee.** None: nothing found is no proof. Functions of a canary (its square, a sum with it in) are not found;
    `pymc_dp.audit.taint` finds what depends on a row in any way.

    Examples
    --------
    >>> contains_canary({"mean": 0.5, "log": ["first row: 0.73214"]}, [0.7321437])
    ["['log'][0]: text"]
    >>> contains_canary({"mean": 0.5}, [0.7321437])
    []
    """
    wanted = tuple(canaries)
    for canary in wanted:
        if isinstance(canary, bool) or not isinstance(canary, float | int | str | np.floating | np.integer):
            raise ArgumentError(f"A canary must be a number or text, got an object of type {type(canary).__name__}.")
    search = _Search(wanted)
    search.visit(obj, "", 0)
    search.pickled(obj, "")
    return list(dict.fromkeys(search.found))


@dataclass
class _Search:
    canaries: tuple[Canary, ...]
    found: list[str] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    kept: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers = [float(c) for c in self.canaries if not isinstance(c, str)]
        self.integers = [int(c) for c in self.canaries if isinstance(c, int | np.integer)]
        self.floats = [float(c) for c in self.canaries if isinstance(c, float | np.floating)]
        self.labels = [c for c in self.canaries if isinstance(c, str)]
        forms: list[bytes] = [label.encode() for label in self.labels]
        forms += [
            np.array(c, dtype=order + kind).tobytes() for c in self.floats for order in "<>" for kind in ("f8", "f4")
        ]
        forms += [np.array(c, dtype=order + "i8").tobytes() for c in self.integers for order in "<>"]
        forms += [np.array(c, dtype=order + "i4").tobytes() for c in self.integers for order in "<>" if abs(c) < 2**31]
        # Bytes that are mostly zero occur everywhere.
        self.forms = [form for form in forms if len(set(form)) > 3]

    def visit(self, obj: Any, path: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            return
        if isinstance(obj, str):
            self.text(obj, path, "text")
        elif isinstance(obj, bytes | bytearray | memoryview):
            self.data(bytes(obj), path, "bytes")
        elif isinstance(obj, bool | np.bool_) or obj is None:
            return
        elif isinstance(obj, int | float | np.number):
            self.array(np.asarray(obj), path, depth)
        elif id(obj) not in self.seen:
            self.seen.add(id(obj))
            self.kept.append(obj)  # so that no other object gets its id
            self.inside(obj, path, depth + 1)

    def inside(self, obj: Any, path: str, depth: int) -> None:
        if isinstance(obj, np.ndarray):
            self.array(obj, path, depth)
            return
        for name, part in _parts(obj):
            self.visit(part, f"{path}{name}", depth)
        if not isinstance(obj, Mapping | list | tuple | set | frozenset):
            for name, show in (("repr", repr), ("str", str)):
                self.text(_safely(show, obj), path, name)

    def array(self, values: Array, path: str, depth: int) -> None:
        if values.dtype.kind == "O":
            for place, item in enumerate(values.ravel().tolist()):
                self.visit(item, f"{path}[{place}]", depth + 1)
        elif values.dtype.kind in "US":
            for item in np.unique(values).tolist():
                self.visit(item, path, depth)
        elif values.dtype.names:
            for name in values.dtype.names:
                self.array(values[name], f"{path}[{name!r}]", depth)
        elif values.dtype.kind in "fiuc":
            parts = (values.real, values.imag) if values.dtype.kind == "c" else (values,)
            if any(self.holds(part) for part in parts):
                self.found.append(f"{path}: value")
        elif values.dtype.kind == "V":
            self.data(values.tobytes(), path, "bytes")

    def holds(self, values: Array) -> bool:
        """Whether numbers hold a canary: integers exactly, floats up to a rounding to float32."""
        with np.errstate(over="ignore"):
            close = any(np.isclose(values.astype(float), number, rtol=2.0**-23, atol=0).any() for number in self.floats)
        return close or any((values == number).any() for number in self.integers)

    def text(self, text: str, path: str, where: str) -> None:
        if any(label in text for label in self.labels) or any(map(self.shown, _NUMBER.findall(text))):
            self.found.append(f"{path}: {where}")

    def shown(self, written: str) -> bool:
        """Whether a number in a text is a canary, rounded or cut to at least `DIGITS` digits."""
        digits = len(re.sub(r"[eE].*|\D", "", written).lstrip("0"))
        value = float(written)
        if value in self.numbers:
            return True
        if digits < DIGITS or not math.isfinite(value):
            return False
        nonzero = [number for number in self.floats if number]
        return any(abs(value - n) < 10.0 ** (math.floor(math.log10(abs(n))) + 1 - digits) for n in nonzero)

    def data(self, data: bytes, path: str, where: str) -> None:
        if any(form in data for form in self.forms):
            self.found.append(f"{path}: {where}")

    def pickled(self, obj: object, path: str) -> None:
        try:
            data = pickle.dumps(obj, protocol=5)
        except Exception:
            return  # what cannot be pickled cannot leave in a pickle
        self.data(data, path, "pickle")


def _parts(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield (suffix of the path, part) of an object that is neither number, text nor array."""
    if isinstance(obj, xr.DataTree):
        for node in obj.subtree:
            yield node.path, node.to_dataset(inherit=False)
            yield f"{node.path}.name", node.name
    elif isinstance(obj, xr.Dataset):
        for place, (name, variable) in enumerate(obj.variables.items()):
            yield f"/variable {place}", variable
            yield f"/name of variable {place}", name
        yield ".attrs", obj.attrs
        yield ".encoding", obj.encoding
        yield ".dims", list(obj.sizes)
    elif isinstance(obj, xr.DataArray):
        yield ".name", obj.name
        yield ".coords", {name: coord.variable for name, coord in obj.coords.items()}
        yield "", obj.variable
    elif isinstance(obj, xr.Variable):
        yield ".values", obj.values
        yield ".dims", obj.dims
        yield ".attrs", obj.attrs
        yield ".encoding", obj.encoding
    elif isinstance(obj, Mapping):
        for place, (key, value) in enumerate(list(obj.items())):
            yield f".key {place}", key
            yield f"[{key!r}]" if isinstance(key, str) and key.isidentifier() else f".value {place}", value
    elif isinstance(obj, list | tuple | set | frozenset):
        yield from ((f"[{place}]", item) for place, item in enumerate(obj))
    elif isinstance(obj, logging.LogRecord):
        yield ".message", _safely(logging.LogRecord.getMessage, obj)
        yield ".args", obj.args
    elif isinstance(obj, BaseException):
        yield ".args", obj.args
        yield ".notes", getattr(obj, "__notes__", [])
        yield ".cause", obj.__cause__
        yield ".context", obj.__context__
        yield ".attributes", vars(obj)
    elif isinstance(_attribute(obj, "data"), np.ndarray):
        yield ".data", obj.data
    elif callable(_attribute(obj, "to_numpy")):
        yield ".values", np.asarray(obj.to_numpy())
        for name in ("index", "columns", "name"):
            held = _attribute(obj, name)
            if held is not None and held is not obj:
                yield f".{name}", np.asarray(held, dtype=object) if hasattr(held, "to_numpy") else held
    elif isinstance(obj, FunctionType):
        for place, cell in enumerate(obj.__closure__ or ()):
            yield f".closure[{place}]", _contents(cell)
        yield ".defaults", [obj.__defaults__, obj.__kwdefaults__]
        yield ".attributes", vars(obj)
    elif isinstance(obj, MethodType):
        yield ".self", obj.__self__
        yield ".function", obj.__func__
    elif isinstance(obj, functools.partial):
        yield ".function", obj.func
        yield ".args", [obj.args, obj.keywords]
    elif not isinstance(obj, type) and type(obj).__module__ != "builtins":
        own = _attribute(obj, "__dict__")  # which an object may compute as it likes
        held = dict(own) if isinstance(own, Mapping) else {}
        for slot in (name for kind in type(obj).__mro__ for name in _slots(kind)):
            held[slot] = _attribute(obj, slot)
        yield from ((f".{name}", part) for name, part in held.items())


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(name for name in slots if not name.startswith("__"))


def _attribute(obj: Any, name: str) -> Any:
    """An attribute, or None: `__getattr__` of an object under search may raise anything."""
    try:
        return getattr(obj, name, None)
    except Exception:
        return None


def _safely(show: Callable[[Any], str], obj: Any) -> str:
    try:
        return show(obj)
    except Exception:
        return ""


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty closure cell
        return None


def differing(a: xr.DataTree, b: xr.DataTree) -> list[str]:
    """Return every path at which two trees differ: groups, variables, dtypes, dims, values, attributes, encodings.

    Parameters
    ----------
    a, b : xarray.DataTree
        For instance from two neighbouring tables with the same ``testing.insecure_randomness``: whatever differs must
        be a declared release, or follow from one.

    Returns
    -------
    list of str
        Paths such as ``/posterior/p`` or ``/privacy@created_at``; empty if the trees are equal.

    Notes
    -----
    **Guarantee.** None: two trees were compared. What differs depends on the row that changed, or on randomness that
    was not held fixed.

    Examples
    --------
    >>> a = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": ("draw", [0.1, 0.2])}, attrs={"n": 1})})
    >>> b = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": ("draw", [0.1, 0.3])}, attrs={"n": 1})})
    >>> differing(a, b)
    ['/posterior/p']
    """
    first, second = dict(_entries(a)), dict(_entries(b))
    shared = {path for path in first.keys() & second.keys() if _same(first[path], second[path])}
    return [path for path in dict.fromkeys([*first, *second]) if path not in shared]


def _entries(tree: xr.DataTree) -> Iterator[tuple[str, Any]]:
    for node in tree.subtree:
        path = node.path.rstrip("/")
        dataset = node.to_dataset(inherit=False)
        yield f"{path}/", dict(dataset.sizes)
        for name, variable in dataset.variables.items():
            kind = "index" if name in dataset.coords else "variable"
            yield f"{path}/{name}", (kind, variable.dims, str(variable.dtype), np.asarray(variable.values))
            yield from ((f"{path}/{name}@{key}", value) for key, value in variable.attrs.items())
            yield from ((f"{path}/{name}#{key}", value) for key, value in variable.encoding.items())
        yield from ((f"{path}@{key}", value) for key, value in dataset.attrs.items())
        yield from ((f"{path}#{key}", value) for key, value in dataset.encoding.items())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        if x.dtype.kind in "fc":
            return x.tobytes() == y.tobytes() or bool(np.array_equal(x, y, equal_nan=True))
        return bool(np.array_equal(x, y))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)
