"""The density of a released regression as one operation, and that of the unknown moments of its predictors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.polynomial import Response
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.released_logp import ReleasedLogp
from pymc_dp.transforms.responses import FAR

if TYPE_CHECKING:
    from pymc_dp.transforms.regression import RegressionDensity

KERNELS = "pymc_dp.transforms.regression_kernels"
LINKS: tuple[Callable[[Array], Array], ...] = (
    lambda eta: 1 / (1 + np.exp(-eta)),
    np.exp,
    lambda eta: np.array([0.5 * erfc(-x / sqrt(2)) for x in eta]),
    lambda eta: -np.expm1(-np.exp(eta)),
)
"""Links that kernels know, in the order of their numbers there."""


class NormalRegression(ReleasedLogp):
    """Log density of a released regression with a normal response.

    Inputs are those of its kernel: released sums and scales, what they depend on, then what is known.
    """

    kernel = f"{KERNELS}:normal_regression"
    slopes = (2, 3, 4, 5, 6, 7)

    @cached_property
    @override
    def structure(self) -> Hashable:
        density, statistic = self.density, self.density.statistic
        sums = form_of(density), density.gram is None, statistic.sizes_known
        return density.response.likelihood, *sums, *density.latent_shapes.items()

    def of(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Return the log density of a release, as ``RegressionDensity.logp`` does."""
        a, w, sd, scales, *latents = cores(parameters, self.density.ndims)
        named = dict(zip(self.density.beside_shapes, latents, strict=True))
        beside = [named.get(key, none) for key, none in _lacking().items()]
        return self.log_density(value, scales, a, w, sd, *beside, *self._known)[None]

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        value, scales, a, w, sd, *given = inputs
        named = dict(zip(_lacking(), given[:5], strict=True))
        beside = [named[key] for key in self.density.beside_shapes]
        found: TensorVariable = self.density.graph(value, a, w, sd, scales, *beside)[0]
        return found

    @property
    def _known(self) -> list[TensorVariable]:
        density, layout = self.density, self.density.layout
        statistic, d = density.statistic, density.statistic.width
        moments = density.known
        sizes = density.sizes if moments is None else moments.sizes
        means = np.zeros((len(statistic.cells), d)) if moments is None else moments.means
        within = np.zeros((1, d, d)) if moments is None else moments.within
        (centre,), (half,) = statistic.response.centres, statistic.response.halves
        scaling = (centre, half) if density.response.likelihood == "normal" else (0.0, 1.0)
        units = np.array([*statistic.centres, *statistic.halves, *scaling])
        arrays = (np.atleast_1d(sizes), means, within, layout.predictors, layout.responses, units, form_of(density))
        return [held(item) for item in arrays]


class LinkRegression(NormalRegression):
    """The same with a Bernoulli or Poisson response, of a link that kernels know."""

    kernel = f"{KERNELS}:link_regression"

    @property
    @override
    def _known(self) -> list[TensorVariable]:
        response, source = self.density.response, self.density.statistic.response
        number = link_number(response)
        assert number is not None
        described = [float(response.likelihood == "poisson"), number, source.centres[0], source.halves[0]]
        return [*super()._known, held(np.array(described))]


class CovariatePrior(ReleasedLogp):
    """Log density of the unknown moments of predictors in given coordinates, up to a constant.

    Inputs are the numbers in their coordinates; centre and root of these; kind, scale and Beta shape of every number.
    """

    kernel = "pymc_dp.transforms.covariate_kernels:covariate_prior"
    slopes = (0,)

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        from pymc_dp.transforms.covariates import SPREAD

        z, centre, root, kinds, scales, shapes = inputs
        x = centre + (root * z).sum(axis=-1)
        mean, deviation = -0.5 * (x / scales) ** 2, -0.5 * ((x - pt.log(scales)) / SPREAD) ** 2
        partial = -shapes * (pt.softplus(x) + pt.softplus(-x))
        return pt.switch(pt.eq(kinds, 0), mean, pt.switch(pt.eq(kinds, 1), deviation, partial)).sum()


def regression_logp(density: RegressionDensity) -> NormalRegression | None:
    """Return the operation of a density, where a kernel knows it: not in the plug-in form, or with other links."""
    if not density.noise_aware:
        return None
    if density.response.likelihood == "normal":
        return NormalRegression(density)
    return LinkRegression(density) if link_number(density.response) is not None else None


def link_number(response: Response) -> float | None:
    """Return which of `LINKS` the mean of a response is, by its values; None if it is another function."""
    eta = np.array([0.0, 0.1, -0.3, 1.7, -2.2, 5.0, -7.0, 30.0, -30.0, FAR, -FAR])
    argument = pt.vector("eta")
    with np.errstate(all="ignore"):
        found = plain_function([argument], response.mean(argument))(eta)
        same = [np.allclose(found, link(eta), rtol=1e-12, atol=1e-14) for link in LINKS]
    return float(same.index(True)) if any(same) else None


def _lacking() -> dict[str, TensorVariable]:
    """What stands for unknown numbers, and for their coordinates, where there are none: in the order of inputs."""
    none, square = held(np.zeros(0)), held(np.zeros((0, 0)))
    return {"shares": none, "covariates": none, "noise_variance": square, "centre": none, "root": square}


def cores(items: Sequence[Any], ndims: Sequence[int]) -> list[TensorVariable]:
    """Return items without leading axes of length 1, so that they have as many axes as that."""
    return [_core(pt.as_tensor(item), ndim) for item, ndim in zip(items, ndims, strict=True)]


def _core(tensor: TensorVariable, ndim: int) -> TensorVariable:
    above = tuple(range(tensor.ndim - ndim))
    if all(tensor.type.broadcastable[axis] for axis in above):
        return pt.squeeze(tensor, axis=above) if above else tensor
    return tensor[(0,) * len(above)]


def form_of(density: RegressionDensity) -> tuple[float, ...]:
    """What sums there are, and of which noise, as kernels take it."""
    statistic = density.statistic
    found = (statistic.apart, statistic.constant, statistic.square, density.noise == "laplace")
    return tuple(float(item) for item in found)


__all__ = ["CovariatePrior", "LinkRegression", "NormalRegression", "cores", "link_number", "regression_logp"]
