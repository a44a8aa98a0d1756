"""The density of noised counts of every level as one operation, of a public or a private size."""

from __future__ import annotations

from functools import cached_property
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.transforms.noise_aware import counts_logp, poisson_at_mean
from pymc_dp.transforms.noised_count import noise_numbers
from pymc_dp.transforms.released_logp import ReleasedLogp, held

KERNELS = "pymc_dp.transforms.level_kernels"


class PublicLevels(ReleasedLogp):
    """Log density of noised counts of cells of public size. Inputs are probabilities, counts, and what is public."""

    kernel = f"{KERNELS}:levels_of_public_size"
    slopes = (0,)
    by_cells = True

    @cached_property
    @override
    def structure(self) -> str:
        kind: str = self.density.sizes.kind
        return kind

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        scale = float(self.density.scales[0])
        return counts_logp(inputs[1], inputs[0], scale, self.density.sizes, both=self.density.both)

    def of(self, value: TensorVariable, p: TensorVariable) -> TensorVariable:
        """Return the log density of released counts at some probabilities, (n_cells or 1, n_levels)."""
        shape = (len(self.density.sizes.bound), p.type.shape[-1])
        given = p if p.type.shape == shape else pt.broadcast_to(p, (shape[0], p.shape[-1]))
        return self.log_density(given, value, *self._known)

    @property
    def _known(self) -> list[TensorVariable]:
        bound = np.asarray(self.density.sizes.bound, dtype=float)
        noise = noise_numbers(self.density.sizes.kind, float(self.density.scales[0]))
        return [held(bound), held(poisson_at_mean(bound)), held(np.array(noise))]


class PrivateLevels(PublicLevels):
    """The same of private size: counts are those that the density has tables of."""

    kernel = f"{KERNELS}:levels_of_private_size"

    @property
    @override
    def _known(self) -> list[TensorVariable]:
        release, (roots, log_weights, *panels) = self.density.release, self.density.tables_by_rate
        cells = np.arange(len(release))
        # Each release has other panels: no compiled model knows how many.
        return [*map(held, (cells, release, roots, log_weights)), *(held(item, shape=(None,)) for item in panels)]


__all__ = ["PrivateLevels", "PublicLevels"]
