"""Chains of a private step, run by PyMC, and what is left of them where Ctrl+C has ended them early.

Groups of the trace of annealed importance sampling: draws, particles, and what was released of the weights.

Draws that were paid for: the posterior of a trace, where every number of it is on its manifest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc import Model
from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp._interrupts import HeldBack
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.kernel.randomness import insecure
from pymc_dp.release.paid import Paid, keep
from pymc_dp.step_methods.annealing import Annealed, Annealing
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.shown import SPENT
from pymc_dp.trace.manifest import MANIFEST, PRIVACY, RECORD, RELEASED, digest, read_claim
from pymc_dp.trace.scrub import scrub_sampled

WARMUP = ("warmup_posterior", "warmup_sample_stats")
NO_DRAW = (
    "Ended while the chains were tuned, before the first draw: {ended}. All of it was charged, and the budget is spent."
)


def samplers_of(step: PrivateStep) -> list[Any]:
    """Return a step, and samplers of PyMC's choice for the variables that it leaves over, compiled without any row."""
    selected = assign_step_methods(step.prior_model, step)[1] if step.left else {}
    found = instantiate_steppers(step.prior_model, [step], selected)
    return found if isinstance(found, list) else [found]


def run_chains(
    step: PrivateStep,
    samplers: Sequence[Any],
    payment: Paid,
    settings: Mapping[str, Any],
    drawn: Callable[[], None] = lambda: None,
) -> xr.DataTree:
    """Read the rows, let PyMC run a step on the model without them, and return what may leave.

    Ctrl+C is looked at between two draws: what is kept are whole draws, each of which was released and paid for.

    Parameters
    ----------
    step : PrivateStep
        Bound and funded.
    samplers : sequence
        What `samplers_of` returned.
    payment : Paid
    settings : mapping
        Arguments of ``pm.sample``.
    drawn : callable
        Called after every draw, for a bar where PyMC draws none.

    Raises
    ------
    ReleaseError
        If anything fails.
    KeyboardInterrupt
        If it was pressed before the first draw. States of the tuning, which are paid for, are in the attribute
        ``idata``, but for chains whose guarantee is asymptotic.
    """
    wanted = settings["draws"], settings["tune"], settings["chains"]
    found = payment.read(lambda: _sampled(step, samplers, payment.interrupt, settings, drawn), holder=step)
    ended = _ended(found, *wanted)
    if ended:
        payment.remark(ended)
    if settings["discard_tuned_samples"] or (ended and step.claimed == "asymptotic"):
        found = xr.DataTree.from_dict({name: found[name] for name in found.children if name not in WARMUP})
    if not ended or "posterior" in found.children:
        return scrub_sampled(found, step, ended=ended, payment=payment)
    error = KeyboardInterrupt(NO_DRAW.format(ended=ended))
    if WARMUP[0] in found.children:
        keep(error, idata=scrub_sampled(found, step, ended=ended, payment=payment))
    raise error


def _sampled(
    step: PrivateStep,
    samplers: Sequence[Any],
    interrupt: HeldBack,
    settings: Mapping[str, Any],
    drawn: Callable[[], None],
) -> xr.DataTree:
    """Run the chains. Reads private data: the budget must have been charged."""
    given = {
        **settings,
        "callback": _between_draws(interrupt, drawn),
        "discard_tuned_samples": False,
    }  # PyMC fails where nothing else is there
    step.shown = bool(settings.get("progressbar", False))
    try:
        step.load()
        found = pm.sample(**given, model=step.prior_model, step=samplers)
    finally:
        step.forget()
    empty = [name for name in found.children if "draw" in found[name].sizes and not found[name].sizes["draw"]]
    return xr.DataTree.from_dict({name: node for name, node in found.children.items() if name not in empty})


def _between_draws(interrupt: HeldBack, drawn: Callable[[], None]) -> Callable[..., None]:
    """What PyMC calls after every draw; `KeyboardInterrupt` there ends all chains in good order."""

    def between(trace: Any, draw: Any) -> None:
        drawn()
        interrupt.stop_if_asked()

    return between


def _ended(found: xr.DataTree, draws: int, tune: int, chains: int) -> str:
    """Say how far the chains came; nothing where they came to their end."""
    made = {name: node.sizes for name, node in found.children.items()}
    if "posterior" not in made:
        sizes, of = made[WARMUP[0]], f"{tune} tuning draws"
    elif made["posterior"]["draw"] == draws and made["posterior"]["chain"] == chains:
        return ""
    else:
        sizes, of = made["posterior"], f"{draws} draws"
    return f"ended after {sizes['draw']} of {of}, {sizes['chain']} of {chains} chains kept"


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
        released["weights"] = ((PARTICLE,), found.weights.value, {"noise_scale": found.weights.scale})
    if found.evidence is not None:
        attributes = {
            "noise_scale": found.evidence.scale,
            "beta": run.beta,
            "of": TEMPERED if run.beta < 1 else "model",
        }
        released["log_evidence_tempered" if run.beta < 1 else "log_evidence"] = ((), found.evidence.value, attributes)
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


SAMPLE = ("chain", "draw")


def released_draws(tree: object, name: str = "idata") -> tuple[xr.Dataset, dict[str, Any]]:
    """Return the posterior of a trace that this package annotated, and its record.

    Parameters
    ----------
    tree : xarray.DataTree
        Of ``dp.sample``, ``dp.scrub``, ``dp.sample_ais`` or ``dp.find_map``.
    name : str
        What the argument is called, for texts.

    Returns
    -------
    (xarray.Dataset, dict)
        Variables with the dims ``chain`` and ``draw`` first.

    Raises
    ------
    ArgumentError
        If it is no tree.
    TraceError
        If it has no ``/privacy`` or no ``posterior`` group, if a variable of the posterior is not on the manifest or
        was changed, if what it says about its price was, or if its noise was seeded or left out.
    """
    if not isinstance(tree, xr.DataTree):
        raise ArgumentError(f"{name} must be a trace of dp.sample or dp.scrub, got {_validate.shown(tree)}.")
    privacy = tree.children.get(PRIVACY)
    if privacy is None or not {RECORD, MANIFEST} <= set(privacy.attrs) or "posterior" not in tree.children:
        raise TraceError(
            f"{name} has no /privacy or no /posterior group: nothing says that its draws were paid for. Give a trace "
            "of dp.sample or dp.scrub."
        )
    record = read_claim(tree, name)
    if record["guarantee"] == "none" and insecure() is None:
        raise TraceError(
            f"{name} is a trace whose noise was seeded or left out by pymc_dp.testing, so that it is not private. "
            "Sample it again without."
        )
    listed: dict[str, str] = json.loads(privacy.attrs[MANIFEST])
    posterior = tree["posterior"].to_dataset()
    found = {path: digest(held) for path, held in _paths(posterior).items()}
    if strange := sorted(path for path in found if listed.get(path) != found[path]):
        raise TraceError(
            f"{name} holds draws that are not those that were paid for: {', '.join(strange)} was added or changed. "
            "Drop it; what is computed from the draws can be computed in a function."
        )
    variables = [str(key) for key, held in posterior.data_vars.items() if set(SAMPLE) <= set(held.dims)]
    return posterior[variables].transpose(*SAMPLE, ...), record


def _paths(dataset: xr.Dataset) -> dict[str, xr.Variable]:
    return {f"/posterior/{key}": held for key, held in dataset.variables.items()}


__all__ = ["SAMPLE", "annealed_groups", "released_draws", "run_chains", "samplers_of"]
