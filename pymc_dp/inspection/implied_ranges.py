"""The range of what a random variable may be, where its distribution has one that is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping

from pytensor.graph.basic import Variable
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError

from pymc_dp._column_bounds import DeclaredBounds, hull_of
from pymc_dp.inspection.integrated import given_latents
from pymc_dp.inspection.rows import Outside, array_leaves, unwrap
from pymc_dp.inspection.stated import statement_of

Implied = tuple[float, Outside]
"""Greatest value that a model gives a column a meaning for, the least being 0, and where values outside go."""
LIMITS = dict.fromkeys(("binomial", "beta_binomial", "multinomial", "dirichlet_multinomial"), (0,)) | {
    "hypergeometric": (0, 2)
}
"""Distributions of counts, and which of their parameters no count exceeds."""


def implied_by(rv: Variable, declared_bounds: Mapping[str, DeclaredBounds]) -> list[Implied]:
    """Return the range of what a random variable may be, where it is 0..n with n, or bounds of it, known beforehand."""
    statement = statement_of(rv := given_latents(rv))
    if statement is not None:
        least, most = statement.values or (None, None)
        return [(float(most), "nearest")] if most is not None and least == 0 else []
    name, op = getattr(rv.owner.op, "name", None), rv.owner.op
    if name == "bernoulli":
        return [(1.0, "first")]
    if name == "categorical":
        levels = op.dist_params(rv.owner)[0].type.shape[-1]
        return [(float(levels - 1), "first")] if levels else []
    ends = (_most(op.dist_params(rv.owner)[place], declared_bounds) for place in LIMITS.get(str(name), ()))
    return [(min(known), "nearest")] if (known := [end for end in ends if end is not None and end >= 0]) else []


def _most(parameter: Variable, declared_bounds: Mapping[str, DeclaredBounds]) -> float | None:
    """Return what a parameter is at most: a constant, or a column with bounds."""
    known = declared_bounds.get(unwrap(parameter).name or "")
    return hull_of(known)[1] if known else _constant(parameter)


def _constant(parameter: Variable) -> float | None:
    """Value of a constant of one element. An array of equal numbers may be a column, whose values must not be read."""
    if list(array_leaves([parameter], single=True)):
        return None
    try:
        return float(get_underlying_scalar_constant_value(parameter))
    except NotScalarConstantError:
        return None


__all__ = ["Implied", "implied_by"]
