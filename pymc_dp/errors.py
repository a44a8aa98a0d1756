"""Every error and warning of the package, each with a text that says the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class PrivacyError(Exception):
    """Root of all errors of pymc_dp. No text ever holds a private value.

    Examples
    --------
    >>> from pymc_dp import Budget
    >>> try:
    ...     Budget(epsilon=-1.0)
    ... except PrivacyError as error:
    ...     print(error)
    epsilon must be ...
    """


class ArgumentError(PrivacyError, ValueError):
    """An argument is outside its range or of the wrong kind."""


class DomainError(PrivacyError, ValueError):
    """The declared domain contradicts itself or does not fit the model."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One reason why a model cannot be made private, and what to do about it."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.remedy}"


class UnsupportedModelError(PrivacyError):
    """The model cannot be made private as it stands; ``problems`` holds every reason found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [f"{len(self.problems)} problem{'s' * (len(self.problems) != 1)} found:"]
        lines += [f"  {i}. {problem}" for i, problem in enumerate(self.problems, start=1)]
        super().__init__("\n".join(lines))


class BudgetExceeded(PrivacyError):
    """The release would cost more than what is left; nothing was spent and no data were read.

    Examples
    --------
    >>> from pymc_dp import Ledger
    >>> from pymc_dp.accounting.events import PureEvent
    >>> Ledger(epsilon=1.0).spend(PureEvent(epsilon=1.5), label="ages", neighbours="replace")
    Traceback (most recent call last):
    pymc_dp.errors.BudgetExceeded: ...
    """


class ReleaseError(PrivacyError):
    """A release failed where the rows are held, after it was charged; what was wrong could show a row.

    Examples
    --------
    >>> str(ReleaseError())
    'The release failed where the rows are held, after its budget was charged. ...'
    """

    def __init__(self) -> None:
        super().__init__(
            "The release failed where the rows are held, after its budget was charged. The budget is spent; nothing "
            "was released and nothing is kept. The cause could reveal a row, so it is not shown. To find it, make the "
            "same call with public or simulated rows in the model."
        )


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
