"""Temperatures and noise of every private sampler, bound to fixed models at fixed budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymc_dp as dp
from pymc_dp.step_methods.annealing import Annealing, Settings
from pymc_dp.step_methods.annealing.price import path_of
from pymc_dp.step_methods.mode import AnnealedMode, CandidateMode, Grid
from tests.golden.models import MODELS, Case
from tests.golden.plain import Json
from tests.golden.topics import Topic, or_refusal

BUDGETS = {"δ = 0": dp.Budget(1.0), "δ = 1e-6": dp.Budget(2.0, 1e-6)}
CHAINS = 3
"""Beside one."""
SAMPLERS: dict[str, Callable[[], Any]] = {
    "OPS": dp.OPS,
    "OPS, papers": lambda: dp.OPS(papers=True),
    "OPS, assume_converged": lambda: dp.OPS(assume_converged=True),
    "TemperedGibbs": dp.TemperedGibbs,
    "BarkerMetropolis": dp.BarkerMetropolis,
    "PenaltyMetropolis": dp.PenaltyMetropolis,
    "TemperedMetropolis": dp.TemperedMetropolis,
    "PrivateHMC": dp.PrivateHMC,
    "SGLD": lambda: dp.SGLD(batch_size=16),
    "SGHMC": lambda: dp.SGHMC(batch_size=16),
    "SGNHT": lambda: dp.SGNHT(batch_size=16),
    "SGNHT, start": lambda: dp.SGNHT(batch_size=16, start=dp.OPS()),
    "SGFS": lambda: dp.SGFS(batch_size=16),
    "find_map": lambda: CandidateMode(Grid(axes={})),
    "find_map, annealed": AnnealedMode,
}
NEEDS_DELTA = {
    *("PenaltyMetropolis", "TemperedMetropolis", "PrivateHMC"),
    *("SGLD", "SGHMC", "SGNHT", "SGNHT, start", "SGFS"),
}
ON_SUMS = "bounded normal"
"""All samplers are bound to this model, whose likelihood has sums of rows."""
ON_ROWS: dict[tuple[str, str], tuple[str, ...]] = {
    ("robust", "replace"): ("OPS", "TemperedGibbs", "BarkerMetropolis", "PenaltyMetropolis", "PrivateHMC", "find_map"),
    ("robust", "add_remove"): ("OPS", "TemperedGibbs", "find_map"),
    ("logistic regression", "replace"): ("OPS", "BarkerMetropolis", "PrivateHMC", "SGNHT, start", "SGFS"),
    ("logistic regression", "add_remove"): ("OPS", "PrivateHMC"),
}
"""Rows held one by one: with a proved range, and without one."""
QUICK = {"OPS", "TemperedGibbs", "BarkerMetropolis", "find_map", "sample_ais, range"}


def bound(case: Case, make: Callable[[], Any], neighbours: str, budget: dp.Budget) -> Json:
    """What a specification would do, with its default numbers of draws; nothing is compiled, nothing is read."""
    preview = make().preview(case.model(), case.domain(neighbours), budget)
    if preview.bound is None:
        return {"refused": preview.problem}
    step = preview.bound
    found = {"guarantee": preview.guarantee, "1 chain": priced(step)}
    if step.settings.get("start") is None:
        step = step.at(chains=CHAINS)
    else:  # starts are planned for a number of chains
        step = make().preview(case.model(), case.domain(neighbours), budget, chains=CHAINS).bound
    return found | {f"{CHAINS} chains": priced(step)}


def priced(step: Any) -> Json:
    described = step.describe()
    return {
        "noise": described.noise,
        "steps": described.steps,
        "facts": dict(described.facts),
        "event": step.event.to_dict(),
    }


def annealed(case: Case, neighbours: str, budget: dp.Budget, resampling: str) -> Json:
    laplace = resampling == "laplace"
    settings = Settings(
        draws=1,
        particles=5,
        path=path_of(20, None),
        resampling=resampling,
        evidence=laplace,
        weights_share=0.2 * laplace,
        evidence_share=0.1 * laplace,
    )
    run = Annealing(dp.TemperedGibbs().inspect(case.model(), case.domain(neighbours)), settings)
    event = run.price(budget)
    described = run.describe()
    return {
        "noise": described.noise,
        "facts": dict(described.facts),
        "event": event.to_dict(),
    }


def _entries() -> dict[str, Callable[[], Json]]:
    found = {}
    for name, neighbours, spent in places():
        case, budget = MODELS[name], BUDGETS[spent]
        place = f"{name}; {neighbours}; {spent}"
        for sampler in asked(name, neighbours, budget):
            found[f"{sampler}; {place}"] = or_refusal(bound, case, SAMPLERS[sampler], neighbours, budget)
        if name == ON_SUMS:
            for resampling in ("range", "laplace"):
                found[f"sample_ais, {resampling}; {place}"] = or_refusal(annealed, case, neighbours, budget, resampling)
    return found


def places() -> list[tuple[str, str, str]]:
    """Models, relations and budgets; without a δ one relation will do."""
    pure, other = BUDGETS
    models = [(ON_SUMS, "replace"), (ON_SUMS, "add_remove"), *ON_ROWS]
    return [(*model, other) for model in models] + [(*model, pure) for model in models if model[1] == "replace"]


def asked(name: str, neighbours: str, budget: dp.Budget) -> list[str]:
    """Samplers that are bound to a model; what needs a δ is refused without one, once."""
    if name == ON_SUMS:
        return list(SAMPLERS)
    return [sampler for sampler in ON_ROWS[name, neighbours] if budget.delta or sampler not in NEEDS_DELTA]


ENTRIES = _entries()
SAMPLED = Topic(
    name="samplers",
    entries=ENTRIES,
    quick={name for name in ENTRIES if name.split("; ")[0] in QUICK and name.endswith(f"{ON_SUMS}; replace; δ = 0")},
)
