"""Numbers of rows per cell, where they are private: their prior, and nodes to integrate over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.noised_count import log_noise
from pymc_dp.transforms.released_logp import held
from pymc_dp.transforms.sum_noises import SUM_NOISES, dense_nodes

SIZE_NODES = 32
BISECTIONS = 30
LEAST_RATE, MOST_RATE = 1e-3, 1e3
"""Of the prior of sizes: over the bound, which is next to uniform; and over the noise, of cells next to empty."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """What is known of the number of rows per cell.

    Attributes
    ----------
    public : bool
        Whether `bound` is the number of rows itself.
    bound : (n_cells,) array
        Public size, or a public bound on it.
    n_private : int
        Number of cells that `bound` rows are spread over: in draws of releases, a part of a random split each.
    rate : float
        A private size has a prior proportional to ``(1 + rate * size)**-2`` on 0..bound, see `shown_by`.
    seen : (n_cells,) array or None
        Private sizes as another table of the same release shows them, where one does: the density is then the
        conditional one given that table, in which the size is `seen` less its noise.
    noise : float
        Scale of the noise of `seen`.
    kind : {"laplace", "gaussian"}
        Noise of the release.
    """

    public: bool
    bound: Array
    n_private: int
    rate: float = 0.0
    seen: Array | None = None
    noise: float = 0.0
    kind: str = "laplace"

    @cached_property
    def shown(self) -> TensorVariable:
        """`seen` as a tensor, (n_cells,)."""
        assert self.seen is not None
        return held(self.seen)

    def log_prior(self, size: TensorVariable, bound: TensorVariable) -> TensorVariable:
        """Log density of a private size, before or after it was seen."""
        if self.seen is not None:
            return SUM_NOISES[self.kind].log_density(size - self.shown[:, None], held(self.noise))
        rate = held(self.rate)
        return pt.log1p(rate * bound) - pt.log(bound) - 2 * pt.log1p(rate * size)

    def reach(self, scale: float) -> float:
        """How far noise of this scale takes a released number of rows from the size, as far as all tables show it."""
        scales = [scale] if self.seen is None else [scale, self.noise]
        return float(SUM_NOISES[self.kind].reach(min(scales)))

    def whole(self, counts: Array, scale: float) -> tuple[Array, Array]:
        """Smallest and largest number of rows of a cell, at least 1, as far as noise reaches: (n_cells,) integers.

        Parameters
        ----------
        counts : (n_cells,) array
            Released numbers of rows.
        scale : float
            Of their noise.
        """
        shown = [(counts, scale)] if self.seen is None else [(counts, scale), (self.seen, self.noise)]
        least, most = np.zeros(len(counts)), np.asarray(self.bound, dtype=float)
        for released, width in shown:
            centre, reach = np.clip(released, 0, self.bound), SUM_NOISES[self.kind].reach(width)
            least, most = np.maximum(least, np.ceil(centre - reach)), np.minimum(most, np.floor(centre + reach))
        return least.astype(int), np.clip(most, 1, self.bound).astype(int)

    def log_masses(self, sizes: Array, counts: Array, scale: float) -> Array:
        """Log probabilities of whole sizes with their released numbers of rows: (n_cells, n_sizes) from (n_sizes,)."""
        bound = np.asarray(self.bound, dtype=float)[:, None]
        released = log_noise(counts[:, None] - sizes, self.kind, scale)
        if self.seen is not None:
            return released + log_noise(self.seen[:, None] - sizes, self.kind, self.noise)
        low, high = (np.clip(sizes + half, 0, bound) for half in (-0.5, 0.5))  # what is rounded to a size
        with np.errstate(divide="ignore"):
            within = np.log((high - low) * (1 + self.rate * bound) / bound)
        return released + within - np.log1p(self.rate * low) - np.log1p(self.rate * high)

    def shown_by(self, counts: Array, scale: float, *, at_most: bool) -> Sizes:
        """Return these sizes with the rate that a release gives them.

        Cells are unequal, as hospitals and towns are: sizes have the heavy tail of a Lomax distribution, with the scale
        at which those expected after the release add up to their total (empirical Bayes). A prior that falls as fast
        as that of the parts of a random split would make cells smaller than they were shown, the largest most of all:
        by many standard deviations where one cell of a hundred holds most rows.

        Parameters
        ----------
        counts : (n_cells, k) array
            Released counts, which add up to the size of a cell.
        scale : float
            Of their noise.
        at_most : bool
            Whether `bound` is a bound on the number of rows, and not the number itself: the total is then that of the
            released sizes, or what their noises add up to, as far as the bound permits.
        """
        noise, seen, width = SUM_NOISES[self.kind], held(counts.sum(axis=1)), held(scale)
        deviation = NOISE_KINDS[self.kind].deviation(scale)
        if counts.shape[1] > 1:  # a sum of noises is near to normal
            noise, width = SUM_NOISES["gaussian"], held(deviation * np.sqrt(counts.shape[1]))
        sizes, log_weight = nodes_around(seen, noise.reach(width), held(self.bound))
        log_weight += noise.log_density(seen[:, None] - sizes, width)
        nodes, log_weights = plain_function([], [sizes, log_weight])()
        total = self.bound.sum() / self.n_private
        total = min(max(counts.sum(), deviation * np.sqrt(counts.size)), total) if at_most else total
        ends = np.log([LEAST_RATE / self.bound.max(), MOST_RATE / scale])
        for _ in range(BISECTIONS):
            levels = log_weights - 2 * np.log1p(np.exp(ends.mean()) * nodes)
            weights = np.exp(levels - levels.max(axis=1, keepdims=True))
            expected = (weights * nodes).sum(axis=1) / weights.sum(axis=1)
            ends[0 if expected.sum() > total else 1] = ends.mean()
        return replace(self, rate=float(np.exp(ends.mean())))


def size_nodes(
    total: TensorVariable, scale: float, n_levels: int, sizes: Sizes
) -> tuple[TensorVariable, TensorVariable]:
    """Nodes of a private size, the rate of all counts of a cell, and the logs of their weights: (n_cells, n) each.

    Parameters
    ----------
    total : (n_cells,) tensor
        Sum of the released counts.
    scale : float
    n_levels : int
    sizes : Sizes
    """
    bound = held(sizes.bound)
    width = 8 * pt.sqrt(pt.maximum(total, 0) + held(2 * n_levels * scale**2 + 1))
    low, high = pt.clip(total - width, 0, bound), pt.clip(total + width, 0, bound)
    rate, log_weight = _nodes(low, high, SIZE_NODES)
    if sizes.seen is not None:
        rate, log_weight = nodes_around(sizes.shown, SUM_NOISES[sizes.kind].reach(held(sizes.noise)), bound)
    return rate, log_weight + sizes.log_prior(rate, bound[:, None])


def _nodes(low: TensorVariable, high: TensorVariable, count: int) -> tuple[TensorVariable, TensorVariable]:
    """Nodes between two (n_cells,) tensors, denser at both, and the logs of their weights: (n_cells, count) each."""
    x, log_weight = dense_nodes(count)
    width = pt.maximum(high - low, 1e-12)[:, None]
    return low[:, None] + width * x, pt.log(width) + log_weight


def nodes_around(
    centre: TensorVariable, reach: TensorVariable, bound: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Nodes on either side of a kink at `centre`, no further than `reach` and within 0..bound."""
    middle = pt.clip(centre, 0, bound)
    left, left_weight = _nodes(pt.clip(centre - reach, 0, bound), middle, SIZE_NODES // 2)
    right, right_weight = _nodes(middle, pt.clip(centre + reach, 0, bound), SIZE_NODES // 2)
    return pt.concatenate([left, right], axis=-1), pt.concatenate([left_weight, right_weight], axis=-1)
