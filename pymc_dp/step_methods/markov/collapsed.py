"""Gibbs sampling of a hidden Markov model on counts: moves summed out or drawn, exact counts augmented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pymc import Model

from pymc_dp.draws.truncated import truncated_dirichlet
from pymc_dp.inspection.hidden_markov import HiddenMarkov, hidden_markov
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.markov.items import Items, items_of
from pymc_dp.step_methods.markov.moves import tallies
from pymc_dp.step_methods.values import Point, Values

TRIES = 2
"""Moves of counts between levels in a scan, per level."""
TINY = 1e-300
"""Least probability whose logarithm is taken."""


class CollapsedScan:
    """A scan over the free variables of a private hidden Markov model, compiled.

    States are updated one by one with the probabilities of start and moves summed out; where the release is noised, the
    counts behind it are augmented: they are drawn with the states, and by moves of their own. Then start, transition
    and profiles are drawn from their Dirichlet conditionals. The chain leaves invariant the posterior given the
    release, with the multinomial distribution of the counts, the prior of private sizes and the noise as they are:
    exact counts where `items` are not noised.

    Parameters
    ----------
    model : pymc.Model
        A private model.
    found : HiddenMarkov
        Its structure.
    items : Items
        Its released counts.
    power : float, optional
        Draw start and transition too, and raise all priors, that of the states included, to this power; counts in
        `items` must be to the same power. This is the papers' joint tempering, for which start and transition cannot be
        summed out.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 4.2 and equations 48, 49; Goldwater, Griffiths (2007).
    """

    def __init__(self, model: Model, found: HiddenMarkov, items: Items, *, power: float | None = None) -> None:
        self.found, self.items, self.power = found, items, power
        self.profiles = [found.emissions[name].profile for name in items.fields]
        self._low = [np.asarray(item.low, dtype=float) for item in self.profiles]
        self._values = Values(model)
        variables = [item.variable for item in self.profiles]
        self._inputs = [str(value.name) for value in model.value_vars]
        self._read = plain_function(model.value_vars, model.replace_rvs_by_values(variables))
        self.start_chain()

    @classmethod
    def of(cls, model: Model) -> CollapsedScan | None:
        """Return a scan of a private model, or None where it is no hidden Markov model of categories."""
        given = {str(rv.name): rv.owner.op.dist_params(rv.owner)[:-1] for rv in model.observed_RVs}
        found = hidden_markov(model, given)
        if found is None:
            return None
        items = items_of(model, found.emissions, found.chain.states.size)
        return None if items is None else cls(model, found, items)

    def start_chain(self) -> None:
        """Forget the counts of another chain."""
        self.counts: Array | None = None

    def advance(self, rng: np.random.Generator, point: Point) -> Point:
        """Update every free variable once."""
        states = np.asarray(point[self.found.chain.states.name], dtype=np.int64).ravel()
        profiles = self._read(*(point[name] for name in self._inputs))
        return self._values.move(point, self.update(rng, states, profiles))

    def update(self, rng: np.random.Generator, states: Array, profiles: Sequence[Array]) -> dict[str, Array]:
        """Update every free variable once, given the raveled states and the profiles of each field; by name."""
        from pymc_dp.step_methods.markov.kernels import update_counts, update_states

        chain, items, states = self.found.chain, self.items, states.copy()  # what was drawn before stays
        if self.counts is None:
            self.counts = items.nearest() if items.noised else items.taken()
            states, profiles = self._first(rng, self.counts)
        shares, logs = self._wide(profiles)
        firsts, moves = tallies(chain, states)
        drawn = {} if self.power is None else self._draw_moves(rng, states)
        summed, alpha_start, alpha = self._priors(drawn)
        totals = alpha.sum(axis=1) + moves.sum(axis=1)
        # What was not released tells nothing: it has noise of infinite scale.
        scales = np.where(items.scales > 0, items.scales, np.inf)
        noise = (np.nan_to_num(items.released), scales, items.gaussian)
        cells = (items.first, items.order, items.field, items.levels, self.counts, shares, logs)
        update_states(
            rng, states, chain.n_steps, moves, firsts, totals, alpha, alpha_start, summed, *cells, *noise, items.noised
        )
        if items.noised:
            given = (items.place, items.field, items.levels, self.counts, shares, logs)
            update_counts(rng, states, *given, *noise, items.bounds, items.parts, items.octaves, TRIES)
        return {**self._given_states(rng, states, self.counts), **drawn}

    def _first(self, rng: np.random.Generator, counts: Array) -> tuple[Array, list[Array]]:
        """Begin with profiles near to the counts of some random places, and the states that these suggest.

        From states that are all alike a chain would take long to find that they differ.
        """
        from pymc_dp.step_methods.markov.kernels import gather

        items, chain = self.items, self.found.chain
        seeds = rng.permutation(chain.states.size)
        states = np.full(chain.states.size, -1)
        states[seeds[: chain.n_states]] = np.arange(min(chain.n_states, len(seeds)))
        seeded = states[items.place] >= 0
        totals = np.zeros((len(items.fields), chain.n_states, counts.shape[1]))
        gather(states, items.place[seeded], items.field[seeded], items.levels, counts[seeded], totals)
        profiles = self._draw_profiles(rng, totals)
        _, logs = self._wide(profiles)
        scores = np.zeros((len(states), chain.n_states))
        np.add.at(scores, items.place, (counts[:, None, :] * logs[items.field]).sum(axis=2))
        scores += rng.gumbel(size=scores.shape)
        return scores.argmax(axis=1), profiles

    def _given_states(self, rng: np.random.Generator, states: Array, counts: Array) -> dict[str, Array]:
        """Draw all other variables given states and counts."""
        from pymc_dp.step_methods.markov.kernels import gather

        chain, items = self.found.chain, self.items
        totals = np.zeros((len(items.fields), chain.n_states, counts.shape[1]))
        gather(states, items.place, items.field, items.levels, counts, totals)
        drawn = {chain.states.name: states.reshape(chain.states.shape)}
        profiles = self._draw_profiles(rng, totals)
        drawn |= {item.name: value for item, value in zip(self.profiles, profiles, strict=True)}
        return drawn if self.power is not None else {**drawn, **self._draw_moves(rng, states)}

    def _draw_moves(self, rng: np.random.Generator, states: Array) -> dict[str, Array]:
        """Draw start and transition, as far as they are free, given the states."""
        chain, power = self.found.chain, 1.0 if self.power is None else self.power
        return {
            prior.name: truncated_dirichlet(rng, self._alpha(prior) + power * seen, np.zeros(prior.shape))
            for prior, seen in zip((chain.start, chain.transition), tallies(chain, states), strict=True)
            if isinstance(prior, Prior)
        }

    def _draw_profiles(self, rng: np.random.Generator, totals: Array) -> list[Array]:
        return [
            truncated_dirichlet(rng, self._alpha(prior) + seen[:, : prior.shape[-1]], low)
            for prior, low, seen in zip(self.profiles, self._low, totals, strict=True)
        ]

    def _wide(self, profiles: Sequence[Array]) -> tuple[Array, Array]:
        """Pad profiles to one array, (n_fields, n_states, n_levels), and return their logarithms beside."""
        shares = np.zeros((len(profiles), self.found.chain.n_states, int(self.items.levels.max())))
        for f, profile in enumerate(profiles):
            shares[f, :, : profile.shape[-1]] = profile
        return shares, np.log(np.maximum(shares, TINY))

    def _priors(self, drawn: Mapping[str, Array]) -> tuple[Array, Array, Array]:
        """Return which of start and moves are summed out, and their concentrations, or else weights of states."""
        parts = (self.found.chain.start, self.found.chain.transition)
        if self.power is not None:
            held = [np.asarray(drawn[item.name] if isinstance(item, Prior) else item) for item in parts]
            return np.zeros(2), held[0] ** self.power, held[1] ** self.power
        summed = np.array([float(isinstance(item, Prior)) for item in parts])
        start, moves = (self._alpha(item) if isinstance(item, Prior) else item for item in parts)
        return summed, np.ascontiguousarray(start), np.ascontiguousarray(moves)

    def _alpha(self, prior: Prior) -> Array:
        """Return the concentrations of a Dirichlet prior, to the power of the scan."""
        assert prior.constants is not None
        alpha = prior.constants[0]
        return alpha if self.power is None else 1 + self.power * (alpha - 1)


__all__ = ["CollapsedScan"]
