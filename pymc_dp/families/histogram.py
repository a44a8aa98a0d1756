"""Histograms: rows of any likelihood counted in public bins, whose probabilities follow from its distribution function.

What is lost is where in its bin a value lies, and nothing else: the first and the last bin are open, so that no value
is moved to a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, Problem, needs_bounds
from pymc_dp.families._counts import multinomial_logp
from pymc_dp.families.family import CountFamily, RowStatistic, Tensors
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Observed
from pymc_dp.kernel.readings import Places

DEFAULT_BINS = 20
MOST_DEFAULT = 100
"""Bins of a default, where noise is small: each costs a value of the distribution function in every cell and step."""
MOST_BINS = 10_000
SMALLEST = 1e-300
"""Least probability in the plug-in form, so that 0 * log 0 cannot arise."""


@dataclass(frozen=True, kw_only=True)
class Bins(LevelCounts):
    """A row adds 1 to the count of the bin that it lies in.

    Bin k holds ``edges[k - 1] < x <= edges[k]``; the first holds all values up to the first edge, the last one all
    above the last. NaN goes to the middle bin.

    Attributes
    ----------
    edges : tuple of float
        Public, finite, ascending; one less than there are bins.
    """

    edges: tuple[float, ...]

    @override
    def reading(self, *, second: bool = False) -> Places:
        return Places(self.n_levels, self.edges, second=second)


@dataclass(frozen=True, init=False)
class Histogram:
    """Release counts of the values in public bins: ``Statistics(mechanism=Histogram(...))``.

    For one observed value per row, of any distribution with a distribution function: StudentT, mixtures, zero-inflated,
    hurdle, censored and truncated ones, and ``pm.CustomDist`` with ``logcdf``. The default for likelihoods without
    statistics of their own.

    Parameters
    ----------
    edges : sequence of float, int or None
        Where values are cut: edges ``(e1, ..., eK)`` make K + 1 bins, ``x <= e1``, ``e1 < x <= e2``, ..., ``x > eK``. A
        whole number: so many bins at most over the public bounds of the variable, ``Domain(bounds=...)``, the first and
        the last open towards the outside. They are of equal width; those of counts, whole numbers from 0 on, in their
        square root, of which the standard deviation of a Poisson count is 1/2 whatever its mean. Whole numbers are cut
        between two of them, into one bin each where there are no more than that. None: at most 20 of these, and
        up to 100 where the noise is small (`bins_for`). Mixtures, hurdle, censored and hand-written likelihoods may
        have much of their probability in the low bound itself: it is then a bin more, the first one.

    Raises
    ------
    ArgumentError
        If the edges are not finite and strictly ascending.

    Notes
    -----
    **Guarantee.** None by itself: edges are taken as public. Edges computed from the rows, quantiles say, would break
    the guarantee of the release.

    One row adds 1 to one count, so Δ1 = 1 when it comes or goes and 2 when it changes, whatever its value; noise does
    not grow with the bounds. A bin should be as wide as what is to be distinguished, and hold more rows than the noise.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006), example 1: histograms, doi 10.1007/11681878_14.

    Examples
    --------
    >>> Histogram([0, 10, 100])
    Histogram((0.0, 10.0, 100.0))
    """

    edges: int | tuple[float, ...] | None

    def __init__(self, edges: int | Iterable[float] | None = None) -> None:
        object.__setattr__(self, "edges", _checked(edges))

    def __repr__(self) -> str:
        return f"Histogram({'' if self.edges is None else self.edges})"

    def bins(self, observed: Observed, title: str, default: int = DEFAULT_BINS) -> Bins | Problem:
        """Return the bins for one likelihood, or say what is missing.

        Parameters
        ----------
        observed : Observed
        title : str
            Name of the likelihood in texts.
        default : int
            Number of bins where nobody stated any.
        """
        whole = np.dtype(observed.variable.type.dtype).kind in "iub"
        if isinstance(self.edges, tuple):
            edges = self.edges
        elif observed.bounds is None:
            return Problem(
                where=observed.name,
                what=f"a {title} likelihood is released as a histogram, whose bins must be public, and its range is "
                "not known",
                remedy=needs_bounds(observed.name, of="a public range") + "; or edges, "
                "Statistics(mechanism=dp.Histogram([...])).",
            )
        else:
            count = self.edges or default
            edges = even_bins(*observed.bounds, count, whole=whole, atom=observed.cumulative is not None)
        if not edges:
            return Problem(
                where=observed.name,
                what=f"its bounds ({observed.bounds[0]:g}, {observed.bounds[1]:g}) hold a single bin"
                if observed.bounds
                else "its edges leave a single bin",
                remedy="Give wider bounds, or edges: Statistics(mechanism=dp.Histogram([...])).",
            )
        return Bins(labels=labels_of(edges, whole=whole), edges=edges)


class Binned(CountFamily):
    """Rows counted in bins; its one parameter is the probability of every bin."""

    distribution = "histogram"
    event_ndims = (1,)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        return Histogram().bins(observed, observed.distribution)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``sum_k s_k log p_k``."""
        return multinomial_logp(pt.maximum(parameters[0], SMALLEST), sums)


def bins_for(rows: float, noise: float) -> int:
    """Return the number of bins of a default: as many as lose least, where values spread over a part of the bounds.

    Parameters
    ----------
    rows : float
        Of a typical cell.
    noise : float
        Standard deviation of the noise on a count.

    Notes
    -----
    Of values with standard deviation s, bins of width h lose the part ``h² / 12 s²`` of the information on a location
    (Sheppard's correction), and noise of variance t² on counts of about ``n h / 4 s`` rows the part ``4 s t² / n h``.
    The sum is least at ``h = s (24 t² / n)^(1/3)``. With s a twentieth of the bounds these are ``20 (n / 24 t²)^(1/3)``
    bins. `DEFAULT_BINS` are the least: fewer would need values that are known to fill their bounds.
    """
    finer = (rows / (24 * noise**2)) ** (1 / 3)
    return round(min(max(DEFAULT_BINS * finer, DEFAULT_BINS), MOST_DEFAULT))


def even_bins(low: float, high: float, count: int, *, whole: bool, atom: bool = False) -> tuple[float, ...]:
    """Return the edges between bins of equal width; of counts, between whole numbers, equal in their square root.

    With `atom`, the low bound itself is a bin more, with all below.
    """
    if whole:
        first, last = np.ceil(low), np.floor(high)
        values = max(int(last - first) + 1, 1)
        parts, inner = min(count, values), np.arange(1, min(count, values))
        if first < 0 or values <= count:
            cuts = first - 1 + values * inner // parts
        else:
            start, end = np.sqrt([first, last + 1])
            cuts = np.ceil((start + (end - start) * inner / parts) ** 2) - 1
        lowest = [first] if atom and values > 1 else []
    else:
        cuts, lowest = low + (high - low) * (np.arange(1, count) / count), [low] if atom else []
    return tuple(float(edge) for edge in np.unique([*lowest, *cuts]))


def labels_of(edges: tuple[float, ...], *, whole: bool) -> tuple[str, ...]:
    """Return one interval per bin as text."""
    texts = next(
        (texts for digits in (6, 12) if len(set(texts := [f"{edge:.{digits}g}" for edge in edges])) == len(edges)),
        [repr(edge) for edge in edges],
    )
    inner = []
    for (low, high), (start, end) in zip(pairwise(edges), pairwise(texts), strict=True):
        single = whole and np.floor(high) - np.floor(low) == 1
        inner.append(f"{int(np.floor(high))}" if single else f"({start}, {end}]")
    return (f"(-inf, {texts[0]}]", *inner, f"({texts[-1]}, inf)")


def _checked(edges: Any) -> int | tuple[float, ...] | None:
    if edges is None:
        return None
    if isinstance(edges, int | np.integer) and not isinstance(edges, bool):
        return _validate.integer("edges", edges, 2, MOST_BINS)
    if isinstance(edges, str | bool) or not isinstance(edges, Iterable):
        raise ArgumentError(
            f"edges must be ascending numbers, a number of bins, or None, got {_validate.shown(edges)}. Write "
            "dp.Histogram([0, 10])."
        )
    given = _validate.several("edges", edges)
    cuts = tuple(_validate.number(f"edges[{place}]", edge) for place, edge in enumerate(given))
    if not 1 <= len(cuts) < MOST_BINS:
        raise ArgumentError(f"edges must be 1..{MOST_BINS - 1} numbers, got {len(cuts)}. One edge makes two bins.")
    for before, after in pairwise(cuts):
        if not before < after:
            raise ArgumentError(f"edges must ascend strictly, got {before:g} before {after:g}. Sort them, once each.")
    return cuts


__all__ = ["Binned", "Bins", "Histogram", "bins_for", "even_bins", "labels_of"]
