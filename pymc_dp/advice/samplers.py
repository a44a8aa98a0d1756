"""Which private samplers take a model, and their temperature or noise.

The temperature of a sampler, and what that loses, in numbers that need no formula.

A discrete Bayesian network, drawn, and what each of the mechanisms for it would cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from math import prod, sqrt

from pymc_dp._display import Drawing, Table
from pymc_dp.accounting import Budget
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.findings import Inspected, Inspection
from pymc_dp.inspection.network import Network, find_network
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan, TablePlan
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis
from pymc_dp.step_methods.metropolis.penalty import USUAL_NOISE
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.preview import Preview, previewed
from pymc_dp.step_methods.registered import SAMPLERS


def previews(found: Inspected, budget: Budget) -> tuple[Preview, ...]:
    """Look at every private sampler with its default settings; reads no private value, spends nothing.

    Not at `TemperedMetropolis`, which nobody should be advised to use. At those registered from outside, too.
    """
    own = (TemperedGibbs(), BarkerMetropolis(), PenaltyMetropolis(), SGLD(), PrivateHMC())
    others = (*own, *(sampler() for sampler in SAMPLERS))
    return (*_one_sample(found, budget), *(previewed(step, found, budget) for step in others))


def _one_sample(found: Inspected, budget: Budget) -> tuple[Preview, ...]:
    """Look at exact draws; only where there are none, at a chain that is taken to have converged.

    A step that may fall back on a chain plans as the exact one does, so that one look is enough where no chain is
    needed, and where not even a chain would do.
    """
    lenient = previewed(OPS(assume_converged=True), found, budget)
    if lenient.fits and lenient.guarantee == "asymptotic":
        return previewed(OPS(), found, budget), lenient
    exact = lenient.bound
    if exact is not None:
        exact.settings.pop("assume_converged")
    return (replace(lenient, call=call_of(OPS())),)


def call_of(step: PrivateStep) -> str:
    """Return how a specification is passed to ``dp.sample``."""
    return f"dp.sample(step={step.written})"


def short(call: str) -> str:
    """Return the step method of a call alone."""
    return call.removeprefix("dp.sample(step=").removesuffix(")")


def listed(calls: Sequence[str], word: str = "or") -> str:
    """Join step methods as a sentence does."""
    names = [short(call) for call in calls]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


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
    target = "the target changes where rows are cut" if step.cut else "not tempered"
    return f"{target}; noise allows trajectories of about {step.noise.farthest:.2g} (unconstrained scale)"


def count(rows: float) -> str:
    """Write a number of rows, cut to three digits."""
    if rows >= 100:
        return f"{math.floor(rows)}"
    return f"{math.floor(rows * 10) / 10:g}"


MOST_LINES = 50
"""Of a drawing in a page."""
COLUMNS = ("call", "numbers", "sensitivity (Δ1)", "noise (sd) of a count")


def network_parts(inspection: Inspection, epsilon: float) -> tuple[Drawing | Table, ...]:
    """Draw the network that observed variables form, and price its release; nothing where they form none.

    Parameters
    ----------
    inspection : Inspection
    epsilon : float
        Of Laplace noise.
    """
    network = None if inspection.problems else find_network(inspection)
    if not isinstance(network, Network) or not network.n_edges:
        return ()
    nodes, edges = len(network.nodes), network.n_edges
    title = f"A Bayesian network of {nodes} nodes and {edges} edge{'s' * (edges != 1)} (levels in brackets, if not two)"
    calls = {
        "no mechanism": Statistics(),
        "LaplaceUpdates()": Statistics(mechanism=LaplaceUpdates()),
        "FourierUpdates()": Statistics(mechanism=FourierUpdates()),
    }
    rows = [(call, *_row(inspection, statistics, epsilon)) for call, statistics in calls.items()]
    priced = f"How the network would be released, Statistics(mechanism=dp...), at ε = {epsilon:g}"
    lines = network.drawn()
    if (more := len(lines) - MOST_LINES) > 0:
        lines = [*lines[:MOST_LINES], f"... and {more} more lines"]
    return Drawing(title=title, lines=lines), Table(title=priced, columns=COLUMNS, rows=rows)


def _row(inspection: Inspection, statistics: Statistics, epsilon: float) -> tuple[str, str, str]:
    try:
        plan = plan_release(inspection, statistics, epsilon)
    except UnsupportedModelError as error:
        return "none", "-", str(error.problems[0])
    except ArgumentError as error:  # under a metric
        return "none", "-", str(error)
    moved = sum(block.sensitivity.l1 * block.steps[0] for block in plan.blocks)
    statistic = plan.tables[0].statistic
    count, deviations = _of_coefficients(plan, statistic) if isinstance(statistic, NetworkSums) else _of_counts(plan)
    low, high = min(deviations), max(deviations)
    return f"{count}", f"{moved:.6g}", f"{low:.3g}" if high < 1.001 * low else f"{low:.3g} to {high:.3g}"


def _of_counts(plan: ReleasePlan) -> tuple[int, list[float]]:
    return sum(_size(table) for table in plan.tables), [
        block.noise.deviation(block.scale) for table in plan.tables for block in table.blocks
    ]


def _size(table: TablePlan) -> int:
    return table.cells.count * len(table.labels)


def _of_coefficients(plan: ReleasePlan, sums: NetworkSums) -> tuple[int, list[float]]:
    """Number of coefficients, and the noise of a count of every table that they make.

    Squares of all functions of a table's cells add up to the number of cells.
    """
    (block,), network = plan.blocks, sums.network
    sd = block.noise.deviation(block.scale * block.steps[0])
    sizes = [prod(network.shape(place)) for place in range(len(network.nodes))]
    return sums.count, [sd * sqrt(size - (not sums.sized)) / size for size in sizes]


__all__ = ["call_of", "count", "listed", "loss_of", "network_parts", "noise_of", "previews", "short", "temperature_of"]
