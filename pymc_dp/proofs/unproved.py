"""Why the range of a step is not proved, and what would do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymc_dp.errors import Problem
from pymc_dp.intervals.expression import Symbol
from pymc_dp.proofs.meeting_points import Meeting

OTHERWISE = "bound every row's log-likelihood by dp.clamp(model, low, high), or give BarkerMetropolis(clamp=...)"


def no_rule(name: str, operation: str) -> Problem:
    """Return the problem of an operation without a rule."""
    return Problem(
        where=name,
        what=f"the range of a step cannot be proved: its density contains {operation}, which no rule bounds",
        remedy="Write it with other operations, or give BarkerMetropolis(clamp=...).",
    )


def unproved(name: str, operation: str, symbols: Sequence[Symbol]) -> Problem:
    """Return the problem of an operation whose change between two places is not bounded."""
    known = dict.fromkeys(one for symbol in symbols for one in _sides(symbol))
    loose = [one for one in known if one.role != "parameter" and _unbounded(one)]
    shown = ", ".join(repr(one.name) for one in loose or known)
    if loose:
        lost = f"no row is bounded: {shown} may be anything" if len(loose) > 1 else f"{shown} has no bounds"
    else:
        lost = f"{operation} of {shown} has no bound near the initial point"
    what = f"the range of a step cannot be proved: {lost}"
    remedies = [*_bounds(loose), *_truncation(loose, list(known)), OTHERWISE]
    return Problem(where=name, what=what, remedy=f"{'; or '.join(_capital(remedies))}.")


def _sides(symbol: Symbol) -> list[Symbol]:
    """Return what a meeting depends on."""
    if not isinstance(symbol, Meeting):
        return [symbol]
    return [one for part in (*symbol.of_row, *(side.parameter for side in symbol.sides)) for one in part.symbols]


def _unbounded(symbol: Symbol) -> bool:
    return bool(np.isinf(symbol.low).any() or np.isinf(symbol.high).any())


def _bounds(loose: Sequence[Symbol]) -> list[str]:
    if not loose:
        return []
    given = ", ".join(f"{one.name!r}: (low, high)" for one in loose)
    norms = ", ".join(f"{one.name!r}: norm" for one in loose if one.shape)
    several = f" or dp.Domain(norms={{{norms}}})" if norms else ""
    return [f"give public bounds of its values, dp.Domain(bounds={{{given}}}){several}"]


def _truncation(loose: Sequence[Symbol], known: Sequence[Symbol]) -> list[str]:
    names = [one.name for one in known if one.role == "parameter"]
    if loose or not names:
        return []
    given = ", ".join(f"{name!r}: (low, high)" for name in names)
    return [f"truncate priors by public bounds, dp.truncate(model, {{{given}}})"]


def _capital(remedies: Sequence[str]) -> list[str]:
    first, *rest = remedies
    return [first[0].upper() + first[1:], *rest]


__all__ = ["no_rule", "unproved"]
