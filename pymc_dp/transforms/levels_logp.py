"""The density of noised counts of three or more levels as one operation, of a public or a private size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, override

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families import CountFamily
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.count_tables import tables_by_rate
from pymc_dp.transforms.interpreted import INTERPRETED
from pymc_dp.transforms.noise_aware import counts_logp, poisson_at_mean, size_nodes
from pymc_dp.transforms.noised_count import noise_numbers
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.released_logp import ReleasedLogp
from pymc_dp.transforms.tabulated import holds

if TYPE_CHECKING:
    from pymc_dp.transforms.density import ReleaseDensity

KERNELS = "pymc_dp.transforms.level_kernels"


class PublicLevels(ReleasedLogp):
    """Log density of noised counts of cells of public size. Inputs are probabilities, counts, and what is public."""

    __props__ = ("kind",)
    kernel = f"{KERNELS}:levels_of_public_size"
    slopes = (0,)
    by_cells = True

    def __init__(self, density: ReleaseDensity) -> None:
        super().__init__()
        self.density, self.kind = density, density.sizes.kind

    @override
    def __reduce__(self) -> Any:
        return type(self), (self.density,)

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
        release, roots, log_weights, *panels = self.density.level_tables
        # Each release has other panels: no compiled model knows how many.
        return [held(release), held(roots), held(log_weights), *(held(item, shape=(None,)) for item in panels)]


def level_tables(density: ReleaseDensity) -> tuple[Array, ...]:
    """Return the release, roots and log weights of the rates of all counts of a cell, and tables of single counts."""
    release, sizes, scale = density.release, density.sizes, float(density.scales[0])
    assert release is not None
    nodes = size_nodes(pt.constant(release).sum(axis=-1), scale, release.shape[1], sizes)
    rates, log_weights = pytensor.function([], nodes, mode=INTERPRETED)()
    most = rates.max(axis=1)
    return release, np.sqrt(rates / most[:, None]), log_weights, *tables_by_rate(release, scale, sizes.kind, most)


def levels_operation(density: ReleaseDensity, value: TensorVariable, n_levels: int | None) -> PublicLevels | None:
    """Return the operation of a table of counts, where there is one; of private sizes it is that of the release."""
    if not isinstance(density.family, CountFamily) or n_levels is None or n_levels < 3:
        return None
    if density.sizes.public:
        return PublicLevels(density)
    release = density.release
    return PrivateLevels(density) if release is not None and holds(value, release) else None


__all__ = ["PrivateLevels", "PublicLevels", "level_tables", "levels_operation"]
