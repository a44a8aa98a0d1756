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
from bambi.backend.pymc import PyMCModel
from bambi.backend.terms import CommonTerm, GroupSpecificTerm, InterceptTerm
from bambi.backend.utils import get_linkinv, noncentered_default_for
from formulae.terms.terms import Intercept
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.domain import Domain
from pymc_dp.inspection.formulas.design import (
    PublicTable,
    design_columns,
    design_matrix,
    group_index,
)
from pymc_dp.inspection.formulas.observing import ROWS, Observing
from pymc_dp.inspection.formulas.processes import write_process
from pymc_dp.inspection.formulas.responses import LeftSide
from pymc_dp.inspection.rows import Array, Bounds

INVERSES: Mapping[str, Callable[[Variable], Variable]] = {
    **PyMCModel.INVLINKS,
    "logit": pm.math.sigmoid,
    "probit": pm.math.invprobit,
    "cloglog": lambda eta: -pt.expm1(-pt.exp(eta)),
}
"""Inverses of links; bambi's own keep probabilities one rounding away from 0 and 1."""


def write_model(
    spec: Any, side: LeftSide, table: PublicTable, rows: pd.DataFrame, domain: Domain
) -> tuple[Model, Domain]:
    """Write the model of private rows.

    Parameters
    ----------
    spec : bambi.Model
        Built on the public table.
    side : LeftSide
        What its formula observes.
    table : PublicTable
    rows : pandas.DataFrame
        Private, within what is public.
    domain : Domain
        By the names of the columns of the data frame.

    Returns
    -------
    pymc.Model, Domain
        Free variables as bambi names, orders and parametrises them; one ``pm.Data`` per column of the design,
        ``<label>_data``, per grouping factor, and per column that the response has beside what is observed. The domain
        bounds these.

    Notes
    -----
    Every family goes the same way, of bambi or of a user: links and parameters are written by what the family itself
    says of them, and whether its likelihood can be released is found from the model that is written.
    """
    writing = _Writing(spec, table, rows, domain)
    with writing.model:
        parameters = writing.constants()
        for name, component in spec.conditional_parameters.items():
            eta = writing.predictor(component)
            if name == spec.family.likelihood.parent:
                eta = writing.by_thresholds(eta, parameters)
            parameters[name] = get_linkinv(spec.family.link[name], INVERSES)(eta)
        Observing(writing, side).write(parameters)
    return writing.model, writing.domain()


class _CentredIntercept(InterceptTerm):
    """Intercept of predictors less their public means; bambi reports that of the predictors as they are."""

    @property
    def reported(self) -> str:
        """Name of the intercept that bambi reports."""
        return str(super().name)

    @property
    def name(self) -> str:
        """Name of the free variable."""
        return f"{self.reported}_centred"


class _Writing:
    def __init__(self, spec: Any, table: PublicTable, rows: pd.DataFrame, domain: Domain) -> None:
        self.spec, self.table, self.rows, self.given = spec, table, rows, domain
        self.model = Model(coords={ROWS: np.arange(len(rows)), **spec.response_term.coords})
        self.bounds: dict[str, Bounds] = {}
        self.public: list[str] = []
        self.shown: dict[str, Array] = {}
        self.wide = bool(spec.response_term.coords)
        """Whether a row has several predictors, one per level of the response."""
        self.without_first = any(name.endswith("_reduced_dim") for name in spec.response_term.coords)
        """Whether the predictor of the first level is 0."""

    def constants(self) -> dict[str, Any]:
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
        centred = bool(self.spec.center_predictors and component.intercept_term and component.common_terms)
        if component.intercept_term is not None:
            intercept = (_CentredIntercept if centred else InterceptTerm)(component.intercept_term)
            parts.append(self._coefficients(intercept))
        parts += [self._offset(term.term) for term in component.offset_terms.values()]
        shifts: list[Variable] = []
        for term in component.common_terms.values():
            backend = CommonTerm(term)
            weights, own = self._coefficients(backend), self.model[backend.name]
            for j, column in enumerate(design_columns(term.term, self.table, self.rows)):
                values = self.hold(
                    f"{column.label}_data", column.values, column.shown, column.bounds, term.term.var_names
                )
                middle = column.shown.mean()
                moved = values - middle if centred else values
                parts.append((weights[j] if backend.coords else weights) * self._each(moved))
                shifts.append((own[j] if backend.coords else own) * middle)
        if centred:
            pm.Deterministic(
                intercept.reported,
                self.model[intercept.name] - sum(shifts[1:], shifts[0]),
                dims=self.model.named_vars_to_dims.get(intercept.name),
            )
        parts += [self._process(term) for term in component.hsgp_terms.values()]
        noncentered = noncentered_default_for(self.spec, component.name)
        for term in component.group_specific_terms.values():
            parts += self._group_effects(GroupSpecificTerm(term, noncentered), term.term)
        return sum(parts[1:], parts[0]) if parts else pt.zeros(1)

    def by_thresholds(self, eta: Variable, parameters: Mapping[str, Any]) -> Variable:
        """Return what bambi makes of the predictor of ordered levels: one less it for every threshold."""
        change = getattr(self.spec.family, "transform_backend_eta", None)
        if change is None or self.without_first:
            return eta
        return change(eta, dict(parameters))

    def _each(self, values: Any) -> Any:
        """Return values of rows as factors of all predictors of a row."""
        return values[:, None] if self.wide and values.ndim else values

    def _complete(self, coefficients: Variable) -> Variable:
        """Put the zeros of the first level before coefficients of the others."""
        if not self.without_first:
            return coefficients
        return pt.concatenate([pt.zeros_like(coefficients[..., :1]), coefficients], axis=-1)

    def _coefficients(self, backend: Any) -> Variable:
        for name, values in getattr(backend, "coords", {}).items():
            if name not in self.model.coords:
                self.model.add_coords({name: values})
        backend.build(self.spec)
        return self._complete(self.model[backend.name])

    def _offset(self, term: Any) -> Any:
        if not self.table.known(term.var_names):
            return float(np.asarray(term.data).flat[0])
        (column,) = design_columns(term, self.table, self.rows)
        return self._each(self.hold(f"{column.label}_data", column.values, column.shown, column.bounds, term.var_names))

    def _process(self, term: Any) -> Variable:
        shown, held = (design_matrix(term.term, frame) for frame in (self.table.frame, self.rows))
        found = write_process(term, shown, held, self.spec.response_term.coords, self._publish)
        names, label = term.term.var_names, term.alias or term.name
        basis = self.hold(f"{label}_basis", found.basis, shown, (-found.bound, found.bound), names)
        weights = self._complete(found.coefficients)
        if found.groups is None:
            return basis @ weights
        place = self.hold(f"{label}_group", found.groups, shown[:, -1], None, names)
        own = weights[:, place]
        return (basis.T[..., None] * own if self.wide else basis.T * own).sum(axis=0)

    def _publish(self, name: str, values: Array) -> Variable:
        self.public.append(name)
        return pm.Data(name, values)

    def _group_effects(self, backend: GroupSpecificTerm, term: Any) -> list[Variable]:
        effects, places = self._coefficients(backend), self._groups(term.factor)
        if isinstance(term.expr, Intercept):
            return [effects[places]]
        columns = design_columns(term.expr, self.table, self.rows)
        data = [
            self._each(self.hold(f"{one.label}_data", one.values, one.shown, one.bounds, term.expr.var_names))
            for one in columns
        ]
        if effects.ndim == 1 + self.wide:
            return [effects[places] * data[0]]
        return [effects[places, j] * values for j, values in enumerate(data)]

    def _groups(self, factor: Any) -> Variable:
        places = group_index(factor, self.table, self.rows)
        return self.hold(
            f"{factor.name}_group", places, group_index(factor, self.table, self.table.frame), None, factor.var_names
        )

    def hold(self, label: str, values: Array, shown: Array, bounds: Bounds | None, names: set[str]) -> Variable:
        """Return the pm.Data of values of rows; what several terms share is held once.

        Parameters
        ----------
        label : str
            Name of it.
        values, shown : (n, ...) arrays
            Private, and of the public table.
        bounds : (low, high) or None
            None: places, whose range the model says.
        names : set of str
            Columns of the data frame that it is computed from: it is public where all of these are.
        """
        name, copies = label, 1
        while name in self.shown and not np.array_equal(self.shown[name], shown):
            copies += 1
            name = f"{label}_{copies}"
        if name not in self.shown:
            self.shown[name] = shown
            if bounds is not None:
                self.bounds[name] = bounds
            if self.table.known(names) <= self.given.public:
                self.public.append(name)
            pm.Data(name, np.ascontiguousarray(values), dims=(ROWS, *[None] * (values.ndim - 1)))
        return self.model[name]

    def domain(self) -> Domain:
        """Return the domain of what was written."""
        return Domain(
            rows=self.given.rows,
            bounds=self.bounds,
            public=self.public,
            neighbours=self.given.neighbours,
            n_max=self.given.n_max,
        )


__all__ = ["write_model"]
