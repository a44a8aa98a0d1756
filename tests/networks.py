"""Small discrete networks as PyMC models, with rows that can be swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pymc as pm

from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.network import Network, find_network

Graph = Mapping[str, Sequence[str]]
PAIR: Graph = {"a": [], "b": ["a"]}
COLLIDER: Graph = {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}
TRIANGLE: Graph = {"a": [], "b": ["a"], "c": ["a", "b"]}
BAYES: Graph = {"y": [], "x1": ["y"], "x2": ["y"], "x3": ["y"]}
CHAIN: Graph = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}


def network_model(
    graph: Graph, rows: Mapping[str, np.ndarray] | int = 5, levels: Mapping[str, int] | None = None
) -> pm.Model:
    """A Bernoulli or Categorical variable per node, indexed by the `pm.Data` of its parents, ``<node>_rows``."""
    levels = {name: (levels or {}).get(name, 2) for name in graph}
    if isinstance(rows, int):
        rows = {name: np.zeros(rows, dtype=np.int64) for name in graph}
    with pm.Model(coords={f"level of {name}": range(levels[name]) for name in graph}) as model:
        held = {name: pm.Data(f"{name}_rows", rows[name]) for name in graph}
        for name, parents in graph.items():
            dims = [f"level of {parent}" for parent in parents]
            index = tuple(held[parent] for parent in parents)
            if levels[name] == 2:
                p = pm.Beta(f"p_{name}", 1, 1, dims=dims or None)
                pm.Bernoulli(name, p[index] if parents else p, observed=held[name])
                continue
            shape = [*(levels[parent] for parent in parents), levels[name]]
            p = pm.Dirichlet(f"p_{name}", np.ones(shape), dims=[*dims, f"level of {name}"])
            pm.Categorical(name, p[index] if parents else p, observed=held[name])
    return model


def network_of(graph: Graph, levels: Mapping[str, int] | None = None) -> Network:
    """The network of a model, as the inspection finds it."""
    found = find_network(inspect(network_model(graph, levels=levels)).sums)
    assert isinstance(found, Network)
    return found


def set_rows(model: pm.Model, rows: Mapping[str, np.ndarray]) -> None:
    """Swap the rows of a model."""
    for name, values in rows.items():
        leaf = model[f"{name}_rows"]
        leaf.set_value(np.asarray(values).astype(leaf.type.dtype))


def random_rows(rng: np.random.Generator, graph: Graph, n: int, levels: Mapping[str, int] | None = None) -> dict:
    """Independent columns of every level."""
    return {name: rng.integers((levels or {}).get(name, 2), size=n) for name in graph}


def all_rows(network: Network) -> list[tuple[int, ...]]:
    """Every configuration of the nodes: 2^nodes of them, for small networks only."""
    return list(product(*[range(node.n_levels) for node in network.nodes]))


def added(sums: NetworkSums, row: Sequence[int]) -> np.ndarray:
    """What one row adds to the coefficients, by their definition: (count,) integers."""
    return np.array(
        [int(sums.steps_of(one)[tuple(row[node] for node, _ in one)]) for one in sums.coefficients], dtype=object
    )
