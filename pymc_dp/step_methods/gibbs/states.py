"""Markov states drawn all at once given the rows, and the probabilities of their moves, which see no row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.inspection.hidden_markov import Chain
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.paths import Paths
from pymc_dp.kernel.truncated import truncated_dirichlet
from pymc_dp.samplers.gibbs_sums import ConjugateDraw
from pymc_dp.step_methods.gibbs.by_sums import Owners, Slopes, SumsUpdate
from pymc_dp.step_methods.gibbs.conjugacy import Dependents
from pymc_dp.step_methods.gibbs.grid import Conditional, Values
from pymc_dp.step_methods.markov.collapsed import tallies


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StatePaths(SumsUpdate):
    """All states of all chains in one draw from their joint conditional, by forward filtering and backward sampling.

    With z the states, π their Markov prior and c(i) the cell of row i, the draw has the distribution

        P(z) ∝ π(z) exp(β Σ_i l(x_i, θ(z_c(i)))),

    drawn exactly: one exponential mechanism over all paths, with base measure π. A row moves the log-likelihood of one
    state, or of two where it may change its cell, whatever the number of chains and steps. Start, moves and profiles
    are released with the chain.

    Attributes
    ----------
    chain : Chain
    slopes : Slopes
    owners : Owners
    """

    kind: ClassVar[str] = "all states at once, by forward filtering and backward sampling"
    chain: Chain
    slopes: Slopes
    owners: Owners

    @override
    def asked(self, values: Values, element: int) -> ConjugateDraw:
        chain, sums = self.chain, self.of.sums
        every = np.arange(chain.n_states).reshape(-1, *[1] * len(chain.states.shape))
        states = np.broadcast_to(every, (chain.n_states, *chain.states.shape))
        slopes = [np.reshape(one, (chain.n_states, -1)) for one in self.slopes(states, values)]
        start, moves = (_probabilities(item, values) for item in (chain.start, chain.transition))
        family = Paths(
            n_chains=chain.n_chains,
            n_steps=chain.n_steps,
            start=start,
            transition=moves,
            evidence=sums.whole(np.concatenate(slopes, axis=1)),
            steps=sums.of_cells(self.owners(values)),
        )
        return ConjugateDraw(of=self.of, family=family, back=lambda drawn: drawn.reshape(self.shape))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Moves(Conditional):
    """Probabilities of first states or of moves given the states: Dirichlet, and no row is seen.

    Attributes
    ----------
    chain : Chain
    prior : Prior
    """

    kind: ClassVar[str] = "Dirichlet given the states"
    chain: Chain
    prior: Prior

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        assert self.prior.constants is not None and self.prior.low is not None
        states = np.asarray(values[self.chain.states.name], dtype=np.int64)
        seen = tallies(self.chain, states)[self.prior is self.chain.transition]
        return truncated_dirichlet(rng, self.prior.constants[0] + seen, np.asarray(self.prior.low, dtype=float))


def moves_update(chain: Chain, prior: Prior, dependents: Dependents) -> Callable[[], Moves] | None:
    """Return the update of start or transition; None where more than the states depends on them."""
    alone = [child.name for child in dependents.children] == [chain.states.name] and not dependents.potentials
    plain = prior.distribution == "dirichlet" and prior.constants is not None and prior.low is not None
    if dependents.rows or not alone or not plain:
        return None
    return partial(Moves, name=prior.name, shape=prior.shape, chain=chain, prior=prior)


def _probabilities(item: Prior | Array, values: Values | Mapping[str, Array]) -> Array:
    return np.array(values[item.name] if isinstance(item, Prior) else item, dtype=np.float64)


__all__ = ["Moves", "StatePaths", "moves_update"]
