"""Steps that may be made without a model: specifications for ``dp.sample(step=...)``."""

from __future__ import annotations

from typing import Any, Self, override

from pymc.step_methods.arraystep import BlockedStep
from pymc.step_methods.compound import Competence
from pytensor.graph.basic import Variable


class SpecifiedStep(BlockedStep):
    """Base of the steps of this package, of which PyMC's constructor would ask for a model, and none of which it may
    choose by itself.
    """

    default_blocked = True
    tune: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make a step without a model, which PyMC's own constructor asks for and a specification does not have."""
        step = object.__new__(cls)
        step._BlockedStep__newargs = ((), {})  # where PyMC keeps what unpickling needs
        step.stats_dtypes = [{name: dtype for name, (dtype, _) in cls.stats_dtypes_shapes.items()}]
        return step

    @override
    def stop_tuning(self) -> None:
        self.tune = False

    @staticmethod
    @override
    def competence(var: Variable, has_grad: bool) -> Competence:
        """Never chosen automatically."""
        return Competence.INCOMPATIBLE


__all__ = ["SpecifiedStep"]
