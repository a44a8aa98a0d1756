"""Density of noised sums of few whole numbers: all that a sum may be are added up.

A sum of few rows of a likelihood of counts is far from normal. Between public bounds it has finitely many values, and a
cell whose sum has `MOST_VALUES` of them or fewer needs no central limit theorem. With P the probabilities of a clamped
row and g(s) that of the noise that makes the release of s, the density given n rows is ``Σ P(k) h(k)``, where h is g
after n - 1 steps of ``h(s) <- Σ P(k) h(s + k)``. Wider bounds have wider noise, which hides what is not normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.family import Family, WholeFamily
from pymc_dp.families.feature_family import TINY
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.noised_count import noise_numbers
from pymc_dp.transforms.released_logp import held

if TYPE_CHECKING:
    from pymc_dp.transforms.density import ReleaseDensity


def few_cells(family: Family, statistic: RowStatistic, sizes: Sizes) -> Array:
    """Whether the values of a sum are few: (n_cells,) booleans, all False where sizes are private or rows no counts."""
    if not (sizes.public and isinstance(family, WholeFamily)):
        return np.zeros(len(sizes.bound), dtype=bool)
    return family.few_values(statistic, sizes.bound)


def few_logp(
    density: ReleaseDensity, value: TensorVariable, given: Sequence[TensorVariable], sizes: Array | None = None
) -> TensorVariable:
    """Log density of every cell that is `few`, in the unit of that of normal sums; of other cells any finite number.

    Parameters
    ----------
    density : ReleaseDensity
    value : (n_cells, 1) tensor
    given : tensors
        Parameters of the likelihood.
    sizes : array of int, optional
        Which sizes there are; by default those of the density, which are then no tensor.
    """
    family, statistic, kind = density.family, density.statistic, density.sizes.kind
    assert isinstance(family, WholeFamily) and isinstance(statistic, BoundedMoments)
    sizes = few_sizes(density) if sizes is None else sizes
    log_masses = family.log_masses([item[:, None] for item in given], statistic)
    masses, n = pt.exp(log_masses), held(density.sizes.bound)
    width, most = int(statistic.high - statistic.low), int(sizes.max())
    _, scale, log_zero = noise_numbers(kind, float(density.scales[0]))
    distance = (value - n[:, None] * (statistic.low - statistic.centre) - np.arange(most * width + 1.0)) / scale
    log_noise = -pt.abs(distance) if kind == "laplace" else -0.5 * distance**2
    top = log_noise.max(axis=1, keepdims=True)
    found, rest, of_first = pt.zeros_like(value[:, 0]), pt.exp(log_noise - top), log_noise[:, : width + 1]
    for rows in range(1, most + 1):
        if rows in sizes:
            found = pt.switch(pt.eq(n, rows), pt.logsumexp(log_masses + of_first, axis=1), found)
        if rows < most:
            places = np.arange((most - rows) * width + 1)[:, None] + np.arange(width + 1)
            rest = (rest[:, places] * masses[:, None, :]).sum(axis=-1)
            of_first = pt.log(rest[:, : width + 1] + TINY) + top
    return found + (log_zero + np.log(statistic.half_width))


def few_sizes(density: ReleaseDensity) -> Array:
    """Return the sizes of cells that are `few`, ascending."""
    return np.unique(np.asarray(density.sizes.bound)[density.few]).astype(int)


def few_sums(density: ReleaseDensity, rng: np.random.Generator, given: Sequence[Array], rows: Array) -> Array:
    """Draw sums, (..., n_cells, 1), row by row; parameters and numbers of rows are (..., n_cells) arrays."""
    statistic, total = density.statistic, np.zeros(rows.shape)
    assert isinstance(statistic, BoundedMoments)
    for row in range(int(few_sizes(density).max())):
        drawn = density.family.draw(rng, *given)
        total += (rows > row) * (np.clip(drawn, statistic.low, statistic.high) - statistic.centre)
    return total[..., None]


__all__ = ["few_cells", "few_logp", "few_sizes", "few_sums"]
