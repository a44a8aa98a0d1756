"""Findings in JSON types, with every digit; and what differs between two of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SAME = 1e-9
"""Relative difference of two floats that are the same but for the last bits of a platform's functions."""
FOUND = re.compile("scale|noise|epsilon|step size")
"""Numbers that a search for the least noise of a budget decides, or decides others by."""
SEARCHED = 2e-4
"""Where such a search stops, relative to the noise: which of the places within it depends on the platform."""
TINY = 1e-12
"""What counts as 0 beside 0."""
Json = Any


def plain(found: Any) -> Json:
    """Return JSON types: floats with all digits, what is no number by its name."""
    if isinstance(found, Mapping):
        return {str(key): plain(value) for key, value in found.items()}
    if isinstance(found, np.ndarray):
        return plain(found.tolist())
    if isinstance(found, list | tuple):
        return [plain(item) for item in found]
    if isinstance(found, np.generic):
        return plain(found.item())
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    if found is None or isinstance(found, bool | int | float | str):
        return found
    raise TypeError(f"{type(found).__name__} has no plain form: {found!r}")


def lines(text: str) -> list[str]:
    """Return a text as a list of lines, so that what changes of it is seen line by line."""
    return [line.rstrip() for line in text.splitlines()]


def written(found: Json) -> str:
    """Return the text of a file: keys sorted, a line for each key and each text, lists of numbers on one line."""
    return _indented(found, 0) + "\n"


def _indented(item: Json, depth: int) -> str:
    """As ``json.dumps(indent=1)`` writes it, but for lists of numbers."""
    if isinstance(item, Mapping) and item:
        parts = [f"{_line(key)}: {_indented(value, depth + 1)}" for key, value in sorted(item.items())]
        ends = "{}"
    elif isinstance(item, list) and any(isinstance(part, str | Mapping) for part in item):
        parts, ends = [_indented(part, depth + 1) for part in item], "[]"
    else:
        return _line(item)
    inside = ",\n".join(" " * (depth + 1) + part for part in parts)
    return f"{ends[0]}\n{inside}\n{' ' * depth}{ends[1]}"


def _line(item: Json) -> str:
    return json.dumps(item, ensure_ascii=False, allow_nan=False)


def read(path: Path) -> Json:
    return json.loads(path.read_text(encoding="utf-8"))


def differences(old: Json, new: Json, where: str = "", *, searched: bool = False) -> Iterator[str]:
    """Yield one line for each place where two findings differ: floats by more than `SAME`, all else at all.

    Where noise was `searched` for, what follows from it may differ by `SEARCHED`.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            place = f"{where}.{key}" if where else key
            if key not in new:
                yield f"{place}: gone, was {_short(old[key])}"
            elif key not in old:
                yield f"{place}: new, {_short(new[key])}"
            else:
                yield from differences(old[key], new[key], place, searched=searched)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} items, now {len(new)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, f"{where}[{number}]", searched=searched)
    elif not _same(old, new, SEARCHED if searched and FOUND.search(where) else SAME):
        yield f"{where or '(whole)'}: {_short(old)}, now {_short(new)}"


def _same(old: Json, new: Json, within: float) -> bool:
    numbers = [item for item in (old, new) if isinstance(item, int | float) and not isinstance(item, bool)]
    if len(numbers) == 2 and any(isinstance(item, float) for item in numbers):
        return math.isclose(old, new, rel_tol=within, abs_tol=TINY)
    return type(old) is type(new) and old == new


def _short(item: Json, most: int = 300) -> str:
    text = _line(item)
    return text if len(text) <= most else f"{text[:most]}..."


__all__ = ["Json", "differences", "lines", "plain", "read", "written"]
