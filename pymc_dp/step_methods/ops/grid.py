"""Posteriors of one or two bounded parameters, drawn exactly from a public grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.draws.finite_choice import cells, choose, crossed, settled
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_density import guarded, vectorized
from pymc_dp.inspection.rows import Array, rebuild


@dataclass(frozen=True, kw_only=True, eq=False)
class GridDraws(ABC):
    """Draws from a posterior whose density is taken as constant within each cell of a public grid.

    Attributes
    ----------
    priors : tuple of Prior
    points : (n_points, n_scalars) array
        Middle of each grid cell.
    widths : (n_scalars,) array
        Width of a grid cell along each axis.
    """

    priors: tuple[Prior, ...]
    points: Array
    widths: Array
    words = "independent and exact: a cell of a public grid, then a uniform point within it"
    exact = True

    @abstractmethod
    def log_densities(self, held: Any) -> tuple[Array, Array]:
        """Return the log prior density and the log-likelihood of each cell: two (n_points,) arrays. **Private**."""

    def draw(self, rng: np.random.Generator, held: Any, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        prior, likelihood = self.log_densities(held)
        with np.errstate(invalid="ignore"):
            total = (inverse if temper_prior else 1.0) * settled(prior) + inverse * likelihood
        place = choose(rng, np.where(np.isnan(total), -np.inf, total))
        return by_name(self.priors, self.points[place] + self.widths * (rng.random(len(self.widths)) - 0.5))


def grid_of(priors: Sequence[Prior], count: int) -> tuple[Array, Array]:
    """Return the middles of a grid's cells over the box of bounded priors, and the widths of a cell."""
    middles, widths = cells(*box_of(priors), count)
    return crossed(list(middles.T)), widths


def box_of(priors: Sequence[Prior]) -> tuple[Array, Array]:
    """Return the ends of bounded priors, all scalars one after the other."""
    low = np.concatenate([prior.low.ravel() for prior in priors if prior.low is not None])
    high = np.concatenate([prior.high.ravel() for prior in priors if prior.high is not None])
    return low, high


def by_name(priors: Sequence[Prior], flat: Array) -> dict[str, Array]:
    """Split one flat vector of all scalars into free variables."""
    result, start = {}, 0
    for one in priors:
        result[one.name] = flat[start : start + one.size].reshape(one.shape)
        start += one.size
    return result


def over_flat(prior_model: Model, priors: Sequence[Prior], ends: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return graphs over one flat vector of all free scalars."""
    flat = pt.vector("flat", shape=(sum(prior.size for prior in priors),), dtype="float64")
    parts = parts_of(flat, [prior.variable for prior in priors], [prior.shape for prior in priors])
    return flat, rebuild(ends, parts)[0]


def prior_terms(prior_model: Model) -> list[Any]:
    """Return the log prior density as scalar terms over the free variables themselves, Potentials included."""
    from pymc.logprob.basic import conditional_logp

    values = {rv: rv.clone(name=f"{rv.name}_at") for rv in prior_model.free_RVs}
    terms = [pt.sum(term) for term in conditional_logp(values).values()]
    terms = rebuild(terms, {values[rv]: rv for rv in prior_model.free_RVs})[0]
    return [*terms, *(pt.sum(var) for var in prior_model.potentials)]


def log_prior(prior_model: Model, priors: Sequence[Prior], points: Array) -> Array:
    """Return the log prior density at (n_points, n_scalars) points; -inf where it is no number."""
    terms = prior_terms(prior_model)
    flat, (total,) = over_flat(prior_model, priors, [pt.add(*terms) if len(terms) > 1 else terms[0]])
    batch = pt.matrix("points", shape=(None, points.shape[1]), dtype="float64")
    # Where a parent is invalid a point is impossible, which is no error: the ends of supports are looked at.
    graph = vectorized(stable(frozen_shared(guarded(total), ())), {flat: batch})
    graph = graph if graph.type.ndim else pt.broadcast_to(graph, (batch.shape[0],))
    with np.errstate(all="ignore"):
        (found,) = compiled([batch], [graph])(points)
    return np.where(np.isnan(found), -np.inf, found)
