"""Parameters of a model, in terms of its value variables: from its prior, or as given."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.transforms import Chain, Ordered
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.interpreted import plain_draw, plain_function
from pymc_dp.inspection.rows import Array, rebuild

CENTRAL = (0.05, 0.95)
DRAWS = 200
IMPROPER = ("flat", "halfflat")
"""Names of priors that nothing can be drawn from."""
USUAL = 0.1
"""Least share of draws of a prior at which its transform is defined: draws of ordered numbers are seldom in order."""

TRIED = 8
"""Draws from the prior for each one wanted, where some are undefined: ordered numbers are seldom drawn in order."""
PROPER = "A plan simulates from the prior: give every free variable a proper distribution."

Point = Mapping[str, Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class ParameterDraws:
    """Draws of the parameters of a model: from its prior, or from a trace.

    Attributes
    ----------
    positions : (n_draws, n_elements) array
        In terms of the value variables, raveled.
    shapes : list of tuple of int
        Of the value variables.
    values : mapping of str to (n_draws, ...) array
        Of the free variables.
    beside : list of (n_draws, ...) arrays
        Of what else was asked for.
    """

    positions: Array
    shapes: list[tuple[int, ...]]
    values: Mapping[str, Array]
    beside: list[Array]


def draw_prior(
    prior_model: Model, rng: np.random.Generator, count: int, beside: Sequence[Variable] = ()
) -> ParameterDraws:
    """Draw from the prior of a model without its rows, where transforms are defined.

    Draws of ordered numbers are kept if they are in order; where too few are, each is put in order. The latter is exact
    for numbers with one prior each, independent of each other.

    Parameters
    ----------
    prior_model : pymc.Model
    rng : numpy.random.Generator
    count : int
    beside : sequence of Variable
        Graphs over the free variables that are drawn with them.

    Raises
    ------
    UnsupportedModelError
        Where the prior cannot be drawn from.
    """
    free = prior_model.free_RVs
    wanted = [*(in_value_space(prior_model, rv) for rv in free), *free, *beside]
    again = copy.deepcopy(rng)
    try:
        found = _drawn(wanted, rng, count)
        if not _defined(found[: len(free)]).all():
            tries = copy.deepcopy(again)
            found = _drawn(wanted, tries, count * TRIED)
            if _defined(found[: len(free)]).sum() < count:
                found = _drawn(rebuild(wanted, _in_order(prior_model))[0], again, count)
    except NotImplementedError as error:
        what = "its prior cannot be drawn from"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=PROPER)]) from error
    kept = np.flatnonzero(_defined(found[: len(free)]))[:count]
    if len(kept) < count:
        what = "draws of its prior hardly ever lie where its transform is defined"
        remedy = "Choose a prior that lies there, or the default transform."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
    found = [item[kept] for item in found]
    return ParameterDraws(
        positions=joined(found[: len(free)]).astype(np.float64),
        shapes=[item.shape[1:] for item in found[: len(free)]],
        values={str(rv.name): item for rv, item in zip(free, found[len(free) :], strict=False)},
        beside=found[2 * len(free) :],
    )


def draws_at(prior_model: Model, values: Mapping[str, Array], beside: Sequence[Variable] = ()) -> ParameterDraws:
    """Return given values of the free variables as draws; those at which a transform is not defined are left out.

    Parameters
    ----------
    prior_model : pymc.Model
        The model without its rows.
    values : mapping of str to (n_draws, ...) array
        By the names of free variables.
    beside : sequence of Variable
        Graphs over the free variables that are computed of them.
    """
    free = prior_model.free_RVs
    own = [rv.type() for rv in free]
    graphs = rebuild([*(in_value_space(prior_model, rv) for rv in free), *beside], dict(zip(free, own, strict=True)))[0]
    function = plain_function(own, graphs)
    columns = [np.asarray(values[str(rv.name)]).astype(rv.type.dtype) for rv in free]
    with np.errstate(all="ignore"):
        found = [np.array(parts) for parts in zip(*(function(*one) for one in zip(*columns, strict=True)), strict=True)]
    kept = np.flatnonzero(_defined(found[: len(free)]))
    found = [item[kept] for item in found]
    return ParameterDraws(
        positions=joined(found[: len(free)]).astype(np.float64),
        shapes=[item.shape[1:] for item in found[: len(free)]],
        values={str(rv.name): item[kept] for rv, item in zip(free, columns, strict=True)},
        beside=found[len(free) :],
    )


def _drawn(variables: Sequence[Any], rng: np.random.Generator, count: int) -> list[Array]:
    found = map(np.asarray, plain_draw(variables, rng, count))
    return [item if count > 1 else item[None] for item in found]


def _in_order(model: Model) -> dict[Variable, Variable]:
    """Return free variables whose transform keeps them in order, each with its entries put in order."""
    found: dict[Variable, Variable] = {}
    for rv in model.free_RVs:
        transform = model.rvs_to_transforms[rv]
        for one in transform.transform_list if isinstance(transform, Chain) else [transform]:
            if isinstance(one, Ordered):
                ascending = pt.sort(rv, axis=-1)
                found[rv] = ascending if one.ascending else ascending[..., ::-1]
    return found


def _defined(positions: Sequence[Array]) -> Array:
    return np.asarray(np.isfinite(joined(positions)).all(axis=1))


def not_drawn(prior_model: Model) -> list[Problem]:
    """Return what keeps free variables of a model from being drawn and fitted."""
    problems = [
        Problem(where=str(var.name), what="draws from the prior ignore a Potential", remedy=PROPER)
        for var in prior_model.potentials
    ]
    problems += [
        Problem(where=str(rv.name), what="its prior cannot be drawn from", remedy=PROPER)
        for rv in prior_model.free_RVs
        if _improper(prior_model, rv)
    ]
    return problems + [
        Problem(
            where=str(rv.name),
            what="a plan fits continuous free variables only",
            remedy="Sum it out, for example by a pm.Mixture.",
        )
        for rv in prior_model.free_RVs
        if not np.issubdtype(np.dtype(rv.type.dtype), np.floating)
    ]


def joined(arrays: Sequence[Array]) -> Array:
    """Return arrays with one first axis as points, (n_points, n_elements)."""
    return np.concatenate([np.reshape(item, (len(item), -1)) for item in arrays], axis=1)


def split(points: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return points, (n_points, n_elements), as one array per value variable."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [
        part.reshape(len(points), *shape) for part, shape in zip(np.split(points, ends, axis=1), shapes, strict=True)
    ]


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


__all__ = [
    "PROPER",
    "ParameterDraws",
    "Point",
    "draw_prior",
    "draws_at",
    "in_value_space",
    "joined",
    "not_drawn",
    "prior_points",
    "split",
]
