"""Exact draws of the hidden states of Markov chains given sums, all at once; float64.

The log-likelihood of the states is a sum over steps, each linear in whole numbers that rows add.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, final, override

import numpy as np

from pymc_dp.kernel.arguments import keep, whole
from pymc_dp.kernel.conjugates import LARGEST, Conjugate, keep_floats
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.layout import Layout
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.payer import Array

MOST_EVIDENCE = 2.0**40
"""Nats of what the rows of a table add up to for a state: floats of more would err by 2^-12."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Paths(Conjugate):
    """States z of some chains, each chain with probability ∝ start(z_1) Π transition(z_t, z_t+1) e^(Σ a_t(z_t)).

    a is linear in the sums. A row that adds d moves the log probability by Σ_t d_t(z_t), of a range over all paths of
    Σ_t of the range of d_t over states at most: that of independent choices of all states (`Layout.range_each`). Where
    all paths are possible it is reached. States that no path reaches do not count.

    Parameters
    ----------
    n_chains, n_steps : int
    start : (n_states,) array
    transition : (n_states, n_states) array
        Public probabilities, 0 among them; they add up to 1.
    evidence : (n_states, size) array
        Public coefficients of a of the sums of each step.
    steps : (size,) array
        The step of a chain that each sum is of, steps counting fastest; -1 for none. All sums of a cell are of one.
    """

    n_chains: int
    n_steps: int
    start: Array
    transition: Array
    evidence: Array
    steps: Array

    def __post_init__(self) -> None:
        keep(self, n_chains=whole("n_chains", self.n_chains), n_steps=whole("n_steps", self.n_steps))
        (states,) = keep_floats(self, "start", None)
        keep_floats(self, "transition", states, states)
        (_, size) = keep_floats(self, "evidence", states, None)
        keep_floats(self, "steps", size)
        for each in (self.start, self.transition):
            if (each < 0).any() or not np.allclose(each.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
                raise ArgumentError("start, and each row of transition, must be probabilities that add up to 1.")

    @property
    @override
    def linear(self) -> Array:
        return self.evidence

    @property
    @override
    def public(self) -> tuple[Any, ...]:
        return self.n_chains, self.n_steps, self.start, self.transition, self.steps

    @property
    def reached(self) -> Array:
        """Which states a path may be in at each step: (n_steps, n_states)."""
        found = [self.start > 0]
        for _ in range(self.n_steps - 1):
            found.append(self.transition[found[-1]].any(axis=0))
        return np.array(found)

    @override
    def range(self, layout: Layout, linear: Array) -> float:
        return layout.range_each(linear, self.owned(layout)[0], np.tile(self.reached, (self.n_chains, 1)))

    @override
    def owned(self, layout: Layout) -> tuple[Array, int]:
        count = self.n_chains * self.n_steps
        return layout.owners(self.steps, count), count

    @override
    def check_floats(self, layout: Layout, linear: Array) -> None:
        least, most = layout.least_and_most(linear)
        rows = MOST_ROWS if layout.n_rows is None else max(layout.n_rows, 1)
        if not rows * max(float(np.abs(least).max()), float(np.abs(most).max())) < MOST_EVIDENCE:
            raise ArgumentError("What the rows of some tables add up to is too large for floats. Take a smaller beta.")

    @override
    def _draw(self, rng: Any, sums: Array) -> Array:
        states = np.empty((self.n_chains, self.n_steps), dtype=np.int64)
        evidence = np.clip(np.nan_to_num(sums), -LARGEST, LARGEST).reshape(*states.shape, -1)
        _loops().sample_paths(rng, np.array(self.start), np.array(self.transition), evidence, states)
        return states


def _loops() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.kernel import path_loops

    return path_loops
