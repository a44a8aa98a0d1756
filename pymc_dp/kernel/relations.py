"""What an account counts by, as text: neighbours by their names, persons, and units of a metric."""

from __future__ import annotations

import re
from collections.abc import Mapping

PER_UNIT = "metric: "
"""What the relation of a guarantee begins with that is per unit of distance."""
PER_PERSON = "unit: "
"""What the relation of a guarantee begins with that is for a person with several rows."""
ROW = "row"
"""What a metric of whole rows calls them, so that no column is called it."""
PLAIN = re.compile(r"[\w .:-]+")
"""Names without the characters that metrics are written with: a ledger distinguishes metrics by their texts."""


def times(weight: float, what: str) -> str:
    """Return a term with its weight, as text."""
    return what if weight == 1 else f"{weight!r} {what}"


def named(column: str) -> str:
    """Return the name of a column as text that cannot be mistaken for another text of a metric."""
    return column if PLAIN.fullmatch(column) and column != ROW else repr(column)


def l1_text(weights: Mapping[str, float]) -> str:
    """Return the text of ``Σ w |x - y|``, its columns in order: other weights or columns have another.

    Examples
    --------
    >>> l1_text({"x": 2.0, "age": 1.0})
    '|Δage| + 2.0 |Δx|'
    """
    return " + ".join(times(weight, f"|Δ{named(name)}|") for name, weight in sorted(weights.items()))
