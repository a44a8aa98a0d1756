"""A clip norm that is bought: a private quantile of the norms of the rows' gradients, where a chain starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import BoundedRangeEvent, Budget
from pymc_dp.before_kernel import secure_generator
from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array

A_DECADE = 10
"""Candidates in a decade: each is 26% above the one before."""
MOST_LOSS = 4.0
"""Pure loss beyond which nothing is gained: the rank is then off by a handful of rows."""
SURE = 0.99


@final
@dataclass(frozen=True, kw_only=True)
class EstimatedNorm:
    """A clip norm that a share of the budget buys: about the `quantile` of the norms of the rows' gradients.

    Norms are those at the model's initial point, which is where a chain starts: gradients are mostly longer there than
    in the posterior. One of the public candidates between `low` and `high`, ten a decade, is released by the
    exponential mechanism, once for all chains.

    Parameters
    ----------
    share : float
        In (0, 1): the release is (share ε, 0)-DP, but for ε above 40, where no more than 4 is of use. Accountants make
        less of it: at 0.1 the noise of a long chain grows by about 3%, at 0.3 by about 20%.
    quantile : float
        In (0, 1): share of rows that are not to be clipped at the start.
    low, high : float
        Least and greatest candidate, > 0. Public: limits that were found by looking at the rows would break the
        guarantee.

    Raises
    ------
    ArgumentError
        Out of range; where the sampler has too few rows for the share, with the remedy; beside a `step_size` that is a
        number, which could only be chosen with the clip norm in view.

    Notes
    -----
    **Guarantee.** Let a_k be the number of rows whose norm is at most candidate t_k, n that of all rows and q the
    quantile. Candidate k is chosen with probability proportional to exp(β u_k), where
    ``u_k = -max(q n - a_k, a_(k-1) - q n, 0)``. A row that is replaced moves every a_k by at most 1 and leaves n, so
    that u_k changes by at most 1, since maxima do not expand; a row that is added moves a_k - q n by 1 - q or by -q,
    and u_k by at most max(q, 1 - q). The change of u ranges over at most twice that, so that the choice has bounded
    range share ε if β is that over the range: 2 under replace, 2 max(q, 1 - q) under add_remove. Norms that are not
    finite count as above all candidates. The noise multiplier of the chain is fixed for what the accountants say is
    left, before rows are read; only then is the norm chosen, and noise and step sizes follow it.

    References
    ----------
    Smith (2011), algorithm 2, and McSherry, Talwar (2007), theorem 6; bounded range: Dong, Durfee, Rogers (2020).

    Examples
    --------
    >>> EstimatedNorm(low=0.1, high=1.0).candidates.round(2).tolist()
    [0.1, 0.13, 0.16, 0.2, 0.25, 0.32, 0.4, 0.5, 0.63, 0.79, 1.0]
    """

    share: float = 0.1
    quantile: float = 0.9
    low: float = 1e-4
    high: float = 1e6

    def __post_init__(self) -> None:
        for name in ("share", "quantile"):
            if not 0 < _validate.number(name, getattr(self, name)) < 1:
                raise ArgumentError(f"{name} must lie in (0, 1), got {getattr(self, name)}.")
        low, high = _validate.number("low", self.low), _validate.number("high", self.high)
        if not 1e-50 <= low < high <= 1e50:
            raise ArgumentError(f"low and high must be 1e-50 <= low < high <= 1e50, got {low} and {high}.")

    @property
    def candidates(self) -> Array:
        """Clip norms to choose from, rising."""
        count = math.ceil(A_DECADE * math.log10(self.high / self.low) - 1e-9)
        return np.asarray(np.minimum(self.low * 10 ** (np.arange(count + 1) / A_DECADE), self.high))

    def event(self, budget: Budget) -> BoundedRangeEvent:
        """Return what the estimate costs, whatever the rows."""
        return BoundedRangeEvent(eta=min(self.share * budget.epsilon, MOST_LOSS))

    def weight(self, budget: Budget, neighbours: str) -> float:
        """Return β, the logarithm of odds that a row is worth; the millionth is for the rounding of large ranks."""
        reach = 2.0 if neighbours == "replace" else 2 * max(self.quantile, 1 - self.quantile)
        return self.event(budget).eta / reach * (1 - 1e-6)

    def error(self, budget: Budget, neighbours: str) -> float:
        """Return by how many rows the rank of the estimate is off, at most, with probability `SURE`."""
        return math.log(len(self.candidates) / (1 - SURE)) / self.weight(budget, neighbours)

    def check(self, budget: Budget, neighbours: str, population: int) -> None:
        """Refuse a share that might buy an end of the candidates; nothing but public numbers is looked at."""
        needed = self.error(budget, neighbours) / min(self.quantile, 1 - self.quantile)
        if needed < population:
            return
        wanted = math.ceil(100 * self.share * needed / population) / 100
        enough = f"Give it share={wanted:g}" if wanted < 1 and wanted * budget.epsilon < MOST_LOSS else "Give a number"
        raise ArgumentError(
            f"{self!r} needs {math.ceil(needed)} rows at epsilon={budget.epsilon:g}; {population} are publicly known. "
            f"{enough}, a quantile nearer 0.5, or candidates between closer low and high."
        )

    def estimate(self, norms: Array, budget: Budget, neighbours: str) -> float:
        """Release a clip norm, given the norms of all rows: (n_rows,), which may hold NaN and infinity."""
        chosen = choose(secure_generator(), self.weight(budget, neighbours) * self.scores(norms))
        return float(self.candidates[int(chosen)])

    def scores(self, norms: Array) -> Array:
        """Return u of every candidate. **Private**."""
        held = np.where(np.isfinite(norms), norms, np.inf)
        places = np.searchsorted(self.candidates[:-1], held, side="left")  # the first candidate that is not below
        counts = np.bincount(places, minlength=len(self.candidates))
        within, rank = np.cumsum(counts), self.quantile * len(held)
        return -np.maximum(np.maximum(rank - within, within - counts - rank), 0.0)

    def facts(self, norm: float | None, budget: Budget, neighbours: str) -> tuple[tuple[str, str], ...]:
        """Say what was bought, for how much."""
        known = "yet to be estimated" if norm is None else f"{norm:.4g}"
        return (
            ("clip norm", f"{known} per row, over all parameters in unconstrained space"),
            (
                "estimate of the clip norm",
                f"the {self.quantile:g} quantile of the gradients' norms at the initial point, off by at most "
                f"{math.ceil(self.error(budget, neighbours))} rows with probability {SURE:.0%}; released once for all "
                f"chains, bounded range {self.event(budget).eta:.6g} ({self.share:g} of epsilon)",
            ),
        )


__all__ = ["EstimatedNorm"]
