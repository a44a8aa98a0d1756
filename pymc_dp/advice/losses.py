"""The temperature of a sampler, and what that loses, in numbers that need no formula."""

from __future__ import annotations

import math

from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis
from pymc_dp.step_methods.metropolis.penalty import USUAL_NOISE
from pymc_dp.step_methods.ops import OPS

CLAMPED = "rows are clamped: a pseudo-posterior"


def temperature_of(step: PrivateStep | None) -> float | None:
    """Return T of the tempered posterior that a priced step draws from; None where it tempers nothing."""
    if isinstance(step, OPS):
        return 1 / step.temperature.inverse
    return 1 / step.beta if isinstance(step, TemperedGibbs) else None


def noise_of(step: PrivateStep | None, noise: str) -> str:
    """State the temperature or noise of a sampler, and the rule behind it."""
    if isinstance(step, OPS):
        return f"{noise}, by {step.temperature.rule}"
    if isinstance(step, TemperedGibbs):
        return f"{noise} (temperature {1 / step.beta:.4g})"
    return noise


def loss_of(step: PrivateStep | None, rows: int, neighbours: str, *, clamped: bool = False) -> str:
    """Say what is lost against the posterior that is not private.

    Parameters
    ----------
    step : PrivateStep
        Bound and priced.
    rows : int
        Public number of rows, or the public bound on it.
    neighbours : {"replace", "add_remove"}
    clamped : bool
        Whether the log-likelihoods of rows are clamped.

    Notes
    -----
    A likelihood to the power 1 / T weighs as much as that of n / T rows. In large samples a draw at temperature T has
    variance (1 + T) / (n I) about the truth, I being the information in a row: its own, T / (n I), and that of where
    the posterior lies, 1 / (n I) (Foulds, Geumlek, Welling, Chaudhuri 2016, theorem 5).
    """
    temperature = temperature_of(step)
    lost = [_rows_left(temperature, rows, neighbours)] if temperature is not None else []
    if isinstance(step, OPS) and temperature is not None and temperature > 1:
        lost.append(_off_the_truth(temperature))
    if isinstance(step, BarkerMetropolis):
        lost.append(_of_barker(step))
    if isinstance(step, PenaltyMetropolis):
        lost.append(_of_penalty(step))
    if isinstance(step, SGLD):
        lost.append(_of_langevin(step))
    if isinstance(step, PrivateHMC):
        lost.append(_of_hamiltonian(step))
    return "; ".join([*lost, *[CLAMPED] * (clamped and step is not None)])


def _rows_left(temperature: float, rows: int, neighbours: str) -> str:
    if temperature == 1:
        return "the posterior itself: nothing is lost"
    left, of = rows / temperature, f"{rows} rows" if neighbours == "replace" else f"at most {rows} rows"
    if left < 1:
        return f"all but the prior: {of} weigh less than one"
    if neighbours == "replace":
        return f"as wide as the posterior of {count(left)} of {of}"
    return f"as wide as the posterior of one row in {temperature:.3g}, at most {count(left)}"


def _off_the_truth(temperature: float) -> str:
    return (
        f"a draw is about √(1 + T) = {math.sqrt(1 + temperature):.2g} posterior sd from the truth (√2 if it were not "
        "private)"
    )


def _of_barker(step: BarkerMetropolis) -> str:
    reach = step.spending.range_of(step.spending.reserved / step.funding.steps)
    return f"{_target(step)}; each step may move a row's log-likelihood by about {reach:.2g}"


def _of_penalty(step: PenaltyMetropolis) -> str:
    reach = step.spending.range_of(USUAL_NOISE**2)
    return (
        f"{_target(step)}; a step that moves a row's log-likelihood by {reach:.2g} has noise of sd {USUAL_NOISE:g} on "
        "its log ratio, others in proportion"
    )


def _target(step: BarkerMetropolis | PenaltyMetropolis) -> str:
    return "not tempered" if step.clamp is None else "the target changes where rows are cut"


def _of_langevin(step: SGLD) -> str:
    diffused = math.sqrt(2 * step.step_size * step.funding.steps)
    widened = step.step_size * step.population**2 * step.clip_norm**2 * (1 - step.batches.rate)
    share = widened / (2 * step.batches.size)
    return (
        f"step size {step.step_size:.2g}: {step.funding.steps} steps diffuse by {diffused:.2g} (unconstrained scale); "
        f"batches add at most {share:.0%} to the variance of a step; gradients longer than {step.clip_norm:g} are cut, "
        "which moves the target where many rows have them"
    )


def _of_hamiltonian(step: PrivateHMC) -> str:
    target = "not tempered" if step.limits.proved else "the target changes where rows are cut"
    return f"{target}; noise allows trajectories of about {step.limits.farthest(step.noise):.2g} (unconstrained scale)"


def count(rows: float) -> str:
    """Write a number of rows, cut to three digits."""
    if rows >= 100:
        return f"{math.floor(rows)}"
    return f"{math.floor(rows * 10) / 10:g}"


__all__ = ["count", "loss_of", "noise_of", "temperature_of"]
