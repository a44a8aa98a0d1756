"""Rows drawn from a network, for simulations and synthetic tables: never a release of data."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from pymc_dp.inspection.network import Network
from pymc_dp.inspection.rows import Array


def draw_counts(rng: np.random.Generator, network: Network, probabilities: Array, n_rows: int) -> list[Array]:
    """Draw rows of a network and count them in the tables of its families, of the shape `Network.shape`.

    Rows that agree in what later nodes depend on are drawn together, so that time grows with the width of the network
    and no faster than the number of rows.
    """
    counts, held = np.array([n_rows], dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
    members: list[int] = []
    tables = []
    for place, (node, p) in enumerate(zip(network.nodes, _by_node(network, probabilities), strict=True)):
        cell = np.zeros(len(counts), dtype=np.int64)
        for parent in node.parents:
            cell = cell * network.nodes[parent].n_levels + held[:, members.index(parent)]
        chosen = np.clip(p[cell], 0, 1)
        drawn = rng.multinomial(counts, chosen / chosen.sum(axis=1, keepdims=True))
        table = np.zeros(p.shape, dtype=np.int64)
        np.add.at(table, cell, drawn)
        tables.append(table.reshape(network.shape(place)))
        which, level = np.nonzero(drawn)
        needed = {parent for later in network.nodes[place + 1 :] for parent in later.parents}
        kept = [index for index, member in enumerate([*members, place]) if member in needed]
        members = [[*members, place][index] for index in kept]
        held, counts = _merged(np.column_stack([held[which], level])[:, kept], drawn[which, level])
    return tables


def _merged(held: Array, counts: Array) -> tuple[Array, Array]:
    """Add up the counts of equal rows."""
    if not held.shape[1]:
        return np.zeros((1, 0), dtype=np.int64), counts.sum(keepdims=True)
    found, place = np.unique(held, axis=0, return_inverse=True)
    return found, np.bincount(place.ravel(), weights=counts, minlength=len(found)).astype(np.int64)


def draw_levels(rng: np.random.Generator, network: Network, probabilities: Array, n_rows: int) -> dict[str, Array]:
    """Draw rows of a network one by one: the levels of every node, (n_rows,) integers.

    Parameters
    ----------
    probabilities : (n_p,) array
        Of all nodes: cell by cell, level by level.
    """
    found: list[Array] = []
    for node, p in zip(network.nodes, _by_node(network, probabilities), strict=True):
        cell = np.zeros(n_rows, dtype=np.int64)
        for parent in node.parents:
            cell = cell * network.nodes[parent].n_levels + found[parent]
        ends = np.clip(p, 0, 1).cumsum(axis=1)[cell]
        found.append((rng.random((n_rows, 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1))
    return dict(zip(network.names, found, strict=True))


def _by_node(network: Network, probabilities: Array) -> list[Array]:
    """Split the probabilities of all nodes: (n_cells, n_levels) arrays."""
    ends = np.cumsum([0, *[prod(network.shape(place)) for place in range(len(network.nodes))]])
    pairs = zip(pairwise(ends), network.nodes, strict=True)
    return [probabilities[start:stop].reshape(-1, node.n_levels) for (start, stop), node in pairs]


__all__ = ["draw_counts", "draw_levels"]
