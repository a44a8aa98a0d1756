"""Exact draws from the prior, where every particle starts: they see no row. And what is made of released weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pymc import Model

from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.priors import OWN_TRANSFORM, priors_of
from pymc_dp.inspection.rows import Array

TRIALS = 2
REMEDY = "Use dp.TemperedGibbs(), which starts anywhere, or a prior that pm.draw draws from."


def prior_problems(prior_model: Model) -> list[Problem]:
    """Say what keeps the free variables of a prior model from being drawn one after the other."""
    problems = [
        Problem(
            where=str(potential.name),
            what="a Potential changes the prior, so that its draws are not known",
            remedy="Write it as a prior, or use dp.TemperedGibbs().",
        )
        for potential in prior_model.potentials
    ]
    problems += [
        Problem(
            where=prior.name,
            what="it has a transform set by hand, which may restrict its prior, so that its draws are not known",
            remedy="Leave the transform out, or use dp.TemperedGibbs().",
        )
        for prior in priors_of(prior_model)
        if prior.distribution.endswith(OWN_TRANSFORM)
    ]
    if problems:
        return problems
    try:
        plain_draw(list(prior_model.free_RVs), 0, TRIALS)
    except Exception as error:  # of any kind: distributions say in their own ways that they cannot be drawn
        what = f"its prior cannot be drawn ({type(error).__name__})"
        return [Problem(where="model", what=what, remedy=REMEDY)]
    return []


def prior_draws(
    prior_model: Model, ends: Mapping[str, tuple[Array, Array]], count: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Draw all free variables from the prior `count` times: (count, ...) arrays by name.

    Parameters
    ----------
    prior_model : pymc.Model
    ends : mapping of str to (low, high)
        Public bounds of each, which everything that is paid for rests on.
    count : int
    rng : numpy.random.Generator
        Any: nothing here is private.

    Raises
    ------
    PrivacyError
        If a draw is outside of its bounds, as those of a prior truncated far out in its tail can be.
    """
    drawn = plain_draw(list(prior_model.free_RVs), rng, count)
    found = {str(rv.name): np.asarray(values) for rv, values in zip(prior_model.free_RVs, drawn, strict=True)}
    for name, values in found.items():
        low, high = ends[name]
        held = values.reshape(count, *low.shape)
        if not ((held >= low) & (held <= high)).all():
            raise PrivacyError(
                f"PyMC draws {name!r} outside of the bounds of its prior, which lie far out in its tail. {REMEDY}"
            )
        found[name] = held
    return found


def on_the_simplex(values: Array) -> Array:
    """Return the nearest point (Euclidean) with entries >= 0 that add up to 1.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra (2008), figure 1, doi 10.1145/1390156.1390191.

    Examples
    --------
    >>> on_the_simplex(np.array([0.75, 0.75, -0.5])).tolist()
    [0.5, 0.5, 0.0]
    """
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    kept = int(np.flatnonzero(ordered > over)[-1])
    return np.maximum(values - over[kept], 0.0)


__all__ = ["on_the_simplex", "prior_draws", "prior_problems"]
