"""What ``dp.explain`` warns of in a model that can be released: ids, levels that may be persons, priors, kinks."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops
from pymc.distributions.custom import CustomDistRV
from pytensor.graph.basic import Apply, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import Elemwise

from pymc_dp._display import shorten
from pymc_dp.advice.saturated import saturated
from pymc_dp.families.constants import number
from pymc_dp.inspection.assumptions import CAUTIONS
from pymc_dp.inspection.findings import Inspected, RowInspection
from pymc_dp.inspection.owners import ids_line
from pymc_dp.inspection.schema import dim_length
from pymc_dp.inspection.taint import depends_on

FEWEST_LEVELS, ROWS_A_LEVEL = 20, 5
"""Levels, and rows for each on average, from which and up to which they may be persons."""
MANY_NAMES = 3
BREAKS: tuple[type, ...] = (
    *(ops.GT, ops.GE, ops.LT, ops.LE, ops.Sign, ops.Floor, ops.Ceil, ops.Trunc, ops.IntDiv, ops.Mod),
    *(ops.RoundHalfAwayFromZero, ops.RoundHalfToEven),
)
"""Functions that jump, or that choose between two branches. Equality of real numbers is left out: it never holds."""
KINKS: tuple[type, ...] = (ops.Clip, ops.ScalarMaximum, ops.ScalarMinimum)
"""Functions that bend. An absolute value is not among them: it keeps what must be positive so, as bambi writes it."""
NEAR, FAR = 1e-3, 10.0
"""Constants this near 0 or 1, but not at them, and this far away, are ends that keep floats from overflowing."""
LOG_TWO = math.log(2)
"""Where log(1 - exp(-x)) is written in another way: its branches are one smooth function."""


def cautions(found: Inspected, n_rows: int, *, beside: bool, released: bool, by_gradients: bool) -> list[str]:
    """Say what to look at before a model is released. Reads no private value.

    Parameters
    ----------
    found : Inspected
    n_rows : int
        Number of rows, or the public bound on it.
    beside : bool
        Whether the table is beside the model: who has which row is then none of its ``pm.Data``.
    released : bool
        Whether sums or gradients can be released; else the levels may be what is in the way.
    by_gradients : bool
        Whether noised gradients would be released.
    """
    lines = [*getattr(found.model, CAUTIONS, ())]
    lines += [] if beside else ids_line(found.model, found.domain.unit)
    if released:
        lines += [*_levels(found.rows, n_rows), *saturated(found.rows)]
    return [*lines, *(_kinks(found.rows) if by_gradients else ())]


def _levels(inspection: RowInspection, n_rows: int) -> Iterator[str]:
    """Levels of parameters that rows are indexed by, where there are nearly as many as rows; by public numbers."""
    free = dict(zip(inspection.stand_ins, inspection.model.free_RVs, strict=True))
    seen: dict[tuple[int, bool], dict[str, None]] = {}
    for term in inspection.terms:
        for use in term.flow.index_uses:
            behind, many = [rv for stand, rv in free.items() if depends_on(use.indexed, [stand])], use.length
            if behind and many is not None and many >= FEWEST_LEVELS and many * ROWS_A_LEVEL >= n_rows:
                name, labelled = _dimension(inspection, behind, many)
                seen.setdefault((many, labelled), {})[name] = None
    for (many, labelled), names in seen.items():
        known = "their labels and number are taken as public and go" if labelled else "their number is public and goes"
        most = "" if inspection.domain.neighbours == "replace" else "at most "
        shown = ", ".join(shorten([*names], MANY_NAMES))
        levels = f"{many} levels of {shown} for {most}{n_rows} rows"
        yield f"{levels}: {known} into the trace; if each is a person, see dp.Unit"


def _dimension(inspection: RowInspection, behind: Iterable[Variable], length: int) -> tuple[str, bool]:
    """Return the name of a dimension of parameters and whether it has labels; else that of the parameters."""
    model, rvs = inspection.model, list(behind)
    for dim in (dim for rv in rvs for dim in model.named_vars_to_dims.get(rv.name or "") or ()):
        if dim is not None and dim not in inspection.row_dims and dim_length(model.dim_lengths[dim]) == length:
            return str(dim), model.coords.get(dim) is not None
    return str(rvs[-1].name), False


def _kinks(inspection: RowInspection) -> Iterator[str]:
    """Likelihoods that are not smooth in parameters, as they are written: within densities of PyMC nobody looks."""
    model, terms = inspection.model, {term.name: term for term in inspection.terms}
    for rv in model.observed_RVs:
        term = terms.get(rv.name)
        own = isinstance(rv.owner.op, CustomDistRV) and term is not None
        ends = [term.logp] if own and term is not None else list(rv.owner.inputs)
        free = dict(zip(inspection.stand_ins if own else model.free_RVs, model.free_RVs, strict=True))
        if names := _not_smooth_in(ends, free, plainly=not own):
            shown = ", ".join(shorten(names, MANY_NAMES))
            yield (
                f"the likelihood of {rv.name} is not smooth in {shown}: rehearse with dp.plan(...) first, noised "
                "gradients may end far off (a comparison, clip or maximum there depends on parameters)"
            )


def _not_smooth_in(ends: Iterable[Variable], free: Mapping[Variable, Variable], *, plainly: bool) -> list[str]:
    """Names of the parameters that reach a function with a jump or a kink; `plainly` where no density is on the way."""
    names: dict[str, None] = {}
    for node in _nodes(ends, free):
        scalar: Any = node.op.scalar_op if isinstance(node.op, Elemwise) else None
        breaks = (isinstance(scalar, BREAKS) and not _sign_of_scale(node)) or (
            isinstance(scalar, ops.Cast) and _rounds(node)
        )
        if not (breaks or (plainly and isinstance(scalar, KINKS))) or _guards(node, plainly=plainly):
            continue
        for one, rv in free.items():
            if rv.type.dtype.startswith("float") and any(depends_on(item, [one]) for item in node.inputs):
                names[str(rv.name)] = None
    return list(names)


def _nodes(ends: Iterable[Variable], stop: Container[Variable]) -> Iterator[Apply]:
    """Operations on the way to `ends`, but not those that only check parameters."""
    stack, seen = list(ends), set[Variable]()
    while stack:
        var = stack.pop()
        if var in seen or var in stop or (node := var.owner) is None:
            continue
        seen.add(var)
        yield node
        stack += node.inputs[:1] if isinstance(node.op, CheckAndRaise) else node.inputs


def _sign_of_scale(node: Apply) -> bool:
    """Whether it may be the sign of a scale, by which PyMC refuses negative ones: all but the sign of a difference."""
    inner: Any = node.inputs[0].owner
    difference = inner is not None and isinstance(inner.op, Elemwise) and isinstance(inner.op.scalar_op, ops.Sub)
    return isinstance(getattr(node.op, "scalar_op", None), ops.Sign) and not difference


def _rounds(node: Apply) -> bool:
    """Whether real numbers become whole ones."""
    before, after = (np.dtype(var.type.dtype).kind for var in (node.inputs[0], node.outputs[0]))
    return before == "f" and after in "iub"


def _guards(node: Apply, *, plainly: bool) -> bool:
    """Whether constants on the other side are ends for floats, and not points where anything changes.

    Of a density, where functions of the normal distribution are written in branches, all constants but 0.
    """
    numbers = [found for item in node.inputs if (found := number(item)) is not None]
    return bool(numbers) and all(_end_for_floats(one) or (not plainly and one != 0) for one in numbers)


def _end_for_floats(number: float) -> bool:
    size = abs(number)
    near = 0 < size <= NEAR or 0 < abs(1 - size) <= NEAR
    return near or size >= FAR or abs(size - LOG_TWO) <= 1e-2


__all__ = ["cautions"]
