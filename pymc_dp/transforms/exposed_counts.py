"""Density of noised sums of counts over exposures: both exact sums are integrated out.

Given the exposure E of a cell, its sum of counts is Poisson with mean ``rate * E``. E has the prior
of a private size (`Sizes`), and is seen with noise. The quadrature over it has panels that meet at the two exposures
where its integrand peaks or has kinks: the released one, and that at which the released count is expected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.variable import TensorVariable
from scipy.special import logsumexp

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.noised_count import LEAST, MOST, noise_numbers, noised_poisson
from pymc_dp.transforms.released_logp import held
from pymc_dp.transforms.sum_noises import SUM_NOISES, dense_nodes

SMALLEST_RATE = 1e-300
TAIL = 36.0
"""Counts by which a Poisson count of mean 0 may be off, beside eight standard deviations."""
PANEL_NODES = 14
_NODES, _LOG_WEIGHTS = dense_nodes(PANEL_NODES)


def exposed_logp(value: TensorVariable, rate: TensorVariable, scales: Array, sizes: Sizes) -> TensorVariable:
    """Log density of noised sums, one entry per cell.

    Parameters
    ----------
    value : (n_cells, 1 or 2) tensor
        ``[exposure,] count``: of the count alone where exposures are public.
    rate : (n_cells or 1,) tensor
    scales : (1 or 2,) array
        Scale of the noise of each.
    sizes : Sizes
        Exposures in the place of numbers of rows.
    """
    count, noise = value[:, -1], float(scales[-1])
    if sizes.public:
        return noised_poisson(count, rate * held(sizes.bound), sizes.kind, noise)[0]
    exposure, log_weight = _nodes_of(value, disconnected_grad(rate), scales, sizes)
    logp = noised_poisson(count[:, None], rate[:, None] * exposure, sizes.kind, noise)[0]
    return pt.logsumexp(logp + log_weight, axis=-1)


def _nodes_of(
    value: TensorVariable, rate: TensorVariable, scales: Array, sizes: Sizes
) -> tuple[TensorVariable, TensorVariable]:
    """Return exposures, and the logs of their weights, prior and noise: (n_cells, n_nodes) each."""
    noise, bound = SUM_NOISES[sizes.kind], held(sizes.bound)
    seen, count = value[:, 0], pt.maximum(value[:, 1], 0.0)
    of_exposure, of_count = held(float(scales[0])), held(float(scales[1]))
    safe = pt.maximum(rate, SMALLEST_RATE)
    favoured = [pt.clip(item, 0.0, bound) for item in (seen, count / safe)]
    first, last = pt.minimum(*favoured), pt.maximum(*favoured)
    about = noise.reach(of_count) + 8 * pt.sqrt(count + 1) + TAIL
    reach = pt.minimum(noise.reach(of_exposure), about / safe)
    middle = first + (last - first) / 2
    ends = [pt.maximum(first - reach, 0.0), first, middle, last, pt.minimum(last + reach, bound)]
    nodes, weights = [], []
    for low, high in pairwise(ends):
        width = pt.maximum(high - low, 1e-12 * bound)[:, None]
        nodes.append(low[:, None] + width * _NODES)
        weights.append(pt.log(width) + _LOG_WEIGHTS)
    exposure, log_weight = pt.concatenate(nodes, axis=-1), pt.concatenate(weights, axis=-1)
    log_weight += sizes.log_prior(pt.minimum(exposure, bound[:, None]), bound[:, None])
    return exposure, log_weight + noise.log_density(seen[:, None] - exposure, of_exposure)


def exposed_densities(release: Array, rates: Array, scales: Array, sizes: Sizes) -> Array:
    """Return the same log densities as numbers: of (m, 1 or 2) releases at (m,) rates.

    Parameters
    ----------
    release : (m, 1 or 2) array
    rates : (m,) array
    scales : (1 or 2,) array
    sizes : Sizes
        Of each of them.
    """
    from pymc_dp.transforms.count_table_kernels import poisson_counts  # numba takes long to import

    noise = noise_numbers(sizes.kind, float(scales[-1]))
    if sizes.public:
        exposure, log_weight = np.asarray(sizes.bound, dtype=float)[:, None], np.zeros((len(rates), 1))
    else:
        given = (release, rates, sizes.bound, sizes.rate)
        exposure, log_weight = _compiled_nodes(tuple(scales), sizes.kind)(*given)
    with np.errstate(divide="ignore"):
        eta = np.clip(np.log(rates)[:, None] + np.log(exposure), LEAST, MOST)
    counts = np.repeat(release[:, -1], exposure.shape[1])
    logp = poisson_counts(counts, eta.ravel(), *noise).reshape(exposure.shape)
    found: Array = logsumexp(logp + log_weight, axis=-1)
    return found


@lru_cache(maxsize=8)
def _compiled_nodes(scales: tuple[float, ...], kind: str) -> Callable[..., list[Array]]:
    value, rate, bound = pt.matrix("value", shape=(None, 2)), pt.vector("rate"), pt.vector("bound")
    of_prior = pt.scalar("rate of the prior")
    symbolic: dict[str, Any] = {"bound": bound, "rate": of_prior}
    sizes = Sizes(public=False, n_private=1, kind=kind, **symbolic)
    found: Callable[..., list[Array]] = plain_function(
        [value, rate, bound, of_prior], list(_nodes_of(value, rate, np.array(scales), sizes))
    )
    return found


__all__ = ["exposed_densities", "exposed_logp"]
