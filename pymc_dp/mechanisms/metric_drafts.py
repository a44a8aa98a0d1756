"""Tables laid out for a release whose ε is per unit of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.mechanisms.drafts import Draft
from pymc_dp.mechanisms.noise import NOISES, Noise
from pymc_dp.mechanisms.per_unit import MOST_STEPS, extents_of, grid_of, names_of, per_unit, too_many_steps
from pymc_dp.metrics import Extent


def drafts_per_unit(drafts: Sequence[Draft], domain: Domain, noise: Noise) -> tuple[list[Draft], dict[str, Extent]]:
    """Return the same tables with movements per unit of the metric, and what its columns of numbers can be."""
    if noise is not NOISES["laplace"]:
        raise ArgumentError(
            "Under a metric only Laplace noise is accounted: the loss of Gaussian noise does not grow in proportion to "
            "distance. Leave out Statistics(noise=...)."
        )
    assert domain.metric is not None
    names = names_of([draft.observed for draft in drafts])
    extents = extents_of([(draft.observed, draft.statistic) for draft in drafts], domain.metric, names)
    found, problems = list[Draft](), list[Problem]()
    for draft in drafts:
        bound = per_unit(draft.observed, draft.statistic, domain.metric, names, extents)
        if isinstance(bound, Problem):
            problems.append(bound)
            continue
        sizes = len(draft.parts) > 1  # those of private cells come first
        moved = [
            replace(part, movement=(bound.of_sizes if sizes and place == 0 else bound.of_sums)(part.movement))
            for place, part in enumerate(draft.parts)
        ]
        if any(part.movement.l1 > MOST_STEPS for part in moved):
            problems.append(too_many_steps(draft.observed.name))
        found.append(replace(draft, parts=tuple(moved)))
    if problems:
        raise UnsupportedModelError(problems)
    return found, extents


def grids_of(drafts: Sequence[Draft], extents: Mapping[str, Extent]) -> tuple[str, ...]:
    """Say what values of the metric's columns are rounded to, whichever of its names a metric calls a column by."""
    names = names_of([draft.observed for draft in drafts])
    told = [draft for draft in drafts if names[draft.observed.leaf] & extents.keys()]
    steps = {draft.observed.name: grid_of(draft.observed, draft.statistic) for draft in told}
    return tuple(f"{name} to {step:.3g}" for name, step in steps.items() if step is not None)


__all__ = ["drafts_per_unit", "grids_of"]
