"""Which free variables a private step moves, and which no row tells anything about."""

from __future__ import annotations

from collections.abc import Sequence

from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import reached

Names = tuple[str, ...]


def names_given(vars: object) -> Names | None:
    """Return the names of what was given as the variables of a step: names, variables, or one of either."""
    if vars is None:
        return None
    given = list(vars) if isinstance(vars, list | tuple) else [vars]
    names = [item.name if isinstance(item, Variable) else item for item in given]
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ArgumentError(
            f"vars must name free variables, at least one and each once, got {_validate.shown(vars)}. Leave it out for "
            "all of them."
        )
    return tuple(map(str, names))


def free_names(names: Names, model: Model) -> Names:
    """Return names of free variables of a model, in its order, for names of these or of their values.

    Raises
    ------
    ArgumentError
        For a name of neither.
    """
    free = [str(rv.name) for rv in model.free_RVs]
    of_values = {str(model.rvs_to_values[rv].name): str(rv.name) for rv in model.free_RVs}
    found = [of_values.get(name, name) for name in names]
    for name in found:
        if name not in free:
            raise ArgumentError(
                f"vars names {name!r}, but the model's free variables are {free}.{_validate.nearest(name, free)}"
            )
    return tuple(name for name in free if name in found)


def require_all(names: Names | None, model: Model, why: str) -> None:
    """Raise where names leave out a free variable of a private model, for a reason in words."""
    if names is not None and len(found := free_names(names, model)) < len(model.free_RVs):
        raise ArgumentError(
            f"vars names {list(found)}, but {why} all of {[str(rv.name) for rv in model.free_RVs]}. Leave vars out."
        )


def reached_by_rows(model: Model) -> frozenset[str]:
    """Names of the free variables that a likelihood depends on, given the values of all others.

    That is looked up where samplers move: on the unconstrained scale. A variable of which only the prior of others
    depends is not among them, unless it also sets the bounds between which a variable of a likelihood lies: the same
    unconstrained value then is another one, and rows tell which.

    Notes
    -----
    Reads no value. Both the parameters of the likelihoods and their densities are looked at; where PyMC has no density,
    all variables are taken to be reached.

    **Guarantee.** For a variable that is not among them the conditional density given all others is that of the model
    without its rows, up to a constant.
    """
    parameters = [item for rv in model.observed_RVs for item in rv.owner.inputs if hasattr(item.type, "dtype")]
    try:
        densities = model.logp(vars=model.observed_RVs, sum=False) if model.observed_RVs else []
    except (NotImplementedError, ValueError):
        return frozenset(str(rv.name) for rv in model.free_RVs)
    below = set(reached([*model.replace_rvs_by_values(parameters), *densities]))
    return frozenset(str(rv.name) for rv in model.free_RVs if model.rvs_to_values[rv] in below or rv in below)


def still_values(model: Model, own: Names) -> Names:
    """Names of the values that stay as they are while a step gives some variables other constrained values.

    Those of other variables, unless a moved one sets the bounds of their transform.
    """
    free = model.free_RVs
    moved = {rv for rv in free if rv.name in own}
    return tuple(
        str(model.rvs_to_values[rv].name)
        for rv in free
        if rv not in moved
        and not (model.rvs_to_transforms[rv] is not None and moved & set(reached(rv.owner.inputs, set(free) - moved)))
    )


def check_apart(own: Sequence[tuple[str, Names]]) -> None:
    """Raise where two steps, each with its words and its variables, would move the same one."""
    seen: dict[str, str] = {}
    for words, names in own:
        for name in names:
            if name in seen:
                raise ArgumentError(
                    f"step holds {seen[name]} and {words}, which both move {name!r}. Give each variable to one step: "
                    "two steps that move it would both be paid for."
                )
            seen[name] = words


__all__ = ["Names", "check_apart", "free_names", "names_given", "reached_by_rows", "require_all", "still_values"]
