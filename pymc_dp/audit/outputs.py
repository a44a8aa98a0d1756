"""What a mechanism returns, laid out as columns over its runs, so that any kind of output can be compared.

Events that may tell two data sets apart, learnt from outputs on both: scores, and thresholds on them.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
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


BINS = 32
MAX_COLUMNS = 64
MAX_PAIRED = 8
MAX_SHOWN = 5
SHRINK = 2.0
"""Log-ratios of fewer standard errors than this count as noise, which would swamp the true ones in a sum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """A number computed from each output; NaN belongs to no event.

    Attributes
    ----------
    text : str
        What it is; in braces where it is an indicator.
    of : callable
    levels : mapping of str to float, optional
        Its value for each label that an output may have, where it is a function of one.
    """

    text: str
    of: Callable[[Columns], Floats]
    levels: Mapping[str, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputEvent:
    """The outputs whose score is at least (or at most) a threshold."""

    score: Score
    threshold: float
    above: bool

    def __str__(self) -> str:
        if self.score.text.startswith("{"):
            return self.score.text.strip("{}") if self.above else f"not ({self.score.text.strip('{}')})"
        if self.score.levels is not None:
            kept = [label for label, value in self.score.levels.items() if self._holds(np.float64(value))]
            shown = " or ".join(map(repr, kept[:MAX_SHOWN])) or "anything not seen before"
            return f"{self.score.text} is {shown}" + f" or one of {len(kept) - MAX_SHOWN} more" * (
                len(kept) > MAX_SHOWN
            )
        return f"{self.score.text} {'>=' if self.above else '<='} {self.threshold:.6g}"

    def count(self, columns: Columns) -> int:
        """Return in how many runs the event occurred."""
        return int(np.sum(self._holds(self.score.of(columns))))

    def _holds(self, values: Any) -> Any:
        return values >= self.threshold if self.above else values <= self.threshold


@dataclass(frozen=True, kw_only=True, eq=False)
class _Column:
    """One column of outputs, cut into bins (numbers) or levels (labels), with the log-ratio of each."""

    path: str
    is_number: bool
    edges: Array
    ratios: Floats
    strength: float

    def codes(self, columns: Columns) -> Array:
        if self.is_number:
            values = columns.number(self.path)
            codes = np.searchsorted(self.edges, values, side="right")
            return np.where(np.isnan(values), len(self.edges) + 1, codes)
        labels = columns.label(self.path).astype(str)
        places = np.minimum(np.searchsorted(self.edges, labels), len(self.edges) - 1)
        return np.where(self.edges[places] == labels, places, len(self.edges))

    def ratio(self, columns: Columns) -> Floats:
        return np.asarray(self.ratios[self.codes(columns)])

    @property
    def score(self) -> Score:
        if self.is_number:
            return Score(text=f"log-likelihood ratio of {self.path}", of=self.ratio)
        levels = dict(zip(map(str, self.edges), self.ratios.tolist(), strict=False))
        return Score(text=self.path, of=self.ratio, levels=levels)


def user_scores(events: Mapping[str, Callable[[Any], bool]] | Sequence[Callable[[Any], bool]]) -> list[Score]:
    """Return indicator scores of a user's own events."""
    if isinstance(events, Mapping):
        named = dict(_validate.mapping("events", events))
    else:
        named = {f"events[{i}]": event for i, event in enumerate(_validate.several("events", events))}
    for name, event in named.items():
        _validate.function(name if name.startswith("events[") else f"events[{name!r}]", event)

    def indicator(event: Callable[[Any], bool], columns: Columns) -> Floats:
        return np.array([float(bool(event(output))) for output in columns.raw])

    return [Score(text="{" + name + "}", of=partial(indicator, event)) for name, event in named.items()]


def learn_scores(p: Columns, q: Columns) -> list[Score]:
    """Return scores that separate the outputs `p` from `q`, whatever their shape.

    Every coordinate itself, the likelihood ratio of each, their sum (the best there is where coordinates are
    independent), the likelihood ratio of all of them together where they take few values, Fisher's linear discriminant,
    and differences and sums of pairs (noise used twice cancels in one of them).
    """
    learnt = [column for path in _paths(p, q) if len((column := _learn(path, p, q)).edges) > 1]
    columns = sorted(learnt, key=lambda column: -column.strength)[:MAX_COLUMNS]
    scores = [Score(text=c.path, of=lambda held, c=c: held.number(c.path)) for c in columns if c.is_number]  # type: ignore[misc]
    # Of equals the first is chosen, and a label says more than a ratio.
    scores += [column.score for column in sorted(columns, key=lambda column: column.is_number)]
    if len(columns) > 1:
        text = f"log-likelihood ratio summed over {len(columns)} coordinates"
        scores.append(Score(text=text, of=partial(_summed, columns)))
    scores += _joint(columns, p, q)
    numeric = [c.path for c in columns if c.is_number and np.isfinite(p.number(c.path)).any()]
    if len(numeric) > 1:
        scores.append(_discriminant(numeric, p, q))
        scores += list(_pairs(numeric[:MAX_PAIRED]))
    return scores


def thresholds(values: Floats) -> Floats:
    """Return where to cut a score: its quantiles, and the middles between them."""
    held = values[np.isfinite(values)]
    if not len(held):
        return np.zeros(0)
    cuts = np.unique(np.quantile(held, np.linspace(0, 1, 2 * BINS + 1), method="nearest"))
    return np.unique(np.concatenate([cuts, (cuts[1:] + cuts[:-1]) / 2]))


def _paths(p: Columns, q: Columns) -> Iterator[tuple[str, bool]]:
    for path in dict.fromkeys([*p.numbers, *q.numbers]):
        yield path, True
    for path in dict.fromkeys([*p.labels, *q.labels]):
        yield path, False


def _learn(key: tuple[str, bool], p: Columns, q: Columns) -> _Column:
    path, is_number = key
    if is_number:
        pooled = np.concatenate([p.number(path), q.number(path)])
        held = pooled[~np.isnan(pooled)]
        quantiles = np.quantile(held, np.linspace(0, 1, BINS + 1), method="nearest") if len(held) else np.zeros(0)
        edges = np.unique(quantiles)
        n_codes = len(edges) + 2
    else:
        edges = np.unique(np.concatenate([p.label(path), q.label(path)]).astype(str))
        n_codes = len(edges) + 1
    blank = _Column(path=path, is_number=is_number, edges=edges, ratios=np.zeros(n_codes), strength=0.0)
    ratios, strength = _log_ratios(blank.codes(p), blank.codes(q), n_codes)
    return _Column(path=path, is_number=is_number, edges=edges, ratios=ratios, strength=strength)


def _log_ratios(p_codes: Array, q_codes: Array, n_codes: int) -> tuple[Floats, float]:
    """Return the smoothed log-ratio of each code, 0 where it may be chance, and the chi-square of the column."""
    a, b = np.bincount(p_codes, minlength=n_codes) + 0.5, np.bincount(q_codes, minlength=n_codes) + 0.5
    ratios = np.log(a / a.sum()) - np.log(b / b.sum())
    significance = np.abs(ratios) / np.sqrt(1 / a + 1 / b)
    strength = float(np.sum(np.where(significance > SHRINK, significance**2, 0.0)))
    return np.where(significance > SHRINK, ratios, 0.0), strength


def _summed(columns: Sequence[_Column], held: Columns) -> Floats:
    return np.sum([column.ratio(held) for column in columns], axis=0)


def _joint(columns: Sequence[_Column], p: Columns, q: Columns) -> list[Score]:
    """Likelihood ratio of whole outputs, where few different ones occur."""
    if len(columns) < 2:
        return []

    def rows(held: Columns) -> list[tuple[int, ...]]:
        return [tuple(row) for row in np.stack([column.codes(held) for column in columns], axis=1).tolist()]

    p_rows, q_rows = rows(p), rows(q)
    known = {row: place for place, row in enumerate(sorted({*p_rows, *q_rows}))}
    if len(known) > p.runs // 20:
        return []
    p_codes, q_codes = (np.array([known[row] for row in found]) for found in (p_rows, q_rows))
    ratios, _ = _log_ratios(p_codes, q_codes, len(known) + 1)
    ratios[-1] = 0.0

    def score(held: Columns) -> Floats:
        return np.asarray(ratios[[known.get(row, len(known)) for row in rows(held)]])

    return [Score(text="log-likelihood ratio of the whole output", of=score)]


def _discriminant(paths: Sequence[str], p: Columns, q: Columns) -> Score:
    """Fisher's linear discriminant; a direction in which noise cancels gets nearly all the weight."""
    raw = np.stack([np.concatenate([p.number(path), q.number(path)]) for path in paths], axis=1)
    raw[~np.isfinite(raw)] = np.nan
    low, middle, high = np.nanquantile(raw, [0.001, 0.5, 0.999], axis=0)
    width = np.where(high > low, high - low, 1.0)

    def scaled(held: Columns) -> Floats:
        values = np.stack([held.number(path) for path in paths], axis=1)
        values = np.where(np.isfinite(values), values, middle)
        return np.asarray((np.clip(values, low - width, high + width) - middle) / width)

    a, b = scaled(p), scaled(q)
    within = np.atleast_2d(np.cov(a, rowvar=False) + np.cov(b, rowvar=False)) + 1e-9 * np.eye(len(paths))
    weights = np.linalg.solve(within, a.mean(axis=0) - b.mean(axis=0))
    weights /= np.abs(weights).max() or 1.0
    text = f"linear discriminant of {len(paths)} coordinates"
    return Score(text=text, of=lambda held: np.asarray(scaled(held) @ weights))


def _pairs(paths: Sequence[str]) -> Iterator[Score]:
    for a, b in combinations(paths, 2):
        yield Score(text=f"{a} - {b}", of=lambda held, a=a, b=b: held.number(a) - held.number(b))  # type: ignore[misc]
        yield Score(text=f"{a} + {b}", of=lambda held, a=a, b=b: held.number(a) + held.number(b))  # type: ignore[misc]
