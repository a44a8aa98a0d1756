"""Bambi's ``weighted(y, w)``: the response as it is, and the column of its weights beside the model."""

from __future__ import annotations

from copy import copy
from typing import Any

import bambi
import numpy as np
import pandas as pd
import pymc as pm
from formulae.terms.call import Call
from formulae.terms.call_resolver import LazyCall, LazyVariable
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype
from pymc import Model

from pymc_dp._column_bounds import hull_of
from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.formulas.observing import ROWS

WRITTEN = 'Write weighted(y, w), of two columns, or Domain(weights={"y": "w"}), not both.'


def without_weights(model: Any, domain: Domain) -> tuple[Any, str | None]:
    """Return a bambi model whose rows count once, and the column that weighs them; None where none does.

    Raises
    ------
    UnsupportedModelError
        If weights are written in another way, are no numbers, or have no bounds.
    """
    found, response = _written(model)
    given = dict(domain.weights)
    if given and (found or list(given) != [model.response_term.name]):
        raise _refused(", ".join(given), "weights are not of the response, or given twice", WRITTEN)
    column = found or next(iter(given.values()), None)
    if column is None:
        return model, None
    dtype = model.data[column].dtype if column in model.data.columns else np.dtype(object)
    if not is_numeric_dtype(dtype) or is_complex_dtype(dtype) or is_bool_dtype(dtype):
        raise _refused(column, "it is a weight, and no column of numbers", WRITTEN)
    if column not in domain.bounds or hull_of(domain.bounds[column])[0] < 0:
        raise _refused(column, "it is a weight without bounds of at least 0", f'Give bounds={{"{column}": (0, high)}}.')
    if found is None:
        return model, column
    plain, terms = copy(model), model.formula.main.partition("~")[2]
    plain.formula = bambi.Formula(f"{response} ~ {terms}", *model.formula.additionals)
    return plain, column


def _written(model: Any) -> tuple[str | None, str]:
    """Return the columns of weights and response of a formula that weighs rows."""
    (component, *_) = model.response_term.term.components
    call = component.call if isinstance(component, Call) else None
    if not isinstance(call, LazyCall) or call.callee != "weighted":
        return None, ""
    if call.kwargs or len(call.args) != 2 or not all(isinstance(one, LazyVariable) for one in call.args):
        raise _refused(str(component.name), "weights are no column, or the response is none", WRITTEN)
    response, column = (str(one.name) for one in call.args)
    return column, response


def _refused(where: str, what: str, remedy: str) -> UnsupportedModelError:
    return UnsupportedModelError([Problem(where=where, what=what, remedy=remedy)])


def with_weights(model: Model, found: Domain, data: pd.DataFrame, column: str, domain: Domain) -> Domain:
    """Add the column of weights to a model that was written, and say so in its domain.

    No error or warning depends on a value: those outside of the bounds are clamped, missing ones are in the middle.
    """
    (low, high), name = hull_of(domain.bounds[column]), f"{column}_data"
    if name not in model.named_vars:
        values = data[column].to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(all="ignore"), model:
            pm.Data(name, np.where(np.isnan(values), low / 2 + high / 2, np.clip(values, low, high)), dims=ROWS)
    (response,) = model.observed_RVs
    return Domain(
        rows=found.rows,
        bounds={**found.bounds, name: (low, high)},
        public=found.public,
        neighbours=found.neighbours,
        n_max=found.n_max,
        weights={str(response.name): name},
    )


__all__ = ["with_weights", "without_weights"]
