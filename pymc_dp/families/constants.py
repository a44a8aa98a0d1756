"""Parameters that are constants."""

from __future__ import annotations

from math import isfinite

from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import plain_numbers, unwrap


def number(parameter: Variable) -> float | None:
    """Value of a parameter that is one constant, else None."""
    inner = unwrap(parameter)
    if inner.owner is not None or not hasattr(inner, "data"):
        return None
    numbers = list(plain_numbers([inner], []))
    if len(numbers) != 1 or numbers[0].size != 1 or not isfinite(numbers[0].item()):
        return None
    return float(numbers[0].item())


def unknown(observed: Observed, what: str) -> Problem:
    """Refuse a parameter that has to be constant."""
    return Problem(
        where=observed.name,
        what=f"{what} is not a constant, so the likelihood has no finite sufficient statistics",
        remedy=f"Give {what} as a number, or release a histogram: Statistics(mechanism=dp.Histogram(edges)).",
    )


__all__ = ["number", "unknown"]
