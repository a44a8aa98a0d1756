"""How a private step shows itself: as the call that makes it, and in PyMC's progress bar."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, override

from pymc_dp.step_methods.own_variables import Names
from pymc_dp.step_methods.stages import Stages

SPENT = "epsilon_spent"


class ShownStep(Stages):
    """Part of every private step method."""

    settings: dict[str, Any]
    names: Names | None
    share: float

    @override
    def __repr__(self) -> str:
        known = signature(type(self).__init__).parameters
        defaults = {name: parameter.default for name, parameter in known.items()}
        shown = [f"{name}={value!r}" for name, value in self.settings.items() if value != defaults.get(name)]
        shown = [f"share={self.share:g}"] * (self.share != 1) + shown
        if self.is_bound:
            budget, chains = self.binding.budget, self.binding.chains
            funded = f"epsilon={budget.epsilon:g}", f"delta={budget.delta:g}", f"chains={chains}"
            shown = [*funded, *shown]
        shown = [*([] if self.names is None else [repr(list(self.names))]), *shown]
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def written(self) -> str:
        """The call that makes it, in the words of a program that says ``import pymc_dp as dp``."""
        own = type(self).__module__.partition(".")[0] == "pymc_dp"
        return f"dp.{self!r}" if own else repr(self)

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"

    @staticmethod
    def _progressbar_config(n_chains: int = 1) -> tuple[list[Any], dict[str, list[float]]]:
        from rich.progress import TextColumn
        from rich.table import Column

        column = TextColumn("{task.fields[epsilon_spent]:.6g}", table_column=Column("ε spent", ratio=1))
        return [column], {SPENT: [0.0] * n_chains}

    @staticmethod
    def _make_progressbar_update_functions() -> tuple[Callable[[dict[str, Any]], dict[str, Any]], ...]:
        return (lambda stats: {SPENT: stats[SPENT]},)


__all__ = ["SPENT", "ShownStep"]
