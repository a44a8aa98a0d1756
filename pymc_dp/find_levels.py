"""``dp.find_levels``: the levels of a column of labels that nothing public lists, by thresholded counts. It costs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from pymc_dp import _validate
from pymc_dp._progress import Advance, reading
from pymc_dp.accounting import Budget, Ledger, check_ledger
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, BudgetExceeded, DomainError, DomainWarning
from pymc_dp.inspection.inspect import check_domain, refuse_metric
from pymc_dp.inspection.owners import DECLARE, refuse_persons
from pymc_dp.kernel.labels import Block, Coded, LabelCounts
from pymc_dp.release.level_threshold import LevelThreshold, largest
from pymc_dp.release.paid import OURS, keep
from pymc_dp.release.paid_account import PaidAccount
from pymc_dp.release.source import TableSource
from pymc_dp.rows.levels import LabelColumn, Levels, label_column
from pymc_dp.rows.stored import StoredRows

MENTIONED = 20
"""Levels that are written beside the entry of a ledger."""


def find_levels(
    column: str,
    *,
    rows: Any,
    epsilon: float,
    delta: float,
    max_levels: int,
    domain: Domain | None = None,
    ledger: Ledger | None = None,
    other: str = "other",
    progressbar: bool = True,
) -> Levels:
    """Spend a privacy budget on the levels of a column of labels, where no public list says what they can be.

    A list that is known beforehand costs nothing: ``dp.Levels("city", ["Oslo", "Rome"])``.

    Parameters
    ----------
    column : str
        Name of the column in `rows`.
    rows : Parquet, data frame, or mapping of str to array or series
        The table. Labels are texts (an array of dtype str or object, a categorical) or whole numbers.
    epsilon : float
        Privacy loss, > 0.
    delta : float
        Failure probability, > 0 and far below 1 / number of rows: a label that only one row has is in the list with at
        most this probability.
    max_levels : int
        Most levels to return, those with the largest noised counts.
    domain : Domain, optional
        What a neighbour is: ``neighbours``, with ``n_max``. One with a `unit` is refused; all else in it is not used.
    ledger : Ledger, optional
        Account of this data set; charged before the rows are read.
    other : str
        Name of the last level, of all labels that are not found, and of missing ones.
    progressbar : bool
        Whether a bar is shown while `rows` are read, unless their number is private.

    Returns
    -------
    Levels
        Labels in their own order, with their noised numbers of rows, ``counts``. Public from now on: put ``.labels``
        into ``coords``, and ``.codes(values)``, or ``dp.Parquet(files, {"city": levels})``, in place of the labels.

    Raises
    ------
    ArgumentError, DomainError
        For what holds no labels, or a δ of 0; nothing is spent.
    BudgetExceeded
        Also where `delta` is above that of the ledger. Before the rows are read; the ledger is unchanged.

    Warns
    -----
    DomainWarning
        Where no level was found. The budget is spent.

    Notes
    -----
    **Method.** Discrete Laplace noise of scale ``2 / ε`` (``1 / ε`` under ``"add_remove"``) is added to the number of
    rows of each label that occurs, and those are kept whose noised number reaches a threshold, about ``1 + scale
    log(1 / 2δ)``: 264 rows at ε = 0.1 and δ = 1e-6 under ``"replace"``. So rare labels are not found, whoever has them.
    A label that is written in two ways is two levels. The label `other` itself is of the last level, and so is what is
    no text in a column of objects.

    A ledger adds up ε and δ. Look for levels first, and let the δ of the ledger exceed that of the search: what is left
    of δ is for later releases.

    **Guarantee.** The levels and their counts, and whether there is a warning, are (ε, δ)-differentially private for
    one row of the table, under ``domain.neighbours``; class exact, arithmetic hardened (discrete noise by OpenDP,
    and a threshold that is computed exactly). That running times and memory grow with the number of labels that occur
    is not covered.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), doi 10.1145/1526709.1526733; Bun, Nissim, Stemmer (2016), on
    stability-based histograms.

    Examples
    --------
    >>> import numpy as np, pymc_dp as dp
    >>> cities = np.array(["Oslo"] * 900 + ["Rome"] * 500 + ["Nowhere"])
    >>> ledger = dp.Ledger(epsilon=3.0, delta=1e-6)
    >>> levels = dp.find_levels("city", rows={"city": cities}, epsilon=1.0, delta=1e-9, max_levels=10, ledger=ledger)
    >>> levels, levels.codes(cities[-2:])
    (Levels('city', ['Oslo', 'Rome'], other='other'), array([1, 2]))
    """
    name, budget = _validate.text("column", column), Budget(_validate.epsilon(epsilon), delta)
    most, rest = _validate.many("max_levels", max_levels), _validate.text("other", other)
    if not budget.delta:
        raise ArgumentError(
            "delta must be > 0, got 0: without it, levels that one row alone has could never be left out. Use one far "
            "below 1 / number of rows, or declare the levels, dp.Levels(column, [...])."
        )
    shown = _validate.flag("progressbar", progressbar)
    check_ledger(ledger)
    if ledger is not None and budget.delta > ledger.budget.delta:
        raise BudgetExceeded(
            f"delta={budget.delta:g} is above that of the ledger, {ledger.budget.delta:g}. Nothing was spent. Use a "
            "smaller delta here, or open ledgers of tables with labels with one: dp.Ledger(epsilon, delta)."
        )
    known = _domain(domain, name)
    held = rows.labels(name) if isinstance(rows, StoredRows) else label_column(rows, name)
    threshold = LevelThreshold.calibrated(budget, known.neighbours)
    made, label = None, f"levels of {name}"
    try:
        with PaidAccount(_table(held, name, known), budget, ledger=ledger) as account:
            counts = LabelCounts(
                LabelRows(held=held, domain=known, shown=shown),
                account,
                scale=threshold.scale,
                least=threshold.least,
                integers=held.whole,
                charged=threshold.event,
                label=label,
            )
            payment = account.payment
            noised = payment.read(counts.shown)
            seen = largest({found: count for found, count in noised.items() if str(found) != rest}, most)
            made = Levels.found(held.column, seen, other=rest)
            payment.state(_stated(made))
        if not seen:
            warnings.warn(
                f"No levels of {name!r} were found: no label has the {threshold.least} rows, noise included, that it "
                f"takes to be shown. The budget is spent, and all rows are of the level {rest!r}. Declare the levels, "
                "dp.Levels(column, [...]), or spend a larger epsilon or delta.",
                DomainWarning,
                skip_file_prefixes=OURS,
            )
        return made
    except (Exception, KeyboardInterrupt) as error:
        keep(error, levels=made)
        raise


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRows:
    """A column of labels as the kernel goes through it.

    Attributes
    ----------
    held : LabelColumn
    domain : Domain
    shown : bool
        Whether there is a bar.
    """

    held: LabelColumn
    domain: Domain
    shown: bool

    @property
    def relation(self) -> str:
        """That of the domain."""
        return self.domain.relation

    @contextmanager
    def opened(self) -> Iterator[Callable[[], Iterator[Block]]]:
        """Have the labels at hand. Reads private data."""
        with reading(self.shown, self.held.n_rows, self.domain.neighbours) as advance:
            yield partial(_passed, self.held, advance)


def _passed(held: LabelColumn, advance: Advance) -> Iterator[Block]:
    for block in held.blocks():
        yield block
        advance(len(block.places if isinstance(block, Coded) else block))


def _domain(domain: Domain | None, column: str) -> Domain:
    check_domain(domain)
    found = domain or Domain()
    refuse_persons(found, DECLARE.format("dp.Levels(column, [...])"))
    refuse_metric(found)
    if column in found.public:
        raise DomainError(f"{column!r} is public: its levels need no search, dp.Levels({column!r}, [...]).")
    return found


def _table(held: LabelColumn, name: str, domain: Domain) -> TableSource:
    return TableSource(schema=((name, "whole numbers" if held.whole else "texts"),), n_rows=held.n_rows, domain=domain)


def _stated(levels: Levels) -> str:
    named = [_validate.shown(label) for label in levels.counts]
    more = [f"{len(named) - MENTIONED} more"] * (len(named) > MENTIONED)
    return f"found: {', '.join([*named[:MENTIONED], *more]) or 'none'}"


__all__ = ["find_levels"]
