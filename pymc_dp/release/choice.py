"""What is released of a likelihood: its own statistics, or counts in bins."""

from __future__ import annotations

from pymc_dp.errors import Problem
from pymc_dp.families import FAMILIES, CountFamily, Family, names
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.histogram import Binned, Bins, Histogram
from pymc_dp.families.stated import Stated
from pymc_dp.inspection.cumulative import MOST_SUMMED, SUMMED, of_plain
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.stated import statement_of

MOST_ENTRIES = 1_000_000
"""Counts in one table."""


def family_of(observed: Observed) -> Family | None:
    """Return the family of a likelihood that has sufficient statistics."""
    plain = observed.cumulative is None and observed.design is None
    statement = statement_of(observed.variable)
    if statement is not None and plain:
        return Stated(statement)
    return FAMILIES.get(observed.distribution) if plain else None


def choose(
    observed: Observed, histogram: Histogram | None, *, named: bool, sizes_known: bool
) -> tuple[Family, RowStatistic | Problem]:
    """Choose what is released of one variable: counts in bins where asked for, or where nothing else will do.

    Parameters
    ----------
    observed : Observed
    histogram : Histogram or None
        Bins that were asked for.
    named : bool
        Whether they were asked for by the name of the variable.
    sizes_known : bool
        Whether the number of rows of every cell is public.
    """
    family = family_of(observed)
    if isinstance(family, CountFamily) and named and histogram is not None:
        return family, Problem(
            where=observed.name,
            what="its levels are already counted one by one, so bins would only lose information",
            remedy="Leave it out of mechanism.",
        )
    if family is not None and (histogram is None or isinstance(family, CountFamily)):
        return family, family.statistic(observed, sizes_known=sizes_known)
    return Binned(), _binned(observed, histogram or Histogram())


def has_bins(observed: Observed) -> bool:
    """Whether PyMC knows the probabilities of bins of a likelihood."""
    if observed.design is not None:
        return False
    return observed.cumulative is not None or of_plain(observed.variable, observed.parameters) is not None


def too_many(observed: Observed, statistic: RowStatistic, n_cells: int) -> Problem | None:
    """Refuse tables of bins that are nearly all empty."""
    if not isinstance(statistic, Bins) or n_cells * statistic.n_levels <= MOST_ENTRIES:
        return None
    return Problem(
        where=observed.name,
        what=f"{n_cells} cells of {statistic.n_levels} bins are more than {MOST_ENTRIES} counts",
        remedy="Merge levels, or give fewer bins: Statistics(mechanism=dp.Histogram(...)).",
    )


def _binned(observed: Observed, histogram: Histogram) -> RowStatistic | Problem:
    """Return the bins of one likelihood, or say why it cannot be counted in bins."""
    if has_bins(observed):
        bins = histogram.bins(observed, observed.title)
        return _too_far(observed) if _sums_to(observed, bins) > MOST_SUMMED else bins
    return Problem(
        where=observed.name,
        what=f"no statistics are known for a {observed.title} likelihood, and PyMC has no distribution function "
        "(logcdf) of it, which counting values in bins needs",
        remedy=f"Use a likelihood with one of them: {names()}, StudentT, mixtures, censored and truncated ones; or "
        "write pm.CustomDist with logcdf.",
    )


def _sums_to(observed: Observed, bins: RowStatistic | Problem) -> float:
    """Largest number up to which probabilities have to be added one by one."""
    summed = observed.cumulative is None and observed.distribution in SUMMED
    return bins.edges[-1] if summed and isinstance(bins, Bins) else 0


def _too_far(observed: Observed) -> Problem:
    return Problem(
        where=observed.name,
        what=f"its bins reach beyond {MOST_SUMMED}, and the probabilities of a {observed.title} likelihood are added "
        "up one by one",
        remedy="Give lower bounds or edges; the last bin holds all values above.",
    )


__all__ = ["choose", "family_of", "has_bins", "too_many"]
