"""NUTS on a tempered posterior: compiled once, for tables of any length; nothing is printed, logged or warned of."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.ops.row_density import Held, RowDensity
from pymc_dp.step_methods.values import Point

TUNE = 1000
"""Steps in which step sizes and scales are learnt from the rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """What a chain went through after tuning. **Private** if the rows were.

    Attributes
    ----------
    states : (n_draws, n_values) array
        On PyMC's unconstrained scale.
    divergences : int
    last : dict of str to array
        Free variables at the last state, on their own scale.
    """

    states: Array
    divergences: int
    last: dict[str, Array]


class TemperedChain:
    """A NUTS sampler of ``prior^power exp(inverse Σ l(x, θ))``; rows are put into it for one chain and taken out again.

    Parameters
    ----------
    density : RowDensity
    prior_model : pymc.Model
        Whose priors and Potentials are the prior. It is changed: the likelihood becomes a Potential of it.
    temper_prior : bool
        Whether power is `inverse` too; else it is 1.
    """

    def __init__(self, density: RowDensity, prior_model: Model, *, temper_prior: bool) -> None:
        self._names = [prior.name for prior in density.priors]
        self._inverse = pytensor.shared(np.float64(1.0))
        self._rows, self._weights = density.stand_ins()
        flat = pt.concatenate([rv.ravel().astype("float64") for rv in prior_model.free_RVs])
        prior, likelihood = density.graphs(flat, self._rows, self._weights)
        with prior_model:
            pm.Potential("tempered_likelihood", self._inverse * likelihood)
            if temper_prior:
                pm.Potential("tempered_prior", (self._inverse - 1) * prior)
        self._start = prior_model.initial_point(random_seed=0)
        with _silent():
            self._step = pm.NUTS(model=prior_model)
            self._parameters = prior_model.compile_fn(
                prior_model.replace_rvs_by_values(prior_model.free_RVs),
                inputs=prior_model.value_vars,
                mode="FAST_COMPILE",
                on_unused_input="ignore",
            )

    def run(self, held: Held, inverse: float, draws: int, rng: np.random.Generator) -> Chain:
        """Run one chain, from a start that no row moves.

        Raises
        ------
        Exception
            Of any kind, whose text may tell of a row.
        """
        with _silent():
            self._put(*held, inverse)
            try:
                return self._walk(draws, rng)
            finally:
                self._put([row[:0] for row in held[0]], held[1][:0], 1.0)

    def _put(self, rows: list[Array], weights: Array, inverse: float) -> None:
        for shared, row in zip(self._rows, rows, strict=True):
            shared.set_value(row)
        self._weights.set_value(weights)
        self._inverse.set_value(np.float64(inverse))

    def _walk(self, draws: int, rng: np.random.Generator) -> Chain:
        point = {name: value + rng.uniform(-1, 1, np.shape(value)) for name, value in self._start.items()}
        states, divergences, point = walked(self._step, point, rng, tune=TUNE, draws=draws)
        last = dict(zip(self._names, self._parameters(point), strict=True))
        return Chain(states=states, divergences=divergences, last=last)


def walked(step: Any, point: Point, rng: np.random.Generator, *, tune: int, draws: int) -> tuple[Array, int, Point]:
    """Tune NUTS anew and walk: states after that, (draws, n_values), how many steps diverged, and the last point.

    Parameters
    ----------
    step : pymc.NUTS
    point : mapping of str to array
        Where the chain begins.
    rng : numpy.random.Generator
    tune, draws : int
    """
    step.setup_chain(rng, tune, draws)
    step.reset_tuning()
    states, divergences, names = [], 0, list(point)
    for turn in range(tune + draws):
        if turn == tune:
            step.stop_tuning()
        point, (stats, *_) = step.step(point)
        if turn >= tune:
            states.append(np.concatenate([np.ravel(point[name]) for name in names]))
            divergences += int(stats["diverging"])
    return np.array(states), divergences, point


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing be printed, logged or warned of, nor be raised for a number: it could depend on a row."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                yield
    finally:
        logging.disable(level)


__all__ = ["Chain", "TemperedChain", "walked"]
