"""What the kernel raises: texts that hold no private value."""

from __future__ import annotations

SHOWN = "pymc_dp.errors"
"""Where users find these classes: beside all other errors of the package."""


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

    __module__ = SHOWN


class ArgumentError(PrivacyError, ValueError):
    """An argument is outside its range or of the wrong kind."""

    __module__ = SHOWN


class BudgetExceeded(PrivacyError):
    """The release would cost more than what is left; nothing was spent and no data were read.

    Examples
    --------
    >>> from pymc_dp import Ledger
    >>> from pymc_dp.accounting import PureEvent
    >>> Ledger(epsilon=1.0).spend(PureEvent(epsilon=1.5), label="ages", neighbours="replace")
    Traceback (most recent call last):
    pymc_dp.errors.BudgetExceeded: ...
    """

    __module__ = SHOWN


class ReleaseError(PrivacyError):
    """A release failed where the rows are held, after it was charged; what was wrong could show a row.

    Examples
    --------
    >>> str(ReleaseError())
    'The release failed where the rows are held, after its budget was charged. ...'
    """

    __module__ = SHOWN

    def __init__(self) -> None:
        super().__init__(
            "The release failed where the rows are held, after its budget was charged. The budget is spent; nothing "
            "was released and nothing is kept. The cause could reveal a row, so it is not shown. To find it, make the "
            "same call with public or simulated rows in the model."
        )
