"""Densities written by hand that state their statistics: what a row adds, its bounds, and how the sums come about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.custom import CustomDistRV
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.graph.utils import MissingInputError
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.row_density import unchecked, vectorized
from pymc_dp.inspection.rows import Array, opaque, shape_of
from pymc_dp.inspection.taint import trace_rows

STATEMENT = "dp_statement"
FUNCTIONS = "Use PyTensor's functions of the entries of one row, such as row[0] * row[1] or pt.log(row)."


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement:
    """What a density says about its statistics, as graphs; nothing in it is a function of the user's or holds a row.

    Attributes
    ----------
    row : Variable
        One row, (n_entries,).
    statistics : Variable
        What it adds, (n_statistics,).
    bounds : (n_statistics, 2) array
        Public bounds of each.
    names : tuple of str
        Of each.
    values : (int, int) or None
        Least and greatest of the whole numbers that an entry can be; None where it is any number.
    parameters : tuple of Variable
        Those of the density, for one cell.
    mean, covariance : Variable
        Of the statistics of one row given the parameters: (n_statistics,) and (n_statistics, n_statistics).
    sums, size : Variable
        Exact sums of the statistics, and the number of rows.
    log_likelihood : Variable or None
        Of these given the parameters, where it was stated.
    """

    row: Variable
    statistics: Variable
    bounds: Array
    names: tuple[str, ...]
    values: tuple[int, int] | None
    parameters: tuple[Variable, ...]
    mean: Variable
    covariance: Variable
    sums: Variable
    size: Variable
    log_likelihood: Variable | None

    @property
    def width(self) -> int:
        """Entries of a row."""
        return int(self.row.type.shape[0])

    @property
    def count(self) -> int:
        """Number of statistics."""
        return len(self.bounds)

    def of_rows(self, rows: Variable) -> Variable:
        """Return the statistics of many rows, (n_rows, n_statistics)."""
        found: Variable = vectorized(self.statistics, {self.row: rows})
        return found


def statement_of(variable: Variable) -> Statement | None:
    """Return what the density of a random variable states, if it does."""
    return None if variable.owner is None else getattr(type(variable.owner.op), STATEMENT, None)


def can_state(variable: Variable) -> bool:
    """Whether a variable is a density written by hand whose rows are vectors."""
    op = getattr(getattr(variable, "owner", None), "op", None)
    return isinstance(op, CustomDistRV) and op.ndim_supp == 1


def with_statistics(
    variable: TensorVariable,
    statistics: Callable[..., Any],
    *,
    bounds: Any,
    moments: Callable[..., Any],
    log_likelihood: Callable[..., Any] | None = None,
    values: Any = None,
    names: Sequence[str] | None = None,
) -> TensorVariable:
    """State the sufficient statistics of a ``pm.CustomDist`` whose rows are vectors: their sums can be released.

    Parameters
    ----------
    variable : TensorVariable
        What ``pm.CustomDist(..., signature="(k)->(k)", observed=rows)`` returned: one vector per row.
    statistics : callable
        From one row, a tensor of shape (n_entries,), to its statistics: a list of numbers, or one vector. Written with
        PyTensor, of the entries of the row and of numbers known beforehand.
    bounds : pair, or sequence of pairs
        Public bounds ``(low, high)`` of all statistics, or of each of them. What is beyond is clamped.
    moments : callable
        From the parameters of the density, without an axis for rows, to mean (n_statistics,) and covariance
        (n_statistics, n_statistics) of the statistics of one row. They decide how good the posterior is, not how
        private the release.
    log_likelihood : callable, optional
        From ``(sums, size, *parameters)``, the exact sums (n_statistics,) of the statistics of `size` rows, to their
        log-likelihood: of an exponential family, η·S - n A(η). For ``dp.Statistics(noise_aware=False)`` only.
    values : (int, int), optional
        Least and greatest value of the entries of a row, where these are whole numbers. Rows are clamped to them. With
        up to 2**16 possible rows, all of these are enumerated: the noise then is for the two that are furthest apart.
    names : sequence of str, optional
        Of the statistics, for tables and reports.

    Returns
    -------
    TensorVariable
        The variable itself.

    Raises
    ------
    ArgumentError
        If the variable is no ``pm.CustomDist`` of vectors, a function depends on more than its arguments, or uses an
        operation that is not known to treat each row by itself.

    Notes
    -----
    **Guarantee.** None by itself. ``dp.privatize`` and ``dp.sample`` release the sums as those of any other family:
    each statistic is clamped to its bounds, rounded to a grid of 2**31 steps between them, and added up in whole
    numbers; class exact, arithmetic hardened. Sensitivities are those of the rounded numbers: from the bounds, or over
    all possible rows. What the functions hold as numbers is assumed public.

    The noise-aware posterior treats the sums as normal (central limit theorem over rows), with the stated moments.
    Where bounds cut off values that the density can have, the moments should be those of the clamped statistics.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), sections 3.2 and 4.2; Bernstein, Sheldon (2018), doi
    10.48550/arXiv.1809.02188.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp, pytensor.tensor as pt
    >>> pairs = np.array([[0, 0], [1, 1], [0, 1], [1, 1]])
    >>> def logp(y, p):  # of pairs that are alike with probability p
    ...     return pt.switch(pt.eq(y[..., 0], y[..., 1]), pt.log(p[..., 0]), pt.log1p(-p[..., 0])) - np.log(2)
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.CustomDist("y", p * pt.ones(2), logp=logp, signature="(k)->(k)", dtype="int64", observed=pairs)
    ...     y = with_statistics(
    ...         y,
    ...         lambda row: [pt.eq(row[0], row[1])],
    ...         bounds=(0, 1),
    ...         moments=lambda p: ([p[0]], [[p[0] * (1 - p[0])]]),
    ...         values=(0, 1),
    ...         names=["alike"],
    ...     )
    >>> dp.privatize(model, epsilon=1.0).coords["y_statistic"]
    ('sum (alike - 0.5)',)
    """
    if not can_state(variable):
        raise ArgumentError(
            "variable must be what pm.CustomDist returned for rows that are vectors, with a signature such as "
            f'"(k)->(k)", got {_validate.shown(variable)}. A density made with dist=, and one of single numbers, '
            "cannot state statistics."
        )
    op: Any = variable.owner.op
    row = pt.TensorType("float64", (_width(variable),))("row")
    found = _statistics(row, _validate.function("statistics", statistics))
    count = int(found.type.shape[0])
    parameters = tuple(
        pt.TensorType(item.type.dtype, item.type.shape[item.type.ndim - ndim :])(f"parameter_{place}")
        for place, (item, ndim) in enumerate(zip(op.dist_params(variable.owner), op.ndims_params, strict=True))
    )
    given = _validate.function("moments", moments)(*parameters)
    mean, covariance = (_tensor("moments", part) for part in _validate.pair("moments", given, ends="mean, covariance"))
    for part, shape in ((mean, (count,)), (covariance, (count, count))):
        if part.type.ndim != len(shape) or not set(part.type.shape) <= {None, count}:
            raise ArgumentError(
                f"moments must return a mean and a covariance of shapes {(count,)} and {(count, count)}, as there are "
                f"{count} statistics, got one of shape {part.type.shape}."
            )
        _alone("moments", part, parameters)
    sums, size = pt.TensorType("float64", (count,))("sums"), pt.scalar("size", dtype="float64")
    whole = None
    if log_likelihood is not None:
        whole = _tensor("log_likelihood", _validate.function("log_likelihood", log_likelihood)(sums, size, *parameters))
        _alone("log_likelihood", whole, (sums, size, *parameters))
        if whole.type.ndim:
            raise ArgumentError(f"log_likelihood must return one number, got {whole.type.ndim} axes. Add them up.")
    statement = Statement(
        row=row,
        statistics=found,
        bounds=_bounds(bounds, count),
        names=_names(names, count),
        values=None if values is None else _values(values),
        parameters=parameters,
        mean=mean,
        covariance=covariance,
        sums=sums,
        size=size,
        log_likelihood=whole,
    )
    setattr(type(op), STATEMENT, statement)  # every pm.CustomDist has a type of its own, which its clones keep
    return variable


def _last_length(variable: Variable) -> int | None:
    """Return the length of the last axis, by the type of a variable or by the dims that it follows; None if unknown."""
    length = variable.type.shape[-1]
    if length is not None:
        return int(length)
    try:
        return int(plain_function([], variable.shape[-1])())
    except (MissingInputError, NotImplementedError):
        return None


def _width(variable: TensorVariable) -> int:
    """Return the number of entries of a row, by what the variable observes or by its parameters."""
    model = Model.get_context(error_if_none=False)
    held = None if model is None else model.rvs_to_values.get(variable)
    width = shape_of(held)[-1] if isinstance(held, Constant | SharedVariable) else _last_length(variable)
    if width is None:
        raise ArgumentError(
            "The number of entries of a row of variable is not known. Give its parameters constant shapes."
        )
    return int(width)


def _statistics(row: Variable, function: Callable[..., Any]) -> Variable:
    """Return the statistics of one row as a vector, proved to be those of this row alone."""
    found = unchecked(_tensor("statistics", function(row)))
    if found.type.ndim != 1 or not found.type.shape[0]:
        raise ArgumentError(
            f"statistics must return a list of numbers or one vector of known length, got {found.type.ndim} axes."
        )
    _alone("statistics", found, [row])
    if names := opaque([found], [row]):
        raise ArgumentError(f"statistics use the operation {names[0]}, which may do anything. {FUNCTIONS}")
    rows = pt.TensorType("float64", (None, row.type.shape[0]))("rows")
    many = vectorized(found, {row: rows})
    flow = trace_rows([many], {rows: 0})
    if flow.problems or flow.index_uses or flow.axes[many] != 0:
        what = flow.problems[0] if flow.problems else "they use an entry as an index, or none at all"
        raise ArgumentError(f"statistics are not known to be defined for every row by itself: {what}. {FUNCTIONS}")
    return found


def _tensor(name: str, value: Any) -> Variable:
    try:
        return _stacked(value).astype("float64")
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ArgumentError(f"{name} must return numbers or tensors, got {_validate.shown(value)}.") from error


def _stacked(value: Any) -> Any:
    """Return a tensor of numbers, of tensors, or of lists of these."""
    return pt.stack([_stacked(item) for item in value]) if isinstance(value, list | tuple) else pt.as_tensor(value)


def _alone(name: str, graph: Variable, given: Sequence[Variable]) -> None:
    """Refuse a graph that depends on anything but numbers and what it was given."""
    for var in ancestors([graph], blockers=list(given)):
        if var.owner is None and not isinstance(var, Constant) and var not in given:
            raise ArgumentError(
                f"{name} depend on {var.name or 'a variable'!r}, which is none of the arguments. Use these and "
                "constants only."
            )


def _bounds(bounds: Any, count: int) -> Array:
    try:
        found = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (count, 2)).copy()
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"bounds must be (low, high), or {count} such pairs, one per statistic, got {_validate.shown(bounds)}."
        ) from error
    if not np.isfinite(found).all() or not (found[:, 0] < found[:, 1]).all():
        raise ArgumentError(f"bounds must be finite, with low < high, got {_validate.shown(bounds)}.")
    return found


def _names(names: Any, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"t{place}" for place in range(count))
    found = _validate.names("names", names)
    if len(found) != count or len(set(found)) < count:
        raise ArgumentError(f"names must be {count} different texts, one per statistic, got {_validate.shown(names)}.")
    return tuple(found)


def _values(values: Any) -> tuple[int, int]:
    low, high = _validate.pair("values", values)
    first = _validate.integer("values[0]", low, low=-(2**31))
    return first, _validate.integer("values[1]", high, low=first + 1, high=2**31)


__all__ = ["Statement", "can_state", "statement_of", "with_statistics"]
