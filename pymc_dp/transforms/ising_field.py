"""Fields of a few binary nodes on a graph, fully observed in every row: summed over all their states."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.stated import last_length, with_statistics

MOST_NODES = 16
"""Nodes whose 2**n states are summed over."""

Edges = tuple[tuple[int, int], ...]


def IsingField(
    name: str, nodes: Any, couplings: Any, *, edges: Sequence[tuple[int, int]], **kwargs: Any
) -> TensorVariable:
    r"""Rows of binary nodes on a graph: a Markov random field with one parameter per node and per edge.

    .. math:: \log P(y) = \sum_i \theta_i y_i + \sum_{(i, j)} \phi_{ij} y_i y_j - \log Z(\theta, \phi),
        \quad y \in \{0, 1\}^n

    ========  ==============================================================
    Support   :math:`\{0, 1\}^n`
    Mean      exact, by summing over all :math:`2^n` states
    ========  ==============================================================

    Parameters
    ----------
    name : str
    nodes : (..., n_nodes) tensor
        θ: log odds of a node all neighbours of which are 0. Selected by a column, ``theta[group]``, each row has the
        field of its group.
    couplings : (..., n_edges) tensor
        φ: how much the log odds of a node rise where the other node of the edge is 1.
    edges : sequence of (int, int)
        Pairs of nodes, 0..n_nodes-1, each once: which nodes are coupled is known beforehand.
    **kwargs
        As for every PyMC distribution: ``observed=``, an (n_rows, n_nodes) array of 0 and 1, dims, shape, initval...

    Returns
    -------
    TensorVariable
        A ``pm.CustomDist`` that states its statistics, see `with_statistics`.

    Raises
    ------
    ArgumentError
        If there are fewer than 2 or more than 16 nodes, no edges, or edges that are out of range, of one node with
        itself, or given twice.

    Notes
    -----
    The sufficient statistics are the sums of ``2 y_i - 1`` and of ``(2 y_i - 1)(2 y_j - 1)`` along the edges, which are
    linear in the counts of nodes and pairs that are 1. If one row is replaced by one that differs in the nodes D, they
    move by twice the number of nodes in D and of edges that leave D: on many edges that is less than for sums of
    ``y_i y_j``.

    **Guarantee.** None by itself; released by ``dp.privatize`` and ``dp.sample`` that of the release: class exact,
    arithmetic hardened. ε protects one row, that is one whole field. A single field has no rows and is refused.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 4.2 (fully observed fields by their sufficient statistics);
    Wainwright, Jordan (2008), Graphical Models, Exponential Families, and Variational Inference, section 3.3, doi
    10.1561/2200000001.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> rows = np.random.default_rng(1).integers(0, 2, (200, 3))
    >>> with pm.Model() as model:
    ...     theta = pm.Normal("theta", 0, 1, shape=3)
    ...     phi = pm.Normal("phi", 0, 1, shape=2)
    ...     y = IsingField("y", theta, phi, edges=[(0, 1), (1, 2)], observed=rows)
    >>> dp.sensitivity(model).statistics[0].l1
    8.0
    """
    given, coupled = pt.as_tensor(nodes), pt.as_tensor(couplings)
    n_nodes = _length("nodes", given)
    if not 2 <= n_nodes <= MOST_NODES:
        raise ArgumentError(
            f"nodes must be a vector of 2 to {MOST_NODES} nodes, all states of which are summed over, got {n_nodes}. "
            "Split the field into parts that are not coupled, one variable each."
        )
    pairs = _pairs(edges, n_nodes)
    n_edges = _length("couplings", coupled)
    if n_edges != len(pairs):
        raise ArgumentError(f"couplings must have one entry per edge, {len(pairs)}, got {n_edges}.")

    def logp(value: Any, nodes: Any, couplings: Any) -> Any:
        y = [value[..., i] for i in range(n_nodes)]
        binary = pt.all(pt.eq(value, 0) | pt.eq(value, 1), axis=-1)
        found = _energy(y, nodes, couplings, pairs) - _log_normalizer(nodes, couplings, n_nodes, pairs)
        return pt.switch(binary, found, -np.inf)

    def random(nodes: Array, couplings: Array, rng: np.random.Generator, size: Any = None) -> Array:
        return _drawn(nodes, couplings, n_nodes, pairs, rng, size)

    field = pm.CustomDist(
        name,
        given,
        coupled,
        logp=logp,
        random=random,
        support_point=lambda rv, size, nodes, couplings: pt.zeros_like(rv),
        signature="(k),(m)->(k)",
        dtype="int64",
        class_name="IsingField",
        **kwargs,
    )

    def statistics(row: TensorVariable) -> Variable:
        spin = [2 * row[i] - 1 for i in range(n_nodes)]
        return pt.stack([*spin, *(spin[i] * spin[j] for i, j in pairs)])

    return with_statistics(
        field,
        statistics,
        bounds=(-1, 1),
        values=(0, 1),
        moments=lambda nodes, couplings: _moments(nodes, couplings, n_nodes, pairs),
        log_likelihood=lambda sums, size, nodes, couplings: _of_sums(sums, size, nodes, couplings, n_nodes, pairs),
        names=[*(f"s{i}" for i in range(n_nodes)), *(f"s{i} s{j}" for i, j in pairs)],
    )


def _length(name: str, parameter: TensorVariable) -> int:
    """Return the length of the last axis of a parameter."""
    found = last_length(parameter) if parameter.type.ndim else None
    if found is None:
        raise ArgumentError(f"{name} must be a vector, or rows of vectors, of known length. Give dims= or shape=.")
    return found


def _pairs(edges: Any, n_nodes: int) -> Edges:
    """Return the edges as pairs of increasing nodes, each once."""
    found: list[tuple[int, int]] = []
    for place, edge in enumerate(_validate.several("edges", edges)):
        first, second = (
            _validate.integer(f"edges[{place}][{end}]", node, low=0, high=n_nodes - 1)
            for end, node in enumerate(_validate.pair(f"edges[{place}]", edge, ends="(node, node)"))
        )
        pair = (min(first, second), max(first, second))
        if first == second:
            raise ArgumentError(f"edges[{place}] couples node {first} with itself. Leave it out: nodes= says as much.")
        if pair in found:
            raise ArgumentError(f"edges[{place}] is {(first, second)} again. Give every edge once, in one direction.")
        found.append(pair)
    if not found:
        raise ArgumentError("edges must have one pair at least. Nodes without edges are a pm.Bernoulli each.")
    return tuple(found)


def _energy(y: Sequence[Any], nodes: Any, couplings: Any, edges: Edges) -> Any:
    """Return θ·y + Σ φ y_i y_j of rows."""
    first: Any = sum(nodes[..., i] * item for i, item in enumerate(y))
    return first + sum(couplings[..., e] * (y[i] * y[j]) for e, (i, j) in enumerate(edges))


def _energies(nodes: Any, couplings: Any, n_nodes: int, edges: Edges) -> Any:
    """Return the log of the unnormalised probability of all states: (..., states of the first half, of the second).

    A term of the energy is its parameter times a product of nodes in the first half times one in the second: a product
    of two matrices. Written without arrays of numbers, each of which an inspection would have to ask about.
    """
    first, second = range(n_nodes // 2), range(n_nodes // 2, n_nodes)
    found = 0.0
    for parameter, terms in ((nodes, [(i,) for i in range(n_nodes)]), (couplings, edges)):
        found += pt.matmul(_products(first, terms) * parameter[..., None, :], _products(second, terms).T)
    return found


def _products(half: range, terms: Sequence[tuple[int, ...]]) -> Any:
    """Return for each state of some nodes, the first of them slowest, the products of those in each term."""
    states = pt.arange(2 ** len(half))
    y = {i: ((states // 2**place) % 2).astype("float64") for place, i in enumerate(reversed(half))}
    one = pt.ones_like(states, dtype="float64")
    return pt.stack([prod((y[i] for i in term if i in y), start=one) for term in terms], axis=-1)


def _log_normalizer(nodes: Any, couplings: Any, n_nodes: int, edges: Edges) -> Any:
    return pt.logsumexp(_energies(nodes, couplings, n_nodes, edges), axis=(-2, -1))


def _of_sums(sums: Any, size: Any, nodes: Any, couplings: Any, n_nodes: int, edges: Edges) -> Any:
    """Return the log-likelihood of sums of spins and of products: y = (1 + s) / 2 put into the energy."""
    energy = 0.0
    for i in range(n_nodes):
        energy += nodes[i] * (size + sums[i]) / 2
    for e, (i, j) in enumerate(edges):
        energy += couplings[e] * (size + sums[i] + sums[j] + sums[n_nodes + e]) / 4
    return energy - size * _log_normalizer(nodes, couplings, n_nodes, edges)


def _moments(nodes: Any, couplings: Any, n_nodes: int, edges: Edges) -> tuple[Any, Any]:
    """Return mean and covariance of the spins and their products along edges.

    The product of two statistics is one of spins again, those that are in one of them. So all moments are means of
    products of spins, which a Walsh-Hadamard transform of the probabilities gives at once: as a product of two small
    matrices with the probabilities in between.
    """
    energies = _energies(nodes, couplings, n_nodes, edges)
    probability = pt.exp(energies - pt.logsumexp(energies))
    first = n_nodes // 2
    means = pt.dot(pt.dot(_hadamard(first), probability), _hadamard(n_nodes - first)).ravel()
    bits = 2 ** (n_nodes - 1 - np.arange(n_nodes))
    terms = np.array([*bits, *(bits[i] + bits[j] for i, j in edges)])
    # A spin is 2 y - 1, the transform has (-1)**y: products of an odd number of spins change their sign.
    mean = means[terms] * np.array([*[-1.0] * n_nodes, *[1.0] * len(edges)])
    both = terms[:, None] ^ terms[None, :]
    odd = np.array([bin(item).count("1") % 2 for item in both.ravel()]).reshape(both.shape)
    return mean, means[both.ravel()].reshape(both.shape) * (1.0 - 2.0 * odd) - mean[:, None] * mean[None, :]


def _hadamard(count: int) -> Array:
    found = np.ones((1, 1))
    for _ in range(count):
        found = np.kron(found, np.array([[1.0, 1.0], [1.0, -1.0]]))
    return found


def _drawn(nodes: Array, couplings: Array, n_nodes: int, edges: Edges, rng: np.random.Generator, size: Any) -> Array:
    """Draw fields: (..., n_nodes) array of 0 and 1."""
    states = (np.arange(2**n_nodes)[:, None] >> np.arange(n_nodes - 1, -1, -1)) & 1
    pairs = np.stack([states[:, i] * states[:, j] for i, j in edges], axis=-1)
    batch = np.broadcast_shapes(nodes.shape[:-1], couplings.shape[:-1])
    shape = batch if size is None else tuple(size)
    given = np.concatenate(
        [np.broadcast_to(item, (*batch, item.shape[-1])).reshape(-1, item.shape[-1]) for item in (nodes, couplings)],
        axis=1,
    )
    unique, which = np.unique(given, axis=0, return_inverse=True)
    places = np.broadcast_to(which.reshape(batch), shape).ravel()
    found = np.empty((len(places), n_nodes), dtype=np.int64)
    for place, both in enumerate(unique):
        energy = states @ both[:n_nodes] + pairs @ both[n_nodes:]
        below = np.cumsum(np.exp(energy - energy.max()))
        chosen = places == place
        drawn = np.searchsorted(below, rng.random(int(chosen.sum())) * below[-1], side="right")
        found[chosen] = states[np.minimum(drawn, len(states) - 1)]
    return found.reshape(*shape, n_nodes)


__all__ = ["IsingField"]
