"""What draws of one posterior sample say about the parameters of a table, given how they were made.

A draw θ̃ has the density π(θ̃) exp(S(θ̃) / T) / Z, where S is the log-likelihood of the table. Given the parameters θ of
the table, S is a sum over its rows, and so nearly a Gaussian process (central limit theorem): its mean is n E_θ l(θ̃),
and of what varies only that part is kept that moves the mode, which is linear in the total score:

    S(θ̃) = n E_θ[l(θ̃)] + √n Cov_θ(l(θ̃), s) J^{-1/2}ᵀ z,  z ~ N(0, 1),  J = Cov_θ(s).

For an exponential family whose statistics are those of the rows this is exact but for z, whose distribution is discrete
in truth. Expectations are over simulated rows, weighted to θ; Z is a sum over public points. Where the likelihood
outweighs the prior, the mean of k draws is N(θ, (1 + T / k) (n J)^{-1}) (Wang et al., 2015, proposition 9).

The distribution of released draws given the parameters of the table, as graphs: for a private model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.tensor import TensorVariable
from pytensor.tensor.linalg import cholesky, solve_triangular
from scipy import special
from scipy.stats import qmc

from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.from_draws.given import Coordinates, GivenDraws
from pymc_dp.from_draws.proposal import RIDGE, Proposal, PublicRows, normalised, prior_of
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.row_density import clamped, vectorized
from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.rows import draw_rows_at
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.transforms.prior_model import prior_model as prior_model_of
from pymc_dp.transforms.released_logp import held

ROWS = 2048
"""Simulated rows, of all sources together: their number decides how well curvature is known, whatever that of rows."""
SOURCES = 4
"""Parameters that rows are simulated at."""
POINTS = 512
LATENT = 64
"""Values of z at each of the points that are tried for θ; at each of them others."""
CHUNK = 2**21
"""Numbers held at once."""
LEAST_EFFECTIVE = 40.0
"""Points that an integral has to rest on."""
LOWEST = -1e6
"""Of a row's log-likelihood: floats may say that a row is impossible."""
SEED = 20150706


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicModel:
    """What of a model is needed here; none of its rows.

    Attributes
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
        The model without its rows.
    density : RowDensity
    coordinates : Coordinates
    """

    inspection: RowInspection
    prior_model: Model
    density: RowDensity
    coordinates: Coordinates

    @classmethod
    def of(cls, model: Model, domain: Domain, caller: str) -> Self:
        """Inspect a model.

        Raises
        ------
        UnsupportedModelError
            If its likelihood does not factorise over rows, a free variable is discrete, or its likelihood is clamped.
        """
        inspection = inspect(model, domain).rows
        inspection.require()
        if clamped(model):
            what = f"its likelihood is clamped, so that it is no density of rows that {caller} could simulate"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy="Sample it without dp.clamp.")])
        prior_model = prior_model_of(inspection)
        density = RowDensity(inspection, prior_model, priors_of(prior_model))
        return cls(
            inspection=inspection,
            prior_model=prior_model,
            density=density,
            coordinates=Coordinates(prior_model, density.priors),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Mechanism:
    """One posterior sample at a temperature, as a distribution of its draws given the parameters of the table.

    Attributes
    ----------
    model : PublicModel
    rows : PublicRows
    given : GivenDraws
    points : (n_points, d) array
        In terms of value variables; `flat` are the same on the scale of free variables.
    volumes : (n_points,) array
        Log of ``prior^{prior power} dθ`` at the points: a sum of ``exp(S / T + volumes)`` is Z.
    candidates : (n_points,) array
        Log of ``prior dθ``.
    own : (n_points, n_rows) array
        Log-likelihood of each row as drawn.
    table, released : (n_points, n_rows), (k, n_rows) arrays
        Log-likelihood of each row as held, less that at the centre, at the points and at the released draws.
    origin : (n_rows,) array
        What was subtracted.
    """

    model: PublicModel
    rows: PublicRows
    given: GivenDraws
    points: Array
    flat: Array
    volumes: Array
    candidates: Array
    own: Array
    table: Array
    released: Array
    origin: Array

    @classmethod
    def of(
        cls,
        model: PublicModel,
        given: GivenDraws,
        covariates: Mapping[str, Any],
        caller: str,
    ) -> Self:
        """Lay out rows and points around released draws; reads no private value."""
        rng = np.random.default_rng(SEED)
        coordinates, density = model.coordinates, model.density
        centre = coordinates.values(given.flat).mean(axis=0)

        def simulated(sources: Array) -> PublicRows:
            truths = [coordinates.named(one) for one in sources]
            count = ROWS // len(sources)
            drawn = draw_rows_at(model.inspection, truths, covariates, n_rows=count, rng=rng, caller=caller)
            return PublicRows.of(density, coordinates, drawn, sources, centre)

        middle = coordinates.own(centre[None])[0]
        first = simulated(middle)
        weights = first.weights(density, middle)
        # Both what the table would give without tempering, and draws of it, lie within so many times its variance.
        wide = (1 + 1 / given.count) / given.power + 1
        root = first.factor(weights)[1][0]
        prior = prior_of(model.prior_model, centre, rng)

        def log_target(points: Array) -> Array:
            flat, jacobian = coordinates.own(points)
            log_prior, each = density.each(flat, first.held)
            return np.nan_to_num(
                log_prior + jacobian + given.n_rows / wide * (_floored(each) @ weights[0]), nan=-np.inf, posinf=-np.inf
            )

        begun = Proposal.between(centre, given.n_rows / wide * root @ root.T, prior)
        proposal = begun.adapted(log_target, POINTS // 2, SEED)
        points, log_density = proposal.points(POINTS, SEED)
        target = log_target(points) - log_density
        _require_cover(normalised(target), len(centre), caller)
        flat, jacobian = coordinates.own(points)
        chosen = _spread(normalised(target), SOURCES - 1)
        rows = simulated(np.concatenate([middle, flat[chosen]]))
        log_prior, table = density.each(flat, rows.held)
        own = table if _same(rows) else density.each(flat, rows.drawn)[1]
        origin = _floored(density.each(middle, rows.held)[1][0])
        area = jacobian - log_density - np.log(POINTS)
        return cls(
            model=model,
            rows=rows,
            given=given,
            points=points,
            flat=flat,
            volumes=_weight(given.prior_power * log_prior + area),
            candidates=_weight(log_prior + area),
            own=own,
            table=_floored(table) - origin,
            released=_floored(density.each(given.flat, rows.held)[1]) - origin,
            origin=origin,
        )

    def scores(self, weights: Array) -> tuple[Array, Array]:
        """Return S / T for tables with weights (n, n_rows): its mean and its slope in z, at points, then draws.

        Returns
        -------
        (n, n_points + k), (n, n_points + k, d) arrays
        """
        means, roots = self.rows.factor(weights)
        both = np.concatenate([self.table, self.released])
        level = weights @ both.T
        slopes = np.stack(
            [
                (weights * (score - mean[:, None])) @ both.T
                for score, mean in zip(self.rows.scores.T, means.T, strict=True)
            ],
            axis=2,
        )
        slopes = np.linalg.solve(roots[:, None], slopes[..., None])[..., 0]
        n, power = self.given.n_rows, self.given.power
        return power * n * level, power * np.sqrt(n) * slopes

    def log_likelihood(self, weights: Array, latent: Array) -> Array:
        """Log density of the released draws given tables with (n, n_rows) weights and (n, m, d) values of z: (n, m)."""
        level, slopes = self.scores(weights)
        tempered = level[:, None] + np.einsum("npd,nmd->nmp", slopes, latent, optimize=True)
        count = len(self.points)
        normalizer = special.logsumexp(tempered[..., :count] + self.volumes, axis=2)
        found: Array = tempered[..., count:].sum(axis=2) - self.given.count * normalizer
        return found

    @cached_property
    def posterior(self) -> Array:
        """Weights of the points in the posterior of θ given the released draws: (n_points,) array."""
        count, size = self.points.shape
        even = qmc.Sobol(size, seed=SEED).random(count * LATENT).reshape(count, LATENT, size)
        latent = special.ndtri(np.clip(even, 1e-9, 1 - 1e-9))
        parts, step = [], max(1, CHUNK // (LATENT * count))
        for part in (slice(start, start + step) for start in range(0, count, step)):
            weights = normalised(self.own[part] + self.rows.base)
            parts.append(special.logsumexp(self.log_likelihood(weights, latent[part]), axis=1))
        return normalised(np.concatenate(parts) + self.candidates)


def _floored(each: Array) -> Array:
    return np.maximum(np.nan_to_num(each, nan=LOWEST, neginf=LOWEST), LOWEST)


def _weight(logs: Array) -> Array:
    return np.nan_to_num(logs, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)


def _same(rows: PublicRows) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(rows.drawn, rows.held, strict=True))


def _spread(weights: Array, count: int) -> Array:
    """Return places of points that follow their weights, evenly."""
    return np.minimum(np.searchsorted(np.cumsum(weights), (np.arange(count) + 0.5) / count), len(weights) - 1)


def _require_cover(weights: Array, dimension: int, caller: str) -> None:
    """Refuse where an integral would rest on too few points."""
    effective = 1 / (weights @ weights)
    if effective < LEAST_EFFECTIVE:
        what = f"{dimension} numbers of its free variables are more than {caller} can integrate over"
        remedy = "Use a release of sums, dp.sample(epsilon=...), or a model with fewer parameters."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])


NEGLIGIBLE = 1e-11
"""Singular values, as a share of the largest, that are left out of the table of log-likelihoods."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawsDensity:
    """Density and random draws of what one posterior sample released.

    Attributes
    ----------
    mechanism : Mechanism
    left, right : (n_points, r), (r, n_rows) arrays
        Their product is the mechanism's table: log-likelihoods are smooth, so that r is small.
    """

    mechanism: Mechanism
    left: Array
    right: Array

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Find the directions in which log-likelihoods vary over points."""
        left, size, right = np.linalg.svd(mechanism.table, full_matrices=False)
        kept = max(1, int((size > NEGLIGIBLE * size[0]).sum()))
        return cls(mechanism=mechanism, left=left[:, :kept] * size[:kept], right=right[:kept])

    @property
    def signature(self) -> str:
        """Gufunc signature: all free variables, the score of the table, and temperatures, to the released draws."""
        return "(p),(z),(k,p)->(k,p)"

    def logp(
        self, value: TensorVariable, flat: TensorVariable, latent: TensorVariable, temperatures: TensorVariable
    ) -> TensorVariable:
        """Log density of the released draws, up to a constant: () tensor.

        Parameters
        ----------
        value : (k, n_scalars) tensor
            Released draws, on the scale of the free variables.
        flat : (n_scalars,) tensor
            The free variables.
        latent : (d,) tensor
            Standard normal: the score of the table, in units of its standard deviation.
        temperatures : (k, n_scalars) tensor
            They tell PyMC the shape of the release; their value is that of the mechanism.
        """
        found, given = self.mechanism, self.mechanism.given
        scores, (drawn, rows) = held(found.rows.scores), self._rows
        logs = found.model.density.each_row(flat, drawn) + held(found.rows.base)
        weights = pt.exp(logs - pt.logsumexp(logs))
        centred = scores - weights @ scores
        information = centred.T @ (centred * weights[:, None])
        root = cholesky(information + RIDGE * pt.max(pt.abs(information)) * pt.eye(len(found.points[0])))
        turned = solve_triangular(root, (centred * weights[:, None]).T, lower=True).T @ latent
        shares = given.power * (given.n_rows * weights + np.sqrt(given.n_rows) * turned)
        at_points = held(self.left) @ (held(self.right) @ shares)
        one: Any = pt.vector("one", shape=(len(given.flat[0]),), dtype="float64")
        each = vectorized(found.model.density.each_row(one, rows), {one: value}) - held(found.origin)
        normalizer = pt.logsumexp(at_points + held(found.volumes))
        return (each @ shares).sum() - given.count * normalizer

    def random(self, *parameters: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw what might have been released: points of the grid. Never a release of data."""
        found, count = self.mechanism, self.mechanism.given.count
        batch = np.broadcast_shapes(
            () if size is None else tuple(np.atleast_1d(size)), *(np.shape(item)[:-1] for item in parameters[:2])
        )
        flat, latent = (np.broadcast_to(item, (*batch, np.shape(item)[-1])) for item in parameters[:2])
        drawn = np.empty((*batch, count, flat.shape[-1]))
        for place in np.ndindex(*batch):
            level, slopes = found.scores(found.rows.weights(found.model.density, flat[place][None]))
            logs = (level[0] + slopes[0] @ latent[place])[: len(found.points)] + found.volumes
            chosen = np.argmax(logs + rng.gumbel(size=(count, len(logs))), axis=1)
            drawn[place] = found.flat[chosen]
        return drawn

    @cached_property
    def _rows(self) -> tuple[list[Any], list[Any]]:
        """Rows as drawn and as held, which a private model keeps: they are simulated."""
        rows = self.mechanism.rows
        return _shared(rows.drawn), _shared(rows.held)


def _shared(rows: Sequence[Array]) -> list[Any]:
    return [pytensor.shared(row, shape=(None, *row.shape[1:])) for row in rows]


__all__ = ["DrawsDensity", "Mechanism"]
