"""Groups of the trace of annealed importance sampling: draws, particles, and what was released of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.annealing import Annealed, Annealing
from pymc_dp.step_methods.shown import SPENT
from pymc_dp.trace.manifest import RELEASED

PARTICLE = "particle"
TEMPERED = "of the tempered model, prior times likelihood^beta, not of the model"


def annealed_groups(found: Annealed, run: Annealing) -> dict[str, xr.Dataset]:
    """Return every group but ``privacy``, from what was released and the prior model alone."""
    particles = {**found.particles, **_deterministics(run.prior_model, found.particles)}
    draws = {name: held[found.chosen][None] for name, held in particles.items()}
    number = np.arange(len(next(iter(particles.values()))))
    groups = {
        "posterior": _dataset(run.prior_model, draws, ("chain", "draw")),
        "sample_stats": xr.Dataset(
            {
                PARTICLE: (("chain", "draw"), found.chosen[None]),
                SPENT: (("chain", "draw"), np.full((1, len(found.chosen)), run.epsilon)),
            },
            coords={"chain": np.arange(1), "draw": np.arange(len(found.chosen))},
        ),
        "particles": _dataset(run.prior_model, particles, (PARTICLE,)),
    }
    released: dict[str, Any] = {}
    if found.weights is not None:
        released["weights"] = ((PARTICLE,), found.weights, {"noise_scale": run.weights_scale})
    if found.evidence is not None:
        attributes = {"noise_scale": run.evidence_scale, "beta": run.beta, "of": TEMPERED if run.beta < 1 else "model"}
        released["log_evidence_tempered" if run.beta < 1 else "log_evidence"] = ((), found.evidence, attributes)
    if released:
        held = xr.Dataset(released, coords={PARTICLE: number} if found.weights is not None else {})
        groups[RELEASED] = held.assign_attrs(noise="discrete Laplace")
    return groups


def _deterministics(prior_model: Model, particles: Mapping[str, Array]) -> dict[str, Array]:
    """Deterministics of a prior model at every particle."""
    if not prior_model.deterministics:
        return {}
    inputs = {rv: rv.type(name=rv.name) for rv in prior_model.free_RVs}
    graphs, _ = rebuild(list(prior_model.deterministics), inputs)
    function = plain_function(list(inputs.values()), graphs)
    names = [str(rv.name) for rv in prior_model.free_RVs]
    values = [function(*place) for place in zip(*(particles[name] for name in names), strict=True)]
    return {
        str(var.name): np.stack([np.asarray(one) for one in held])
        for var, held in zip(prior_model.deterministics, zip(*values, strict=True), strict=True)
    }


def _dataset(prior_model: Model, values: Mapping[str, Array], leading: Sequence[str]) -> xr.Dataset:
    """Label arrays with the dims of a prior model, as PyMC does."""
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for var in _in_order(prior_model):
        name = str(var.name)
        dims = _dims(prior_model, name, values[name].ndim - len(leading))
        variables[name] = ((*leading, *dims), values[name])
        sizes = dict(zip((*leading, *dims), values[name].shape, strict=True))
        for dim, size in sizes.items():
            labels = prior_model.coords.get(dim)
            coords[dim] = np.arange(size) if labels is None else np.asarray(labels)
    return xr.Dataset(variables, coords=coords)


def _in_order(prior_model: Model) -> list[Variable]:
    return [*prior_model.free_RVs, *prior_model.deterministics]


def _dims(prior_model: Model, name: str, ndim: int) -> list[str]:
    given = prior_model.named_vars_to_dims.get(name) or ()
    return [
        str(given[place]) if place < len(given) and given[place] is not None else f"{name}_dim_{place}"
        for place in range(ndim)
    ]


__all__ = ["annealed_groups"]
