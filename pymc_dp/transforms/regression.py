"""The released sums of a regression as a random variable: their density given coefficients and covariates' moments.

Given moments of the predictors of the rows at hand (known, or unknown numbers of the model, see `covariates`), sums
of predictors differ from their release by noise alone, and sums with the response are normal by the central limit
theorem, with the mean and covariance of `responses`. For a normal response that nothing is clamped of, both are exact
for any predictors; else predictors are treated as normal within cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.families.gram import GramSums, Response
from pymc_dp.families.quadrature import normal_logp
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.covariates import Coordinates, CovariateModel, Moments
from pymc_dp.transforms.gram_plugin import GramLayout, plugin_logp, projected
from pymc_dp.transforms.regression_logp import NormalRegression, RowMoments, cores, regression_logp, row_moments
from pymc_dp.transforms.released_logp import held, spread_out
from pymc_dp.transforms.sum_noises import SUM_NOISES

SUPPORTED = 1e6
"""Scaled coefficients beyond have no density: they would overflow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionDensity:
    """Distribution of one released vector of a regression; holds public numbers only.

    Attributes
    ----------
    statistic : GramSums
    response : Response
    sizes : (n_cells,) array
        Public sizes; else, one number: the public number of rows, or with `at_most` a bound on it.
    scale : float
        Scale of the noise of every sum, in units of sums; 0 without noise.
    noise : {"laplace", "gaussian"}
    noise_aware : bool
        Else the plug-in form: a projected release is treated as exact sums.
    at_most : bool
    gram : (n_cells, 1 + d, 1 + d) array, optional
        Known sums of products of (1, t), where predictors are public.
    reach : float
        Linear predictors up to which the plug-in form approximates a likelihood that is not normal.
    """

    statistic: GramSums
    response: Response
    sizes: Array
    scale: float
    noise: str
    noise_aware: bool = True
    at_most: bool = False
    gram: Array | None = None
    reach: float = 4.0

    @cached_property
    def layout(self) -> GramLayout:
        """Places of sums."""
        return GramLayout(statistic=self.statistic)

    @cached_property
    def covariates(self) -> CovariateModel | None:
        """Prior of moments of private predictors, where there are any."""
        if self.gram is not None or not self.noise_aware:
            return None
        return CovariateModel(statistic=self.statistic, sizes=np.atleast_1d(self.sizes), at_most=self.at_most)

    @property
    def mixed(self) -> tuple[int, int] | None:
        """Shape of the unknown variances of Laplace noise on sums with the response, where there are any."""
        free = self.noise_aware and self.noise == "laplace" and self.scale > 0
        return self.layout.responses.shape if free else None

    @property
    def latent_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of unknown numbers beside the coefficients, in the order of `latents`."""
        found = {} if self.covariates is None else dict(self.covariates.shapes)
        if self.mixed:
            found["noise_variance"] = self.mixed
        return found

    @property
    def beside_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of all that `latents` returns: unknown numbers, then coordinates of those of predictors."""
        if self.covariates is None:
            return self.latent_shapes
        (count,) = self.covariates.shapes["covariates"]
        return {**self.latent_shapes, "centre": (count,), "root": (count, count)}

    @cached_property
    def known(self) -> Moments | None:
        """Moments of public predictors."""
        return None if self.gram is None else Moments.of_gram(self.gram)

    @cached_property
    def operation(self) -> NormalRegression | None:
        """The density as one operation, where there is one."""
        return regression_logp(self)

    @property
    def signature(self) -> str:
        """Gufunc signature: intercepts, slopes, dispersion, scales and unknown numbers, to the released row."""
        slopes = "(c,d)" if self.statistic.apart else "(d)"
        letters = iter("abefghij")
        beside = [f"({','.join(next(letters) for _ in shape)})" for shape in self.latent_shapes.values()]
        if self.covariates is not None:
            beside += ["(p)", "(p,p)"]
        return f"{','.join(['(c)', slopes, '()', '(k)', *beside])}->(k)"

    def coordinates(self, value: Array) -> Coordinates | None:
        """Coordinates of the unknown moments of private predictors, for `latents`; from a (1, count) release."""
        if self.covariates is None:
            return None
        sd = NOISE_KINDS[self.noise].deviation(self.scale)
        return self.covariates.coordinates(value[0][self.layout.predictors], sd)

    def latents(self, name: str, coordinates: Any = None) -> list[TensorVariable]:
        """Add the unknown numbers to the model of the context, as free variables called ``<name>_...``.

        Returns
        -------
        list of tensors
            They, and after them the coordinates of the unknown moments of private predictors.
        """
        found = {} if self.covariates is None else self.covariates.latents(name, coordinates)
        if self.mixed:
            found["noise_variance"] = pm.Exponential(f"{name}_noise_variance", 1.0, shape=self.mixed)
        return [*found.values(), *(() if coordinates is None else map(held, coordinates))]

    @property
    def ndims(self) -> tuple[int, ...]:
        """Numbers of axes of the parameters of `logp`."""
        return (1, 1 + self.statistic.apart, 0, 1, *map(len, self.beside_shapes.values()))

    def logp(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Log density of the released vector, a (1, count) tensor: (1,) tensor.

        Parameters
        ----------
        value : (1, count) tensor
        *parameters : tensors
            Intercepts, (n_cells,); slopes, (d,), or (n_cells, d) where they are `apart`; standard deviation of a normal
            response, (), not used for others; scale of the noise of every sum, (count,); and what `latents` returns.
        """
        way = self.graph if self.operation is None else self.operation.of
        return way(value, *parameters)

    def graph(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Return what `logp` does, by small operations."""
        a, w, sd, scale, *beside = cores(parameters, self.ndims)
        valid = self._supported(a, w, sd)
        # Outside of the support valid numbers stand in, so that no gradient is NaN.
        a, w, sd = pt.switch(valid, a, 0.0), pt.switch(valid, w, 0.0), pt.switch(valid, sd, 1.0)
        a, w, sd = self.statistic.scaled(a, w, sd, normal=self.response.likelihood == "normal")
        if not self.noise_aware:
            n = held(self.sizes) if self.statistic.sizes_known else None
            found = plugin_logp(self.layout, self.response, value[0], n, a, w, sd, self.reach, self.gram)
        else:
            found = self._aware_logp(value[0], a, w, sd, scale, dict(zip(self.beside_shapes, beside, strict=True)))
        return pt.switch(valid, found, -np.inf)[None]

    def project(self, value: Array) -> Array:
        """Move a release to the nearest sums that exact data could have given; for the plug-in form only."""
        sizes = self.sizes if self.statistic.sizes_known else None
        return projected(self.layout, value[0], sizes, self.scale, self.gram)[None]

    def random(self, *parameters: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw a release from the model: sums given the parameters, then noise. Never a release of data."""
        if not self.noise_aware:
            raise NotImplementedError("Draws of a release need its noise-aware density.")
        batch, given = spread_out(parameters, self.ndims, size)
        drawn = np.empty((*batch, self.statistic.count))
        for place in np.ndindex(*batch):
            drawn[place] = self._draw(rng, [np.asarray(item[place], dtype=float) for item in given])
        return drawn

    # --- internals ----------------------------------------------------------------------------------------------------

    def _supported(self, a: TensorVariable, w: TensorVariable, sd: TensorVariable) -> TensorVariable:
        found = pt.all(pt.abs(a) < SUPPORTED) & pt.all(pt.abs(w) < SUPPORTED)
        return found & (sd > 0) & (sd < SUPPORTED) if self.response.likelihood == "normal" else found

    def _moments(self, latents: dict[str, TensorVariable]) -> Moments:
        if self.covariates is not None:
            return self.covariates.moments(latents)
        assert self.known is not None
        return Moments(**{key: held(item) for key, item in vars(self.known).items()})

    def _aware_logp(
        self,
        value: TensorVariable,
        a: TensorVariable,
        w: TensorVariable,
        sd: TensorVariable,
        scale: TensorVariable,
        latents: dict[str, TensorVariable],
    ) -> TensorVariable:
        if self.covariates is not None:
            numbers = latents["centre"] + (latents["root"] * latents["covariates"]).sum(axis=-1)
            latents = {**latents, "covariates": numbers}
        moments = self._moments(latents)
        mean, covariance = self._response_sums(moments, a, w, sd)
        places = self.layout.responses
        variances = scale[places] ** 2
        if self.mixed:
            variances = 2 * variances * latents["noise_variance"]
        distance = value[places] - mean
        if len(places) == 1:  # one factor compiles sooner than a stack of one
            distance, covariance, variances = distance[0], covariance[0], variances[0]
        found = normal_logp(distance, covariance, variances).sum()
        alone = self.layout.predictors
        if self.covariates is not None:
            away = value[alone] - self.covariates.expected(moments)
            found += SUM_NOISES[self.noise].log_density(away, scale[alone]).sum()
        return found

    def _response_sums(
        self, moments: Moments, a: TensorVariable, w: TensorVariable, sd: TensorVariable
    ) -> tuple[TensorVariable, TensorVariable]:
        """Mean (n_blocks, k) and covariance (n_blocks, k, k) of the sums with the response."""
        means, n = moments.means, moments.sizes
        slopes = w if self.statistic.apart else w[None]
        along = (moments.within * slopes[:, None, :]).sum(axis=-1) + pt.zeros_like(means)
        spread = (along * slopes).sum(axis=-1)
        row = row_moments(self.response, self.statistic.response, a + (means * slopes).sum(axis=-1), spread, sd)
        mean = pt.concatenate(
            [row.mean[:, None], means * row.mean[:, None] + along * row.slope[:, None], row.square[:, None]], axis=1
        )
        covariance = _row_covariance(moments, along, spread, row)
        return self._blocks(n[:, None] * mean, n[:, None, None] * covariance)

    def _blocks(self, mean: TensorVariable, covariance: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
        """Add up over cells what is released of all together, and leave out what is not released."""
        last = self.statistic.width + 1 + self.statistic.square
        first = 0 if self.statistic.constant else 1
        if self.statistic.apart:
            return mean[:, first:last], covariance[:, first:last, first:last]
        second, spread = mean[:, 1:last].sum(axis=0), covariance[:, 1:last, 1:last].sum(axis=0)
        if first:
            return second[None], spread[None]
        across = covariance[:, 0, 1:last]
        upper = pt.concatenate([pt.diag(covariance[:, 0, 0]), across], axis=1)
        lower = pt.concatenate([across.T, spread], axis=1)
        return pt.concatenate([mean[:, 0], second])[None], pt.concatenate([upper, lower], axis=0)[None]

    def _draw(self, rng: np.random.Generator, given: list[Array]) -> Array:
        a, w, sd, scale, *beside = given
        named = dict(zip(self.beside_shapes, beside, strict=True))
        if self.covariates is not None:
            named["covariates"] = named["centre"] + named["root"] @ named["covariates"]
        latents = [named[key] for key in self.latent_shapes]
        sums, mean, covariance = self._plain(a, w, sd, *latents)
        drawn = np.empty(self.statistic.count)
        spread = np.ones(self.statistic.count)
        drawn[self.layout.predictors] = sums
        for block, places in enumerate(self.layout.responses):
            root = np.linalg.cholesky(covariance[block] + 1e-10 * np.eye(len(places)))
            drawn[places] = mean[block] + root @ rng.normal(size=len(places))
        if self.noise == "gaussian":
            return drawn + rng.normal(size=drawn.shape) * scale
        spread[self.layout.predictors] = rng.exponential(size=len(self.layout.predictors))
        if self.mixed:
            spread[self.layout.responses] = latents[-1]
        return drawn + rng.normal(size=drawn.shape) * scale * np.sqrt(2 * spread)

    @cached_property
    def _plain(self) -> Any:
        """Sums of predictors, and mean and covariance of those with the response, by NumPy."""
        a, w, sd = pt.vector("a"), pt.matrix("w") if self.statistic.apart else pt.vector("w"), pt.scalar("sd")
        shapes = self.latent_shapes
        latents = {key: pt.tensor(key, shape=shape, dtype="float64") for key, shape in shapes.items()}
        moments = self._moments(latents)
        sums = pt.zeros(0) if self.covariates is None else self.covariates.expected(moments)
        outputs = [
            sums,
            *self._response_sums(
                moments, *self.statistic.scaled(a, w, sd, normal=self.response.likelihood == "normal")
            ),
        ]
        return plain_function([a, w, sd, *latents.values()], outputs)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_plain", "operation")}


def _row_covariance(moments: Moments, along: TensorVariable, spread: TensorVariable, row: RowMoments) -> TensorVariable:
    """Covariance of (1, t) r and r2 over rows of a cell: (n_cells, d + 2, d + 2) tensor.

    With t = mean + b z + (what does not depend on z), b = W w / sd(η).
    """
    means = moments.means
    b = along / pt.sqrt(spread + 1e-8)[:, None]
    variance, tilt = row.variance[:, None, None], row.tilt[:, None, None]

    def outer(x: TensorVariable, y: TensorVariable) -> TensorVariable:
        return x[:, :, None] * y[:, None, :]

    middle = variance * (moments.within + outer(means, means)) + tilt * (outer(means, b) + outer(b, means))
    middle += row.stretch[:, None, None] * outer(b, b)
    one = row.variance[:, None] * means + row.tilt[:, None] * b
    two = row.joint[:, None] * means + row.joint_slope[:, None] * along
    top = pt.concatenate([row.variance[:, None], one, row.joint[:, None]], axis=1)[:, None, :]
    rest = pt.concatenate([one[:, :, None], middle, two[:, :, None]], axis=2)
    bottom = pt.concatenate([row.joint[:, None], two, row.square_variance[:, None]], axis=1)[:, None, :]
    return pt.concatenate([top, rest, bottom], axis=1)


__all__ = ["RegressionDensity"]
