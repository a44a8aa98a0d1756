"""Posteriors of other models: one NUTS chain each, of a density that is compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from pymc import Model

from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.prior import split
from pymc_dp.step_methods.ops.tempered_chain import walked

TUNE, DRAWS = 250, 350


class Chain:
    """NUTS on a model whose observed values change between posteriors.

    Parameters
    ----------
    model : pymc.Model
    start : (n_elements,) array
        Where chains begin: a place in the middle of the prior, whatever the truth.
    shapes : list of tuple of int
        Of the value variables.
    """

    def __init__(self, model: Model, start: Array, shapes: list[tuple[int, ...]]) -> None:
        names = [str(value.name) for value in model.value_vars]
        self.start = {name: part[0] for name, part in zip(names, split(start[None], shapes), strict=True)}
        self.step: Any = pm.NUTS(model=model, initial_point=self.start, target_accept=0.85)

    def draws(self, seed: int) -> Array:
        """Tune anew and return draws, (DRAWS, n_elements)."""
        # A step that is too long, while it is tuned, overflows and is rejected.
        with np.errstate(over="ignore", invalid="ignore"):
            return walked(self.step, self.start, np.random.default_rng(seed), tune=TUNE, draws=DRAWS)[0]


__all__ = ["Chain"]
