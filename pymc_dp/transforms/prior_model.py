"""A model without its likelihood: same priors, no row anywhere.

The one place that touches PyMC's semi-private model internals: a model rebuilt from clones of chosen variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from types import MappingProxyType
from typing import Any

from pymc import Model
from pymc.util import UNSET, treedict
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomType

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.interpreted import kept_while_shared
from pymc_dp.inspection.rows import reached, rebuild


def clone_without_rows(
    model: Model,
    *,
    deterministics: Iterable[str],
    data: Iterable[str],
    parameters: Sequence[Variable] = (),
    without: Iterable[str] = (),
) -> tuple[Model, list[Variable]]:
    """Clone the free variables of a model, and what is named, into a new model without any likelihood.

    Parameters
    ----------
    model : pymc.Model
    deterministics, data : names
        Deterministics and ``pm.Data`` to keep.
    parameters : sequence of Variable
        Graphs over the original model's free variables to carry over, free of rows.
    without : names
        Free variables to leave out; nothing that is kept may depend on them.

    Returns
    -------
    new : pymc.Model
        Same free variables, order, dims, transforms and initial values; only dimensions in use are kept.
    parameters : list of Variable
        The graphs in terms of the new model's variables.
    """
    kept_data = [model[name] for name in data]
    kept_deterministics = [model[name] for name in deterministics]
    left_out = set(without)
    free, potentials = [rv for rv in model.free_RVs if rv.name not in left_out], list(model.potentials)
    initials = [value for value in model.rvs_to_initial_values.values() if isinstance(value, Variable)]
    dims = model.named_vars_to_dims
    kept = [*free, *potentials, *kept_deterministics, *kept_data]
    used = dict.fromkeys(dim for var in kept for dim in dims.get(var.name) or () if dim is not None)
    lengths = {dim: model._dim_lengths[dim] for dim in used}
    ends = [*kept, *parameters, *initials, *lengths.values()]
    memo: dict[Variable, Variable] = {}
    for var in ancestors(ends):
        if isinstance(var, SharedVariable) and (
            isinstance(var.type, RandomType) or var in kept_data or var in set(model.dim_lengths.values())
        ):
            memo[var] = _copy_shared(var)
    for rv in free:
        value = model.rvs_to_values[rv]
        memo[value] = value.type(name=value.name)  # not value.clone: its tag quotes lines of the user's program
    _, memo = rebuild(ends, memo, clone=True)

    new = Model(model=None)
    for dim, length in lengths.items():
        new._coords[dim] = model._coords[dim]
        new._dim_lengths[dim] = memo.get(length, length)
    for var in kept_data:
        new.data_vars.append(memo[var])
        new.add_named_variable(memo[var], dims=dims.get(var.name))
    for rv in free:
        new.free_RVs.append(memo[rv])
        new.create_value_var(
            memo[rv],
            transform=model.rvs_to_transforms[rv],
            default_transform=None,
            value_var=memo[model.rvs_to_values[rv]],
        )
        initial = model.rvs_to_initial_values.get(rv)
        new.set_initval(memo[rv], memo.get(initial, initial) if isinstance(initial, Variable) else copy(initial))
        new.add_named_variable(memo[rv], dims=dims.get(rv.name))
    for var in potentials:
        new.potentials.append(memo[var])
        new.add_named_variable(memo[var], dims=dims.get(var.name))
    for var in kept_deterministics:
        new.deterministics.append(memo[var])
        new.add_named_variable(memo[var], dims=dims.get(var.name))
    return new, [memo.get(var, var) for var in parameters]


def _copy_shared(var: SharedVariable) -> SharedVariable:
    new = type(var)(type=var.type, value=None, strict=None, container=deepcopy(var.container), name=var.name)
    return new


def with_likelihoods(model: Model, names: Iterable[str]) -> Model:
    """Return a view of a model with some of its observed variables: all else, and every variable, is the same."""
    kept, view = set(names), object.__new__(Model)
    vars(view).update(vars(model))
    left = {rv.name for rv in model.observed_RVs} - kept
    view.observed_RVs = [rv for rv in model.observed_RVs if rv.name in kept]
    view.named_vars = treedict({name: var for name, var in model.named_vars.items() if name not in left})
    return view


def everything_reached(model: Model, beside: Sequence[Variable]) -> set[Variable]:
    """Every variable that a model, its densities' transforms aside, or the graphs `beside` depend on."""
    initials = [value for value in model.rvs_to_initial_values.values() if isinstance(value, Variable)]
    ends = [*model.basic_RVs, *model.deterministics, *model.potentials, *model.data_vars, *initials, *beside]
    return set(reached([*ends, *model.dim_lengths.values()]))


def forget_sources(model: Model) -> None:
    """Drop the lines of the user's program that PyTensor quotes in the tags of a model's variables."""
    ends = [*model.basic_RVs, *model.deterministics, *model.potentials, *model.data_vars, *model.rvs_to_values.values()]
    for var in ancestors([*ends, *model.dim_lengths.values()]):
        for item in [var] if var.owner is None else [var.owner, *var.owner.outputs]:
            vars(item.tag).pop("trace", None)


def replace_variables(
    model: Model,
    replacements: Mapping[str, Callable[[Variable], Variable]],
    initial_values: Mapping[str, Any] = MappingProxyType({}),
) -> Model:
    """Clone a model with some free or observed variables replaced, and with them all that depends on them.

    Parameters
    ----------
    model : pymc.Model
        Not changed.
    replacements : mapping of name to function
        Each takes the clone of a variable, in which other replacements are done, and returns an unnamed one.
    initial_values : mapping of name to value
        Initial values of replaced variables, where they are not to be kept.

    Returns
    -------
    pymc.Model
        Same names in the same order, dims, coords, data, transforms and initial values. Replaced free variables have
        the default transform of their new distribution. Arrays, rows among them, are shared, not copied; setting data
        in one of the models does not reach the other.
    """
    values, initials = model.rvs_to_values, model.rvs_to_initial_values
    hidden = set(model.values_to_rvs).difference(model.data_vars)
    named = [var for var in model.named_vars.values() if var not in hidden]
    ends = dict.fromkeys([*named, *(values[rv] for rv in model.observed_RVs), *model._dim_lengths.values()])
    ends |= dict.fromkeys(value for value in initials.values() if isinstance(value, Variable))
    memo: dict[Variable, Variable] = {}
    own = {*model.data_vars, *model._dim_lengths.values()}
    for var in ancestors(list(ends)):
        if isinstance(var, SharedVariable) and isinstance(var.type, RandomType):
            memo[var] = _copy_shared(var)
        elif isinstance(var, SharedVariable) and var in own:
            memo[var] = _view_shared(var)
    found, _ = rebuild(list(ends), memo, clone=True)
    new_of = dict(zip(ends, found, strict=True))
    for rv in _parents_first(rv for rv in model.basic_RVs if rv.name in replacements):
        old = new_of[rv]
        new = replacements[rv.name](old)
        new.name = rv.name
        found, _ = rebuild(list(new_of.values()), {old: new})
        new_of = dict(zip(new_of, found, strict=True))

    new_model = Model(model=None)
    for dim, length in model._dim_lengths.items():
        new_model._coords[dim] = model._coords[dim]
        new_model._dim_lengths[dim] = new_of[length]
    for rv in model.free_RVs:
        new = new_of[rv]
        new_model.free_RVs.append(new)
        if rv.name in replacements:
            new_model.create_value_var(new, transform=UNSET, default_transform=UNSET)
        else:
            value = values[rv].type(name=values[rv].name)
            transform = model.rvs_to_transforms[rv]
            new_model.create_value_var(new, transform=transform, default_transform=None, value_var=value)
        initial = initial_values.get(rv.name, initials.get(rv))
        new_model.set_initval(new, new_of[initial] if isinstance(initial, Variable) else copy(initial))
    for rv in model.observed_RVs:
        new_model.observed_RVs.append(new_of[rv])
        new_model.create_value_var(new_of[rv], transform=None, default_transform=None, value_var=new_of[values[rv]])
    new_model.data_vars.extend(new_of[var] for var in model.data_vars)
    new_model.deterministics.extend(new_of[var] for var in model.deterministics)
    new_model.potentials.extend(new_of[var] for var in model.potentials)
    for var in named:
        new_of[var].name = var.name
        new_model.add_named_variable(new_of[var], dims=model.named_vars_to_dims.get(var.name))
    return new_model


def _parents_first(variables: Iterable[Variable]) -> list[Variable]:
    """Order random variables so that each comes after those that its prior depends on."""
    left = list(variables)
    reach = {var: set(ancestors([var])) for var in left}
    return sorted(left, key=lambda var: sum(other in reach[var] for other in left))


def _view_shared(var: SharedVariable) -> SharedVariable:
    """Make a shared variable of its own that holds the same array, without a copy."""
    container = copy(var.container)
    container.storage = copy(var.container.storage)
    return type(var)(type=var.type, value=None, strict=None, container=container, name=var.name)


def prior_model(inspection: Inspection) -> Model:
    """Return the inspected model without observed variables, row-level data and everything computed from them.

    Parameters
    ----------
    inspection : Inspection
        Without problems.

    Returns
    -------
    pymc.Model
        Free variables, their order, dims, transforms and priors are those of the model.
    """
    return prior_model_with(inspection, [])[0]


shared_prior_model = kept_while_shared(prior_model)
"""The same model, made once for each inspection. Callers share it, so none of them may change it."""


def prior_model_with(inspection: Inspection, parameters: Sequence[Variable]) -> tuple[Model, list[Variable]]:
    """Return the prior model and graphs over its free variables: `parameters`, free of rows, carried over."""
    inspection.require()
    kept = [det.name for det in inspection.model.deterministics if det.name not in inspection.dropped]
    new, moved = clone_without_rows(
        inspection.model, deterministics=kept, data=inspection.kept_data, parameters=parameters
    )
    if inspection.hidden & everything_reached(new, moved):
        raise PrivacyError("Private data would stay within reach of the private model; this is an error of pymc_dp.")
    return new, moved
