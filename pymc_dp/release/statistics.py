"""How sufficient statistics are released: what a user asks for.

What is released of a likelihood: its own statistics, or counts in bins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pymc_dp import _validate
from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.errors import ArgumentError, Problem
from pymc_dp.families import FAMILIES, CountFamily, Family, names
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.histogram import Binned, Bins, Histogram
from pymc_dp.families.own_totals import WITH_TOTALS
from pymc_dp.families.stated import Stated
from pymc_dp.inspection.cumulative import MOST_SUMMED, SUMMED, of_plain
from pymc_dp.inspection.exposures import EXPOSED
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.stated import statement_of
from pymc_dp.networks import Updates


@dataclass(frozen=True, init=False)
class Statistics:
    """How sufficient statistics are released.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        Discrete Laplace noise: pure ε, no δ. Discrete Gaussian noise: needs δ > 0; less noise than Laplace's
        where one row moves many numbers, as in sums of several powers or products.
    noise_aware : bool
        True (default): the posterior accounts for the noise. False: the papers' form, which treats the projected
        release as the exact sums and is overconfident.
    share : mapping of str to float, optional
        Weight of each observed variable in the split of the budget: of ε under Laplace noise, of ρ (zCDP) under
        Gaussian noise, where four times the weight halves the noise. Default: equal.
    mechanism : Histogram, mapping of str to Histogram, LaplaceUpdates, FourierUpdates, or None
        Count values in public bins instead: of all observed variables (but those whose few levels are counted one by
        one anyway), or of those named. Or release a discrete Bayesian network as a whole, with one noise for all; there
        is no `share` then. None (default): bins only where a likelihood has no other statistics.

    Raises
    ------
    ArgumentError

    Examples
    --------
    >>> Statistics(share={"income": 1, "age": 2})
    Statistics(noise='laplace', noise_aware=True, share={'income': 1.0, 'age': 2.0})
    """

    noise: str
    noise_aware: bool
    share: Mapping[str, float] | None
    mechanism: Histogram | Mapping[str, Histogram] | Updates | None

    def __init__(
        self,
        noise: str = "laplace",
        noise_aware: bool = True,
        share: Mapping[str, float] | None = None,
        mechanism: Histogram | Mapping[str, Histogram] | Updates | None = None,
    ) -> None:
        joint = isinstance(mechanism, Updates)
        each = mechanism.values() if isinstance(mechanism, Mapping) else [mechanism] * (mechanism is not None)
        if not joint and not all(isinstance(item, Histogram) for item in each):
            raise ArgumentError(
                "mechanism must be dp.Histogram(edges), a mapping of names to these, dp.networks.LaplaceUpdates(), "
                f"dp.networks.FourierUpdates(), or None, "
                f"got {_validate.shown(mechanism)}. Leave it out to release counts or sums directly."
            )
        if joint and share is not None:
            raise ArgumentError(f"share= splits ε, but {mechanism!r} has one noise for all. Leave it out.")
        noise_aware = _validate.flag("noise_aware", noise_aware)
        if share is not None:
            _validate.mapping("share", share)
        object.__setattr__(self, "noise", _validate.choice("noise", noise, NOISE_KINDS))
        object.__setattr__(self, "noise_aware", bool(noise_aware))
        object.__setattr__(self, "mechanism", dict(mechanism) if isinstance(mechanism, Mapping) else mechanism)
        object.__setattr__(
            self,
            "share",
            None
            if share is None
            else {name: _validate.epsilon(weight, f"share[{name!r}]") for name, weight in share.items()},
        )

    def __repr__(self) -> str:
        share = f", share={dict(self.share)!r}" if self.share else ""
        mechanism = f", mechanism={self.mechanism!r}" if self.mechanism else ""
        return f"Statistics(noise={self.noise!r}, noise_aware={self.noise_aware}{share}{mechanism})"

    def histogram(self, name: str) -> Histogram | None:
        """Bins asked for the variable of this name."""
        if isinstance(self.mechanism, Updates):
            return None
        return self.mechanism.get(name) if isinstance(self.mechanism, Mapping) else self.mechanism


MOST_ENTRIES = 1_000_000
"""Counts in one table."""


def family_of(observed: Observed) -> Family | None:
    """Return the family of a likelihood that has sufficient statistics."""
    plain = observed.cumulative is None and observed.design is None
    statement = statement_of(observed.variable)
    if statement is not None and plain:
        return Stated(statement)
    if observed.totals is not None:
        return WITH_TOTALS[observed.distribution]
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
    if observed.distribution == EXPOSED and family is not None:
        if named and histogram is not None:
            return family, Problem(
                where=observed.name,
                what="its rows have exposures of their own, of which bins of counts say nothing",
                remedy="Leave it out of mechanism.",
            )
        return family, family.statistic(observed, sizes_known=sizes_known)
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
    if observed.design is not None or observed.distribution == EXPOSED:
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


__all__ = ["Statistics", "choose", "family_of", "has_bins", "too_many"]
