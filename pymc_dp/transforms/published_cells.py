"""Tables that others noised as observed variables: cells that a model observes itself, and noised sums of them.

Let s be the exact values of the cells, independent given the parameters, and x = s + noise what was published.

* Cells: the distribution of each s is summed over all that the noise may have made x of (integrated, of a Normal one).
* Sums T = A s + noise: given the parameters *and* x the cells are independent still, with a known mean and variance
  each, so that T has mean A m and variance A V Aᵀ + that of its noise. It is treated as normal (central limit theorem
  over the cells of a sum). By the chain rule ``p(x, T) = p(x) p(T | x)``: nothing is used twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.abstract import _logprob
from pytensor.gradient import grad
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.noise import NOISES
from pymc_dp.release.record import TableRecord
from pymc_dp.transforms.noised_count import noised_binomial, noised_poisson
from pymc_dp.transforms.released_logp import held, spread_out
from pymc_dp.transforms.sum_noises import normal_laplace

SUPPORTS: Mapping[str, tuple[int, int | str | None]] = {
    "bernoulli": (0, 1),
    "beta_binomial": (0, "n"),
    "binomial": (0, "n"),
    "geometric": (1, None),
    "negative_binomial": (0, None),
    "poisson": (0, None),
}
"""Least and largest exact count of each distribution; "n" is its first parameter."""
REACHES = {"laplace": 30.0, "gaussian": 8.0}
"""Scales of noise beyond which it has a probability below 1e-13."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Noised:
    """Noise of one published table.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
    whole : bool
        Whether it is of whole numbers.
    scales : (n_cells,) array
    """

    kind: str
    whole: bool
    scales: Array

    @classmethod
    def of(cls, record: TableRecord, noise: str) -> Noised:
        """Return that of a table, of a record that names its `noise`."""
        scales = np.broadcast_to(np.array(record.scales), (len(record.cells),))
        return cls(kind=record.plan["noise"], whole=noise.startswith("discrete"), scales=scales)

    @property
    def variances(self) -> Array:
        """Of the noise of each cell."""
        return np.asarray((2.0 if self.kind == "laplace" else 1.0) * self.scales**2)

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Draw noise; the last axis of `shape` is that of cells."""
        if not self.whole:
            return np.asarray((rng.laplace if self.kind == "laplace" else rng.normal)(0.0, self.scales, shape))
        found = np.zeros(shape)
        for scale in np.unique(self.scales[self.scales > 0]):
            here = self.scales == scale
            found[..., here] = NOISES[self.kind].simulated(rng, float(scale), (*shape[:-1], int(here.sum())))
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedCells:
    """Distribution of published cells given the parameters of the exact ones, one of each per cell.

    Attributes
    ----------
    op : RandomVariable
        Distribution of an exact value.
    noise : Noised
    known_trials : bool
        Whether numbers of trials depend on no parameter.
    noise_aware : bool
    """

    op: Any
    noise: Noised
    known_trials: bool
    noise_aware: bool

    @property
    def signature(self) -> str:
        """Gufunc signature: parameters and the scale of the noise of one cell."""
        return f"{'(),' * len(self.op.ndims_params)}(d)->(d)"

    def logp(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Log density per cell, (n_cells,)."""
        if self.noise_aware:
            return self.moments(value[:, 0], parameters[:-1])[0]
        return self._exact(value[:, 0], parameters[:-1])

    def moments(self, x: TensorVariable, parameters: Any) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        """Return the log density of published cells, and mean and variance of the exact ones given them: (n_cells,)."""
        kind, scales = self.noise.kind, self.noise.scales
        if self.op.name == "normal":
            return self._normal(x, *parameters)
        if self.op.name == "poisson":
            logp, mean, variance, _ = noised_poisson(x, parameters[0], kind, scales)
        elif self.closed:
            n, p = parameters
            logp, mean, variance, _ = noised_binomial(x, p, pt.cast(n, "float64"), kind, scales)
        else:
            return self._summed(x, parameters)
        return logp, mean, variance

    def _normal(
        self, x: TensorVariable, mu: TensorVariable, sigma: TensorVariable
    ) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        """By Tweedie's formula: mean and variance are slopes of the log density in mu."""
        z, own = x - mu, sigma**2
        if self.noise.kind == "gaussian":
            square = held(self.noise.scales**2)
            total = own + square
            logp = -0.5 * (LOG_2PI + pt.log(total) + z**2 / total)
            return logp, mu + own / total * z, own * square / total
        logp = normal_laplace(z, own, held(np.maximum(self.noise.scales, 1e-9)))
        slope = grad(logp.sum(), z)
        bend = grad(slope.sum(), z)
        return logp, x - z - own * slope, pt.maximum(own + own**2 * bend, 0.0)

    @property
    def closed(self) -> bool:
        """Whether no terms are added up."""
        return self.op.name in ("normal", "poisson") or (self.op.name == "binomial" and self.known_trials)

    @property
    def reach(self) -> int:
        """Exact counts to each side that are added up."""
        return int(np.ceil(REACHES[self.noise.kind] * self.noise.scales.max())) + 1

    def _summed(self, x: TensorVariable, parameters: Any) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        """By adding up all exact counts that the noise reaches from the nearest possible one."""
        low, high = self._ends(parameters)
        nearest = pt.clip(pt.round(x), low, high)
        s = nearest[:, None] + np.arange(-self.reach, self.reach + 1)
        last = high if isinstance(high, float) else high[:, None]
        inside = pt.ge(s, low) & pt.le(s, last)
        s = pt.clip(s, low, last)
        distance = (x[:, None] - s) / held(np.maximum(self.noise.scales, 1 / 64))[:, None]
        log_noise = -pt.abs(distance) if self.noise.kind == "laplace" else -0.5 * distance**2
        terms = pt.switch(inside, self._exact(s, [one[:, None] for one in parameters]) + log_noise, -np.inf)
        logp = pt.logsumexp(terms, axis=1)
        weights = pt.exp(terms - logp[:, None])
        mean = (weights * s).sum(axis=1)
        return logp - held(self._log_total), mean, (weights * (s - mean[:, None]) ** 2).sum(axis=1)

    @property
    def _log_total(self) -> Array:
        """Log of the sum, or of the integral, of noise over that of none."""
        scales = np.maximum(self.noise.scales, 1 / 64)
        if self.noise.kind == "laplace":
            return np.asarray(-np.log(np.tanh(0.5 / scales)))
        places = np.arange(1, int(9 * scales.max()) + 2)
        return np.log1p(2 * np.exp(-0.5 * (places / scales[:, None]) ** 2).sum(axis=1))

    def _ends(self, parameters: Any) -> tuple[float, Any]:
        low, high = SUPPORTS[self.op.name]
        return float(low), pt.cast(parameters[0], "float64") if high == "n" else np.inf if high is None else float(high)

    def _exact(self, value: TensorVariable, parameters: Any) -> TensorVariable:
        """Log density of exact values; parameters broadcast against them."""
        whole = value if self.op.dtype.startswith("float") else pt.cast(value, "int64")
        found: TensorVariable = _logprob(self.op, [whole], None, None, *parameters)  # of no generator, and no size
        return found

    def projected(self, value: Array, trials: Array | None) -> Array:
        """Move published cells to the nearest exact ones; for the plug-in form only."""
        if self.op.name == "normal":
            return value
        low, high = SUPPORTS[self.op.name]
        most = np.inf if high is None else trials[:, None] if trials is not None else float(high)
        return np.clip(np.rint(value), low, most)

    def random(self, *parameters: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw published cells: exact ones, then noise."""
        batch, own = spread_out(parameters[:-1], [0] * len(parameters[:-1]), size)
        exact = self.op.rng_fn(rng, *own, batch)
        return np.asarray(exact + self.noise.drawn(rng, batch), dtype=np.float64)[..., None]


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedSums:
    """Distribution of noised sums of cells, given the published cells and the parameters.

    Attributes
    ----------
    noise : Noised
    overlapping : bool
        Whether cells are in several sums, so that these have a covariance.
    """

    noise: Noised
    overlapping: bool

    @property
    def signature(self) -> str:
        """Gufunc signature: means and variances of the exact sums, then the scales of the noise."""
        return "(m),(m,m),(m,d)->(m,d)" if self.overlapping else "(),(),(d)->(d)"

    def logp(self, value: TensorVariable, mean: TensorVariable, spread: TensorVariable, _: Any) -> TensorVariable:
        """Log density: one entry per sum, or of all where they overlap."""
        z = value[:, 0] - mean
        if self.overlapping:
            root = pt.linalg.cholesky(spread + pt.diag(held(self.noise.variances + SMALL)))
            white = pt.linalg.solve_triangular(root, z, lower=True)
            return -0.5 * (white**2).sum() - pt.log(pt.diag(root)).sum() - 0.5 * LOG_2PI * len(self.noise.scales)
        if self.noise.kind == "laplace" and self.noise.scales.all():
            return normal_laplace(z, spread + SMALL, held(self.noise.scales))
        total = spread + held(self.noise.variances + SMALL)
        return -0.5 * (LOG_2PI + pt.log(total) + z**2 / total)

    def random(self, mean: Array, spread: Array, scales: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw noised sums."""
        z = rng.normal(size=np.broadcast_shapes(mean.shape, spread.shape[:-1] if self.overlapping else spread.shape))
        if self.overlapping:
            exact = mean + (np.linalg.cholesky(spread + SMALL * np.eye(mean.shape[-1])) @ z[..., None])[..., 0]
        else:
            exact = mean + np.sqrt(spread) * z
        return np.asarray(exact + self.noise.drawn(rng, exact.shape))[..., None]


__all__ = ["SUPPORTS", "Noised", "PublishedCells", "PublishedSums"]
