"""What was found of every method, kept in `compare.json`: one can be measured again without the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _compare_lines import BEGINNINGS, LINES, REFERENCE

STORED = Path(__file__).resolve().parent / "compare.json"


@dataclass(frozen=True)
class Score:
    """The mean of a measure over fits, its standard error, and the day of the fits."""

    mean: float
    error: float
    fits: int
    day: str

    @classmethod
    def of(cls, values: list[float], day: str) -> Score:
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return cls(round(float(np.mean(values)), 5), round(float(error), 5), len(values), day)


@dataclass(frozen=True)
class Time:
    """CPU time, in seconds, or over that of the reference.

    `first` is from the start of its process to the end of the first fit, with nothing compiled before; `again`, that of
    a later fit, the median.
    """

    first: float
    again: float
    day: str

    def over(self, seconds: float) -> Time:
        return Time(float(f"{self.first / seconds:.4g}"), float(f"{self.again / seconds:.4g}"), self.day)


@dataclass
class Found:
    """What was found of one method: scores by measure, times by question, and why a question has no answer."""

    scores: dict[str, Score] = field(default_factory=dict)
    times: dict[str, Time] = field(default_factory=dict)
    audited: str = ""
    versions: str = ""
    why: dict[str, str] = field(default_factory=dict)


Everything = dict[str, Found]


def load(path: Path = STORED) -> Everything:
    """Return what is stored of the methods that there are."""
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {line.name: _found(held.get(line.name, {})) for line in LINES}


def _found(held: Mapping[str, Any]) -> Found:
    scores = {name: Score(**one) for name, one in held.get("scores", {}).items()}
    times = {name: Time(**one) for name, one in held.get("times", {}).items()}
    return Found(scores, times, held.get("audited", ""), held.get("versions", ""))


def store(found: Everything, path: Path = STORED) -> None:
    """Keep everything but why something is missing."""
    held = {name: {key: value for key, value in asdict(one).items() if key != "why"} for name, one in found.items()}
    path.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def renewed(held: Everything, found: Everything) -> Everything:
    """Return what is held, with what was found since in its place.

    Seconds of two machines cannot be divided: a time is new only where that of the reference was found with it.
    """
    reference = found[REFERENCE].times
    result = {}
    for name, new in found.items():
        old = held.get(name, Found())
        times = {asked: one.over(reference[asked].again) for asked, one in new.times.items() if asked in reference}
        scores, times = {**old.scores, **_later(new.scores, old.scores)}, {**old.times, **_later(times, old.times)}
        why = {asked: text for asked, text in new.why.items() if not _measured(asked, scores)}
        result[name] = Found(scores, times, new.audited or old.audited, new.versions or old.versions, why)
    return result


def _later(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in new.items() if name not in old or one.day >= old[name].day}


def _measured(asked: str, scores: Iterable[str]) -> bool:
    return any(name.startswith(f"{BEGINNINGS[asked]}:") for name in scores)
