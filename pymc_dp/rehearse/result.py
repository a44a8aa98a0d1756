"""The result of ``dp.rehearse``: coverage, widths and a factor, with what chance may have done to them, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, override

import numpy as np

from pymc_dp._display import Listing, Page, Shown, Table, shorten
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.result import Outcome

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""Name of the row of all parameters together."""
COLUMNS = (
    *("parameter", "coverage", "coverage_error", "width_ratio", "width_ratio_error", "factor", "factor_error"),
)  # fmt: skip
SHORT = 0.05
"""How far below what they claim intervals may cover before this is said."""
SURE = 1.5
"""Width of simulated intervals over a released one from which the release counts as too sure of a parameter."""
CHANCE = 2.0
"""Standard errors that are left to chance before anything is said."""
MORE = 5
"""Times as many tables, where these are too few to tell: standard errors are then less than half as large."""
RESAMPLED = 200
"""Samples of the tables with replacement, for the standard errors of factors."""
MOST_ROWS = 14
"""Parameters that are shown; `Rehearsed.to_dataframe` has all of them."""
BLIND = (
    "What this cannot see: a model that does not fit. Simulated tables are of the model, and your rows need not be. "
    "Of a release that was 13 standard deviations off, 93% were covered in this way."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rehearsed(Shown):
    """How well the intervals of a release hold up on tables that were simulated from its own posterior.

    Attributes
    ----------
    parameters : tuple of str
        Their names. Where gradients were released, bounded ones are on the scale of their transform.
    errors : (n_tables, n_parameters) array
        Posterior mean of each simulated release, less the parameter that made its table.
    covered : (n_tables, n_parameters) array
        Whether its interval holds that parameter, 1 or 0.
    widths : (n_tables, n_parameters) array
        Of its intervals.
    released : (n_parameters,) array
        Widths of the intervals of the release at hand.
    interval : float
        Probability of the intervals.
    rows : str
        How many rows were simulated, in words.
    how : str
        How posteriors were found, in words.
    loose : tuple of str
        Private columns of which only bounds are known: simulated rows fill these evenly.

    Examples
    --------
    >>> import numpy as np
    >>> found = Rehearsed(  # as dp.rehearse returns it
    ...     parameters=("slope",),
    ...     errors=np.array([[0.1], [-0.3], [0.2], [0.0]]),
    ...     covered=np.array([[1.0], [0.0], [1.0], [1.0]]),
    ...     widths=np.full((4, 1), 0.5),
    ...     released=np.array([0.5]),
    ...     interval=0.9,
    ...     rows="100 rows",
    ...     how="by hand",
    ... )
    >>> found.coverage, found.width_ratio
    (0.75, 1.0)
    """

    parameters: tuple[str, ...]
    errors: Array
    covered: Array
    widths: Array
    released: Array
    interval: float
    rows: str
    how: str
    loose: tuple[str, ...] = ()

    @classmethod
    def of(cls, parameters: Sequence[str], simulated: Outcome, released: Outcome, **said: Any) -> Self:
        """Return what fits of simulated releases, and one of the release at hand, came to."""
        errors, covered, widths = map(_flat, (simulated.errors, simulated.covered, simulated.widths))
        return cls(
            parameters=tuple(parameters),
            errors=errors,
            covered=covered,
            widths=widths,
            released=_flat(released.widths)[0],
            **said,
        )

    @property
    def tables(self) -> int:
        """Number of simulated tables."""
        return len(self.errors)

    @property
    def coverage(self) -> float:
        """Share of the parameters of simulated tables that lie within their intervals; it should be `interval`."""
        return float(self.covered.mean())

    @property
    def coverage_error(self) -> float:
        """Standard error of `coverage`. Parameters of one table are not independent, so it is that over tables."""
        least = self.interval * (1 - self.interval) / len(self.parameters)
        return float(np.sqrt(max(self.covered.mean(axis=1).var(ddof=1), least) / self.tables))

    @property
    def width_ratio(self) -> float:
        """Width of simulated intervals over the released ones: geometric mean over tables and parameters.

        About 1 where the release is one of those that the model makes. Far above 1 it is surer than these.
        """
        return float(np.exp(self._ratios.mean()))

    @property
    def width_ratio_error(self) -> float:
        """Standard error of `width_ratio`."""
        return float(self.width_ratio * self._ratios.mean(axis=1).std(ddof=1) / np.sqrt(self.tables))

    @property
    def factor(self) -> float:
        """Factor by which to widen released intervals, so that errors as in the simulated tables lie within them.

        The quantile, at `interval`, of absolute errors over half the width of the released interval.
        """
        return float(np.quantile(self._shares, self.interval))

    @property
    def factor_error(self) -> float:
        """Standard error of `factor`, by resampling the tables."""
        return float(self._resampled.std())

    @property
    def good(self) -> bool:
        """Whether nothing was found that speaks against the released intervals."""
        return not (self._too_sure or self._short or self._wide)

    @property
    def verdict(self) -> str:
        """What was found, in words."""
        covered = (
            f"{self.interval:.0%} intervals covered {self.coverage:.0%} ± {self.coverage_error:.0%} of the parameters "
            f"of {self.tables} simulated tables"
        )
        widen = f"Make them {self.factor:.2g} (± {self.factor_error:.1g}) times as wide"
        if self._too_sure:
            named = ", ".join(shorten([self.parameters[place] for place in self._too_sure]))
            most = float(np.exp(self._ratios.mean(axis=0)).max())
            return (
                f"Released intervals of {named} are too sure: those of simulated tables came out up to {most:.2g} "
                f"times as wide. {covered}. {widen}, or do not use them. The cause may also be a number of rows, or "
                "columns, that are not those of your table."
            )
        if self._short:
            return f"Released intervals are too narrow: {covered}. {widen}."
        if self._wide:
            return (
                f"Simulated tables say more than yours: their intervals are {self.width_ratio:.2g} times as wide as "
                f"the released ones. {covered}. Their number of rows or their columns are not those of your table."
            )
        if self.coverage < self.interval - SHORT:
            return (
                f"{self.tables} tables are too few to tell: {covered}, which may be chance. Simulate more, for example "
                f"tables={MORE * self.tables}."
            )
        return f"Nothing speaks against the released intervals: {covered}, at {self.width_ratio:.2f} times their width."

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per parameter, and a last one, "all", of all together; errors are standard errors.

        The columns are those properties, by parameter: ``coverage``, ``width_ratio`` and ``factor``.
        """
        import pandas as pd

        chance = np.full(len(self.parameters), np.sqrt(self.interval * (1 - self.interval) / self.tables))
        ratios = np.exp(self._ratios.mean(axis=0))
        spread = ratios * self._ratios.std(axis=0, ddof=1) / np.sqrt(self.tables)
        factors = np.quantile(self._shares, self.interval, axis=0)
        own = np.quantile(self._shares[self._places], self.interval, axis=1).std(axis=0)
        columns = (self.covered.mean(axis=0), chance, ratios, spread, factors, own)
        rows = [(name, *map(float, one)) for name, *one in zip(self.parameters, *columns, strict=True)]
        pooled = (self.coverage, self.coverage_error, self.width_ratio, self.width_ratio_error)
        rows.append((ALL, *pooled, self.factor, self.factor_error))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    @cached_property
    def _ratios(self) -> Array:
        """Logarithms of widths over the released ones."""
        return np.asarray(np.log(self.widths / self.released))

    @cached_property
    def _shares(self) -> Array:
        """Absolute errors over half the released widths."""
        return np.asarray(2 * np.abs(self.errors) / self.released)

    @cached_property
    def _places(self) -> Array:
        """Tables, drawn with replacement: (RESAMPLED, n_tables)."""
        return np.random.default_rng(0).integers(self.tables, size=(RESAMPLED, self.tables))

    @cached_property
    def _resampled(self) -> Array:
        return np.asarray(np.quantile(self._shares[self._places], self.interval, axis=(1, 2)))

    @cached_property
    def _too_sure(self) -> list[int]:
        """Places of parameters of which simulated intervals are far wider than the released one."""
        each, spread = self._ratios.mean(axis=0), self._ratios.std(axis=0, ddof=1) / np.sqrt(self.tables)
        return [int(place) for place in np.flatnonzero(each - CHANCE * spread > np.log(SURE))]

    @property
    def _short(self) -> bool:
        by_itself = self.coverage < self.interval - max(SHORT, CHANCE * self.coverage_error)
        return by_itself or self.factor - CHANCE * self.factor_error > 1 + SHORT

    @property
    def _wide(self) -> bool:
        return self.width_ratio + CHANCE * self.width_ratio_error < 1 / SURE

    @property
    @override
    def _page(self) -> Page:
        frame = self.to_dataframe()
        shown = frame if len(frame) <= MOST_ROWS else frame.iloc[[*range(MOST_ROWS - 1), -1]]
        rows = [
            (one.parameter, *(f"{value:{form}} ± {error:.1g}" for value, error, form in (
                (one.coverage, one.coverage_error, ".2f"), (one.width_ratio, one.width_ratio_error, ".2f"),
                (one.factor, one.factor_error, ".2f"),
            )))
            for one in shown.itertuples()
        ]  # fmt: skip
        left = len(frame) - len(shown)
        title = f"{left} more parameters are in .to_dataframe()" if left else ""
        columns = ("parameter", f"coverage of {self.interval:.0%}", "simulated over released width", "widen by")
        return Page(
            title="Would these intervals hold up?",
            headline=self.verdict,
            good=self.good,
            parts=[
                Table(title=title, columns=columns, rows=rows),
                Listing(title="How to read it", lines=self._notes()),
            ],
        )

    def _notes(self) -> tuple[str, ...]:
        named = ", ".join(shorten(list(self.loose)))
        return (
            BLIND,
            f"{self.tables} times, parameters were drawn from the released posterior, {self.rows} were simulated of "
            "them, and these were released again, in the same way and with simulated noise. No private row was read, "
            "and nothing is spent.",
            f"Coverage should be {self.interval:.0%}. ± is one standard error. Posteriors were found {self.how}.",
            *([f"Simulated rows fill the bounds of {named} evenly. If yours do not, widths differ: say how they are "
               "distributed, statistics=dp.Gradients(columns=...)."] if self.loose else []),
        )  # fmt: skip


def _flat(by_variable: Mapping[str, Array]) -> Array:
    """Put the elements of all variables beside each other: (n_tables, n_parameters)."""
    return np.concatenate(list(by_variable.values()), axis=1)


__all__ = ["ALL", "Rehearsed"]
