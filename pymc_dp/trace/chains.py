"""Chains of a private step, run by PyMC, and what is left of them where Ctrl+C has ended them early."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pymc as pm
import xarray as xr
from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers

from pymc_dp._interrupts import HeldBack
from pymc_dp.release.paid import Paid, keep
from pymc_dp.step_methods.base import PrivateStep
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


def run_chains(step: PrivateStep, samplers: Sequence[Any], payment: Paid, settings: Mapping[str, Any]) -> xr.DataTree:
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

    Raises
    ------
    ReleaseError
        If anything fails.
    KeyboardInterrupt
        If it was pressed before the first draw. States of the tuning, which are paid for, are in the attribute
        ``idata``, but for chains whose guarantee is asymptotic.
    """
    wanted = settings["draws"], settings["tune"], settings["chains"]
    found = payment.read(lambda: _sampled(step, samplers, payment.interrupt, settings), holder=step)
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
    step: PrivateStep, samplers: Sequence[Any], interrupt: HeldBack, settings: Mapping[str, Any]
) -> xr.DataTree:
    """Run the chains. Reads private data: the budget must have been charged."""
    between = _between_draws(interrupt, settings.get("callback"))
    given = {**settings, "callback": between, "discard_tuned_samples": False}  # PyMC fails where nothing else is there
    try:
        step.load()
        found = pm.sample(**given, model=step.prior_model, step=samplers)
    finally:
        step.forget()
    empty = [name for name in found.children if "draw" in found[name].sizes and not found[name].sizes["draw"]]
    return xr.DataTree.from_dict({name: node for name, node in found.children.items() if name not in empty})


def _between_draws(interrupt: HeldBack, callback: Callable[..., Any] | None) -> Callable[..., None]:
    """What PyMC calls after every draw; `KeyboardInterrupt` there ends all chains in good order."""

    def between(trace: Any, draw: Any) -> None:
        if callback is not None:
            callback(trace=trace, draw=draw)
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


__all__ = ["run_chains", "samplers_of"]
