"""What ``explain`` says about privacy under a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pymc_dp.domain import Domain
from pymc_dp.release.tables import ReleaseLayout
from pymc_dp.step_methods.preview import Preview


def metric_lines(domain: Domain, previews: Sequence[Preview], layout: ReleaseLayout | None) -> tuple[str, ...]:
    """Say what ε is per unit of, and what it is for a whole row, once per way of using it where these differ."""
    steps = [preview.bound.diameter for preview in previews if preview.bound is not None]
    found = steps if layout is None else [layout.diameter, *steps]
    lines = [
        f"ε is per unit of ρ = {domain.metric}: of two tables, every conclusion is at most e^(ε Σ ρ(x_i, y_i)) times "
        "likelier under one than under the other.",
        "ρ compares rows as they are used: values clamped to their bounds and, except for dp.OPS(), rounded to a grid.",
    ]
    for diameter in dict.fromkeys(f"{item:.6g}" for item in found):
        if math.isinf(float(diameter)):
            lines.append("Values have no bounds, so rows may be at any distance: nothing is promised for a whole row.")
        else:
            lines.append(f"Rows are at most {diameter} apart: for a whole row it is {diameter} ε, under replace.")
    return tuple(lines)


__all__ = ["metric_lines"]
