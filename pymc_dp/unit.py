"""Who ε protects, where a person may have several rows."""

from __future__ import annotations

from dataclasses import dataclass

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.kernel.relations import PER_PERSON

MOST_OF_ONE = 2**16
"""Rows of one person that may count in full."""


@dataclass(frozen=True)
class Unit:
    """Who ε protects, where a person may have several rows: all rows with the same value of a column.

    Parameters
    ----------
    column : str
        Name of a ``pm.Data`` of whole numbers with one entry per row, or of a column of ``rows=``, of whole numbers or
        texts: whose row it is. It is private, and reaches no likelihood. A number below 0 is nobody's. PyMC keeps whole
        numbers in 32 bits, and larger ones become others without a word: give codes below 2**31, such as
        ``pandas.factorize(ids)[0]``.
    max_rows : int
        How many rows of one person count at most, m. At most m rows of each person are kept, chosen at random, anew for
        each release; every row that is kept counts in full. The noise of exact sums grows with m.

    Raises
    ------
    DomainError

    Notes
    -----
    **Estimand.** By exact sums and by noised gradients alike: the posterior that the rows which are kept would give
    without privacy. Where persons with many rows differ from others, it is not that of all rows.

    **Guarantee.** None by itself: it says what ε is for, see `Domain`. A row whose person is missing, or has a number
    below 0, is left out. Two people who share a value of the column are protected as one: for one of them alone the
    loss is up to 2 ε. Someone with two values of it is protected as two people, each with the whole ε.

    Examples
    --------
    >>> from pymc_dp.domain import Domain
    >>> Domain(neighbours="add_remove", n_max=400, unit=Unit("patient_id", max_rows=5)).most_rows
    2000
    """

    column: str
    max_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise DomainError(
                f"Unit: column must be the name of the column that says whose row it is, got "
                f"{_validate.shown(self.column)}. Write dp.Unit('patient_id', max_rows=5)."
            )
        object.__setattr__(self, "max_rows", _validate.integer("max_rows", self.max_rows, 1, MOST_OF_ONE))

    @property
    def relation(self) -> str:
        """What a ledger calls a guarantee for one person; how many rows of each count makes no difference to it."""
        return f"{PER_PERSON}{self.column}"

    @property
    def estimand(self) -> str:
        """What a posterior is of, in words."""
        rows = f"{self.max_rows} row{'s' * (self.max_rows != 1)}"
        return (
            f"the posterior is that of at most {rows} of each person ({self.column}), chosen at random for this "
            "release; every row that is kept counts in full"
        )

    def __str__(self) -> str:
        return f"one person ({self.column}, max_rows={self.max_rows})"


__all__ = ["MOST_OF_ONE", "Unit"]
