"""Compiled functions over the constrained values of a prior model's free variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import frozen_shared
from pymc_dp.inspection.row_density import guarded, vectorized
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.samplers.sums import slopes_of
from pymc_dp.transforms.likelihood import TableLikelihood

Values = Mapping[str, Array]
Maker = Callable[[Sequence[Variable], Sequence[Variable]], Any]
"""From inputs and outputs to a function."""


class Functions:
    """Compiles graphs over the free variables of a prior model into functions of their values by name.

    Parameters
    ----------
    prior_model : pymc.Model
    shapes : mapping of str to tuple of int
        Shape of every free variable.
    """

    def __init__(self, prior_model: Model, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.prior_model = prior_model
        self.calls: list[Call] = []
        self.symbols = {
            rv: pt.TensorType(rv.type.dtype, shapes[str(rv.name)])(str(rv.name)) for rv in prior_model.free_RVs
        }

    def compile(self) -> None:
        """Compile everything that was made so far; else each function is compiled when it is first called."""
        for call in self.calls:
            call.compile()

    def call(self, outputs: Sequence[Variable], inputs: Sequence[Variable], *, make: Maker | None = None) -> Call:
        """Make a function of arrays by name, compiled as PyMC does by default."""
        self.calls.append(Call(outputs, inputs, make or _as_pymc))
        return self.calls[-1]

    def over_values(self, graphs: Sequence[Variable]) -> list[Variable]:
        """Replace every free variable by a symbol of its value."""
        return rebuild(graphs, self.symbols)[0]

    def function(self, graphs: Sequence[Variable]) -> Callable[[Values], list[Array]]:
        """Compile graphs over free variables."""
        return self.call(self.over_values(graphs), list(self.symbols.values()))

    def scores(self, rv: Variable, terms: Sequence[Variable]) -> AtMany:
        """Compile log-density terms at many values of one variable at once."""
        return AtMany(*self.at_many(rv, self.over_values(terms), []))

    def slopes(self, rv: Variable, tables: Sequence[TableLikelihood]) -> AtMany:
        """Compile the derivatives of tables' log-likelihoods in their sums, as `slopes_of`: (n, size) of each."""
        graphs = [_steady(slopes_of(table, self.over_values)) for table in tables]
        return AtMany(*self.at_many(rv, graphs, [], make=compiled, batched=True))

    def slopes_here(self, tables: Sequence[TableLikelihood]) -> Call:
        """Compile the same at one value of every variable: (size,) of each."""
        graphs = [_steady(slopes_of(table, self.over_values)) for table in tables]
        return self.call(graphs, list(self.symbols.values()), make=compiled)

    def at_many(
        self,
        rv: Variable,
        graphs: Sequence[Variable],
        inputs: Sequence[Variable],
        *,
        make: Maker | None = None,
        batched: bool = False,
    ) -> tuple[Call, str]:
        """Make a function of many values of one variable at once, of single ones of the others, and of `inputs`.

        With `batched`, vectors that the variable does not enter are repeated too.

        Returns
        -------
        call : Call
        many : str
            Name of the input that takes the many values.
        """
        symbol = self.symbols[rv]
        many = pt.TensorType(symbol.type.dtype, (None, *symbol.type.shape))(f"{rv.name}_candidates")
        others = [other for other in self.symbols.values() if other is not symbol]
        outputs = vectorized(list(graphs), {symbol: many})
        if batched:
            outputs = [one if one.type.ndim > 1 else pt.tile(one, (many.shape[0], 1)) for one in outputs]
        return self.call(outputs, [many, *others, *inputs], make=make), str(many.name)

    def unconstrained(
        self, rv: Variable, terms: Sequence[Variable]
    ) -> tuple[Callable[[Array, Values], float], Callable[[Array, Values], Array], Callable[[Array, Values], Array]]:
        """Compile the sum of log-density terms on a variable's unconstrained scale, and the ways there and back."""
        value, transform, inputs = (
            self.prior_model.rvs_to_values[rv],
            self.prior_model.rvs_to_transforms[rv],
            rv.owner.inputs,
        )
        symbol = self.symbols[rv]
        others = [other for other in self.symbols.values() if other is not symbol]
        place = value.type(name=f"{rv.name}_place")
        if transform is None:
            back, jacobian, forth = place, None, symbol
        else:
            back, jacobian, forth = self.over_values(
                [
                    transform.backward(place, *inputs),
                    transform.log_jac_det(place, *inputs),
                    transform.forward(rv, *inputs),
                ]
            )
        total = pt.add(*[term.sum() for term in self.over_values(terms)], pt.constant(0.0))
        total = rebuild([total], {symbol: back})[0][0]
        if jacobian is not None:
            total = total + jacobian.sum()
        return (
            _Density(self.call([total], [place, *others]), place.name),
            _Density(self.call([forth], [symbol, *others]), symbol.name, scalar=False),
            _Density(self.call([back], [place, *others]), place.name, scalar=False),
        )


def _steady(graph: Any) -> Any:
    """Return a graph that stays finite where its value is."""
    return stable(frozen_shared(guarded(graph), ()))


def _as_pymc(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Any:
    return pm.compile(list(inputs), list(outputs), trust_input=True)


class Call:
    """A compiled function of arrays by name; inputs that it does not need are not asked for."""

    def __init__(self, outputs: Sequence[Variable], inputs: Sequence[Variable], make: Maker) -> None:
        self.make = make
        used = set(ancestors(list(outputs)))
        self.outputs, self.symbols = list(outputs), [var for var in inputs if var in used]
        self.inputs = [(var.name, np.dtype(var.type.dtype)) for var in self.symbols]
        self.run: Any = None

    def compile(self) -> None:
        """Compile, once."""
        if self.run is None:
            self.run = self.make(self.symbols, self.outputs)

    def __call__(self, values: Mapping[str, Array]) -> list[Array]:
        """Evaluate it."""
        self.compile()
        return [np.asarray(item) for item in self.run(*(np.asarray(values[n], dtype=d) for n, d in self.inputs))]


class AtMany:
    """Calls with many values of one variable."""

    def __init__(self, call: Call, many: str) -> None:
        self.call, self.many = call, many

    def __call__(self, candidates: Array, values: Values) -> list[Array]:
        """Evaluate it."""
        with np.errstate(all="ignore"):
            return self.call({**values, self.many: candidates})


class _Density:
    """Calls with one array in place of one variable."""

    def __init__(self, call: Call, name: str, *, scalar: bool = True) -> None:
        self.call, self.name, self.scalar = call, name, scalar

    def __call__(self, place: Array, values: Values) -> Any:
        (found,) = self.call({**values, self.name: place})
        return float(found) if self.scalar else found


class Points:
    """From points of value variables, as PyMC holds them, to constrained values and back.

    Parameters
    ----------
    functions : Functions
    low, high : mapping of str to arrays
        Bounds that constrained values are kept within.
    """

    def __init__(self, functions: Functions, low: Mapping[str, Array], high: Mapping[str, Array]) -> None:
        prior_model = functions.prior_model
        self.low, self.high = dict(low), dict(high)
        self.places = {str(rv.name): str(prior_model.rvs_to_values[rv].name) for rv in prior_model.free_RVs}
        moved = [rv for rv in prior_model.free_RVs if prior_model.rvs_to_transforms[rv] is not None]
        self.moved = [str(rv.name) for rv in moved]
        values = [prior_model.rvs_to_values[rv] for rv in prior_model.free_RVs]
        forward = [prior_model.rvs_to_transforms[rv].forward(rv, *rv.owner.inputs) for rv in moved]
        self._in = functions.call(prior_model.replace_rvs_by_values(moved), values) if moved else None
        self._out = functions.function(forward) if moved else None

    def values(self, point: Mapping[str, Array]) -> dict[str, Array]:
        """Constrained values of a point, within their bounds."""
        found = {name: np.asarray(point[place]) for name, place in self.places.items()}
        if self._in is not None:
            found |= dict(zip(self.moved, self._in(point), strict=True))
        return {name: np.clip(value, self.low[name], self.high[name]) for name, value in found.items()}

    def point(self, values: Values, like: Mapping[str, Array]) -> dict[str, Array]:
        """Point of constrained values, with the keys and dtypes of another; bounds are drawn in by one float."""
        inner = {name: self.inside(name, value) for name, value in values.items()}
        found: dict[str, Array] = {self.places[name]: value for name, value in inner.items()}
        if self._out is not None:
            places = [self.places[name] for name in self.moved]
            found |= dict(zip(places, self._out(inner), strict=True))
        return {name: np.asarray(found.get(name, old), dtype=old.dtype) for name, old in like.items()}

    def inside(self, name: str, value: Array) -> Array:
        """Return a draw inside of its bounds: at one, as rounding can have it, it has no unconstrained place."""
        if name not in self.moved or value.dtype.kind != "f":
            return value
        low, high = self.low[name], self.high[name]
        return np.clip(value, np.nextafter(low, high), np.nextafter(high, low))


__all__ = ["AtMany", "Call", "Functions", "Points"]
