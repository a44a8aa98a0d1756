"""Recognition of a hidden Markov model: which state each cell has, and which profile its state selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from pymc_dp.inspection.columns import static_levels
from pymc_dp.inspection.priors import Prior, constant_values, only_selects, priors_of, selection
from pymc_dp.inspection.rows import Array, rebuild

MARKOV = "markov_states"


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """Markov states, and where the probabilities of their first value and of their moves come from.

    Attributes
    ----------
    states : Prior
        Of shape (..., n_steps): chains along the last axis.
    n_states : int
    start, transition : Prior or array
        The free variable, itself the parameter of the states, or constant probabilities.
    """

    states: Prior
    n_states: int
    start: Prior | Array
    transition: Prior | Array

    @property
    def n_steps(self) -> int:
        """Length of each chain."""
        return self.states.shape[-1]

    @property
    def n_chains(self) -> int:
        """Number of independent chains."""
        return self.states.size // self.n_steps

    @property
    def free(self) -> tuple[Prior, ...]:
        """Start and transition as far as they are free variables."""
        return tuple(item for item in (self.start, self.transition) if isinstance(item, Prior))


@dataclass(frozen=True, kw_only=True, eq=False)
class Emission:
    """A parameter in every cell: the element or row of a free variable that the state of the cell selects.

    Attributes
    ----------
    profile : Prior
        Of shape (n_states,) or (n_states, n_levels).
    places : (n_cells,) integer array
        State of each cell, among the raveled ones.
    """

    profile: Prior
    places: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenMarkov:
    """A whole model of Markov states, Dirichlet priors, and categories given the states; nothing else is in it.

    Attributes
    ----------
    chain : Chain
    emissions : dict of str to Emission
        By observed variable.
    """

    chain: Chain
    emissions: Mapping[str, Emission]


def chains_of(model: Model, priors: Sequence[Prior]) -> tuple[Chain, ...]:
    """Find the Markov states of a model; those whose probabilities are computed from others are left out."""
    found = [_chain(model, prior, priors) for prior in priors if prior.distribution == MARKOV]
    return tuple(chain for chain in found if chain is not None)


def _chain(model: Model, states: Prior, priors: Sequence[Prior]) -> Chain | None:
    count = static_levels(states.variable)
    if count is None:
        return None
    parts = [
        _probabilities(model, parameter, shape, priors)
        for parameter, shape in zip(states.parameters[:2], [(count,), (count, count)], strict=True)
    ]
    if parts[0] is None or parts[1] is None:
        return None
    return Chain(states=states, n_states=count, start=parts[0], transition=parts[1])


def _probabilities(
    model: Model, parameter: Variable, shape: tuple[int, ...], priors: Sequence[Prior]
) -> Prior | Array | None:
    for prior in priors:
        if prior.shape == shape and only_selects(parameter, prior.variable):
            places = selection(parameter, prior, model)
            same = places is not None and places.size == prior.size and bool((places.ravel() == _count(prior)).all())
            return prior if same else None
    values = constant_values([parameter], [prior.variable for prior in priors])
    return None if values is None else np.asarray(values[0], dtype=np.float64).reshape(shape)


def _count(prior: Prior) -> Array:
    return np.arange(prior.size)


def emission_of(parameter: Variable, states: Prior, priors: Sequence[Prior]) -> Emission | None:
    """Return which row of which variable each cell has, given the states; None where it is anything else.

    Proof: along the way from the variable to the parameter values are only selected. Only the index of one step depends
    on the states, and that one is a selection of them itself; it picks rows along the first axis. So an entry of the
    parameter is one fixed column of the row of one fixed state, both read off once.
    """
    for profile in priors:
        node = _indexed_by(parameter, states.variable, profile)
        if node is None or len(profile.shape) not in (1, 2):
            continue
        (index,) = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
        numbers = pt.constant(np.arange(states.size).reshape(states.shape))
        rows = pt.cast(rebuild([index], {states.variable: numbers})[0][0], "float64")
        columns = np.arange(profile.shape[1] if len(profile.shape) == 2 else 1)
        shown = [rows[..., None] + 0.0 * columns, rows[..., None] * 0.0 + columns]
        if len(profile.shape) == 1:
            shown = [item[..., 0] for item in shown]
        free = [prior.variable for prior in priors]
        found = constant_values([_with_rows(parameter, node, item) for item in shown], free)
        if found is None:
            return None
        place, column = (np.rint(item).astype(np.int64) for item in found)
        wide = place.reshape(len(place), -1)
        fits = place.ndim == len(profile.shape) and wide.shape[1] == len(columns)
        if not fits or not (column.reshape(wide.shape) == columns).all() or (wide != wide[:, :1]).any():
            return None
        return Emission(profile=profile, places=wide[:, 0])
    return None


def _indexed_by(parameter: Variable, states: Variable, profile: Prior) -> Any:
    """Find the step that picks rows of a variable by states, where it is the only one that the states reach."""
    if not only_selects(parameter, profile.variable):
        return None
    found, variable = None, parameter
    while variable is not profile.variable:
        node = variable.owner
        others = list(node.inputs[1:])
        if states in set(ancestors(others)):
            entries = list(indices_from_subtensor(others, node.op.idx_list)) if _picks(node) else []
            one = len(entries) == 1 and isinstance(entries[0], Variable)
            if found is not None or not one or not only_selects(entries[0], states):
                return None
            found = node
        variable = node.inputs[0]
    return found if found is not None and found.inputs[0] is profile.variable else None


def _picks(node: Any) -> bool:
    return isinstance(node.op, AdvancedSubtensor | Subtensor)


def _with_rows(parameter: Variable, node: Any, rows: Variable) -> Variable:
    return rebuild([parameter], {node.outputs[0]: rows})[0][0]


def hidden_markov(model: Model, parameters: Mapping[str, Sequence[Variable]]) -> HiddenMarkov | None:
    """Recognise a hidden Markov model with categorical emissions; None where it is anything more or less.

    Constant moves must all be possible: this is for updates of one state after the other.

    Parameters
    ----------
    model : pymc.Model
        Private model or prior model.
    parameters : mapping of str to sequence of Variable
        Parameters of every likelihood, a row per cell, over the free variables of `model`.
    """
    if model.potentials or not any(_is_markov(rv) for rv in model.free_RVs):
        return None
    priors = priors_of(model)
    chains = chains_of(model, priors)
    if len(chains) != 1 or any(len(items) != 1 for items in parameters.values()):
        return None
    (chain,) = chains
    emissions = {name: emission_of(items[0], chain.states, priors) for name, items in parameters.items()}
    held = {name: item for name, item in emissions.items() if item is not None}
    if len(held) != len(emissions):
        return None
    if any(len(item.profile.shape) != 2 for item in held.values()):
        return None
    own = [chain.states, *chain.free, *(item.profile for item in held.values())]
    profiles = [item for item in own[1:] if not _is_dirichlet(item)]
    names = [item.name for item in own]
    if profiles or len(set(names)) != len(names) or {prior.name for prior in priors} != set(names):
        return None
    truncated = any(np.any(item.low != 0) for item in chain.free)
    if truncated or _may_be_stuck(chain):
        return None
    return HiddenMarkov(chain=chain, emissions=held)


def _may_be_stuck(chain: Chain) -> bool:
    """Whether some moves are impossible: states that are updated one by one may then never leave where they began."""
    return not isinstance(chain.transition, Prior) and not (chain.transition > 0).all()


def _is_markov(rv: Variable) -> bool:
    return getattr(rv.owner.op, "name", None) == MARKOV


def _is_dirichlet(prior: Prior) -> bool:
    return prior.distribution == "dirichlet" and prior.constants is not None and prior.low is not None


__all__ = ["Chain", "Emission", "HiddenMarkov", "chains_of", "emission_of", "hidden_markov"]
