"""Gibbs sampling of a hidden Markov model on counts: moves summed out or drawn, exact counts augmented.

Released counts of a hidden Markov model as flat arrays: one item per field and cell.

First states and moves of chains, counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymc import Model
from pytensor.compile import SharedVariable

from pymc_dp.inspection.hidden_markov import Chain, Emission, HiddenMarkov, hidden_markov
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.truncated import truncated_dirichlet
from pymc_dp.release.record import TableRecord
from pymc_dp.step_methods.values import Point, Values
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.privatize import record_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """What is public about the counts of every field in every cell. Levels are padded to those of the widest field.

    Attributes
    ----------
    fields : tuple of str
    levels : (n_fields,) integer array
    field, place : (n_items,) integer arrays
        Field of each item, and the place of its state.
    first, order : (n_places + 1,) and (n_items,) integer arrays
        Items of place p: ``order[first[p]:first[p + 1]]``.
    released : (n_items, n_levels) array
        Noised counts; NaN where none was released.
    scales : (n_fields, n_levels) array
        Of the noise; 0 where none was released, or the counts are treated as exact.
    gaussian : bool
        Whether the noise is Gaussian.
    bounds : (n_items,) array
        Size of each item, or a bound on it.
    rates : (n_fields,) array
        Of the priors of private sizes, see `transforms.cell_sizes.Sizes`; NaN where sizes are public.
    """

    fields: tuple[str, ...]
    levels: Array
    field: Array
    place: Array
    first: Array
    order: Array
    released: Array
    scales: Array
    gaussian: bool
    bounds: Array
    rates: Array

    @classmethod
    def exact(
        cls, fields: tuple[str, ...], levels: Array, place: Array, counts: Sequence[Array], n_places: int
    ) -> Items:
        """Lay out counts that are known, (n_cells, n_levels) for each field, padded to the same width."""
        lengths = [len(item) for item in counts]
        return cls(
            fields=fields,
            levels=levels,
            field=np.repeat(np.arange(len(fields)), lengths),
            place=place,
            **_by_place(place, n_places),
            released=np.concatenate(counts),
            scales=np.zeros((len(fields), counts[0].shape[1])),
            gaussian=False,
            bounds=np.concatenate(counts).sum(axis=1),
            rates=np.full(len(fields), np.nan),
        )

    @property
    def noised(self) -> bool:
        """Whether the counts behind the released ones are unknown."""
        return bool(self.scales.any())

    @property
    def octaves(self) -> Array:
        """Powers of 2 that moves of counts go up to in each field: a few scales of the noise, or all rows."""
        largest = np.array([self.bounds[self.field == f].max(initial=1) for f in range(len(self.fields))])
        reach = np.minimum(4 * self.scales.max(axis=1), largest)
        return np.floor(np.log2(np.maximum(reach, 1.0))).astype(np.int64)

    def taken(self) -> Array:
        """Return released counts as if they were exact, with the one that follows from a public size."""
        counts = self.released.copy()
        dropped = np.isnan(counts[:, 0])
        counts[dropped, 0] = self.bounds[dropped] - np.nansum(counts[dropped], axis=1)
        return np.nan_to_num(counts)

    def nearest(self) -> Array:
        """Return whole counts near to the released ones that some rows have."""
        counts = np.maximum(self.taken(), 0)
        totals = counts.sum(axis=1)
        wanted = np.where(np.isnan(self.rates[self.field]), self.bounds, np.minimum(np.rint(totals), self.bounds))
        shares = counts / np.where(totals > 0, totals, 1.0)[:, None]
        whole = np.floor(wanted[:, None] * shares)
        whole[np.arange(len(whole)), shares.argmax(axis=1)] += wanted - whole.sum(axis=1)
        return whole


def items_of(private: Model, emissions: Mapping[str, Emission], n_places: int) -> Items | None:
    """Take the tables of a private model; None where one of them holds anything but counts of categories."""
    found = record_of(private)
    assert found is not None
    record, values = found
    tables = [table for table in record.tables if table.name in emissions]
    levels = [emissions[table.name].profile.shape[-1] for table in tables]
    plain = all(_is_plain(table, n) for table, n in zip(tables, levels, strict=True))
    noised = {record.noise_aware and any(table.scales) for table in tables}
    if not plain or len(tables) != len(emissions) or len(noised) != 1:
        return None
    held = values if record.noise_aware else {name: _observed(private, name) for name in values}
    widest = max(levels)
    place = np.concatenate([emissions[table.name].places for table in tables])
    scales = [_wide(np.array([table.scales]), widest, n)[0] for table, n in zip(tables, levels, strict=True)]
    return Items(
        fields=tuple(table.name for table in tables),
        levels=np.array(levels, dtype=np.int64),
        field=np.repeat(np.arange(len(tables)), [len(held[table.name]) for table in tables]),
        place=place,
        **_by_place(place, n_places),
        released=np.concatenate([_wide(held[table.name], widest, n) for table, n in zip(tables, levels, strict=True)]),
        scales=np.nan_to_num(np.stack(scales)) * noised.pop(),
        gaussian=record.tables[0].plan["noise"] == "gaussian",
        bounds=np.concatenate([np.asarray(table.plan["groups"], dtype=np.float64) for table in tables]),
        rates=np.array([_rate(table, held[table.name], at_most=record.neighbours != "replace") for table in tables]),
    )


def _rate(table: TableRecord, counts: Array, *, at_most: bool) -> float:
    if table.sizes_public:
        return np.nan
    plan: Mapping[str, Any] = table.plan
    sizes = Sizes(public=False, bound=np.asarray(plan["groups"]), n_private=plan["n_private"], kind=plan["noise"])
    return sizes.shown_by(counts, float(table.scales[0]), at_most=at_most).rate if any(table.scales) else 0.0


def _by_place(place: Array, n_places: int) -> dict[str, Array]:
    """Return where the items of each place are."""
    counts = np.bincount(place, minlength=n_places)
    return {"first": np.concatenate([[0], np.cumsum(counts)]), "order": np.argsort(place, kind="stable")}


def _is_plain(table: TableRecord, n_levels: int) -> bool:
    statistic: Mapping[str, Any] = table.plan["statistic"]
    counted = statistic.get("kind") == "counts" and statistic.get("trials") is None
    return counted and len(statistic["labels"]) == n_levels and table.likelihood == "categorical"


def _observed(private: Model, name: str) -> Array:
    """Return the table that a private model takes for exact."""
    held: Any = private.rvs_to_values[private[name]]
    return np.asarray(held.get_value() if isinstance(held, SharedVariable) else held.data, dtype=np.float64)


def _wide(table: Array, width: int, n_levels: int) -> Array:
    """Put released columns at their levels, the first of which may not be released."""
    wide = np.full((len(table), width), np.nan)
    wide[:, n_levels - table.shape[1] : n_levels] = table
    return wide


def tallies(chain: Chain, states: Array) -> tuple[Array, Array]:
    """Count first states, (n_states,), and moves from each state to each, (n_states, n_states)."""
    table = states.reshape(chain.n_chains, chain.n_steps)
    pairs = table[:, :-1] * chain.n_states + table[:, 1:]
    firsts = np.bincount(table[:, 0], minlength=chain.n_states)
    moves = np.bincount(pairs.ravel(), minlength=chain.n_states**2)
    return firsts.astype(float), moves.reshape(chain.n_states, chain.n_states).astype(float)


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
            update_counts(rng, states, *given, *noise, items.bounds, items.rates, items.octaves, TRIES)
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


__all__ = ["CollapsedScan", "Items", "items_of", "tallies"]
