"""Every error and warning of the package, each with a text that says the way out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pymc_dp.kernel.errors import ArgumentError as ArgumentError
from pymc_dp.kernel.errors import BudgetExceeded as BudgetExceeded
from pymc_dp.kernel.errors import PrivacyError as PrivacyError
from pymc_dp.kernel.errors import ReleaseError as ReleaseError

Kind = Literal["cause", "declaration", "outcome", "structure"]
"""Of a problem.

What others follow from; what a name, bounds or a public column mend; what a trial showed, on simulated rows or public
constants; anything else in the model.
"""
MOST_LINES, COLUMNS = 5, 100
"""Of a refusal as it is printed."""
MOST_REASONS = 2
"""That are said for one remedy."""


class DomainError(PrivacyError, ValueError):
    """The declared domain contradicts itself or does not fit the model."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One reason why a model cannot be made private, and what to do about it."""

    where: str
    what: str
    remedy: str
    kind: Kind = field(default="structure", compare=False)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"


NEEDS_BOUNDS = " needs bounds"
"""After the name of a column, at the beginning of a remedy."""


def needs_bounds(name: str, low: str = "low", *, of: str = "") -> str:
    """Return the remedy that a column is given bounds, without its full stop.

    The ends are names: who pastes the line has to say what is publicly known.

    Examples
    --------
    >>> needs_bounds("y", of="a public range")
    "y needs bounds, a public range: dp.Domain(bounds={'y': (low, high)})"
    """
    return f"{name}{NEEDS_BOUNDS}{f', {of}' if of else ''}: dp.Domain(bounds={{{name!r}: ({low}, high)}})"


class UnsupportedModelError(PrivacyError):
    """The model cannot be made private as it stands; ``problems`` holds every reason found.

    The text has at most five lines: what to do first, and why.

    Examples
    --------
    >>> problem = Problem(where="y", what="it has no bounds", remedy="y needs bounds: dp.Domain(bounds={'y': (0, 9)}).")
    >>> print(UnsupportedModelError([problem]))
    y needs bounds: dp.Domain(bounds={'y': (0, 9)}).
    Why: y: it has no bounds.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(_shown(first_of(self.problems))))


def first_of(*ways: Iterable[Problem]) -> list[Problem]:
    """Return what to do first, of the problems of each of several ways to the same end.

    Where there are causes, other parts of the model are not looked at before these are mended. Else the way counts that
    asks for the fewest changes of the model.
    """
    found = [list(dict.fromkeys(way)) for way in ways]
    together = list(dict.fromkeys(problem for way in found for problem in way))
    declarations = [problem for problem in together if problem.kind == "declaration"]
    if causes := [problem for problem in together if problem.kind == "cause"]:
        return [*causes, *declarations]
    if declared := [way for way in found if all(problem.kind == "declaration" for problem in way)]:
        return max(declared, key=len)  # then nothing is left to ask for
    least = min(found, key=lambda way: sum(problem.kind != "declaration" for problem in way), default=[])
    return list(dict.fromkeys([*least, *declarations]))


def _shown(problems: Iterable[Problem]) -> list[str]:
    """Lines of as many remedies as fit, each before the reasons for it."""
    reasons: dict[str, list[str]] = {}
    for problem in problems:
        reasons.setdefault(problem.remedy, []).append(f"{problem.where}: {problem.what}")
    several, lines = len(reasons) > 1, list[str]()
    for place, (remedy, why) in enumerate(reasons.items(), start=1):
        mark = f"{place}. " * several
        more = f"; and {len(why) - MOST_REASONS} more, in error.problems" * (len(why) > MOST_REASONS)
        own = [f"{mark}{remedy}", f"{' ' * len(mark)}Why: {'; '.join(why[:MOST_REASONS])}{more}."]
        left = MOST_LINES - _height(lines) - (place < len(reasons))
        if lines and _height(own) > left:
            return [*lines, f"{len(reasons) - place + 1} more, in error.problems."]
        lines += own
    return lines


def _height(lines: Iterable[str]) -> int:
    return sum(max(len(textwrap.wrap(line, COLUMNS)), 1) for line in lines)


class TraceError(PrivacyError):
    """The trace holds something that the privacy guarantee does not cover."""


class DomainWarning(UserWarning):
    """What was released contradicts what was declared public."""


class BudgetWarning(UserWarning):
    """A filter or Ctrl+C has ended a private chain before its last draw; all of them were charged."""


class RepeatedReleaseWarning(UserWarning):
    """The same rows were, or may have been, released before, and no one ledger or posterior accounts for both."""


class WeakGuaranteeWarning(UserWarning):
    """The ε or δ asked for bounds next to nothing; nothing was spent yet."""


class PosteriorWarning(UserWarning):
    """The density that will be sampled, or its slope, is not finite at some points of the prior, or is far off."""
