"""What every way to draw from a tempered posterior can do."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pymc_dp.inspection.rows import Array


class Posterior(Protocol):
    """A way to draw from a tempered posterior, in words for the trace."""

    @property
    def words(self) -> str:
        """How."""

    @property
    def exact(self) -> bool:
        """Whether draws are exact."""

    def read(self) -> Any:
        """Read the rows, once. Reads private data: the budget must have been charged."""

    def draw(self, rng: np.random.Generator, held: Any, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables with the likelihood to the power `inverse`."""


__all__ = ["Posterior"]
