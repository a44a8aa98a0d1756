"""Everything beside the likelihoods: priors, Potentials and initial values must not be reached by the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import support_point
from pymc.logprob.basic import logp as pm_logp
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.rows import array_leaves, opaque, reached, shape_of
from pymc_dp.inspection.schema import dim_length
from pymc_dp.inspection.taint import label


def check_priors(findings: Findings) -> None:
    """Refuse rows in priors, Potentials and initial values: no noise covers them there."""
    model = findings.model
    free = list(model.free_RVs)
    for rv in free:
        others = [var for var in free if var is not rv]
        ends = [*_inputs(rv), *_hidden_parts(findings, rv)]
        own = _declared_shape(findings, rv)
        _check_reach(findings, rv.name, f"the prior of {rv.name!r}", ends, others, strict=False, own_shape=own)
        dims = model.named_vars_to_dims.get(rv.name) or ()
        if any(dim in findings.row_dims for dim in dims):
            findings.problem(
                rv.name,
                "it has one entry per row (one latent per row)",
                "Index parameters by a discrete column with a few public levels.",
            )
    for potential in model.potentials:
        _check_reach(findings, potential.name, f"the Potential {potential.name!r}", [potential], free, strict=True)
    for rv, initval in model.rvs_to_initial_values.items():
        if isinstance(initval, Variable):
            _check_reach(findings, rv.name, f"the initial value of {rv.name!r}", [initval], free, strict=True)
        elif initval is not None and not isinstance(initval, str):
            shape = np.shape(initval)
            declared = tuple(np.shape(initval)) == _declared_shape(findings, rv)
            if (
                findings.domain.neighbours == "replace"
                and findings.n_rows > 1
                and findings.n_rows in shape
                and not declared
            ):
                findings.problem(rv.name, "its initial value has one entry per row", "Leave initval out.")


def check_likelihood(
    findings: Findings, where: str, holder: str, ends: Sequence[Variable], stop: Sequence[Variable]
) -> None:
    """Refuse what a likelihood may not hold other than through `stop`: opaque operations, unregistered draws."""
    check_operations(findings, where, f"the likelihood of {where!r}", ends, stop)
    for var in ancestors(list(ends), blockers=list(stop)):
        if var.owner is not None and isinstance(var.owner.op, RandomVariable) and var not in stop:
            findings.problem(
                where,
                f"its {holder} a random draw that is not a variable of the model",
                "Register the variable with a name.",
            )


def check_operations(
    findings: Findings, where: str, what: str, ends: Sequence[Variable], stop: Sequence[Variable]
) -> None:
    """Refuse what cannot be looked into: Python code, and shared variables that the model does not know."""
    for name in opaque(ends, stop):
        findings.problem(where, f"operation {name} reaches {what} and may hold anything", "Use PyTensor's operations.")
    known = {*findings.model.data_vars, *findings.model.dim_lengths.values(), *findings.private_variables}
    for var in reached(ends, stop):
        if isinstance(var, SharedVariable) and isinstance(var.type, TensorType) and var not in known:
            findings.problem(
                where,
                f"a shared variable ({label(var)}) that is no pm.Data of the model reaches {what}",
                "If it is public, register it by pm.Data.",
            )


def _check_reach(
    findings: Findings,
    where: str,
    what: str,
    ends: Sequence[Variable],
    stop: Sequence[Variable],
    *,
    strict: bool,
    own_shape: tuple[int, ...] | None = None,
) -> None:
    check_operations(findings, where, what, ends, stop)
    private = [var for var in findings.private_variables if var not in stop]
    found = set(reached(ends, stop))
    for var in private:
        if var in found:
            findings.problem(
                where,
                f"private data ({label(var)}) reach {what}",
                "Priors and other terms must not use the rows; use numbers known beforehand.",
            )
    for leaf in array_leaves(ends, stop, single=strict and findings.single_row):
        if leaf in private or (leaf.name or "") in findings.domain.public:
            continue
        dims = findings.model.named_vars_to_dims.get(leaf.name or "") or ()
        # Under add_remove, comparing lengths with the number of rows would tell it: dims must say it is no column.
        long = findings.domain.neighbours == "add_remove" or findings.n_rows in shape_of(leaf)
        fits = own_shape is not None and _broadcasts(shape_of(leaf), own_shape)
        settled = dims and findings.row_dims
        on_rows = any(dim in findings.row_dims for dim in dims) or (not settled and long and not fits)
        if strict or on_rows:
            shown = repr(leaf.name) if leaf.name else "an unnamed array"
            why = "with the length of the table " if on_rows and findings.domain.neighbours == "replace" else ""
            public = (
                "wrap it in pm.Data and name it in Domain(public=...)"
                if strict
                else "give the variable dims=, or wrap the array in pm.Data with dims of its own"
            )
            findings.problem(
                where,
                f"{shown} {why}reaches {what} and may hold rows",
                f"If it is public, {public}; else take it out.",
            )


def _declared_shape(findings: Findings, rv: Variable) -> tuple[int, ...] | None:
    """Lengths of the named dims of a free variable: an array of this shape in its prior belongs to these dims."""
    dims = findings.model.named_vars_to_dims.get(rv.name)
    if not dims or None in dims:
        return None
    return tuple(dim_length(findings.model.dim_lengths[dim]) for dim in dims)


def _hidden_parts(findings: Findings, rv: Variable) -> list[Variable]:
    """Graphs of a prior that are not inputs of its random variable: its transform, and a hand-written density."""
    value = findings.model.rvs_to_values[rv]
    parts: list[Variable] = []
    transform = findings.model.rvs_to_transforms.get(rv)
    try:
        if transform is not None:
            parts.append(transform.backward(value, *rv.owner.inputs))
            parts.append(transform.log_jac_det(value, *rv.owner.inputs))
        if isinstance(rv.owner.op, CustomSymbolicDistRV):
            parts += [pm_logp(rv, rv.type()), support_point(rv)]
        followed = not isinstance(rv.owner.op, CustomDistRV)
    except Exception:
        followed = False
    if not followed:
        findings.problem(
            rv.name,
            "its density or transform is Python code, which cannot be followed",
            "Use a distribution and a transform of PyMC, or pm.CustomDist(dist=...).",
        )
    return parts


def _inputs(rv: Variable) -> list[Variable]:
    """Inputs of a random variable that can carry data: all but a constant size."""
    return [var for place, var in enumerate(rv.owner.inputs) if not (place == 1 and isinstance(var, Constant))]


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array has one entry per entry of a variable, or per entry of its last axes."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))
