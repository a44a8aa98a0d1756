"""How compiled models draw from the distributions of this package; imported when the first of them is made.

PyTensor would otherwise draw through Python, and warn of it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

from pymc_dp.draws.kernels import fill_ball
from pymc_dp.kernel.truncated import quadrature
from pymc_dp.kernel.truncated_loops import fill_dirichlet
from pymc_dp.transforms.markov_states import MarkovStatesRV
from pymc_dp.transforms.restricted_priors import INSIDE, NormalBallRV, TruncatedDirichletRV
from pymc_dp.transforms.source_hash import source_hash

NODES, WEIGHTS = quadrature()


@numba.njit
def in_ball(rng, sigma, radius):  # type: ignore[no-untyped-def]
    """Draw one vector of `NormalBall`."""
    out = np.empty(sigma.size)
    fill_ball(rng, float(sigma[0]), float(radius) * INSIDE**2, out)
    return out


@numba.njit
def in_simplex(rng, a, lower):  # type: ignore[no-untyped-def]
    """Draw one vector of `TruncatedDirichlet`."""
    out = np.empty((1, 1, a.size))
    rows = a.copy().reshape(1, -1), lower.copy().reshape(1, -1)
    fill_dirichlet(rng, rows[0], rows[1], NODES.copy(), WEIGHTS.copy(), out)  # one type of array: one compilation
    return out[0, 0]


@numba.njit
def along_chain(rng, start, transition, steps):  # type: ignore[no-untyped-def]
    """Draw one chain of `MarkovStates`."""
    states = np.empty(steps.item(), dtype=np.int64)
    for t in range(states.size):
        given = start if t == 0 else transition[states[t - 1]]
        left = rng.random() * given.sum()
        k = 0
        while k < given.size - 1 and left >= given[k]:
            left -= given[k]
            k += 1
        states[t] = k
    return states


DRAWS = {NormalBallRV: in_ball, TruncatedDirichletRV: in_simplex, MarkovStatesRV: along_chain}


def compiled(op: Any, node: Any) -> tuple[Any, int | None]:
    """Return the function that draws, and what PyTensor may keep a compiled model by that calls it."""
    draw = DRAWS[type(op)]
    found = source_hash(draw)
    return draw, None if found is None else int(found, 16)


for each in DRAWS:
    numba_core_rv_funcify.register(each)(compiled)

__all__ = ["compiled"]
