"""A bambi model becomes a PyMC model whose every number but those in named columns of rows is public."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import bambi
import formulae
import numpy as np
import pandas as pd
from bambi.families import univariate
from bambi.utils import clean_formula_lhs
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_integer_dtype, is_numeric_dtype
from pymc import Model

from pymc_dp import _validate
from pymc_dp._column_bounds import hull_of, pairs_of
from pymc_dp.domain import Domain
from pymc_dp.errors import DomainError, Problem, UnsupportedModelError
from pymc_dp.inspection.assumptions import ASSUMED, CAUTIONS, question
from pymc_dp.inspection.formulas.automatic_priors import AutomaticPrior, automatic_priors, given, narrow_priors
from pymc_dp.inspection.formulas.design import PublicColumn, PublicTable
from pymc_dp.inspection.formulas.polynomials import norm_polynomials
from pymc_dp.inspection.formulas.responses import LeftSide, check_labels, left_side
from pymc_dp.inspection.formulas.row_wise import check_terms, declare
from pymc_dp.inspection.formulas.weighted import with_weights, without_weights
from pymc_dp.inspection.formulas.writing import write_model

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
    texts = [model.formula.main, *map(clean_formula_lhs, model.formula.additionals)]
    described = [formulae.model_description(text) for text in texts]
    response = described[0].response.term
    terms = [term for one in described for term in (*one.common_terms, *one.group_terms)]
    side = left_side(response, frozenset(map(str, model.data.columns)))
    if isinstance(side, Problem):
        raise UnsupportedModelError([side])
    used = frozenset().union(*(one.var_names for one in described))
    columns, problems = _describe(model, domain, [name for name in model.data.columns if name in used], response, side)
    env = model.parameters[model.family.likelihood.parent].design.env
    labelled = [name for name in model.data.columns if isinstance(model.data[name].dtype, pd.CategoricalDtype)]
    checked = terms if side is not None else [response, *terms]
    problems += check_terms(checked, labelled, model.data.columns, env)
    if problems:
        raise UnsupportedModelError(list(dict.fromkeys(problems)))
    table = PublicTable.of(list(columns.values()), [term.var_names for term in terms])
    side = side or LeftSide(kind="column")
    if problems := list(check_labels(side, table)):
        raise UnsupportedModelError(problems)
    table = side.fitting(table)
    built = _built_in_public(model, table)
    if domain.neighbours == "replace":
        norm_polynomials(built, len(model.data) / len(table.frame))
    new, found = write_model(built, side, table, table.rows(model.data), domain)
    if weight is not None:
        found = with_weights(new, found, model.data, weight, domain)
    automatic = automatic_priors(model, built, table)
    setattr(new, ASSUMED, tuple(_assumed(model, table, domain, automatic)))
    setattr(new, CAUTIONS, tuple(narrow_priors(built, automatic)))
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
    for name, ends in domain.bounds.items():
        if pairs_of(ends):
            low, high = hull_of(ends)
            raise DomainError(
                f"bounds[{name!r}] has a pair per column, but a column of a data frame holds one number a "
                f"row. Give one pair, bounds={{{name!r}: ({low:g}, {high:g})}}."
            )
    if domain.norms:
        raise DomainError(
            f"norms name {sorted(domain.norms)}, but the columns of a data frame hold numbers. Give bounds."
        )


def _unsupported(model: Any) -> Iterator[Problem]:
    """Yield what is not rebuilt in public, as far as the model says so without its rows."""
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
    model: Any, domain: Domain, names: Iterable[str], response: Any, side: LeftSide | None
) -> tuple[dict[str, PublicColumn], list[Problem]]:
    columns: dict[str, PublicColumn] = {}
    problems: list[Problem] = []
    for name in names:
        found = _column(model, domain, name, side)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            columns[name] = found
        if name in _observed(response, side) and name in domain.public:
            raise DomainError(
                f"public names the response {name!r}: what a likelihood observes is protected. Leave it out."
            )
    return columns, problems


def _observed(response: Any, side: LeftSide | None) -> tuple[str, ...]:
    """Return the columns that the likelihood observes; trials and limits may be public."""
    if side is None:
        return tuple(response.var_names)
    return side.columns[:1] if side.kind == "trials" else side.columns


def _column(model: Any, domain: Domain, name: str, side: LeftSide | None) -> PublicColumn | Problem:
    """Describe a column by its dtype and the domain; only a public one is looked at."""
    dtype, given = model.data[name].dtype, domain.bounds.get(name)
    bounds = None if given is None else hull_of(given)
    first = side is not None and side.columns[:1] == (name,)
    binary = first and isinstance(model.family, univariate.Bernoulli)
    if first and side is not None and "trials" in side.numbers:
        bounds = bounds or (0.0, float(side.numbers["trials"]))
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
    whole = is_integer_dtype(dtype) or (side is not None and name in side.whole)
    return PublicColumn(name=name, bounds=bounds, whole=whole)


def _labels(name: str, dtype: pd.CategoricalDtype, bounds: Any) -> PublicColumn | Problem:
    if bounds is not None:
        return Problem(where=name, what="it has labels, not numbers", remedy=f"Leave {name!r} out of bounds.")
    if not dtype.ordered:
        what = "its labels may be those that occur in rows: bambi makes such columns of strings"
        return Problem(where=name, what=what, remedy=declare(name))
    if isinstance(dtype.categories.dtype, pd.IntervalDtype):
        what = "its labels are intervals, whose ends may be those of its rows (pd.cut, pd.qcut)"
        return Problem(where=name, what=what, remedy="Cut at public edges, and name them: pd.cut(..., labels=[...]).")
    if len(dtype.categories) < 2:
        return Problem(where=name, what="it has fewer than two labels", remedy="Leave it out.")
    return PublicColumn(name=name, levels=dtype)


def _built_in_public(model: Any, table: PublicTable) -> Any:
    """Let bambi build the same model on the public table, with the priors that were given to it."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user has seen what bambi warns of
            built = bambi.Model(
                bambi.Formula(model.formula.main, *model.formula.additionals),
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
        terms = {key: term for key, term in component.terms.items() if getattr(term, "kind", "") != "offset"}
        priors[name] = {key: term.prior for key, term in terms.items() if given(term)}
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
    for old, new in pairs:
        if old.alias:
            new.alias = old.alias
        if getattr(old, "hyperprior_alias", None):
            new.hyperprior_alias = old.hyperprior_alias


def _assumed(model: Any, table: PublicTable, domain: Domain, automatic: Sequence[AutomaticPrior]) -> Iterator[str]:
    for text in (model.formula.main, *model.formula.additionals):
        yield f"formula: {text}, and every number in it"
    for column in table.columns.values():
        if column.levels is not None:
            labels = [str(label) for label in column.levels.categories]
            more = [f"and {len(labels) - MOST_SHOWN} more"] * (len(labels) > MOST_SHOWN)
            yield f"levels of {column.name}: {', '.join([*labels[:MOST_SHOWN], *more])}"
        else:
            low, high = column.bounds
            asked = question(column.bounds) if column.name in domain.bounds else ""
            yield f"bounds of column {column.name}: ({low:g}, {high:g}){asked}{_scaled_by(column.name, automatic)}"
    for name, numbers in _numbers(_given_priors(model)):
        if asked := question(numbers):
            shown = f"{np.asarray(numbers).item():.6g}" if np.size(numbers) == 1 else "an array"
            yield f"{shown} in the prior of {name}{asked}"
    yield (
        "centring, automatic priors and numbers that transforms learn: from values spread evenly between public bounds "
        "and over levels, not from rows"
    )


def _scaled_by(name: str, automatic: Sequence[AutomaticPrior]) -> str:
    texts = [one.text for one in automatic if name in one.columns]
    return f"; automatic priors scaled by them: {', '.join(texts)}" if texts else ""


__all__ = ["convert"]
