"""Posteriors of one or two bounded parameters, drawn exactly from a public grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.draws.finite_choice import cells, crossed
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_density import guarded, vectorized
from pymc_dp.inspection.rows import Array, rebuild


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
