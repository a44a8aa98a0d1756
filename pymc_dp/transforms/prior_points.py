"""Points from the middle of the prior of a model, in terms of its value variables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array

CENTRAL = (0.05, 0.95)
DRAWS = 200
IMPROPER = ("flat", "halfflat")
"""Names of priors that nothing can be drawn from."""
USUAL = 0.1
"""Least share of draws of a prior at which its transform is defined: draws of ordered numbers are seldom in order."""

Point = Mapping[str, Array]


def prior_points(model: Model, count: int, rng: np.random.Generator, start: Point | None = None) -> list[Point]:
    """Return points that lie, element by element, within the central 90% of the prior.

    Variables without a proper prior, and those that depend on them, lie around the start point instead; so do those
    that their prior hardly ever draws where their transform is defined, as many cut points in ascending order.

    Parameters
    ----------
    model : pymc.Model
    count : int
        At most 200.
    rng : numpy.random.Generator
    start : mapping of str to array, optional
        The start point of the model, where it is known.

    Returns
    -------
    list of mapping of str to array
        Values of the value variables.
    """
    start = model.initial_point(0) if start is None else start
    drawn = [rv for rv in model.free_RVs if not _improper(model, rv)]
    try:
        found = plain_draw([in_value_space(model, rv) for rv in drawn], rng, DRAWS) if drawn else []
    except NotImplementedError:  # a hand-written prior without draws
        drawn, found = [], []
    defined = [~np.isnan(item).reshape(DRAWS, -1).any(axis=1) for item in found]
    usual = [rows.mean() > USUAL for rows in defined]
    rows = np.flatnonzero(np.logical_and.reduce([np.ones(DRAWS, bool), *itertools.compress(defined, usual)]))
    known = {
        model.rvs_to_values[rv].name: _central(np.asarray(item)[np.resize(rows, DRAWS)])
        for rv, item, kept in zip(drawn, found, usual, strict=True)
        if kept and rows.size
    }
    return [
        {
            name: np.asarray(known[name][place] if name in known else _near(value, rng), dtype=value.dtype)
            for name, value in start.items()
        }
        for place in range(count)
    ]


def in_value_space(model: Model, rv: Variable) -> Any:
    """Return a free variable as its value variable has it."""
    transform = model.rvs_to_transforms[rv]
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _improper(model: Model, rv: Variable) -> bool:
    own = set(model.free_RVs)
    return any(getattr(var.owner.op, "name", None) in IMPROPER for var in ancestors([rv]) if var in own or var is rv)


def _central(draws: Array) -> Array:
    """Move draws into the interval between two quantiles of their element; whole numbers stay whole."""
    if draws.dtype.kind == "f":
        return np.clip(draws, *np.quantile(draws, CENTRAL, axis=0))
    return np.clip(draws, *np.quantile(draws, CENTRAL, axis=0, method="nearest"))


def _near(start: Array, rng: np.random.Generator) -> Array:
    return start + rng.uniform(-1, 1, size=start.shape) if start.dtype.kind == "f" else start


__all__ = ["Point", "in_value_space", "prior_points"]
