"""Interface parameters: the fewest numbers through which free variables enter the likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.transforms import _default_transform
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar.basic import Add, Cast, Identity, Mul, Neg, Second, Sub, TrueDiv
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.domain import Domain
from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.gradients.cut import NEVER, Cut, least_cut, sizes_of
from pymc_dp.gradients.normalised import not_densities
from pymc_dp.gradients.responses import Response, responses_of
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import kept_while_shared, shapes_of, start_of
from pymc_dp.inspection.rows import reached, rebuild
from pymc_dp.inspection.taint import label
from pymc_dp.simulation.prior import in_value_space

MOST_PARAMETERS = 5000
CARRYING = (DimShuffle, SpecifyShape, Subtensor, AdvancedSubtensor, Alloc, Reshape, TensorFromScalar, ScalarFromTensor)
"""Operations whose entries are those of their first input."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Consecutive interface parameters.

    Attributes
    ----------
    name : str
    start : int
    shape : tuple of int
    value : Variable
        Placeholder of real numbers.
    free : bool
        Whether it is a free variable of the model, on its unconstrained scale; else something computed of some.
    """

    name: str
    start: int
    shape: tuple[int, ...]
    value: Variable
    free: bool

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(np.prod(self.shape, dtype=int))


@dataclass(frozen=True, kw_only=True, eq=False)
class Interface:
    """Where the free variables of a model meet its rows. Nothing in it depends on a private value.

    Attributes
    ----------
    inspection : RowInspection
        Of the model.
    responses : tuple of Response
    parts : tuple of Part
    stands : mapping of Variable to Variable
        From variables in the graphs of the terms to graphs over the values of `parts`.
    flat : Variable
        All parameters as one vector, a graph over the model's free variables: of the transformed scale of a free
        variable with a transform.
    """

    inspection: RowInspection
    responses: tuple[Response, ...]
    parts: tuple[Part, ...]
    stands: Mapping[Variable, Variable]
    flat: Variable

    @property
    def size(self) -> int:
        """Number of parameters d."""
        return sum(part.size for part in self.parts)


def interface_of(model: Model, domain: Domain | None = None) -> Interface:
    """Find the interface parameters of a model. Reads no private value."""
    metric = domain is not None and domain.metric is not None
    return interface_in(inspect(model, domain, per_unit=not metric, per_person=True, weighted=True).rows)


@kept_while_shared
def interface_in(inspection: RowInspection) -> Interface:
    """Find the interface parameters of a model that was inspected. Reads no private value.

    Raises
    ------
    UnsupportedModelError
        With every problem that was found, and what to do about each.

    Notes
    -----
    What is computed from free variables alone and meets a row is before the cut; of all cuts the one with the fewest
    numbers is taken, of several such that nearest to the free variables. In ``x @ beta + alpha[group]`` with ``alpha =
    mu + tau * z`` these are beta and alpha: neither mu nor tau ever meets a row. A free variable is taken on the scale
    of its transform, the logarithm of a standard deviation; something computed as it is, if it can be any real number.
    """
    model = inspection.model
    discrete = [rv for rv in model.free_RVs if np.dtype(rv.type.dtype).kind != "f"]
    problems = [*inspection.problems, *map(_discrete, discrete)]
    if problems:
        raise UnsupportedModelError(problems)
    responses, problems = responses_of(inspection)
    if problems := [*problems, *not_densities(inspection)]:
        raise UnsupportedModelError(problems)
    terms = [one for response in responses for one in response.terms]
    graphs = [one.logp for one in terms]
    axes = {var: axis for one in terms for var, axis in one.flow.axes.items()}
    source = _Sources(model, inspection)
    cut = least_cut(
        graphs,
        inspection.stand_ins,
        within=lambda var: axes.get(var) is None,
        costs=source.costs,
        opaque=[column.leaf for column in inspection.columns],
    )
    if not cut.cost:
        what = "no free variable reaches its likelihoods"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Sample the prior, which is public.")])
    if problems := source.problems(cut):
        raise UnsupportedModelError(problems)
    parts, stands, values = source.cut_at(cut, graphs)
    return Interface(
        inspection=inspection,
        responses=responses,
        parts=parts,
        stands=_complete(graphs, stands, source),
        flat=pt.concatenate([value.ravel().astype("float64") for value in values]),
    )


class _Sources:
    """Free variables of a model and what stands for them."""

    def __init__(self, model: Model, inspection: RowInspection) -> None:
        self.model, self.inspection = model, inspection
        self.free = dict(zip(inspection.stand_ins, model.free_RVs, strict=True))
        start = start_of(model)
        self.value_shapes = {one: np.shape(start[model.rvs_to_values[rv].name]) for one, rv in self.free.items()}
        shapes = shapes_of(model)
        self.shapes = {one: shapes[str(rv.name)] for one, rv in self.free.items()}

    def costs(self, variables: Sequence[Variable]) -> dict[Variable, int]:
        """Return the cost of a cut at each variable: how many numbers it has, and `NEVER` where it cannot be cut."""
        derived = [var for var in variables if var not in self.free]
        sizes, real = sizes_of(derived, self.shapes), _real(derived, {one for one in self.free if self._is_real(one)})
        found = {var: sizes[var] if var in real else NEVER for var in derived}
        for one in self.free:
            size = int(np.prod(self.value_shapes[one], dtype=int))
            found[one] = NEVER if self._obstacle(one) else size
        return found

    def _is_real(self, one: Variable) -> bool:
        """Whether entries may be any real numbers, and vary freely of each other."""
        rv = self.free[one]
        op: Any = rv.owner.op
        plain = self.model.rvs_to_transforms[rv] is None and not isinstance(op, CustomDistRV | CustomSymbolicDistRV)
        return plain and _default_transform(op, rv) is None

    def _obstacle(self, one: Variable) -> str:
        """Return why a free variable cannot be taken on its own scale; empty where it can."""
        rv = self.free[one]
        transform = self.model.rvs_to_transforms[rv]
        if transform is None:
            bounded = _default_transform(rv.owner.op, rv) is not None
            return "it has bounds but no transform, so it has no unconstrained scale" * bounded
        value = self.model.rvs_to_values[rv]
        others = {other for other in self.model.free_RVs if other is not rv}
        both = [transform.backward(value, *rv.owner.inputs), in_value_space(self.model, rv)]
        if others & set(ancestors(both, blockers=[rv])):
            return "its bounds depend on other free variables"
        return ""

    def problems(self, cut: Cut) -> list[Problem]:
        """Say why there is no cut."""
        if cut.cost >= NEVER:
            return [
                Problem(
                    where=str(rv.name),
                    what=what,
                    remedy="Give it a prior with constant bounds and the default transform, and compute from it.",
                )
                for one, rv in self.free.items()
                if (what := self._obstacle(one))
            ]
        if cut.cost > MOST_PARAMETERS:
            what = (
                f"its likelihoods have {cut.cost} parameters, but curvatures are released for at most {MOST_PARAMETERS}"
            )
            return [Problem(where="model", what=what, remedy="Use fewer levels or covariates.")]
        return []

    def cut_at(
        self, cut: Cut, graphs: Sequence[Variable]
    ) -> tuple[tuple[Part, ...], dict[Variable, Variable], list[Variable]]:
        """Return the parts, what stands for each variable that is cut, and the graphs of the parts' values."""
        parts, stands, values, start = list[Part](), dict[Variable, Variable](), list[Variable](), 0
        for group in cut.groups:
            one = next((var for var in group if var in self.free), None)
            name = _name(group, graphs)
            shape = self.value_shapes[one] if one is not None else self._shape(group[0])
            value = pt.TensorType("float64", shape)(name)
            part = Part(name=name, start=start, shape=shape, value=value, free=one is not None)
            start += part.size
            parts.append(part)
            graph = value if one is None else self._backward(one, value)
            stands |= {var: graph.astype(var.type.dtype) for var in group}
            values.append(
                in_value_space(self.model, self.free[one]) if one is not None else rebuild([group[0]], self.free)[0][0]
            )
        return tuple(parts), stands, values

    def _shape(self, derived: Variable) -> tuple[int, ...]:
        if None not in derived.type.shape:
            return tuple(derived.type.shape)
        lengths = [derived.shape[axis] for axis in range(derived.type.ndim)]
        zeros = {one: pt.zeros(shape, dtype=one.type.dtype) for one, shape in self.shapes.items()}
        return tuple(int(length.eval()) for length in rebuild(lengths, zeros)[0])

    def _backward(self, one: Variable, value: Variable) -> Variable:
        rv = self.free[one]
        transform = self.model.rvs_to_transforms[rv]
        return value if transform is None else transform.backward(value, *rv.owner.inputs)


def layered(interface: Interface) -> bool:
    """Whether parameters multiply, as matrices, what depends on parameters and rows: the layers of a neural net."""
    ends = [term.logp for response in interface.responses for term in response.terms]
    depends, rows = set(interface.stands), {column.leaf for column in interface.inspection.columns}
    for node in toposort(ends, blockers=list(interface.stands)):
        of_parameters = [one in depends for one in node.inputs]
        of_rows = [one in rows for one in node.inputs]
        core = node.op.core_op if isinstance(node.op, Blockwise) else node.op
        if isinstance(core, Dot) and all(of_parameters) and any(of_rows):
            return True
        depends |= set(node.outputs) if any(of_parameters) else set()
        rows |= set(node.outputs) if any(of_rows) else set()
    return False


def _name(group: Sequence[Variable], graphs: Sequence[Variable]) -> str:
    """Return the name of what is cut, or that of a pm.Deterministic that copies it."""
    alike = dict.fromkeys(group)
    for node in toposort(list(graphs)):
        if _copies(node.op) and node.inputs[0] in alike:
            alike |= dict.fromkeys(node.outputs)
    return next((str(var.name) for var in alike if var.name), label(group[0]))


def _copies(op: Any) -> bool:
    return isinstance(op, ViewOp | DimShuffle) or (isinstance(op, Elemwise) and isinstance(op.scalar_op, Identity))


def _complete(graphs: Sequence[Variable], stands: Mapping[Variable, Variable], source: _Sources) -> dict[Any, Any]:
    """Let zeros stand for free variables that only say a shape, once nothing else of them reaches the graphs."""
    rest = {one: pt.zeros(source.shapes[one], dtype=one.type.dtype) for one in source.free if one not in stands}
    shapes = [
        out
        for node in toposort(list(graphs), blockers=list(stands))
        if isinstance(node.op, Shape | Shape_i)
        for out in node.outputs
    ]
    if rest.keys() & set(reached(graphs, [*stands, *shapes])):
        raise PrivacyError("A free variable passes by the interface parameters; this is an error of pymc_dp.")
    return {**rest, **stands}


def _discrete(rv: Variable) -> Problem:
    return Problem(
        where=str(rv.name),
        what=f"it is discrete (dtype {rv.type.dtype}), so there is no gradient to follow",
        remedy="Sum it out (pm.Mixture, pmx.marginalize), or use a sampler that sees rows one by one, dp.OPS.",
    )


def _real(variables: Iterable[Variable], sources: set[Variable]) -> set[Variable]:
    """Return what may be any real numbers, as far as the operations on the way say; cautious."""
    found, order = set(sources), list(variables)
    for var in [out for node in toposort(order, blockers=list(sources)) for out in node.outputs]:
        if np.dtype(getattr(var.type, "dtype", "bool")).kind == "f" and _stays_real(var, found):
            found.add(var)
    return found


def _stays_real(var: Variable, real: set[Variable]) -> bool:
    node: Any = var.owner
    inputs = [item for item in node.inputs if not isinstance(item, Constant)]
    op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    if isinstance(op, CARRYING):
        return node.inputs[0] in real
    if isinstance(op, Join):
        return all(item in real for item in node.inputs[int(len(node.inputs) > 1 and node.inputs[0].type.ndim == 0) :])
    if isinstance(op, MakeVector):
        return all(item in real for item in node.inputs)
    if isinstance(op, Dot):
        return any(item in real for item in node.inputs) and node.inputs[0] is not node.inputs[1]
    if isinstance(op, CAReduce):
        return isinstance(op.scalar_op, Add) and inputs[0] in real
    if not isinstance(op, Elemwise):
        return False
    if isinstance(op.scalar_op, Add | Sub | Neg | Cast | Identity):
        return any(item in real for item in inputs)
    if isinstance(op.scalar_op, Mul):
        return any(item in real for item in inputs) and len(set(inputs)) == len(inputs)
    if isinstance(op.scalar_op, TrueDiv):
        return node.inputs[0] in real
    return isinstance(op.scalar_op, Second) and node.inputs[1] in real


__all__ = ["MOST_PARAMETERS", "Interface", "Part", "interface_in", "interface_of"]
