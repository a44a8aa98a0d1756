"""One posterior sample of a hidden Markov model: the last state of a Gibbs chain on the tempered posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from pymc import Model

from pymc_dp.inspection.hidden_markov import HiddenMarkov, hidden_markov
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.truncated import truncated_dirichlet
from pymc_dp.step_methods.markov.collapsed import CollapsedScan, Items, tallies
from pymc_dp.step_methods.ops.converged import CHAINS, CORRELATION_TIMES, GOOD_RHAT, LEAST, TRIAL, TRIALS
from pymc_dp.step_methods.row_range import RowRange
from pymc_dp.transforms.likelihood import TableLikelihood
from pymc_dp.transforms.markov_states import MarkovStatesRV

Sums = Mapping[str, Array]
"""Counts of every level in every cell, by observed variable."""


ROOM = 1e-9
"""By how much a range is widened, for floats of all rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StatesPosterior:
    """The last state of a Gibbs chain on the tempered posterior of a hidden Markov model of categories.

    One scan updates every state with start and moves summed out, then draws start, moves and profiles from their
    Dirichlet conditionals; counts enter to the power of the inverse temperature. Where priors are tempered too, as in
    the papers, start and moves are drawn, and the distribution of the states given them is to that power as well.

    Attributes
    ----------
    prior_model : pymc.Model
    found : HiddenMarkov
    tables : tuple of TableLikelihood
    n_rows : int
        Number of rows, or the public bound on it.
    range : RowRange
        Of one row's log-likelihood over all profiles and states.
    scans : int or None
        Scans of a chain; judged on data simulated from the prior if None.

    Notes
    -----
    **Guarantee.** That of an exact draw, if the chain had converged: class asymptotic, as for `ConvergedPosterior`. The
    range bounds the score over profiles and states together: whatever the states, the probabilities in a cell lie in
    the truncated simplices.
    """

    prior_model: Model
    found: HiddenMarkov
    tables: tuple[TableLikelihood, ...]
    n_rows: int
    range: RowRange
    scans: int | None
    _lengths: dict[tuple[float, bool], int | str] = field(default_factory=dict)
    exact = False

    @classmethod
    def of(
        cls, prior_model: Model, tables: Sequence[TableLikelihood], *, neighbours: str, n_rows: int, scans: int | None
    ) -> Self | None:
        """Return a way to draw; None where the model is no hidden Markov model of categories with bounded profiles."""
        found = hidden_markov(prior_model, {table.name: table.parameters for table in tables})
        if found is None or any(table.family.distribution != "categorical" for table in tables):
            return None
        stays = {table.name: all(column.public for column in table.cells.columns) for table in tables}
        parts = (_range(one.profile, neighbours, stays=stays[name]) for name, one in found.emissions.items())
        value = sum(parts) * (1 + ROOM)
        if not 0 < value < math.inf:
            return None
        reason = "the least and the greatest probability of each category, over all states and profiles"
        total = RowRange(value=value, sensitivity=value, reason=reason)
        return cls(prior_model=prior_model, found=found, tables=tuple(tables), n_rows=n_rows, range=total, scans=scans)

    @property
    def words(self) -> str:
        """How draws are made, for the trace."""
        length = (
            f"{CORRELATION_TIMES} correlation times of data simulated from the prior"
            if self.scans is None
            else f"{self.scans} scans"
        )
        return (
            "the last state of a Gibbs chain each, NOT exact: the guarantee holds only if every chain has converged "
            f"({length})"
        )

    def obstacle(self, inverse: float, temper_prior: bool) -> str:
        """Say what is in the way of chains on simulated data, which are public; empty if nothing is."""
        found = self.length(inverse, temper_prior)
        return found if isinstance(found, str) else ""

    def length(self, inverse: float, temper_prior: bool = False) -> int | str:
        """Return the scans of a chain, or why there is no such number; the rows held change nothing."""
        if self.scans is not None:
            return self.scans
        if (inverse, temper_prior) not in self._lengths:
            self._lengths[inverse, temper_prior] = self._judged(inverse, temper_prior)
        return self._lengths[inverse, temper_prior]

    def read(self) -> Sums:
        """Add up the rows. Reads private data."""
        return {table.name: table.read().sums for table in self.tables}

    def draw(self, rng: np.random.Generator, held: Sums, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Run one chain on the counts held and return its last state."""
        length = self.length(inverse, temper_prior)
        assert isinstance(length, int)
        last: dict[str, Array] = {}
        self._run(rng, held, inverse, length, last.update, temper_prior)
        return last

    def _run(
        self,
        rng: np.random.Generator,
        held: Sums,
        inverse: float,
        length: int,
        see: Callable[[dict[str, Array]], None],
        temper_prior: bool = False,
    ) -> None:
        items = self._items({name: inverse * held[name] for name in held})
        scan = CollapsedScan(self.prior_model, self.found, items, power=inverse if temper_prior else None)
        states = np.zeros(self.found.chain.states.size, dtype=np.int64)
        profiles = [np.full(profile.shape, 1 / profile.shape[1]) for profile in scan.profiles]
        for _ in range(length):
            drawn = scan.update(rng, states, profiles)
            states = drawn[self.found.chain.states.name].ravel()
            profiles = [drawn[profile.name] for profile in scan.profiles]
            see(drawn)

    def _items(self, counts: Sums) -> Items:
        levels = np.array([counts[table.name].shape[1] for table in self.tables], dtype=np.int64)
        place = np.concatenate([self.found.emissions[table.name].places for table in self.tables])
        wide = [
            np.pad(counts[table.name], ((0, 0), (0, levels.max() - n)))
            for table, n in zip(self.tables, levels, strict=True)
        ]
        return Items.exact(
            tuple(table.name for table in self.tables), levels, place, wide, self.found.chain.states.size
        )

    # --- length of a chain, judged on public simulations --------------------------------------------------------------

    def _judged(self, inverse: float, temper_prior: bool) -> int | str:
        longest = 1.0
        for turn in range(TRIALS):
            table = self._simulated(np.random.default_rng(turn))
            chains = np.stack([self._watched(table, inverse, [turn, chain], temper_prior) for chain in range(CHAINS)])
            rhat, size = _agreement(chains)
            if not rhat < GOOD_RHAT:
                return (
                    f"on data simulated from its prior Gibbs chains do not agree (R-hat {rhat:.2f}); say how long they "
                    "are to be, OPS(scans=...)"
                )
            longest = max(longest, CHAINS * TRIAL / max(size, 1.0))
        return max(LEAST, math.ceil(CORRELATION_TIMES * longest))

    def _watched(self, table: Sums, inverse: float, seed: list[int], temper_prior: bool) -> Array:
        """Run a chain and return what does not depend on how states are numbered: (n_scans, n_numbers)."""
        seen: list[list[float]] = []

        def see(drawn: dict[str, Array]) -> None:
            states = drawn[self.found.chain.states.name]
            likelihoods = []
            for name, emission in self.found.emissions.items():
                shares = np.asarray(drawn[emission.profile.name])[states.ravel()[emission.places]]
                likelihoods.append(float((table[name] * np.log(shares)).sum()))
            moves = tallies(self.found.chain, states)[1]
            taken = np.sort(np.bincount(states.ravel(), minlength=self.found.chain.n_states))
            seen.append([*likelihoods, float(np.trace(moves)), float(taken[-1])])

        self._run(np.random.default_rng(seed), table, inverse, 2 * TRIAL, see, temper_prior)
        return np.array(seen)[TRIAL:]

    def _simulated(self, rng: np.random.Generator) -> Sums:
        """Draw counts of all cells from the prior; nothing private is looked at."""
        chain = self.found.chain
        start, moves = (self._prior_draw(rng, item) for item in (chain.start, chain.transition))
        states = MarkovStatesRV.rng_fn(rng, start, moves, np.asarray(chain.n_steps), (chain.n_chains,))
        found = {}
        for table in self.tables:
            emission = self.found.emissions[table.name]
            shares = self._prior_draw(rng, emission.profile)[states.ravel()[emission.places]]
            sizes = table.cells.sizes
            if sizes is None:
                sizes = rng.multinomial(self.n_rows, np.full(len(shares), 1 / len(shares)))
            found[table.name] = rng.multinomial(sizes, shares).astype(np.float64)
        return found

    @staticmethod
    def _prior_draw(rng: np.random.Generator, item: Prior | Array) -> Array:
        if not isinstance(item, Prior):
            return item
        assert item.constants is not None and item.low is not None
        return truncated_dirichlet(rng, item.constants[0], np.asarray(item.low, dtype=float))


def _range(profile: Prior, neighbours: str, *, stays: bool) -> float:
    """Return how far neighbours move the log-likelihood over states and profiles: by each category's own range.

    Two of these add up: of two categories where a row `stays` in its cell, else maybe of one in two cells.
    """
    assert profile.low is not None
    least = np.reshape(profile.low, (-1, profile.shape[-1])).astype(float)
    top = least + 1 - least.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        wide = np.sort(np.log(top.max(axis=0)) - np.log(least.min(axis=0)))
    if neighbours != "replace":
        return float(wide[-1])
    return float(wide[-2:].sum() if stays else 2 * wide[-1])


def _agreement(chains: Array) -> tuple[float, float]:
    """Largest R-hat of what moves at all, and its least effective sample size."""
    import arviz as az

    moving = [place for place in range(chains.shape[2]) if np.ptp(chains[:, :, place]) > 0]
    with np.errstate(all="ignore"):
        rhats = [float(az.rhat(chains[:, :, place])) for place in moving]
        sizes = [float(az.ess(chains[:, :, place])) for place in moving]
    return max(rhats, default=1.0), min(sizes, default=float(CHAINS * TRIAL))


__all__ = ["StatesPosterior"]
