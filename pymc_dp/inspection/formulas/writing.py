"""Writing the PyMC model: bambi's own priors, and a likelihood on named columns of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from bambi.backend.model_components import ConstantComponent
from bambi.backend.terms import CommonTerm, GroupSpecificTerm, InterceptTerm
from bambi.backend.utils import noncentered_default_for
from formulae.terms.terms import Intercept
from formulae.terms.variable import Variable as FormulaVariable
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.domain import Domain
from pymc_dp.inspection.formulas.design import DesignColumn, PublicTable, design_columns, group_index
from pymc_dp.inspection.rows import Array

WHOLE = ("Bernoulli", "NegativeBinomial", "Poisson")
"""Likelihoods of whole numbers."""
LARGEST = 2.0**31 - 1
"""Count that PyMC, which casts observed whole numbers to 32 bits, takes for what it is."""
ROWS = "__obs__"
"""Bambi's name of the dimension that counts rows."""
LINKS: Mapping[tuple[str, str], Callable[[Variable], dict[str, Variable]]] = {
    ("Normal", "identity"): lambda eta: {"mu": eta},
    ("Bernoulli", "logit"): lambda eta: {"logit_p": eta},
    ("Bernoulli", "probit"): lambda eta: {"p": pm.math.invprobit(eta)},
    ("Bernoulli", "cloglog"): lambda eta: {"p": -pt.expm1(-pt.exp(eta))},
    ("Beta", "logit"): lambda eta: {"mu": pm.math.sigmoid(eta)},
    **dict.fromkeys([("Laplace", "identity"), ("StudentT", "identity")], lambda eta: {"mu": eta}),
    **{
        (name, "log"): lambda eta: {"mu": pt.exp(eta)}
        for name in ("Exponential", "Gamma", "NegativeBinomial", "Poisson", "Weibull")
    },
}
"""How a likelihood takes the linear predictor; bambi's own keep probabilities one rounding away from 0 and 1."""


def write_model(spec: Any, table: PublicTable, rows: pd.DataFrame, domain: Domain) -> tuple[Model, Domain]:
    """Write the model of private rows.

    Parameters
    ----------
    spec : bambi.Model
        Built on the public table.
    table : PublicTable
    rows : pandas.DataFrame
        Private, within what is public.
    domain : Domain
        By the names of the columns of the data frame.

    Returns
    -------
    pymc.Model, Domain
        Free variables as bambi names, orders and parametrises them; one ``pm.Data`` per column of the design,
        ``<label>_data``, and per grouping factor. The domain bounds these.
    """
    writing = _Writing(spec, table, rows, domain)
    family, parent = spec.family, spec.family.likelihood.parent
    with writing.model:
        rest = writing.marginals()
        eta = writing.predictor(spec.parameters[parent])
        link = LINKS[family.likelihood.name, family.link[parent].name]
        response = spec.response_term
        # bambi's parameters, such as kappa of a Beta, as PyMC has them
        parameters = getattr(family, "transform_backend_kwargs", dict)({**link(eta), **rest})
        getattr(pm, family.likelihood.name)(
            response.alias or response.name, **parameters, observed=writing.response(), dims=ROWS
        )
    return writing.model, writing.domain()


class _Writing:
    def __init__(self, spec: Any, table: PublicTable, rows: pd.DataFrame, domain: Domain) -> None:
        self.spec, self.table, self.rows, self.given = spec, table, rows, domain
        self.model = Model(coords={ROWS: np.arange(len(rows))})
        self.bounds: dict[str, tuple[float, float]] = {}
        self.public: list[str] = []
        self.shown: dict[str, Array] = {}

    def marginals(self) -> dict[str, Any]:
        """Write the parameters that are the same for all rows."""
        written = {}
        for name, component in self.spec.marginal_parameters.items():
            own = ConstantComponent(component)
            own.build(SimpleNamespace(model=self.model), self.spec)
            written[name] = own.output
        return written

    def predictor(self, component: Any) -> Variable:
        """Write the linear predictor, in the order of bambi: it is the order of the free variables."""
        parts: list[Any] = []
        if component.intercept_term is not None:
            parts.append(self._coefficients(InterceptTerm(component.intercept_term)))
        parts += [self._offset(term.term) for term in component.offset_terms.values()]
        centred = self.spec.center_predictors and component.intercept_term is not None
        for term in component.common_terms.values():
            weights = self._coefficients(CommonTerm(term))
            for j, column in enumerate(design_columns(term.term, self.table, self.rows)):
                values = self._data(column, term.term.var_names)
                parts.append(_entry(weights, j) * (values - column.shown.mean() if centred else values))
        noncentered = noncentered_default_for(self.spec, component.name)
        for term in component.group_specific_terms.values():
            parts += self._group_effects(GroupSpecificTerm(term, noncentered), term.term)
        return sum(parts[1:], parts[0]) if parts else pt.zeros(len(self.rows))

    def _coefficients(self, backend: Any) -> Variable:
        for name, values in getattr(backend, "coords", {}).items():
            if name not in self.model.coords:
                self.model.add_coords({name: values})
        backend.build(self.spec)
        return self.model[backend.name]

    def _offset(self, term: Any) -> Any:
        if not self.table.known(term.var_names):
            return float(np.asarray(term.data).flat[0])
        (column,) = design_columns(term, self.table, self.rows)
        return self._data(column, term.var_names)

    def _group_effects(self, backend: GroupSpecificTerm, term: Any) -> list[Variable]:
        effects, places = self._coefficients(backend), self._groups(term.factor)
        if isinstance(term.expr, Intercept):
            return [effects[places]]
        columns = design_columns(term.expr, self.table, self.rows)
        data = [self._data(column, term.expr.var_names) for column in columns]
        if effects.ndim == 1:
            return [effects[places] * data[0]]
        return [effects[places, j] * values for j, values in enumerate(data)]

    def _groups(self, factor: Any) -> Variable:
        name = f"{factor.name}_group"
        if name not in self.model.named_vars:
            self._note(name, factor.var_names)
            pm.Data(name, group_index(factor, self.table, self.rows), dims=ROWS)
        return self.model[name]

    def _data(self, column: DesignColumn, names: set[str]) -> Variable:
        """Return the pm.Data of a column; one that terms share is held once."""
        name, copies = f"{column.label}_data", 1
        while name in self.shown and not np.array_equal(self.shown[name], column.shown):
            copies += 1
            name = f"{column.label}_data_{copies}"
        if name not in self.shown:
            self.shown[name], self.bounds[name] = column.shown, column.bounds
            self._note(name, names)
            pm.Data(name, np.ascontiguousarray(column.values), dims=ROWS)
        return self.model[name]

    def _note(self, name: str, columns: set[str]) -> None:
        if self.table.known(columns) <= self.given.public:
            self.public.append(name)

    def response(self) -> Array:
        """Return what is observed: 1 for the label that bambi calls success, where there are labels."""
        term = self.spec.response_term
        (component,) = term.term.components
        name, whole = term.alias or term.name, self.spec.family.likelihood.name in WHOLE
        if not isinstance(component, FormulaVariable):
            (column,) = design_columns(term.term, self.table, self.rows)
            values, self.bounds[name] = column.values, column.bounds
        elif component.kind == "categoric":
            values = np.asarray(self.rows[component.name] == term.success)
        else:
            values = self.rows[component.name].to_numpy()
            if self.spec.family.likelihood.name != "Bernoulli":
                self.bounds[name] = self.table.columns[component.name].bounds
        # Beyond, a cast would warn of a value, or wrap it.
        return np.rint(np.clip(values, 0, LARGEST)).astype(np.int64) if whole else np.array(values, dtype=np.float64)

    def domain(self) -> Domain:
        """Return the domain of what was written."""
        return Domain(
            rows=self.given.rows,
            bounds=self.bounds,
            public=self.public,
            neighbours=self.given.neighbours,
            n_max=self.given.n_max,
        )


def _entry(weights: Variable, place: int) -> Variable:
    return weights if weights.ndim == 0 else weights[place]


__all__ = ["LINKS", "write_model"]
