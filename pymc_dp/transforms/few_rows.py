"""Density of noised sums of few whole numbers: all that a sum may be are added up.

A sum of few rows of a likelihood of counts is far from normal. Between public bounds it has finitely many values, and a
cell whose sum has `MOST_VALUES` of them or fewer needs no central limit theorem. With P the probabilities of a clamped
row and g(s) that of the noise that makes the release of s, the density given n rows is f_n(0), where ``f_0 = g`` and
``f_n(s) = Σ P(k) f_{n-1}(s + k)``. Wider bounds have wider noise, which hides what is not normal.

A private size is a whole number, and one of those that the noise on the released size reaches: the densities given each
are added up, times the probabilities of size and noise. One pass over the rows of the largest finds them all. Which
cells have few rows is then read off their released sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.family import WholeFamily
from pymc_dp.families.feature_family import TINY
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.noised_count import log_noise
from pymc_dp.transforms.released_logp import held

if TYPE_CHECKING:
    from pymc_dp.transforms.density import ReleaseDensity

MOST_ROWS = 32
"""Of a private size, up to which rows are added up: each takes operations of its own in a compiled model."""
FARTHEST = 4.0
"""That noise on a private size may reach, for it to be whole: beyond, its prior says more of it than the release."""


@dataclass(frozen=True, kw_only=True)
class FewRows:
    """Density of sums of any of some numbers of rows; equal ones share what is compiled.

    Attributes
    ----------
    family : WholeFamily
    statistic : BoundedMoments
    kind : {"laplace", "gaussian"}
        Noise of the release.
    scale : float
        Of the noise, in units of the data.
    sizes : tuple of int
        Numbers of rows, ascending, the last at least 1.
    """

    family: WholeFamily
    statistic: BoundedMoments
    kind: str
    scale: float
    sizes: tuple[int, ...]

    @property
    def below(self) -> int:
        """Grid steps from the least value of a row to the origin, half way up to the largest."""
        return floor((self.statistic.high - self.statistic.low) / (2 * self.statistic.unit))

    def about_origin(self, sums: Any, n: Any) -> Any:
        """Return released sums, in grid steps, of rows less the origin: for private sizes this is their centre."""
        statistic, unit = self.statistic, self.statistic.unit
        return (sums - n * (statistic.low + unit * self.below - statistic.centre)) / unit

    def logp(
        self, sums: TensorVariable, log_weights: TensorVariable, given: Sequence[TensorVariable]
    ) -> TensorVariable:
        """Log density of every cell, (n_cells,), in the unit of that of normal sums.

        Parameters
        ----------
        sums : (n_cells,) tensor
            What `about_origin` returns.
        log_weights : (n_cells, n_sizes) tensor
            Log probabilities of the sizes.
        given : tensors
            Parameters of the likelihood.
        """
        statistic, most = self.statistic, self.sizes[-1]
        log_masses = self.family.log_masses([item[:, None] for item in given], statistic)
        masses, each = pt.exp(log_masses)[:, None, :], round(1 / statistic.unit)
        values = each * np.arange(int(statistic.high - statistic.low) + 1)
        steps = np.arange(most * values[-1] + 1) - most * self.below
        of_noise = log_noise(sums[:, None] - steps, self.kind, self.scale / statistic.unit)
        top = of_noise.max(axis=1, keepdims=True)
        found = [of_noise[:, most * self.below]] if 0 in self.sizes else []
        rest, first = pt.exp(of_noise - top), (most - 1) * self.below + values
        of_first = of_noise[:, first]
        for rows in range(1, most + 1):
            if rows in self.sizes:
                found.append(pt.logsumexp(log_masses + of_first, axis=1))
            if rows < most:
                places = np.arange((most - rows) * values[-1] + 1)[:, None] + values
                rest, first = (rest[:, places] * masses).sum(axis=-1), first - self.below
                of_first = pt.log(rest[:, first] + TINY) + top
        total = pt.logsumexp(pt.stack(found, axis=1) + log_weights, axis=1)
        return total + np.log(statistic.half_width / statistic.unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class FewCells:
    """Cells of a release that have few rows.

    Attributes
    ----------
    cells : (n_cells,) array of bool
        Which they are.
    least, most : (n_cells,) arrays of int
        Smallest and largest number of rows that each of them may have.
    density : ReleaseDensity
    """

    cells: Array
    least: Array
    most: Array
    density: ReleaseDensity

    @classmethod
    def of(cls, density: ReleaseDensity) -> FewCells:
        """Find them: by public sizes, or by released ones, of which there are none before the release."""
        sizes, statistic = density.sizes, density.statistic
        bound = np.asarray(sizes.bound)
        least = most = bound.astype(int)
        cells = np.zeros(len(bound), dtype=bool)
        if isinstance(density.family, WholeFamily) and isinstance(statistic, BoundedMoments):
            if sizes.public:
                cells = density.family.few_values(statistic, bound)
            elif density.release is not None and _counted(density):
                least, most = sizes.whole(density.release[:, 0], float(density.scales[0]))
                cells = (least <= most) & (most <= MOST_ROWS) & density.family.few_values(statistic, most)
        return cls(cells=cells, least=least, most=most, density=density)

    @cached_property
    def parts(self) -> tuple[FewCells, ...]:
        """The same cells in parts of about as many rows: a row more makes all cells of a part take longer."""
        doubled = np.ceil(np.log2(np.maximum(self.most, 1)))
        return tuple(replace(self, cells=self.cells & (doubled == size)) for size in np.unique(doubled[self.cells]))

    @cached_property
    def rows(self) -> FewRows:
        """Density given each size that one of these cells may have."""
        density, pairs = self.density, zip(self.least[self.cells], self.most[self.cells], strict=True)
        assert isinstance(density.family, WholeFamily) and isinstance(density.statistic, BoundedMoments)
        sizes = {size for least, most in pairs for size in range(least, most + 1)}
        return FewRows(
            family=density.family,
            statistic=density.statistic,
            kind=density.sizes.kind,
            scale=float(density.scales[-1]),
            sizes=tuple(sorted(sizes)),
        )

    @cached_property
    def log_weights(self) -> Array:
        """Log probabilities of these sizes: of other cells than these, any with a finite sum."""
        sizes = np.array(self.rows.sizes)
        possible = (self.least[:, None] <= sizes) & (sizes <= self.most[:, None])
        weights = np.zeros(possible.shape)
        if not self.density.sizes.public:
            assert self.density.release is not None
            shown = self.density.release[:, 0], float(self.density.scales[0])
            weights = self.density.sizes.log_masses(sizes, *shown)
        return np.where(self.cells[:, None], np.where(possible, weights, -np.inf), 0.0)

    def logp(self, value: TensorVariable, given: Sequence[TensorVariable]) -> TensorVariable:
        """Log density of every cell that has few rows; of other cells any finite number.

        Of private sizes, `value` has those of the release that the cells were found by.

        Parameters
        ----------
        value : (n_cells, 1 or 2) tensor
        given : tensors
            Parameters of the likelihood.
        """
        sums = self.rows.about_origin(value[:, -1], held(self.density.sizes.bound))
        return self.rows.logp(sums, held(self.log_weights), given)


def _counted(density: ReleaseDensity) -> bool:
    """Whether private sizes are whole numbers, as those of weighted rows are not, and shown well by public noise."""
    assert isinstance(density.statistic, BoundedMoments)
    if not (density.noise_aware and density.scales.all()):
        return False
    steps = (1.0, density.statistic.unit)
    centred = 2 * density.statistic.centre == density.statistic.low + density.statistic.high
    near = density.sizes.reach(float(density.scales[0])) < FARTHEST
    return near and centred and tuple(density.steps) == steps


def few_sums(density: ReleaseDensity, rng: np.random.Generator, given: Sequence[Array], rows: Array) -> Array:
    """Draw sums, (..., n_cells, 1), row by row; parameters and numbers of rows are (..., n_cells) arrays."""
    statistic, total = density.statistic, np.zeros(rows.shape)
    assert isinstance(statistic, BoundedMoments)
    for row in range(int(rows.max(initial=0))):
        drawn = density.family.draw(rng, *given)
        total += (rows > row) * (np.clip(drawn, statistic.low, statistic.high) - statistic.centre)
    return total[..., None]


__all__ = ["FARTHEST", "MOST_ROWS", "FewCells", "FewRows", "few_sums"]
