"""Posteriors of other models: one NUTS chain each, of a density that is compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from pymc import Model

from pymc_dp.inspection.rows import Array

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
        self.names = [str(value.name) for value in model.value_vars]
        parts = np.split(start, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        self.start = {name: part.reshape(shape) for name, part, shape in zip(self.names, parts, shapes, strict=True)}
        self.step: Any = pm.NUTS(model=model, initial_point=self.start, target_accept=0.85)

    def draws(self, seed: int) -> Array:
        """Tune anew and return draws, (DRAWS, n_elements)."""
        self.step.setup_chain(np.random.default_rng(seed), TUNE, DRAWS)
        self.step.reset_tuning()
        point = dict(self.start)
        result = []
        # A step that is too long, while it is tuned, overflows and is rejected.
        with np.errstate(over="ignore", invalid="ignore"):
            for turn in range(TUNE + DRAWS):
                if turn == TUNE:
                    self.step.stop_tuning()
                point, _ = self.step.step(point)
                if turn >= TUNE:
                    result.append(np.concatenate([np.ravel(point[name]) for name in self.names]))
        return np.array(result)


__all__ = ["Chain"]
