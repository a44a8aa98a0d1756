"""Levels that a domain declares for columns of codes, held against the model."""

from __future__ import annotations

import numpy as np

from pymc_dp._display import shorten
from pymc_dp.errors import DomainError
from pymc_dp.inspection.findings import Findings

FEW = 8
"""Labels that a text shows, and entries of an array that is written in full."""


def check_levels(findings: Findings) -> None:
    """Raise on levels of a column that holds no codes: they would be its bounds."""
    for name, levels in findings.domain.levels.items():
        held = findings.model.named_vars.get(name)
        if held is not None and np.dtype(held.type.dtype).kind not in "iub":
            raise DomainError(
                f"levels names {name!r}, which holds {held.type.dtype} numbers and no codes 0 to {len(levels) - 1}. "
                "Give it as an integer array, or bounds in place of levels."
            )


def other_levels(findings: Findings, name: str, dim: str | None, length: int | None) -> str:
    """Say how the declared levels of a column are not those of the axis that it indexes; nothing where they are."""
    levels = findings.domain.levels.get(name)
    if levels is None or length is None:
        return ""
    if len(levels) != length:
        return f"it has {len(levels)} declared levels, and indexes {length}"
    labels = None if dim is None else findings.model.coords.get(dim)
    if labels is not None and [*map(str, labels)] != [*map(str, levels)]:
        names = (", ".join(shorten([*map(str, one)], FEW)) for one in (levels, labels))
        return f"its declared levels are {next(names)}, and those of the dim {dim!r} are {next(names)}"
    return ""


__all__ = ["check_levels", "other_levels"]
