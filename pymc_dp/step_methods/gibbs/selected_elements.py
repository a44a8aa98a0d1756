"""Which element of a free variable each entry of a parameter is, or is a power of: proved on the graph.

Indices may depend on other free variables, as in ``rate[z[region]]`` or ``switch(change > year, early, late)``: given
their values, every entry still is one element or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import SELECTING, SHAPED, Prior, constant_values
from pymc_dp.inspection.rows import Array, reached, rebuild
from pymc_dp.step_methods.gibbs.grid import Ends, somewhere

NOWHERE = -1
"""The place of an entry that does not depend on the variable."""
PROBES = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Entries of a parameter as elements of one free variable v: each is ``factor * v[place] ** exponent``.

    Attributes
    ----------
    graph : Variable
        Place in the raveled variable of each entry, `NOWHERE` where it depends on none; over other free variables.
    exponent : float
    scaled : bool
        Whether there is a factor other than 1, free of v.
    """

    graph: Variable
    exponent: float
    scaled: bool

    @property
    def static(self) -> Array | None:
        """Places where they depend on no other variable."""
        values = constant_values([self.graph])
        return None if values is None else np.rint(values[0]).astype(np.int64)


def places_of(parameter: Variable, prior: Prior, free: Mapping[Variable, Ends]) -> Places | None:
    """Find what element each entry of a parameter is; None where it is anything else.

    Parameters
    ----------
    parameter : Variable
        Over the free variables of a prior model.
    prior : Prior
        Of the variable.
    free : mapping of Variable to Ends
        Public bounds of every free variable.
    """
    walk = _Walk(parameter, prior, free)
    found = walk.of(parameter)
    if found is None or found.exponent is None:
        return None
    (graph,), _ = rebuild([found.graph], {prior.variable: walk.source})  # what is left of it says shapes only
    places = Places(graph=graph, exponent=found.exponent, scaled=found.scaled)
    if walk.simplex and walk.pieced and places.static is None:  # probes could miss a vector that is made of pieces
        return None
    return places if _holds(places, parameter, prior, free) else None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """Places of one variable of a graph; no exponent where it depends on nothing that is looked for."""

    graph: Variable
    exponent: float | None
    scaled: bool = False


class _Walk:
    """Follows a free variable down a graph, with the numbers of its elements in place of their values."""

    def __init__(self, parameter: Variable, prior: Prior, free: Mapping[Variable, Ends]) -> None:
        self.rv, self.free = prior.variable, set(free)
        self.positive = prior.low is not None and bool((prior.low >= 0).all())
        self.simplex, self.pieced = prior.distribution == "dirichlet", False
        self.source = pt.constant(np.arange(prior.size, dtype=np.float64).reshape(prior.shape))
        self.moving = {self.rv}
        for node in toposort([parameter], blockers=list(free)):
            if any(var in self.moving for var in node.inputs):
                self.moving.update(node.outputs)

    def of(self, var: Variable) -> _Part | None:
        if var is self.rv:
            return _Part(graph=self.source, exponent=1.0)
        if var not in self.moving:
            return _Part(graph=_nowhere(var), exponent=None)
        node = var.owner
        if isinstance(node.op, SELECTING):
            return self._selected(node)
        if isinstance(node.op, ScalarFromTensor | TensorFromScalar | MakeVector | Join):
            return self._applied(node, [self.of(item) for item in node.inputs], [])
        if isinstance(node.op, Elemwise):
            return self._elementwise(node, type(node.op.scalar_op).__name__)
        return None

    def _selected(self, node: Any) -> _Part | None:
        carried, others = node.inputs[0], node.inputs[1:]
        choosing = [] if isinstance(node.op, SHAPED) else [var for var in others if var in self.moving]
        dependents = [var for var in others if self.free & set(reached([var]))]
        if choosing or carried not in self.moving:
            return None
        if self.simplex and dependents and not isinstance(node.op, SHAPED) and not self._picks_rows(node):
            return None
        found = self.of(carried)
        if found is None:
            return None
        moved = node.clone_with_new_inputs([found.graph, *others], strict=False).outputs[0]
        return _Part(graph=moved, exponent=found.exponent, scaled=found.scaled)

    def _picks_rows(self, node: Any) -> bool:
        """Whether an index that moves leaves the categories of a table of simplexes where they are."""
        chooses = isinstance(node.op, Subtensor | AdvancedSubtensor)
        return chooses and node.inputs[0] is self.rv and self.rv.type.ndim > 1 and len(node.op.idx_list) == 1

    def _applied(self, node: Any, parts: Sequence[_Part | None], before: Sequence[Variable]) -> _Part | None:
        """Apply an operation that moves entries of several inputs, which must be the same power of the variable."""
        known = [part for part in parts if part is not None]
        exponents = {part.exponent for part in known if part.exponent is not None}
        if len(known) < len(parts) or len(exponents) != 1:
            return None
        self.pieced = self.pieced or len(parts) > 1
        moved = node.clone_with_new_inputs([*before, *(part.graph for part in known)], strict=False).outputs[0]
        return _Part(graph=moved, exponent=exponents.pop(), scaled=any(part.scaled for part in known))

    def _elementwise(self, node: Any, name: str) -> _Part | None:
        inputs = list(node.inputs)
        if name == "Cast":
            return self.of(inputs[0]) if node.outputs[0].type.dtype == "float64" else None
        if name == "Second":
            return self._applied(node, [self.of(inputs[1])], inputs[:1])
        if name == "Switch":
            return (
                None if inputs[0] in self.moving else self._applied(node, [self.of(v) for v in inputs[1:]], inputs[:1])
            )
        if self.simplex:
            return None
        return self._power(inputs, name) if self.positive else self._product(inputs, name)

    def _power(self, inputs: list[Variable], name: str) -> _Part | None:
        """Powers of what is positive."""
        exponent = POWERS.get(name)
        if name == "Pow":
            values = None if inputs[1] in self.moving else constant_values(inputs[1:], list(self.free))
            exponent = None if values is None or values[0].size != 1 else float(values[0].item())
        if exponent is None:
            return self._product(inputs, name)
        found = self.of(inputs[0])
        if found is None or found.exponent is None:
            return None
        return _Part(graph=found.graph, exponent=found.exponent * exponent, scaled=found.scaled)

    def _product(self, inputs: list[Variable], name: str) -> _Part | None:
        """Products and quotients: exponents add up, and what is free of the variable is a factor."""
        if name not in ("Mul", "TrueDiv"):
            return None
        signs = [1.0, *([-1.0] if name == "TrueDiv" else [1.0] * (len(inputs) - 1))]
        graph: Any = None
        exponent, scaled = 0.0, False
        for var, sign in zip(inputs, signs, strict=True):
            found = self.of(var) if var in self.moving else _Part(graph=var, exponent=None)
            if found is None:
                return None
            scaled = scaled or found.scaled or found.exponent is None
            if found.exponent is not None:
                if graph is not None and not self._same_places(graph, found.graph):
                    return None
                exponent += sign * found.exponent
                graph = found.graph if graph is None else pt.second(found.graph, graph)
        for var in inputs:  # to the shape of the whole
            graph = pt.second(var, graph)
        return _Part(graph=graph, exponent=exponent, scaled=scaled)

    def _same_places(self, one: Variable, other: Variable) -> bool:
        """Whether two graphs are proved equal: probes can miss places that rarely part."""
        graphs, _ = rebuild([one, other], {self.rv: self.source})
        values = constant_values(graphs, list(self.free))
        return equal_computations(graphs[:1], graphs[1:]) if values is None else bool((values[0] == values[1]).all())


def _nowhere(var: Variable) -> Variable:
    """Return `NOWHERE` for each entry, as a constant where the shape is known."""
    shape = var.type.shape
    if None in shape:
        return pt.full_like(var, float(NOWHERE), dtype="float64")
    return pt.constant(np.full(shape, float(NOWHERE)))


POWERS = {"Reciprocal": -1.0, "Sqrt": 0.5, "Sqr": 2.0, "Abs": 1.0, "Sign": 0.0}


def _holds(places: Places, parameter: Variable, prior: Prior, free: Mapping[Variable, Ends]) -> bool:
    """Hold the places against the graph at random public places, as a guard against an error in the walk."""
    rng, variables = np.random.default_rng(0), list(free)
    inputs = [var.type() for var in variables]
    graphs, _ = rebuild([parameter, places.graph], dict(zip(variables, inputs, strict=True)))
    function, own = plain_function(inputs, graphs, few=True), variables.index(prior.variable)
    with np.errstate(all="ignore"):
        for _ in range(PROBES):
            values = [somewhere(rng, var, free[var]) for var in variables]
            other = [*values[:own], somewhere(rng, prior.variable, free[prior.variable]), *values[own + 1 :]]
            one, where = function(*values)
            two, same = function(*other)
            if np.shape(where) != np.shape(one) or not np.array_equal(where, same):
                return False
            where = np.rint(where).astype(np.int64)
            if prior.distribution == "dirichlet" and not _whole(where, prior.shape[-1]):
                return False
            inside = (where >= 0) & (where < prior.size)
            if not (inside | (where == NOWHERE)).all() or not np.array_equal(one[~inside], two[~inside]):
                return False
            factors = [
                np.asarray(found)[inside] / np.ravel(value[own])[where[inside]] ** places.exponent
                for found, value in ((one, values), (two, other))
            ]
            wanted = factors[1] if places.scaled else np.ones_like(factors[0])
            if not all(np.allclose(factor, wanted, rtol=1e-9, atol=0) for factor in factors):
                return False
    return True


def _whole(places: Array, levels: int) -> bool:
    """Whether every vector along the last axis is one simplex, its categories in their order, or has no part of any."""
    if places.shape[-1:] != (levels,):
        return False
    first = places[..., :1]
    whole = (places == first + np.arange(levels)) & (first >= 0) & (first % levels == 0)
    return bool((whole.all(axis=-1) | (places == NOWHERE).all(axis=-1)).all())


def placed(places: Places, shape: tuple[int, ...], make: Callable[[Sequence[Variable]], Any]) -> Callable[[Any], Array]:
    """Return the places, broadcast to a shape, as a function of the values of other variables."""
    static = places.static
    if static is not None:
        wide = np.broadcast_to(static, shape)
        return lambda values: wide
    function = make([places.graph])
    return lambda values: np.broadcast_to(np.rint(function(values)[0]).astype(np.int64), shape)


__all__ = ["NOWHERE", "Places", "placed", "places_of"]
