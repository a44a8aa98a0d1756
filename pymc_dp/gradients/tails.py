"""How large a score may be in the last stage: a released histogram of norms says what a limit would clip off.

A limit near the root mean square of norms is right where rows are of the model. On other rows it leads to the estimate
of something else, and throws away the rows that know most. So the last limit lies where next to nothing is clipped, and
what still is enters the posterior as a bias whose size is estimated from the histogram. That is no bound: of very heavy
tails more is clipped off than the histogram shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_dp.gradients.schedule import BINS
from pymc_dp.inspection.rows import Array

RATIO = math.sqrt(2)
"""Of the ends of one bin."""
RESOLVED, ALONE = 2.5, 4.0
"""Standard deviations above which a count is no noise; where the bin below is noise, as of many one is large."""
LEAST_FALL, MOST_FALL = 0.1, 0.3
"""By what counts are taken to fall from bin to bin beyond the last that is no noise: as they fell before, within these.

Of visits and stays in hospital they fell to .5 to .8. With .25 as the most, what was clipped off was ten to fifty times
as long as the histogram said.
"""
LEAST_WITHIN = 0.02
"""The least of that within a bin."""
NODES = (0.125, 0.375, 0.625, 0.875)
"""Places within a bin, on the scale of logarithms, where its rows are taken to be."""
NEAREST = 0.3
"""Where the first bin is taken to begin, over its end."""
FEW, MANY, ALL = 0.25, 0.5, 1.0
"""κ, how much of the length that is clipped off may point in one direction: of few values, of others, and of persons.

Scores of few values are centred, so that what is clipped of one value is made up for by the others. What a wrong model
says of the tail of counts and of continuous responses cannot be made up for.
"""
FEW_VALUES = 12
GRID = 160


@dataclass(frozen=True, kw_only=True, eq=False)
class Tail:
    """A histogram of norms, as far as noise lets it be known.

    Attributes
    ----------
    counts : (BINS,) array
        Estimates; beyond the last count that is no noise what a tail might hold.
    edges : (BINS + 1,) array
        Ends of bins.
    deviation : float
        Of the noise on counts.
    released : (BINS,) array
        As they were released.
    """

    counts: Array
    edges: Array
    deviation: float
    released: Array

    @classmethod
    def of(cls, released: Array, edges: Array, deviation: float, rows: float) -> Tail:
        """Estimate counts.

        Parameters
        ----------
        released : (BINS,) array
        edges : (BINS + 1,) array
        deviation : float
        rows : float
            How many there are, or may be.

        Notes
        -----
        A count is no noise if it is above `RESOLVED` deviations, or `ALONE` where that below it is noise. Without
        thresholds a few rows that are noise, thirty root mean squares off, would raise the limit to there.
        """
        low, met = np.concatenate([[True], released[:-1] > RESOLVED * deviation]), edges[1:] > edges[:-1]
        seen = np.flatnonzero((released > np.where(low, RESOLVED, ALONE) * deviation) & met)
        last = int(seen.max()) if len(seen) else 0
        counts = np.maximum(released, 0.0)
        top = max(float(counts[last]), deviation) if len(seen) else rows / 2
        before = float(counts[last - 1]) if last else rows
        falls = [top / max(before, 1e-300)]
        if last > 1:
            falls.append(math.sqrt(top / max(float(counts[last - 2]), 1e-300)))
        fall = float(np.clip(min(falls), LEAST_FALL, MOST_FALL))
        beyond = np.arange(1, len(counts) - last)
        counts[last + 1 :] = np.minimum(top * fall**beyond, RESOLVED * deviation)
        counts[~met] = 0.0  # beyond the largest norm there is
        return cls(counts=counts, edges=edges, deviation=deviation, released=released)

    @property
    def _placed(self) -> tuple[Array, Array]:
        """Places of rows, (BINS, 4), and how many are at each."""
        low, high = np.maximum(self.edges[:-1], NEAREST * self.edges[1]), self.edges[1:]
        high = np.maximum(high, low)
        places = low[:, None] * (high / low)[:, None] ** np.array(NODES)
        before = np.concatenate([self.counts[:1], self.counts[:-1]])
        fall = np.clip(self.counts / np.maximum(before, 1e-300), LEAST_WITHIN, 1.0)[:, None] ** np.array(NODES)
        return places, self.counts[:, None] * fall / fall.sum(axis=1, keepdims=True)

    def clipped_off(self, limit: float) -> float:
        """Return R, the length that a limit takes off scores, added up over rows."""
        places, counts = self._placed
        return float((counts * np.maximum(places - limit, 0.0)).sum())

    def beyond(self, limit: float) -> float:
        """Return how many rows have norms beyond a limit."""
        places, counts = self._placed
        return float(counts[places > limit].sum())


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A limit of the last stage.

    Attributes
    ----------
    limit : float
        C.
    bias : float
        κ R: up to how much the sum of scores may be off by what is clipped, in any direction.
    beyond, deviation : float
        About how many rows are beyond C, and the standard deviation of the noise on that.
    share : float
        The bias over the standard deviation of the noise.
    """

    limit: float
    bias: float
    beyond: float
    deviation: float
    share: float


def edges_of(unit: float, largest: float) -> Array:
    """Return where bins end, (BINS + 1,): at the root mean square `unit`, and on by `RATIO`, up to the largest norm."""
    found = np.concatenate([[0.0], unit * RATIO ** np.arange(BINS)])
    return np.minimum(found, max(largest, unit * RATIO))


def chosen(tail: Tail, *, least: float, largest: float, noise: float, kappa: float) -> Chosen:
    """Choose a limit C: that of the least (noise C)² + (κ R(C))².

    Parameters
    ----------
    tail : Tail
    least, largest : float
        Between which C lies: the root mean square of norms, and the largest norm of any row within its bounds, or
        infinity.
    noise : float
        Standard deviation of the noise on the gradients of the stage together, over C.
    kappa : float
        κ.

    Notes
    -----
    At the best C the bias is about half of the standard deviation of the noise, and adds an eighth to the width of
    intervals. Where C reaches the largest norm there is, nothing is clipped.
    """
    top = max(min(largest, float(tail.edges[-1])), least * 1.001)
    grid = np.geomspace(least, top, GRID)
    off = np.array([tail.clipped_off(one) for one in grid])
    place = int(np.argmin((noise * grid) ** 2 + (kappa * off) ** 2))
    limit, bias = float(grid[place]), float(kappa * off[place])
    if not bias:  # beyond the places where rows are taken to be: no row of their bins is clipped
        limit = min(largest, float(tail.edges[1:].max(where=tail.counts > 0, initial=limit)))
    share = bias / (noise * limit) if noise else math.inf * bias if bias else 0.0
    return Chosen(limit=limit, bias=bias, beyond=tail.beyond(limit), deviation=tail.deviation, share=share)


__all__ = ["ALL", "FEW", "FEW_VALUES", "MANY", "Chosen", "Tail", "chosen", "edges_of"]
