"""``dp.find_bounds``: bounds of columns that nothing public tells, by a noised histogram. It costs, once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp._column_bounds import written
from pymc_dp._progress import Advance, reading
from pymc_dp.accounting import Budget, Ledger, check_ledger
from pymc_dp.accounting.noise_kinds import laplace_scale
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, DomainWarning
from pymc_dp.families import FAMILIES, Family
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.inspect import check_domain, inspect
from pymc_dp.inspection.of_context import context_model, is_bambi
from pymc_dp.inspection.owners import DECLARE, refuse_persons
from pymc_dp.inspection.rows import Array, Bounds, Column
from pymc_dp.kernel.walk_kinds import Counts, WalkSum
from pymc_dp.kernel.walks import Walk
from pymc_dp.release.magnitudes import Magnitudes
from pymc_dp.release.paid import OURS, keep
from pymc_dp.release.paid_account import PaidAccount
from pymc_dp.rows.gate import opened_gate, private_values
from pymc_dp.rows.passes import Passes, names_of, with_stored
from pymc_dp.rows.spool import BLOCK_BYTES
from pymc_dp.rows.stored import Part, Rows, StoredRows, stored_rows

BLOCK = 65_536
"""Rows that are counted at a time."""


def find_bounds(
    model: Model | None,
    columns: str | Sequence[str],
    *,
    epsilon: float,
    domain: Domain | None = None,
    ledger: Ledger | None = None,
    rows: Rows | None = None,
    outside: float = 0.005,
    progressbar: bool = True,
) -> Domain:
    """Spend a privacy budget on bounds of columns, where nothing public says what their values can be.

    Bounds that are known beforehand cost nothing and lose nothing: prefer them, see *Which bounds?* in the guide.

    Parameters
    ----------
    model : pymc.Model or None
        The model whose rows are looked at; None for the model of the context. It need not have any bounds yet.
    columns : str or sequence of str
        Names of ``pm.Data`` or of observed variables, numbers or whole numbers, as in ``Domain(bounds=...)``. ε is
        split evenly over several.
    epsilon : float
        Privacy loss of all bounds together, > 0.
    domain : Domain, optional
        What is public about a row already. One with a `unit` is refused.
    ledger : Ledger, optional
        Account of this data set; charged before the rows are read.
    rows : mapping of str to array, or Parquet, optional
        The table, where the model holds a few dummy rows, as for ``dp.privatize``.
    outside : float
        Share of the rows, in [0, 0.1], that may lie outside on either side although they are many enough to be seen. A
        few rows far out would otherwise make the bounds, and the noise of everything that follows, wide.
    progressbar : bool
        Whether a bar is shown while `rows` are read, unless their number is private.

    Returns
    -------
    Domain
        `domain` with the bounds that were found. They are public from now on, and every later release may use them:
        reports list them among what is assumed public.

    Raises
    ------
    UnsupportedModelError
        If the model does not keep rows apart, or `rows` does not fit it. A model of the column alone will do:
        ``pm.Normal("income", 0, 1, observed=income)``.
    ArgumentError, DomainError
        For columns that are public, or whose bounds or norms are known; nothing is spent.
    BudgetExceeded
        Before the rows are read; the ledger is unchanged.

    Warns
    -----
    DomainWarning
        Where no bounds were found, because too few rows are alike in size to be seen through the noise: the column has
        no bounds in what is returned. And where bounds hold clearly less than ``1 - 2 * outside`` of the rows; missing
        values count as not held. The budget is spent.

    Notes
    -----
    **Method.** The values of a column are counted in public bins, of either sign ``[2^k, 1.5 · 2^k)`` and ``[1.5 · 2^k,
    2^(k+1))`` for k from -40 to 62 (from 0 for whole numbers) and one about 0, in one pass; a value beyond them counts
    in the last one, NaN and missing ones in none. Discrete Laplace noise of scale ``2 / ε`` (``1 / ε`` under
    ``"add_remove"``) is added to every count. Everything else is a function of the noised counts: bins that stand out
    of the noise, less those at either end that hold `outside` of them together, are the core of the range; neighbours
    belong to it as long as 1, 2 or 4 of them together hold more than noise and more than `outside` of the rows. Bounds
    of an observed variable end where its likelihood does, or just before: a Beta likelihood has none at 1.

    Ends of the range are ends of bins, so that the range of values far from 0 that are all much alike (years) is found
    much too wide: subtract a public number from them first. Of n rows, a few times ``10 / (ε n)`` may lie outside: in
    simulations of a lognormal column of 10,000 rows, at ε = 0.1, 0.7% did, and the bounds were less than twice as wide
    as from the 0.5% to the 99.5% quantile in at least 95% of the runs.

    **Guarantee.** What is returned, and warned of, is ε-differentially private for one row of the table, under
    ``domain.neighbours``; class exact, arithmetic hardened (counts are integers, discrete noise by OpenDP). One
    row moves one count by 1 (``"add_remove"``) or two (``"replace"``), and as many times more as a row of the column
    has values. Running times are not covered.

    References
    ----------
    Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson (2020), doi 10.2478/popets-2020-0025 (approximate
    bounds).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> income = np.random.default_rng(1).lognormal(10, 0.5, size=10_000)
    >>> with pm.Model() as model:
    ...     median = pm.Normal("median", 10, 2)
    ...     _ = pm.LogNormal("income", median, 0.5, observed=income)
    >>> domain = dp.find_bounds(model, "income", epsilon=0.1, ledger=dp.Ledger(1.0))
    >>> low, high = domain.bounds["income"]
    >>> bool(np.mean((income < low) | (income > high)) < 0.05)
    True
    """
    budget, share = Budget(_validate.epsilon(epsilon)), _validate.within("outside", outside, 0, 0.1)
    names = [columns] if isinstance(columns, str) else _validate.names("columns", columns)
    shown = _validate.flag("progressbar", progressbar)
    check_ledger(ledger)
    stored = stored_rows(rows)
    found = _inspected(model, domain, stored)
    search = Search.planned(found, names, budget, share)
    passes = None if stored is None else Passes.of(found, stored)
    made, label = None, f"bounds of {', '.join(names)}"
    table = BoundRows(columns=tuple(search.columns.values()), domain=found.domain, passes=passes, shown=shown)
    try:
        with PaidAccount(found, budget, ledger=ledger) as account:
            walk = Walk(table, account, search.sums, label=label)
            payment = account.payment
            noised = payment.read(lambda: search.noised(walk))
            ranges = search.ranges(noised)
            made = replace(found.domain, bounds={**found.domain.bounds, **ranges})
            payment.state(_stated(names, ranges))
        search.warn_of(noised, ranges)
        return made
    except (Exception, KeyboardInterrupt) as error:
        keep(error, domain=made)
        raise


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """What will be looked for, and what it costs; nothing in it depends on a private value.

    Attributes
    ----------
    columns : mapping of str to Column
        By the names that were given.
    scales : tuple of float
        Of the noise, for each column.
    outside : float
    n_rows : int or None
        None where it is private.
    families : mapping of str to tuple of Family
        Likelihoods of each column, which say what bounds may be.
    """

    columns: Mapping[str, Column]
    scales: tuple[float, ...]
    outside: float
    n_rows: int | None
    families: Mapping[str, tuple[Family, ...]]

    @classmethod
    def planned(cls, found: RowInspection, names: Sequence[str], budget: Budget, outside: float) -> Search:
        """Find the columns and split the budget.

        Raises
        ------
        ArgumentError
        """
        columns = {name: _column(found, name) for name in names}
        if not names or len({column.leaf for column in columns.values()}) < len(names):
            raise ArgumentError(f"columns must name at least one column, and each once, got {list(names)}.")
        moved = [_kind(column).move(found.domain.neighbours).l1 for column in columns.values()]
        parts = Budget(budget.epsilon).split([1.0] * len(moved))
        scales = [laplace_scale(most, part.epsilon) for most, part in zip(moved, parts, strict=True)]
        return cls(
            columns=columns,
            scales=tuple(scales),
            outside=outside,
            n_rows=found.n_rows if found.domain.n_max is None else None,
            families={name: _families(found, column) for name, column in columns.items()},
        )

    @property
    def bins(self) -> list[Magnitudes]:
        """The bins of every column."""
        return [Magnitudes(whole=column.integer) for column in self.columns.values()]

    @property
    def sums(self) -> list[WalkSum]:
        """What the kernel counts, and with how much noise."""
        return [WalkSum(_kind(column), scale) for column, scale in zip(self.columns.values(), self.scales, strict=True)]

    def noised(self, walk: Walk) -> list[Array]:
        """Return the noised counts of every column, by one pass over the rows, which were paid for."""
        with walk.opened():
            return walk.together({place: partial(_places, place, bins) for place, bins in enumerate(self.bins)})

    def ranges(self, noised: Sequence[Array]) -> dict[str, Bounds]:
        """Return what noised counts show; a function of them."""
        found = {}
        for name, bins, counts, scale in zip(self.columns, self.bins, noised, self.scales, strict=True):
            ends = bins.range_of(counts, scale, self.outside)
            if ends is not None:
                for family in self.families[name]:
                    ends = family.admitted(*ends)
                found[name] = ends
        return found

    def warn_of(self, noised: Sequence[Array], ranges: Mapping[str, Bounds]) -> None:
        """Say which columns have no bounds, or such as miss many values; a function of noised counts."""
        for name, bins, counts, scale in zip(self.columns, self.bins, noised, self.scales, strict=True):
            span, text = bins.span(counts, scale, self.outside), ""
            total = None if self.n_rows is None else self.n_rows * self.columns[name].width
            if span is None:
                text = (
                    f"No bounds of {name!r} were found: no bin (1 to 1.5, 1.5 to 2, 2 to 3, ...) shows more rows than "
                    f"the {bins.feigned(scale):.0f} that noise alone may feign. The budget is spent, and the domain "
                    "has no bounds of it. Declare bounds, look for those of fewer columns, or spend a larger epsilon."
                )
            elif (share := bins.inside(counts, scale, self.outside, span, total)) is not None:
                text = (
                    f"The bounds of {name!r} that were found, {ranges[name]}, hold only about {share:.0%} of its "
                    "values, by noised counts: the others are missing, or of so many sizes that noise hides them. What "
                    "is beyond the bounds will be clamped. The budget is spent. Declare bounds, or spend more on them."
                )
            if text:
                warnings.warn(text, DomainWarning, skip_file_prefixes=OURS)


def _kind(column: Column) -> Counts:
    """Return what a row adds to the counts of a column."""
    return Counts(Magnitudes(whole=column.integer).count, column.width)


def _places(place: int, bins: Magnitudes, block: Sequence[Sequence[Part]]) -> Array:
    """Return the bins of the values of rows in a column, (n_rows, width); of what is missing NaN.

    A block function, which the kernel trusts to map each row alone: each value is placed by itself.
    """
    found = []
    for part in block[place]:
        own = bins.places(part.values).astype(np.float64)
        if part.missing is not None:
            own[part.missing] = np.nan
        found.append(own.reshape(len(own), math.prod(own.shape[1:])))
    return np.concatenate(found, axis=1)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class BoundRows:
    """Columns as the kernel goes through them, of the model or of stored rows, as they are.

    Attributes
    ----------
    columns : tuple of Column
    domain : Domain
    passes : Passes, optional
        Over a table beside the model.
    shown : bool
    """

    columns: tuple[Column, ...]
    domain: Domain
    passes: Passes | None = None
    shown: bool = False

    @property
    def relation(self) -> str:
        """That of the domain."""
        return self.domain.relation

    def count(self, block: Sequence[Sequence[Part]]) -> int:
        """Return how many rows a block has."""
        return len(block[0][0].values)

    @contextmanager
    def opened(self) -> Iterator[Callable[[], Iterator[list[Sequence[Part]]]]]:
        """Have the rows at hand. Reads private data."""
        with opened_gate():
            if self.passes is None:
                yield partial(_in_memory, [private_values(column.leaf) for column in self.columns])
                return
            with reading(self.shown, self.passes.n_rows, self.domain.neighbours) as advance:
                yield partial(_in_files, self.passes, self.columns, advance)


def _in_memory(held: Sequence[Array]) -> Iterator[list[Sequence[Part]]]:
    for start in range(0, len(held[0]), BLOCK):
        yield [[Part(values[start : start + BLOCK], None)] for values in held]


def _in_files(passes: Passes, columns: Sequence[Column], advance: Advance) -> Iterator[list[Sequence[Part]]]:
    leaves = [column.leaf for column in passes.columns]
    wanted = [leaves.index(column.leaf) for column in columns]
    widest = sum(layout.row_bytes for layout in passes.stored.layouts().values())
    read = passes.parts(max(1, BLOCK_BYTES // max(1, widest)))

    def blocks() -> Iterator[list[Sequence[Part]]]:
        for parts in read:
            yield [parts[place] for place in wanted]
            advance(len(parts[0][0].values))

    return blocks()


def _stated(names: Sequence[str], ranges: Mapping[str, Bounds]) -> str:
    shown = (f"{name} in {ranges[name]}" if name in ranges else f"none of {name}" for name in names)
    return f"found: {', '.join(shown)}"


def _inspected(model: Model | None, domain: Domain | None, stored: StoredRows | None) -> RowInspection:
    """Return what samplers see of the rows, for which no column needs bounds."""
    if is_bambi(model):
        raise ArgumentError(
            "model must be a pymc.Model here, got a bambi.Model, which needs bounds of every number to become one. "
            "Look for bounds in a model of the column alone: with pm.Model() as table: pm.Normal('income', 0, 1, "
            "observed=data['income'].to_numpy())."
        )
    check_domain(domain)
    refuse_persons(domain, DECLARE.format("Domain(bounds=...)"))
    found = inspect(context_model(model), domain).rows
    found = found if stored is None else with_stored(found, stored)
    found.require()
    return found


def _families(found: RowInspection, column: Column) -> tuple[Family, ...]:
    """Return the likelihoods of a column that are known."""
    names = {*names_of(found, column), *column.aliases}
    kinds = (getattr(rv.owner.op, "name", None) for rv in found.model.observed_RVs if rv.name in names)
    return tuple(FAMILIES[kind] for kind in kinds if kind in FAMILIES)


def _column(found: RowInspection, name: str) -> Column:
    """Return the column of a name, if there is something to be found about it."""
    known = {known: column for column in found.columns for known in (*names_of(found, column), *column.aliases)}
    if name not in known:
        raise ArgumentError(
            f"columns names {name!r}, which is no row-level column of the model (known: "
            f"{', '.join(map(repr, known)) or 'none'}).{_validate.nearest(name, known)}"
        )
    column, says = known[name], ""
    if column.public:
        says = f"{name!r} is public: its range needs no search, and costs nothing"
    elif column.norm is not None:
        says = f"{name!r} has a norm, which bounds its rows already. Leave out one of the two"
    elif column.bounds is not None:
        ends = written(column.ranges or column.bounds)
        says = f"{name!r} has bounds already, {ends}, by the domain or by what the model makes of it"
    elif not column.width:
        says = f"{name!r} has no values"
    if says:
        raise ArgumentError(f"{says}. Nothing is looked for; name columns without bounds only.")
    return column


__all__ = ["Search", "find_bounds"]
