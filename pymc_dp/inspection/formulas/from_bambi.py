"""A bambi model becomes a PyMC model whose every number but those in named columns of rows is public."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import bambi
import formulae
import numpy as np
import pandas as pd
from bambi.families import univariate
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_integer_dtype, is_numeric_dtype
from pymc import Model

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import DomainError, Problem, UnsupportedModelError
from pymc_dp.inspection.assumptions import ASSUMED, question
from pymc_dp.inspection.formulas.design import PublicColumn, PublicTable
from pymc_dp.inspection.formulas.row_wise import check_terms, declare
from pymc_dp.inspection.formulas.weighted import with_weights, without_weights
from pymc_dp.inspection.formulas.writing import LINKS, write_model

FAMILIES = {
    univariate.Bernoulli: ("Bernoulli", {"p"}),
    univariate.Beta: ("Beta", {"mu", "kappa"}),
    univariate.Exponential: ("Exponential", {"mu"}),
    univariate.Gamma: ("Gamma", {"mu", "alpha"}),
    univariate.Gaussian: ("Normal", {"mu", "sigma"}),
    univariate.Laplace: ("Laplace", {"mu", "b"}),
    univariate.NegativeBinomial: ("NegativeBinomial", {"mu", "alpha"}),
    univariate.Poisson: ("Poisson", {"mu"}),
    univariate.StudentT: ("StudentT", {"mu", "sigma", "nu"}),
    univariate.Weibull: ("Weibull", {"mu", "alpha"}),
}
"""Likelihood and parameters of bambi's families, as they come."""
MOST_SHOWN = 8


def convert(model: Any, domain: Domain) -> tuple[Model, Domain]:
    """Return the PyMC model of a bambi model on its rows, and the domain of its columns.

    Nothing but the columns reads a private value: bambi builds the model anew on a public table, where it learns
    levels, the numbers of transforms, the means that predictors are centred by, and its automatic priors.
    """
    _check_names(model.data, domain)
    model, weight = without_weights(model, domain)
    problems = list(_unsupported(model))
    if problems:
        raise UnsupportedModelError(problems)
    described = formulae.model_description(model.formula.main)
    terms = [*described.common_terms, *described.group_terms]
    names = [name for name in model.data.columns if name in described.var_names]
    columns, problems = _describe(model, domain, names, described.response.term)
    env = model.parameters[model.family.likelihood.parent].design.env
    labelled = [name for name in model.data.columns if isinstance(model.data[name].dtype, pd.CategoricalDtype)]
    problems += check_terms([described.response.term, *terms], labelled, model.data.columns, env)
    if problems:
        raise UnsupportedModelError(list(dict.fromkeys(problems)))
    table = PublicTable.of(list(columns.values()), [term.var_names for term in terms])
    new, found = write_model(_built_in_public(model, table), table, table.rows(model.data), domain)
    if weight is not None:
        found = with_weights(new, found, model.data, weight, domain)
    setattr(new, ASSUMED, tuple(_assumed(model, table, domain)))
    return new, found


def _check_names(data: pd.DataFrame, domain: Domain) -> None:
    known = [str(name) for name in data.columns]
    for argument, names in (("bounds", domain.bounds), ("public", sorted(domain.public))):
        for name in names:
            if name not in known:
                raise DomainError(
                    f"{argument} names {name!r}, which is no column of the data frame of the bambi model (known: "
                    f"{', '.join(map(repr, known))}).{_validate.nearest(name, known)}"
                )
    if domain.norms:
        raise DomainError(
            f"norms name {sorted(domain.norms)}, but the columns of a data frame hold numbers. Give bounds."
        )


def _unsupported(model: Any) -> Iterator[Problem]:
    """Yield what is not rebuilt in public, as far as the model says so without its rows."""
    family, parent = model.family, model.family.likelihood.parent
    likelihood, parameters = FAMILIES.get(type(family), ("", set()))
    known = ", ".join(sorted(kind.__name__.lower() for kind in FAMILIES))
    if (family.likelihood.name, set(family.likelihood.params)) != (likelihood, parameters):
        yield Problem(where="family", what=f"{family.name} is not known", remedy=f"Known are {known}.")
    elif (likelihood, family.link[parent].name) not in LINKS or family.likelihood.dist is not None:
        links = ", ".join(link for name, link in LINKS if name == likelihood)
        what = f"the link {family.link[parent].name} of {family.name} is not known"
        yield Problem(where="family", what=what, remedy=f"Known are {links}.")
    if model.formula.additionals:
        remedy = "Give one formula; the other parameters have priors."
        yield Problem(where="formula", what="parameters beside the mean depend on rows", remedy=remedy)
    if model.dropna:
        what = "dropna=True makes the number of rows a private count"
        yield Problem(where="data", what=what, remedy="Fill missing values by public ones, and leave dropna out.")
    if model.potentials:
        what = "they may hold numbers computed from rows"
        yield Problem(where="potentials", what=what, remedy="Leave them out, or write the model with PyMC.")
    if model._added_priors:
        what = "priors were set afterwards, and those that bambi computed from the rows look like given ones"
        yield Problem(where="set_priors", what=what, remedy="Give them to bambi.Model(..., priors=...) instead.")
    if not model.data.columns.is_unique:
        yield Problem(where="data", what="two columns have one name", remedy="Rename one.")


def _describe(
    model: Any, domain: Domain, names: Iterable[str], response: Any
) -> tuple[dict[str, PublicColumn], list[Problem]]:
    columns: dict[str, PublicColumn] = {}
    problems: list[Problem] = []
    for name in names:
        observed = str(response.components[0].name) == name
        found = _column(model, domain, name, observed)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            columns[name] = found
        if name in response.var_names and name in domain.public:
            raise DomainError(
                f"public names the response {name!r}: what a likelihood observes is protected. Leave it out."
            )
    return columns, problems


def _column(model: Any, domain: Domain, name: str, observed: bool) -> PublicColumn | Problem:
    """Describe a column by its dtype and the domain; only a public one is looked at."""
    dtype, bounds = model.data[name].dtype, domain.bounds.get(name)
    binary = observed and type(model.family) is univariate.Bernoulli
    if isinstance(dtype, pd.CategoricalDtype):
        return _labels(name, dtype, bounds)
    if not is_numeric_dtype(dtype) or is_complex_dtype(dtype):
        what = f"its labels are those that occur in rows (its dtype is {dtype})"
        return Problem(where=name, what=what, remedy=declare(name))
    if is_bool_dtype(dtype) or binary:
        if bounds not in (None, (0.0, 1.0)):
            return Problem(where=name, what="it is 0 or 1", remedy=f"Leave it out of bounds, or give {name}: (0, 1).")
        return PublicColumn(name=name, bounds=(0.0, 1.0), whole=True)
    if bounds is None and name in domain.public:
        values = model.data[name].to_numpy(dtype=np.float64, na_value=np.nan)
        values = values[np.isfinite(values)]
        bounds = (float(values.min()), float(values.max())) if len(set(values)) > 1 else None
    if bounds is None:
        what = "it has no public range, from which automatic priors, centring and transforms are computed"
        return Problem(where=name, what=what, remedy=f'Give Domain(bounds={{"{name}": (low, high)}}).')
    return PublicColumn(name=name, bounds=bounds, whole=is_integer_dtype(dtype))


def _labels(name: str, dtype: pd.CategoricalDtype, bounds: Any) -> PublicColumn | Problem:
    if bounds is not None:
        return Problem(where=name, what="it has labels, not numbers", remedy=f"Leave {name!r} out of bounds.")
    if not dtype.ordered:
        what = "its labels may be those that occur in rows: bambi makes such columns of strings"
        return Problem(where=name, what=what, remedy=declare(name))
    if len(dtype.categories) < 2:
        return Problem(where=name, what="it has fewer than two labels", remedy="Leave it out.")
    return PublicColumn(name=name, levels=dtype)


def _built_in_public(model: Any, table: PublicTable) -> Any:
    """Let bambi build the same model on the public table, with the priors that were given to it."""
    try:
        with np.errstate(all="ignore"):
            built = bambi.Model(
                model.formula.main,
                table.frame,
                family=deepcopy(model.family),
                priors=_given_priors(model),
                auto_scale=model.auto_scale,
                noncentered=model.noncentered,
                center_predictors=model.center_predictors,
                extra_namespace={"np": np, "numpy": np},
            )
    except Exception as error:
        what = f"bambi cannot build it on a table of public values: {error}"
        raise UnsupportedModelError(
            [Problem(where="formula", what=what, remedy="Widen the bounds, or compute parts of it beforehand.")]
        ) from None
    _copy_aliases(model, built)
    return built


def _given_priors(model: Any) -> dict[str, Any]:
    """Return the priors that a user gave: bambi marks those as not to be scaled."""
    priors: dict[str, Any] = {}
    for name, component in model.marginal_parameters.items():
        if not getattr(component.prior, "auto_scale", False):
            priors[name] = component.prior
    for name, component in model.conditional_parameters.items():
        terms = {key: getattr(term, "prior", None) for key, term in component.terms.items() if term.kind != "offset"}
        priors[name] = {key: prior for key, prior in terms.items() if not getattr(prior, "auto_scale", False)}
    return priors


def _numbers(prior: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers in priors that were given, each with the name of what it is for."""
    if isinstance(prior, bambi.Prior):
        for argument in prior.args.values():
            yield from _numbers(argument, name)
    elif isinstance(prior, Mapping):
        for key, part in prior.items():
            yield from _numbers(part, str(key))
    elif isinstance(prior, float | np.ndarray):
        yield name, prior


def _copy_aliases(model: Any, built: Any) -> None:
    pairs = [(model.response_term, built.response_term)]
    for name, component in model.parameters.items():
        pairs.append((component, built.parameters[name]))
        own = getattr(built.parameters[name], "terms", {})
        pairs += [(term, own[key]) for key, term in getattr(component, "terms", {}).items()]
    for given, new in pairs:
        if given.alias:
            new.alias = given.alias
        if getattr(given, "hyperprior_alias", None):
            new.hyperprior_alias = given.hyperprior_alias


def _assumed(model: Any, table: PublicTable, domain: Domain) -> Iterator[str]:
    yield f"formula: {model.formula.main}, and every number in it"
    for column in table.columns.values():
        if column.levels is not None:
            labels = [str(label) for label in column.levels.categories]
            more = [f"and {len(labels) - MOST_SHOWN} more"] * (len(labels) > MOST_SHOWN)
            yield f"levels of {column.name}: {', '.join([*labels[:MOST_SHOWN], *more])}"
        else:
            low, high = column.bounds
            asked = question(column.bounds) if column.name in domain.bounds else ""
            yield f"bounds of column {column.name}: ({low:g}, {high:g}){asked}"
    for name, numbers in _numbers(_given_priors(model)):
        if asked := question(numbers):
            shown = f"{np.asarray(numbers).item():.6g}" if np.size(numbers) == 1 else "an array"
            yield f"{shown} in the prior of {name}{asked}"
    yield (
        "centring, automatic priors and numbers that transforms learn: from values spread evenly between public bounds "
        "and over levels, not from rows"
    )


__all__ = ["convert"]
