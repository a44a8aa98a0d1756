"""What every update of a scan is: a draw of one free variable given the rest, at a known range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.likelihood import ExactSums

Values = Mapping[str, Array]
Sums = Mapping[str, ExactSums]


@dataclass(frozen=True, kw_only=True, eq=False)
class Conditional(ABC):
    """The update of one free variable given the rest.

    Attributes
    ----------
    name : str
        Free variable.
    shape : tuple of int
    ranges : tuple of float
        What each mechanism of the update pays at temperature 1: bound of the range over this variable alone of the
        difference of two rows' log-likelihoods. Empty where the update sees no row.
    reason : str
        Where the ranges come from.
    """

    kind: ClassVar[str]
    name: str
    shape: tuple[int, ...]
    ranges: tuple[float, ...] = ()
    reason: str = ""

    @abstractmethod
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        """Draw this variable given the values of the others (constrained) and the exact sums, tempered by `beta`."""

    @property
    def fact(self) -> tuple[str, str]:
        """The update in public terms, for the trace: of what, and how at which price."""
        paid = f"range {sum(self.ranges):.6g} per scan: {self.reason}" if sum(self.ranges) else "free"
        return f"update of {self.name}", f"{self.kind}{'' if self.ranges else ', sees no row'}; {paid}"


__all__ = ["Conditional", "Sums", "Values"]
