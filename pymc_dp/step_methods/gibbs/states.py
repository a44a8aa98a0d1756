"""Markov states drawn all at once given the rows, and the probabilities of their moves, which see no row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.inspection.hidden_markov import Chain
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.feeds import joined
from pymc_dp.kernel.truncated import truncated_dirichlet
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.conjugacy import Dependents
from pymc_dp.step_methods.gibbs.grid import Conditional, Sums, Values
from pymc_dp.step_methods.gibbs.ranges import Ranges
from pymc_dp.step_methods.markov.collapsed import tallies


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StatePaths(Conditional):
    """All states of all chains in one draw from their joint conditional, by forward filtering and backward sampling.

    With z the states, π their Markov prior and c(i) the cell of row i, the draw has the distribution

        P(z) ∝ π(z) exp(β Σ_i l(x_i, θ(z_c(i)))),

    drawn exactly: one exponential mechanism over all paths, with base measure π.

    **Range.** Replace row x in cell c by x' in cell c'. The score changes by d(z) = l(x, θ(z_c)) - l(x', θ(z_c')), a
    function of one state, or of two, whatever the number of chains and steps. As the states run over their values, each
    parameter runs over finitely many points of the box that the supports of the profiles give it. So the range of d
    over z is at most that of l(x, θ) - l(x', θ) over the box where c = c' (a public cell), and else at most the range
    of l(x, θ) plus that of l(x', θ): the closed forms that the updates of the profiles pay as well. The likelihoods of
    a row add up, and so do their ranges. Start, moves and profiles are released with the chain; the bound holds
    wherever they are.

    Attributes
    ----------
    chain : Chain
    places : sequence of (n_cells,) integer arrays
        State of each cell of each likelihood.
    scores : callable
        From states of shape (n_states, ...), values of the others and exact sums to the log-likelihood of the cells of
        each table: (n_states, n_cells) arrays.
    """

    kind: ClassVar[str] = "all states at once, by forward filtering and backward sampling"
    chain: Chain
    places: Sequence[Array]
    scores: Callable[[Array, Values, Sums], Sequence[Array]]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        from pymc_dp.kernel.path_loops import sample_paths

        chain = self.chain
        states = np.empty((chain.n_chains, chain.n_steps), dtype=np.int64)
        evidence = beta * self.evidence(values, sums)
        sample_paths(rng, *(_probabilities(item, values) for item in (chain.start, chain.transition)), evidence, states)
        return states.reshape(chain.states.shape)

    def evidence(self, values: Values, sums: Sums) -> Array:
        """Log-likelihood of each step of each chain in each state: (n_chains, n_steps, n_states). **Private**."""
        chain = self.chain
        every = np.arange(chain.n_states).reshape(-1, *[1] * len(chain.states.shape))
        outputs = self.scores(np.broadcast_to(every, (chain.n_states, *chain.states.shape)), values, sums)
        total = np.zeros((chain.states.size, chain.n_states))
        for output, places in zip(outputs, self.places, strict=True):
            np.add.at(total, places, np.broadcast_to(output, (chain.n_states, len(places))).T)
        return total.reshape(chain.n_chains, chain.n_steps, chain.n_states)


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
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        assert self.prior.constants is not None and self.prior.low is not None
        states = np.asarray(values[self.chain.states.name], dtype=np.int64)
        seen = tallies(self.chain, states)[self.prior is self.chain.transition]
        return truncated_dirichlet(rng, self.prior.constants[0] + seen, np.asarray(self.prior.low, dtype=float))


def paths_update(
    chain: Chain, dependents: Dependents, ranges: Ranges, functions: Functions
) -> Callable[[], StatePaths] | None:
    """Return what compiles the update of all states; None where a parameter depends on several of them at once."""
    name = chain.states.name
    places = [_places(name, boxes) for _, boxes in dependents.tables]
    known = [item for item in places if item is not None]
    if len(known) != len(places):
        return None
    return partial(_paths, chain, dependents, ranges, functions, known)


def _paths(
    chain: Chain, dependents: Dependents, ranges: Ranges, functions: Functions, places: Sequence[Array]
) -> StatePaths:
    return StatePaths(
        name=chain.states.name,
        shape=chain.states.shape,
        ranges=ranges[0],
        reason=ranges[1],
        chain=chain,
        places=places,
        scores=functions.scores(chain.states.variable, [], [table for table, _ in dependents.tables]),
    )


def _places(name: str, boxes: Sequence[Box]) -> Array | None:
    """State that the parameters of each cell depend on; None where one depends on none, or on several."""
    owners = np.concatenate([box.owner(name).reshape(len(box.low), -1) for box in boxes], axis=1)
    found = joined(owners, 1)
    return found if (found >= 0).all() else None


def moves_update(chain: Chain, prior: Prior, dependents: Dependents) -> Callable[[], Moves] | None:
    """Return the update of start or transition; None where more than the states depends on them."""
    alone = [child.name for child in dependents.children] == [chain.states.name] and not dependents.potentials
    plain = prior.distribution == "dirichlet" and prior.constants is not None and prior.low is not None
    if dependents.rows or not alone or not plain:
        return None
    return partial(Moves, name=prior.name, shape=prior.shape, chain=chain, prior=prior)


def _probabilities(item: Prior | Array, values: Values | Mapping[str, Array]) -> Array:
    return np.array(values[item.name] if isinstance(item, Prior) else item, dtype=np.float64)


__all__ = ["Moves", "StatePaths", "moves_update", "paths_update"]
