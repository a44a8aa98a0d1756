"""The one place that touches PyMC's semi-private model internals: a model rebuilt from clones of chosen variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy, deepcopy

from pymc import Model
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomType

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.rows import reached, unwrap


def clone_without_rows(
    model: Model, *, deterministics: Iterable[str], data: Iterable[str], parameters: Sequence[Variable] = ()
) -> tuple[Model, list[Variable]]:
    """Clone the free variables of a model, and what is named, into a new model without any likelihood.

    Parameters
    ----------
    model : pymc.Model
    deterministics, data : names
        Deterministics and ``pm.Data`` to keep.
    parameters : sequence of Variable
        Graphs over the original model's free variables to carry over, free of rows.

    Returns
    -------
    new : pymc.Model
        Same free variables, order, dims, transforms and initial values; only dimensions in use are kept.
    parameters : list of Variable
        The graphs in terms of the new model's variables.
    """
    kept_data = [model[name] for name in data]
    kept_deterministics = [model[name] for name in deterministics]
    free, potentials = list(model.free_RVs), list(model.potentials)
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


def reachable_arrays(model: Model) -> list[Variable]:
    """Every constant and shared variable that a model can reach, for tests that look for rows in it."""
    ends = [*model.basic_RVs, *model.deterministics, *model.potentials, *model.data_vars, *model.rvs_to_values.values()]
    return [
        var
        for var in ancestors(ends)
        if var.owner is None and unwrap(var) is var and (hasattr(var, "data") or isinstance(var, SharedVariable))
    ]
