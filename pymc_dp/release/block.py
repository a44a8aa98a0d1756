"""One integer vector of a release and its noise."""

from __future__ import annotations

from dataclasses import dataclass

from pymc_dp.accounting import Event
from pymc_dp.release.noise import Noise
from pymc_dp.release.sensitivity import SumSensitivity


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """One integer vector that gets noise of one scale.

    Attributes
    ----------
    columns : tuple of int
        Its columns in the released table.
    steps : tuple of float
        Grid step of each column, in units of the data.
    scale : float
        Noise scale in grid steps.
    sensitivity : Sensitivity
    noise : Noise
    """

    columns: tuple[int, ...]
    steps: tuple[float, ...]
    scale: float
    sensitivity: SumSensitivity
    noise: Noise

    @property
    def event(self) -> Event:
        """What the release of this block costs."""
        return self.noise.event(self.sensitivity, self.scale)


__all__ = ["Block"]
