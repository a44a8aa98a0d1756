"""The release as a random variable: its density given the parameters, and draws from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families import CountFamily, Family, MomentFamily, VectorFamily
from pymc_dp.families.family import MOST_RATE, WholeFamily
from pymc_dp.families.features import BoundedFeatures, RowStatistic, SumStatistic
from pymc_dp.families.normal import Normal
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts, LevelCounts, projected_to_simplex
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.noise import NOISES
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.cell_tables import CellTables
from pymc_dp.transforms.exposed_counts import exposed_logp
from pymc_dp.transforms.few_rows import FewCells, few_sums
from pymc_dp.transforms.level_densities import PrivateLevels, PublicLevels
from pymc_dp.transforms.likelihood import within_support
from pymc_dp.transforms.noise_aware import counts_logp, moments_logp
from pymc_dp.transforms.released_logp import NormalCells, held, spread_out
from pymc_dp.transforms.tabulated import holds, tables_by_rate, tabulated_logp
from pymc_dp.transforms.vector_sums import mixed, vector_sums_logp


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseDensity:
    """Distribution of one released table given the likelihood's parameters per cell; holds public numbers only.

    Attributes
    ----------
    family : Family
    statistic : RowStatistic
    sizes : Sizes
    scales, steps : (n_columns,) arrays
        Scale of the noise and grid step of each released column, in units of the data.
    noise_aware : bool
    boxed : bool
        Whether projected counts are cut off one by one.
    release : (n_cells, n_columns) array, optional
        Released table: its density is tabulated, where it can be.
    """

    family: Family
    statistic: RowStatistic
    sizes: Sizes
    scales: Array
    steps: Array
    noise_aware: bool
    boxed: bool = False
    release: Array | None = None

    @classmethod
    def of(
        cls, table: TablePlan, *, noise_aware: bool, seen: Array | None = None, noise: float = 0.0
    ) -> ReleaseDensity:
        """Take from a plan what is public; `seen` and `noise` as in `Sizes`."""
        steps = np.zeros(len(table.labels))
        family, statistic = table.by_cells
        for block in table.blocks:
            steps[list(block.columns)] = block.steps
        cells = table.cells
        # Counts are counted by their total, of which every row adds the same.
        per_row = statistic.per_row if isinstance(statistic, LevelCounts) else 1
        sizes = Sizes(
            public=cells.sizes is not None,
            bound=np.asarray(cells.groups) * per_row,
            n_private=cells.n_private,
            seen=None if seen is None else seen * per_row,
            noise=noise * per_row,
            kind=table.kind,
        )
        return cls(
            family=family,
            statistic=statistic,
            sizes=sizes,
            scales=table.scales,
            steps=steps,
            noise_aware=noise_aware,
            boxed=table.boxed,
        )

    def of_release(self, release: Array, *, at_most: bool) -> ReleaseDensity:
        """Return the density at this release, by tables where it can be.

        Parameters
        ----------
        release : (n_cells, n_columns) array
        at_most : bool
            Whether bounds are bounds on the number of rows, and not the number itself.
        """
        found, sizes = replace(self, release=release), self.sizes
        if sizes.public or sizes.seen is not None or not (self.noise_aware and self.scales.any()):
            return found
        shown = release if isinstance(self.statistic, LevelCounts) else release[:, :1]
        at_most = at_most or isinstance(self.statistic, ExposedCounts)
        return replace(found, sizes=sizes.shown_by(shown, float(self.scales[0]), at_most=at_most))

    @property
    def signature(self) -> str:
        """Gufunc signature: parameters of one cell, the row of scales, and variances of noise, to the released row."""
        return f"{','.join([*self.family.signature(), '(d)', *(['(m)'] if self.latent else [])])}->(d)"

    @property
    def both(self) -> bool:
        """Whether both counts of two levels were released though the size is public."""
        return self.sizes.public and len(self.scales) == 2

    @cached_property
    def tables(self) -> dict[Any, CellTables | None]:
        """Tables of the release, by what they are functions of."""
        return {}

    @property
    def latent(self) -> int:
        """Number of sums the variances of whose noise are free variables: all or none."""
        if not (self.noise_aware and self.scales.any()) or not isinstance(self.family, MomentFamily | VectorFamily):
            return 0
        count = len(self.statistic.labels)
        return count if mixed(self.sizes.kind, count, len(self.sizes.bound)) else 0

    def logp(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Log density of the released table, one entry per cell: (n_cells,) tensor.

        Parameters are those of the likelihood, then, where there are any, scales and variances of noise: a pair of sums
        has a density without these as well, in which they are integrated out.
        """
        given, variances = self._apart(parameters)
        if self.operation is not None:
            mean, sd = given
            return self.operation.of(value, mean, sd, variances)
        found = tabulated_logp(self, value, given)
        return self._by_support(value, parameters, quick=True) if found is None else found

    @cached_property
    def operation(self) -> NormalCells | None:
        """The density as one operation, where there is one."""
        if not (self.noise_aware and self.scales.any() and isinstance(self.family, Normal)):
            return None
        assert isinstance(self.statistic, BoundedMoments)
        return NormalCells(self) if self.statistic.powers == (1, 2) else None

    @cached_property
    def few(self) -> FewCells:
        """Cells of which all values that a sum may have are added up."""
        return FewCells.of(self)

    @cached_property
    def tables_by_rate(self) -> tuple[Array, ...]:
        """Tables of the counts of the release in cells of private size."""
        assert self.release is not None
        return tables_by_rate(self.release, float(self.scales[0]), self.sizes)

    def graph(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Return what `logp` does, by small operations."""
        return self._by_support(value, parameters, quick=False)

    def _apart(self, parameters: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
        """Parameters of the likelihood, and variances of noise where they are among them."""
        count = len(self.family.event_ndims)
        return tuple(parameters[:count]), parameters[count + 1] if self.latent and len(parameters) > count else None

    def _by_support(
        self, value: TensorVariable, parameters: Sequence[TensorVariable], *, quick: bool
    ) -> TensorVariable:
        given, variances = self._apart(parameters)
        valid, safe = within_support(self.family, given)
        return pt.switch(valid, self._supported_logp(value, safe, variances, quick=quick), -np.inf)

    def _supported_logp(
        self,
        value: TensorVariable,
        given: list[TensorVariable],
        variances: TensorVariable | None,
        *,
        quick: bool,
    ) -> TensorVariable:
        """Return the same of parameters that the likelihood has; where it is `quick` by an operation for counts."""
        if not self.noise_aware or (not self.scales.any() and not isinstance(self.statistic, LevelCounts)):
            return self._plugin_logp(value, given)
        if isinstance(self.statistic, ExposedCounts):
            return exposed_logp(value, given[0], self.scales, self.sizes)
        if isinstance(self.family, CountFamily):
            p = self.family.probabilities(given)
            if quick and p.type.shape[-1] == len(self.scales):  # of two levels of public size one count is released
                if self.sizes.public:
                    return PublicLevels(self).of(value, p)
                if self.release is not None and holds(value, self.release):
                    return PrivateLevels(self).of(value, p)
            return counts_logp(value, p, float(self.scales[0]), self.sizes, both=self.both)
        if isinstance(self.family, VectorFamily):
            return self._vector_logp(value, given, variances)
        assert isinstance(self.family, MomentFamily) and not isinstance(self.statistic, LevelCounts)
        few: Any = self.few.cells
        if not few.any():
            return self.of_moments(value, *self.family.moments(given, self.statistic), variances)
        exact, release = self.few.logp(value, given), self.release
        if not self.sizes.public and release is not None and not holds(value, release):
            few = pt.eq(value[:, 0], held(release[:, 0])) & few  # other sizes may be far from those looked at
        elif few.all():
            return exact
        return pt.switch(few, exact, self.of_moments(value, *self.family.moments(given, self.statistic), variances))

    def of_moments(
        self, value: TensorVariable, mean: list[Any], covariance: list[list[Any]], variances: Any = None
    ) -> TensorVariable:
        """Return the same given the moments of one row."""
        units, scales = self._units, self.scales / self._units
        return moments_logp(value / units, self._centred(mean), covariance, scales, self.sizes, variances)

    def moments(self, *parameters: Array) -> tuple[Array, Array]:
        """Moments of one row at many parameters: (n_sums, n) means and (n_sums, n_sums, n) covariances."""
        means, covariances = self._moment_function(*parameters)
        return means, covariances

    def _vector_logp(
        self, value: TensorVariable, given: list[TensorVariable], variances: TensorVariable | None
    ) -> TensorVariable:
        assert isinstance(self.family, VectorFamily) and isinstance(self.statistic, BoundedFeatures | StatedSums)
        mean, covariance = self.family.moments(given, self.statistic)
        units, scales = self._units, self.scales / self._units
        return vector_sums_logp(value / units, mean - self._offsets, covariance, scales, self.sizes, variances)

    def project(self, value: Array) -> Array:
        """Move a release to the nearest table that exact data could have given; for the plug-in form only."""
        value = value.copy()
        if isinstance(self.statistic, LevelCounts):
            if value.shape[1] == 1 or self.boxed:
                return np.clip(value, 0, self.sizes.bound[:, None])
            if not self.sizes.public:
                return np.maximum(value, 0)
            return np.array(
                [projected_to_simplex(row, float(n)) for row, n in zip(value, self.sizes.bound, strict=True)]
            )
        first = 0 if self.sizes.public else 1
        if first:
            value[:, 0] = np.maximum(value[:, 0], 0)
        n = self.sizes.bound if self.sizes.public else value[:, 0]
        value[:, first:] = self.statistic.projected(value[:, first:], n, self.scales[first:])
        return value

    def random(self, *parameters: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw releases from the model: exact sums given the parameters, then noise. Never a release of data."""
        given, free = self._apart(parameters)
        cells = np.zeros(len(self.sizes.bound))
        batch, (_, *spread) = spread_out([cells, *given], (0, *self.family.event_ndims), size)
        rows = self._draw_sizes(rng, batch)
        if isinstance(self.statistic, LevelCounts):
            sums = self._draw_counts(rng, spread, rows)
        elif isinstance(self.statistic, ExposedCounts):
            counts = rng.poisson(np.minimum(np.maximum(spread[0], 0.0) * rows, MOST_RATE)).astype(float)
            sums = np.stack([counts] if self.sizes.public else [rows, counts], axis=-1)
        else:
            sums = self._draw_moments(rng, spread, rows)
        noise = np.zeros(sums.shape)
        known = len(self.scales)
        if free is not None:
            known -= self.latent
            variances = np.broadcast_to(free, (*sums.shape[:-1], self.latent))
            noise[..., known:] = rng.normal(size=variances.shape) * np.sqrt(2 * variances) * self.scales[known:]
        for column, (scale, step) in enumerate(zip(self.scales[:known], self.steps[:known], strict=True)):
            if scale > 0:
                noise[..., column] = NOISES[self.sizes.kind].simulated(rng, scale / step, sums.shape[:-1]) * step
        return sums + noise

    # --- internals ----------------------------------------------------------------------------------------------------

    def _plugin_logp(self, value: TensorVariable, given: list[TensorVariable]) -> TensorVariable:
        statistic, bound = self.statistic, held(self.sizes.bound)
        if isinstance(statistic, LevelCounts):
            both = len(self.scales) >= statistic.n_levels
            sums = value if both else pt.stack([bound - value[:, 0], value[:, 0]], axis=-1)
            return self.family.plugin_logp(given, statistic, sums, sums.sum(axis=-1))
        sizes = bound if self.sizes.public else value[:, 0]
        sums = value if self.sizes.public else value[:, 1:]
        return self.family.plugin_logp(given, statistic, sums + sizes[:, None] * np.array(statistic.shifts), sizes)

    @property
    def _units(self) -> Array:
        assert not isinstance(self.statistic, LevelCounts)
        return np.array([*([] if self.sizes.public else [1.0]), *self.statistic.scales])

    @property
    def _offsets(self) -> Array:
        """What is subtracted from each statistic of a row, in its units."""
        assert not isinstance(self.statistic, LevelCounts)
        return np.array(self.statistic.shifts) / np.array(self.statistic.scales)

    def _centred(self, mean: list[Any]) -> list[Any]:
        return [item - offset for item, offset in zip(mean, self._offsets, strict=True)]

    def _draw_sizes(self, rng: np.random.Generator, batch: tuple[int, ...]) -> Array:
        bound = np.broadcast_to(self.sizes.bound, batch)
        if self.sizes.public:
            return bound
        if self.sizes.seen is not None:
            noise = NOISES[self.sizes.kind].simulated(rng, self.sizes.noise, batch)
            seen = np.clip(self.sizes.seen + noise, 0, bound)
            return seen if isinstance(self.statistic, ExposedCounts) else np.rint(seen).astype(np.int64)
        part = rng.beta(1, max(self.sizes.n_private, 2) - 1, size=batch)
        if isinstance(self.statistic, LevelCounts):
            per_row = self.statistic.per_row
            return rng.poisson(part * bound / per_row) * per_row
        if isinstance(self.statistic, ExposedCounts):
            return np.asarray(part * bound)
        return np.rint(part * bound).astype(np.int64)

    def _draw_counts(self, rng: np.random.Generator, given: list[Array], rows: Array) -> Array:
        assert isinstance(self.statistic, LevelCounts)
        p = np.clip(given[-1], 0, 1)
        if self.family.event_ndims[-1] == 0:
            p = np.stack([1 - p, p], axis=-1)
        counts = rng.multinomial(rows, p / p.sum(axis=-1, keepdims=True)).astype(float)
        return counts[..., 1:] if len(self.scales) < self.statistic.n_levels else counts

    def _draw_moments(self, rng: np.random.Generator, given: list[Array], rows: Array) -> Array:
        means, covariances = self.moments(*(item.reshape(-1, *item.shape[rows.ndim :]) for item in given))
        count = means.shape[0]
        n = rows.reshape(-1)
        root = np.linalg.cholesky(covariances.transpose(2, 0, 1) + 1e-12 * np.eye(count))
        sums = n * self._centred(list(means)) + np.sqrt(n) * np.einsum(
            "cij,cj->ic", root, rng.normal(size=(len(n), count))
        )
        units = self._units if self.sizes.public else self._units[1:]
        result = (np.asarray(sums).T * units).reshape(*rows.shape, count)
        if isinstance(self.family, WholeFamily) and self.family.draws_rows:
            few = self.family.few_values(self.statistic, rows)
            result = np.where(few[..., None], few_sums(self, rng, given, np.where(few, rows, 0)), result)
        return result if self.sizes.public else np.concatenate([rows[..., None].astype(float), result], axis=-1)

    @cached_property
    def _moment_function(self) -> Any:
        assert isinstance(self.family, MomentFamily | VectorFamily) and not isinstance(self.statistic, LevelCounts)
        return _moments(self.family, self.statistic)

    def __getstate__(self) -> dict[str, Any]:
        made = ("_moment_function", "few", "operation", "tables", "tables_by_rate")
        return {name: value for name, value in self.__dict__.items() if name not in made}


@cache
def _moments(family: MomentFamily | VectorFamily, statistic: SumStatistic) -> Any:
    """Compile the moments of a row as a function of the parameters: (J, n) means and (J, J, n) covariances."""
    if isinstance(family, VectorFamily):
        assert isinstance(statistic, BoundedFeatures | StatedSums)
        shapes = enumerate(family.shapes(statistic))
        given = [pt.tensor(f"parameter_{i}", shape=(None, *shape), dtype="float64") for i, shape in shapes]
        means, covariances = family.moments(given, statistic)
        return plain_function(given, [means.T, covariances.transpose(1, 2, 0)])
    inputs = [pt.vector(f"parameter_{i}") for i in range(len(family.event_ndims))]
    mean, covariance = family.moments(inputs, statistic)
    outputs = [pt.stack(pt.broadcast_arrays(*mean)), pt.stack([pt.stack(row) for row in covariance])]
    return plain_function(inputs, outputs)


__all__ = ["ReleaseDensity"]
