"""How well draws of a hidden Markov model predict cells that were held out; not private, for studies of utility."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError

Floats = npt.NDArray[np.float64]


def held_out_log_likelihood(
    states: npt.ArrayLike,
    cells: npt.ArrayLike,
    counts: Mapping[str, npt.ArrayLike],
    *,
    start: npt.ArrayLike,
    transition: npt.ArrayLike,
    profiles: Mapping[str, npt.ArrayLike],
) -> Floats:
    """Log of the mean over draws of the likelihood of each held-out cell, its own state summed out.

    A cell's state is summed over its distribution given the states before and after it in time, in the same draw.

    Parameters
    ----------
    states : (n_draws, n_chains, n_steps) integer array
        Draws of all states; those of held-out cells themselves matter only as neighbours of others.
    cells : (n_cells, 2) integer array
        Chain (region) and step (month) of each held-out cell.
    counts : mapping of str to (n_cells, n_levels) array
        Exact counts of each field's levels in the held-out cells.
    start : (n_draws, n_states) or (n_states,) array
    transition : (n_draws, n_states, n_states) or (n_states, n_states) array
    profiles : mapping of str to (n_draws, n_states, n_levels) array
        Probabilities of each field's levels, > 0 wherever something was counted.

    Returns
    -------
    (n_cells,) array
        Log predictive probability of each cell, up to multinomial coefficients, which no model changes; their sum is
        the held-out log-likelihood.

    Raises
    ------
    ArgumentError
        If `profiles` lacks a field of `counts`, or cells lie outside of the states.

    Notes
    -----
    **Guarantee.** None: the result is computed from exact held-out rows and must not be published from private data. It
    says how useful a private posterior is, where data are public or for the curator's eyes only.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), figure 6.

    Examples
    --------
    >>> states, sure = np.zeros((1, 1, 3), dtype=int), np.eye(2)[None]
    >>> profiles = {"kind": np.array([[[0.5, 0.5], [0.1, 0.9]]])}
    >>> counts = {"kind": np.array([[1, 1]])}
    >>> found = held_out_log_likelihood(
    ...     states, [[0, 1]], counts, start=np.ones(2) / 2, transition=sure, profiles=profiles
    ... )
    >>> np.exp(found).round(6).tolist()
    [0.25]
    """
    drawn = _validate.array("states", states, [3], integers=True)
    places = _validate.array("cells", cells, [2], integers=True)
    counts, profiles = (
        {key: _validate.array(f"{name}[{key!r}]", held, axes) for key, held in _validate.mapping(name, given).items()}
        for name, given, axes in (("counts", counts, [2]), ("profiles", profiles, [3]))
    )
    n_draws, n_chains, n_steps = drawn.shape
    if missing := sorted(set(counts) - set(profiles)):
        raise ArgumentError(f"profiles has no {', '.join(missing)}. Give a profile for each field of counts.")
    if places.shape[1] != 2 or not ((places >= 0) & (places < [n_chains, n_steps])).all():
        raise ArgumentError(f"cells must be pairs of a chain and a step, within {n_chains} chains of {n_steps} steps.")
    first, moves = _validate.array("start", start, [1, 2]), _validate.array("transition", transition, [2, 3])
    try:
        first = np.broadcast_to(first, (n_draws, first.shape[-1]))
        moves = np.broadcast_to(moves, (n_draws, first.shape[-1], first.shape[-1]))
    except ValueError:
        raise ArgumentError(
            f"start and transition must be of one number of states, for {n_draws} draws, got the shapes {first.shape} "
            f"and {moves.shape}."
        ) from None
    every, found = np.arange(n_draws), np.empty(len(places))
    for i, (chain, step) in enumerate(places):
        with np.errstate(divide="ignore"):
            arriving = np.log(first if step == 0 else moves[every, drawn[:, chain, step - 1]])
            if step + 1 < n_steps:
                arriving = arriving + np.log(moves[every, :, drawn[:, chain, step + 1]])
        weight = arriving - _log_sum(arriving)[:, None]
        for name, seen in counts.items():
            weight = weight + _weighted(np.asarray(seen, dtype=float)[i], np.asarray(profiles[name], dtype=float))
        found[i] = _log_sum(_log_sum(weight)) - np.log(n_draws)
    return found


def _weighted(seen: Floats, profile: Floats) -> Floats:
    """Log-likelihood of counts in every draw and state: (n_draws, n_states)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(seen > 0, seen * np.log(profile), 0.0).sum(axis=-1))


def _log_sum(values: Floats) -> Floats:
    top = values.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - safe).sum(axis=-1)) + safe[..., 0])


__all__ = ["held_out_log_likelihood"]
