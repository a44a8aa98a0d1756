"""Updates of variables that see no row: functions of released states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.conditionals import Conditional, Sums, Values
from pymc_dp.step_methods.gibbs.slice import slice_draw


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Free(Conditional):
    """Slice sampling of a variable that sees no row: a function of released states, at no cost.

    It leaves its conditional invariant, where the other updates draw from theirs.

    Attributes
    ----------
    density : callable
        From the variable on its unconstrained scale and the others' values to the log-density.
    forward, backward : callable
        To and from the unconstrained scale, given the others' values.
    """

    kind: ClassVar[str] = "slice sampling, sees no row"
    density: Callable[[Array, Values], float]
    forward: Callable[[Array, Values], Array]
    backward: Callable[[Array, Values], Array]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        start = self.forward(values[self.name], values)
        return self.backward(slice_draw(rng, lambda place: self.density(place, values), start), values)


__all__ = ["Free"]
