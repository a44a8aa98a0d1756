"""The mean of a row as a function of its linear predictor, apart from the model that it was found in."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.rows import public_values


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """A graph of one vector and of constants: a private model keeps it, so that it must lead to no row.

    Attributes
    ----------
    inner : (n,) tensor
        In the place of the linear predictor.
    outer : (n,) tensor
        The mean parameter.
    """

    inner: TensorVariable
    outer: Variable

    @classmethod
    def of(cls, inner: TensorVariable, outer: Variable, hidden: Container[Variable]) -> Link:
        """Copy a graph that reaches nothing hidden: data as constants, without the lines of the program it is from."""
        held = [var for var in ancestors([outer]) if isinstance(var, SharedVariable)]
        own = inner.type(name=inner.name)
        (copied,), _ = rebuild(
            [outer], {inner: own, **{var: pt.constant(public_values(var, hidden)) for var in held}}, clone=True
        )
        for var in ancestors([copied]):
            for item in [var] if var.owner is None else [var, var.owner]:
                vars(item.tag).pop("trace", None)
        return cls(inner=own, outer=copied)

    def __call__(self, eta: TensorVariable) -> TensorVariable:
        """Return the mean parameter at any values of the linear predictor, of the same shape."""
        return rebuild([self.outer], {self.inner: eta.reshape((-1,))})[0][0].reshape(eta.shape)


__all__ = ["Link"]
