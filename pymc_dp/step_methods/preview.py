"""What a step method would do for a model and a budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymc_dp.step_methods.base import PrivateStep


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a step method would do for a model and a budget, found without reading a row.

    Attributes
    ----------
    call : str
    guarantee : str
    noise : str
        Temperature or noise; empty where the method does not fit.
    problem : str
        What is in the way and what would make the method possible; empty where it fits.
    facts : tuple of (str, str)
    bound : PrivateStep, optional
        The step itself, bound to the model and priced; None where it does not fit.
    """

    call: str
    guarantee: str
    noise: str = ""
    problem: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    bound: PrivateStep | None = field(default=None, repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Whether ``dp.sample(step=...)`` would accept the model."""
        return not self.problem


__all__ = ["Preview"]
