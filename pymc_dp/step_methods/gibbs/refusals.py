"""What to say about variables that have no update, and what would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pymc_dp.errors import Problem
from pymc_dp.inspection.priors import Prior
from pymc_dp.step_methods.gibbs.grid import Ends

MARGINALISE = "Marginalise it, or sample dp.privatize(...) instead."


def unbounded(prior: Prior, names: Sequence[str], ends: Mapping[str, Ends], priors: Mapping[str, Prior]) -> Problem:
    """Say which variables have to be bounded for an update to have a finite range.

    Parameters
    ----------
    prior : Prior
        Of the variable that is to be updated.
    names : sequence of str
        Variables at whose ends the range has no bound.
    ends : mapping of str to Ends
        Of every free variable.
    priors : mapping of str to Prior
        Likewise.
    """
    low, high = ends[prior.name]
    if not names and (not np.isfinite([low, high]).all() or (low == 0).any() or (high == 1).any()):
        names = [prior.name]
    bounds = ", ".join(f"{name!r}: {_suggestion(ends[name], priors[name])}" for name in names)
    return Problem(
        where=prior.name,
        what=f"one row can move the conditional of {prior.name!r}, whose support is ({float(low.min()):g}, "
        f"{float(high.max()):g}), by any amount",
        remedy=f"Bound the parameter space by public numbers: dp.truncate(model, {{{bounds}}})."
        if names
        else "Keep the numbers in the likelihood away from the ends of their range (a probability of 0).",
    )


def joint(prior: Prior) -> Problem:
    """Say why a variable whose elements have a joint prior has no update, and what would move it."""
    what = (
        f"the elements of {prior.name!r} have a joint prior ({prior.distribution}), and TemperedGibbs moves them one "
        "by one, each between public bounds of its own"
    )
    if not prior.variable.type.dtype.startswith("float"):
        return Problem(where=prior.name, what=what, remedy=MARGINALISE)
    remedy = "Give its elements bounded priors of their own, or use dp.BarkerMetropolis(), which moves all at once."
    if prior.distribution == "dirichlet":
        alone = "of categorical or multinomial variables alone"
        what = f"{prior.name!r} is a dirichlet that is not itself the parameter {alone}"
        remedy = f"Use it as their probabilities, and for nothing else. {remedy}"
    return Problem(where=prior.name, what=what, remedy=remedy)


def _suggestion(ends: Ends, prior: Prior) -> str:
    low, high = ends
    if (low >= 0).all() and (high <= 1).all():
        return "(0.01, 0.99)" if prior.distribution != "dirichlet" else "(0.01, None)"
    return "(0.1, 10.0)" if (low >= 0).all() else "(-10.0, 10.0)"


__all__ = ["MARGINALISE", "joint", "unbounded"]
