"""Model → new model in which missing values of a covariate count as one unknown value, with a column of indicators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.rows import FLAG, Array, unwrap
from pymc_dp.transforms.prior_model import replace_variables

VALUE = "_fill"
"""What the value of missing entries is called, after the name of its column."""


def fill(model: pm.Model | None, values: Mapping[str, Any]) -> pm.Model:
    """Return a copy of a model in which columns may have missing values: each becomes a value and an indicator.

    Parameters
    ----------
    model : pymc.Model or None
        None: the model of the context. Not changed.
    values : mapping of name to number or distribution
        For ``pm.Data`` of floats: the prior of what all its missing values count as. A distribution,
        ``pm.Normal.dist(0, 2)``, or a number c for ``pm.Normal.dist(c, 1)``. Public, in the units of the column.

    Returns
    -------
    pymc.Model
        Two variables more for each: ``income_missing``, a ``pm.Data`` of 0 and 1, 1 where there is no value, and the
        free variable ``income_fill``. Wherever `income` is used, it is `income_fill` for rows of which it is missing.
        All else is as it was; arrays other than those columns are shared, not copied.

    Raises
    ------
    ArgumentError
        For names that are no ``pm.Data``, columns of whole numbers, those that a likelihood observes, names that are
        taken, and values that are neither numbers nor distributions of single numbers.

    Notes
    -----
    In a linear predictor ``a + b x`` this is the method of the missing indicator: rows without a value add ``a + b
    x_fill``, so that the coefficient of the indicator is ``b x_fill``, unknown, and the slope `b` is that of rows with
    a value. The value itself has the prior, not its coefficient, as a value is what one knows something about. As any
    indicator, it is right where that values are missing says no more of the response than a shift.

    **Where missing values are.** In the table of ``rows=``: NaN, or NULL of a file. It needs no column
    `income_missing`, which is read off `income`, row by row, before that is clamped. ``pm.Data`` refuses NaN, so that a
    model whose rows have some is built on dummy rows; NaN that came into it by ``pm.set_data`` is found when `fill` is
    called, and not later.

    **Guarantee.** None by itself. `income_missing` is a private column like any other, and whether a row has a value is
    protected as its values are. Both columns are read, element by element, into new arrays; names, shapes, types and
    texts are the same whether anything is missing or not.

    References
    ----------
    Cohen, Cohen (1975), Applied Multiple Regression, chapter 7; Jones (1996), doi 10.1080/01621459.1996.10476680, on
    where it is biased.

    Examples
    --------
    >>> import pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     b, income = pm.Normal("b", 0, 1), pm.Data("income", [0.2, -1.0, 0.4])
    ...     y = pm.Bernoulli("y", logit_p=b * income, observed=[0, 1, 1])
    >>> filled = dp.fill(model, {"income": 0.0})
    >>> filled.free_RVs, [str(var.name) for var in filled.data_vars]
    ([b, income_fill], ['income', 'income_missing'])
    """
    model = context_model(model)
    priors = {name: _prior(name, value) for name, value in _validate.mapping("values", values).items()}
    if not priors:
        raise ArgumentError("values must name at least one pm.Data, got none. Write dp.fill(model, {'income': 0.0}).")
    for name in priors:
        _check(model, name)
    new = replace_variables(model, {})
    with new:
        for name, (prior, start) in priors.items():
            _add(new, name, prior, start)
    return replace_variables(new, {}, read_as={name: partial(_read, name) for name in priors})


def _add(new: pm.Model, name: str, prior: Callable[[str, Any], Variable], start: float) -> None:
    """Register the indicator and the value of a column, and put `start` where it has no value."""
    dims = new.named_vars_to_dims.get(name)
    missing = _missing(new[name].get_value(borrow=True))
    new[name].set_value(np.where(missing, start, np.asarray(new[name].get_value(borrow=True))))
    pm.Data(name + FLAG, missing.astype(np.int8), dims=dims)
    inner = {"dims": dims[1:]} if dims and None not in dims[1:] else {"shape": missing.shape[1:]}
    prior(name + VALUE, inner)


def _missing(held: Any) -> Array:
    return np.asarray(np.ma.getmaskarray(held) | np.isnan(np.asarray(held)))


def _read(name: str, of: Callable[[str], Any]) -> Variable:
    """Return a column as it is used: the indicator as an index keeps it linear in the column, within each cell."""
    column, flag, value = of(name), of(name + FLAG), of(name + VALUE)
    keeps, takes = pt.stack([pt.constant(1.0), pt.constant(0.0)]), pt.stack([pt.constant(0.0), pt.constant(1.0)])
    found: Variable = keeps[flag] * column + takes[flag] * value
    return found


def _prior(name: str, value: Any) -> tuple[Callable[[str, Any], Variable], float]:
    """Return what registers the prior of a value, and a number of its order."""
    if isinstance(value, Variable) and value.owner is not None:
        drawn = isinstance(value.owner.op, RandomVariable | SymbolicRandomVariable)
        if drawn and value.type.ndim == 0 and np.dtype(value.type.dtype).kind == "f":
            return partial(_registered, value), 0.0
        raise ArgumentError(
            f"values[{name!r}] must be a number or the distribution of one number that is no whole number, such as "
            "pm.Normal.dist(0, 1). Leave out shape= and dims=."
        )
    centre = _validate.number(f"values[{name!r}]", value)
    return (lambda own, shape: pm.Normal(own, centre, 1.0, **shape)), centre


def _registered(value: Any, own: str, shape: Any) -> Variable:
    model = pm.modelcontext(None)
    dims = shape.get("dims")
    lengths = shape.get("shape") or tuple(model.dim_lengths[dim] for dim in dims or ())
    given = pm.distributions.shape_utils.change_dist_size(value, lengths) if lengths else value
    found: Variable = model.register_rv(given, name=own, dims=dims or None)
    return found


def _check(model: pm.Model, name: str) -> None:
    """Refuse what is no column of floats that may have missing values."""
    known = [str(var.name) for var in model.data_vars]
    observed = {unwrap(model.rvs_to_values[rv]): rv.name for rv in model.observed_RVs}
    if name in [rv.name for rv in model.observed_RVs] or (name in known and model[name] in observed):
        raise ArgumentError(
            f"values: a likelihood observes {name!r}, and a response that is missing says nothing. Leave such rows out "
            "if whether they are missing is public; else observe a response with a level of its own for 'missing'."
        )
    if name not in known:
        raise ArgumentError(
            f"values: {_validate.shown(name)} is no pm.Data of the model; these are {', '.join(known) or 'none'}."
            f"{_validate.nearest(name, known)}"
        )
    if np.dtype(model[name].type.dtype).kind != "f":
        raise ArgumentError(
            f"{name!r} holds whole numbers. Give missing ones a level of their own, one more than there are: "
            f"np.where(missing, n_levels, {name})."
        )
    for own in (name + FLAG, name + VALUE):
        if own in model.named_vars:
            raise ArgumentError(f"the name {own!r} is taken, which filling {name!r} needs. Rename it.")


__all__ = ["fill"]
