"""Models and rows that are a little narrower, to see what that would bring: nothing private is read for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp._column_bounds import DeclaredBounds, hull_of, pairs_of
from pymc_dp.domain import Domain
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.priors import SUPPORTS, Prior
from pymc_dp.inspection.rows import Column, UnreadColumn
from pymc_dp.transforms.prior_model import replace_variables
from pymc_dp.transforms.truncate import truncate

Ends = tuple[float, float]
TWO_SIDED = ("truncated_normal", "uniform")
INSIDE = 0.01
WIDE = 10.0
SD = 2.0


@dataclass(frozen=True, kw_only=True)
class Tightened:
    """A model with narrower parameters, and what was done to get there.

    Attributes
    ----------
    model : pymc.Model
    call : str
        The call that truncates what was not; empty if all was.
    narrower : tuple of str
        Bounds that were there and are narrower now, in words.
    """

    model: Model
    call: str
    narrower: tuple[str, ...]

    def __str__(self) -> str:
        return " and ".join([self.call] * bool(self.call) + list(self.narrower))


def tightened(model: Model, priors: Sequence[Prior], names: Sequence[str]) -> Tightened | None:
    """Truncate what is not truncated, and halve the bounds of what is; None where nothing can be done."""
    fresh: dict[str, Ends] = {}
    halved: dict[str, tuple[Ends, Ends]] = {}
    for prior in priors:
        if prior.name not in names or not prior.variable.type.dtype.startswith("float"):
            continue
        op: Any = prior.variable.owner.op
        if isinstance(op, TruncatedRV) or getattr(op, "name", "") in TWO_SIDED:
            old = _common(prior)
            if old is not None:
                halved[prior.name] = old, half(old, *_natural(prior))
        elif prior.distribution != "dirichlet":
            fresh[prior.name] = _inside(prior)
    if not fresh and not halved:
        return None
    changed = truncate(model, fresh) if fresh else model
    if halved:
        changed = replace_variables(changed, {name: _with_ends(new) for name, (_, new) in halved.items()})
    return Tightened(
        model=changed,
        call=f"dp.truncate(model, {_written(fresh)})" if fresh else "",
        narrower=tuple(f"bounds {_pair(new)} of {name} instead of {_pair(old)}" for name, (old, new) in halved.items()),
    )


def half(ends: Ends, least: float, most: float) -> Ends:
    """Halve an interval on the scale on which its support is the whole line, to two digits or a little more.

    Examples
    --------
    >>> half((-2.0, 2.0), -math.inf, math.inf), half((0.02, 0.98), 0.0, 1.0)
    ((-1.0, 1.0), (0.12, 0.88))
    """
    if math.isfinite(least) and math.isfinite(most) and least < ends[0] and ends[1] < most:
        low, high = (math.log((end - least) / (most - end)) for end in ends)
        return _ordered(ends, [least + (most - least) / (1 + math.exp(-place)) for place in _quarters(low, high)])
    if math.isfinite(least) and least < ends[0]:
        low, high = (math.log(end - least) for end in ends)
        return _ordered(ends, [least + math.exp(place) for place in _quarters(low, high)])
    return _ordered(ends, _quarters(*ends))


def halved_bounds(domain: Domain, inspection: RowInspection) -> dict[str, DeclaredBounds]:
    """Halve the bounds that the domain gives of private columns: about their middles, or from 0 or a number above."""
    private = {column.name: column for column in inspection.columns if not column.public}
    found: dict[str, DeclaredBounds] = {}
    for name, ends in domain.bounds.items():
        if name in private:
            whole, pairs = private[name].integer, pairs_of(ends)
            found[name] = tuple(_within_half(pair, whole) for pair in pairs) or _within_half(hull_of(ends), whole)
    return found


def with_public(inspection: RowInspection) -> tuple[RowInspection, tuple[str, ...]]:
    """Return an inspection whose named private covariates are taken as public, and their names."""
    observed = {item.leaf for item in inspection.observed}
    held = set(inspection.model.data_vars)
    names = tuple(
        column.name
        for column in inspection.columns
        if not column.public and column.leaf in held and column.leaf not in observed and _reach(column) is not None
    )
    columns = tuple(_opened(column) if column.name in names else column for column in inspection.columns)
    return replace(inspection, columns=columns), names


def reached_by_rows(inspection: RowInspection) -> list[str]:
    """Names of the free variables that the log-likelihood of a row depends on."""
    behind = set(ancestors([term.logp for term in inspection.terms]))
    return [str(one.name) for one in inspection.stand_ins if one in behind]


def _opened(column: Column) -> Column:
    known = {item.name: getattr(column, item.name) for item in fields(column)}
    return UnreadColumn(**{**known, "public": True, "norm": _reach(column)})


def _reach(column: Column) -> float | None:
    """Largest norm that a row of a column of floats can have by what is declared; None where there is none."""
    if column.norm is not None or column.bounds is None or column.integer:
        return column.norm
    low, high = column.ends
    return float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high)))) * (1 + 1e-12)


def _common(prior: Prior) -> Ends | None:
    """Bounds that all elements share."""
    if not prior.bounded or not prior.size:
        return None
    assert prior.low is not None and prior.high is not None
    low, high = float(prior.low.flat[0]), float(prior.high.flat[0])
    return (low, high) if (prior.low == low).all() and (prior.high == high).all() else None


def _natural(prior: Prior) -> Ends:
    """Support without the bounds; a uniform within 0 and 1 counts as a share."""
    ends = _common(prior)
    if prior.distribution == "uniform" and ends is not None and ends[0] > 0 and ends[1] < 1:
        return 0.0, 1.0
    return SUPPORTS.get(prior.distribution, (-math.inf, math.inf))


def _inside(prior: Prior) -> Ends:
    """Return bounds that hold most of a prior: two standard deviations of a normal one."""
    least, most = _natural(prior)
    if math.isfinite(most):
        return INSIDE, 1 - INSIDE
    if prior.constants is not None and prior.distribution == "normal":
        mean, sd = prior.constants
        return _digits(float((mean - SD * sd).min())), _digits(float((mean + SD * sd).max()))
    return (1 / WIDE, WIDE) if math.isfinite(least) else (-WIDE, WIDE)


def _with_ends(ends: Ends) -> Any:
    def narrower(rv: Variable) -> Variable:
        node = rv.owner
        *others, low, high = node.inputs
        # Whole numbers, as in pm.Uniform("x", 1, 2), are held as integers.
        kinds = [old.type.dtype if old.type.dtype.startswith("float") else rv.type.dtype for old in (low, high)]
        new = [pt.full_like(old, end, dtype=kind) for old, end, kind in zip((low, high), ends, kinds, strict=True)]
        return node.clone_with_new_inputs([*others, *new], strict=False).outputs[node.outputs.index(rv)]

    return narrower


def _quarters(low: float, high: float) -> tuple[float, float]:
    return low + (high - low) / 4, high - (high - low) / 4


def _ordered(old: Ends, new: Sequence[float]) -> Ends:
    """Round to two digits, outwards, where that stays within the old ends."""
    low, high = _digits(new[0], math.floor), _digits(new[1], math.ceil)
    return (low, high) if old[0] <= low < high <= old[1] else (float(new[0]), float(new[1]))


def _within_half(ends: Ends, whole: bool) -> Ends:
    low, high = ends
    if low < high:
        low, high = (low, low + (high - low) / 2) if low >= 0 else half(ends, -math.inf, math.inf)
    found = (float(math.ceil(low)), float(math.floor(high))) if whole else (low, high)
    return found if found[0] < found[1] else ends  # of a constant, or of two whole numbers


def _digits(value: float, to_whole: Callable[[float], float] = round) -> float:
    """Return a number of two digits."""
    if value == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return float(f"{to_whole(round(value / unit, 6)) * unit:.2g}")


def _pair(ends: Ends) -> str:
    return f"({ends[0]:g}, {ends[1]:g})"


def _written(ends: Mapping[str, Ends]) -> str:
    return "{" + ", ".join(f"{name!r}: {_pair(pair)}" for name, pair in ends.items()) + "}"


__all__ = ["Tightened", "half", "halved_bounds", "reached_by_rows", "tightened", "with_public"]
