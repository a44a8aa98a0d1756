"""Coefficients of a network's tables in an orthonormal basis: those that its families share are held once.

With ``u_0 = 1, u_1, ..., u_{K-1}`` orthonormal functions of the K levels of a node (under equal weights), a coefficient
is the sum over the rows of a product of them, one factor per node of a set γ: ``S_γ = sum_rows prod_j u_{γ_j}(x_j)``.
The table of some nodes F is ``h_F(x) = prod_j u_{γ_j}(x_j) S_γ / cells``, summed over the γ within F. All families of a
network need the downward closure N of these; tables computed from it agree wherever they overlap, whatever noise the
coefficients have. For two levels ``u_1(x) = (-1)^x``: whole numbers.

References
----------
Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (2007), Privacy, accuracy, and consistency too, theorem 5, doi
10.1145/1265530.1265569; Zhang, Rubinstein, Dimitrakakis (2016), theorem 2 and algorithm 2, where coefficients are
``2^(-nodes/2)`` of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import product
from math import prod

import numpy as np

from pymc_dp.errors import Problem
from pymc_dp.inspection.network import Network
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.character_sums import Configurations
from pymc_dp.kernel.characters import BITS, Coefficient, Coefficients, basis

MOST_OF_FAMILY = 1024
MOST_COEFFICIENTS = 2000
"""Sums of squares of what a row adds stay below 2**63, in squared grid steps."""


@dataclass(frozen=True, kw_only=True)
class NetworkSums:
    """A row adds products of its nodes' functions, as integers, to the coefficients of a network.

    Attributes
    ----------
    network : Network
    sized : bool
        Whether the number of rows, the coefficient of no node, is among them: the first one.
    """

    network: Network
    sized: bool

    @cached_property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """The downward closure, node by node; those of a family's last node before those of its parents alone."""
        found: dict[Coefficient, None] = {(): None} if self.sized else {}
        for place in range(len(self.network.nodes)):
            found.update(dict.fromkeys(one for one in self._within(place) if one and one[-1][0] == place))
        for place in range(len(self.network.nodes)):
            found.update(dict.fromkeys(one for one in self._within(place) if one))
        return tuple(found)

    @cached_property
    def families(self) -> tuple[int, ...]:
        """The node in whose family each coefficient is computed; -1 for the number of rows."""
        first: dict[Coefficient, int] = {(): -1}
        for place in range(len(self.network.nodes)):
            first.update(dict.fromkeys((one for one in self._within(place) if one and one[-1][0] == place), place))
        for place in range(len(self.network.nodes)):
            for one in self._within(place):
                first.setdefault(one, place)
        return tuple(first[one] for one in self.coefficients)

    @cached_property
    def unmarried(self) -> tuple[Coefficient, ...]:
        """Coefficients of parents without an edge between them, which no node's likelihood tells."""
        nodes = self.network.nodes
        return tuple(
            one
            for one in self.coefficients
            if one and not {place for place, _ in one[:-1]} <= set(nodes[one[-1][0]].parents)
        )

    @property
    def count(self) -> int:
        """Number of coefficients."""
        return len(self.coefficients)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One text per coefficient: the nodes of its product, and the function where there are several."""
        return tuple("·".join(self._factor(*pair) for pair in one) or "rows" for one in self.coefficients)

    @property
    def whole(self) -> bool:
        """Whether all products are whole numbers, as they are with two levels everywhere."""
        return all(node.n_levels <= 2 for node in self.network.nodes)

    @property
    def step(self) -> float:
        """Grid step of coefficients."""
        return 1.0 if self.whole else 2.0**-BITS

    def reading(self, *, papers: bool = False) -> Configurations:
        """Return how the kernel reads and adds up rows; with the charge of the papers, or that of what a row moves."""
        return _reading(self, papers)

    def steps_of(self, one: Coefficient) -> Array:
        """Return what a row adds to a coefficient, in grid steps: an axis for every node of its product."""
        return self.reading().shape.steps_of(one)

    def exact(self, tables: Sequence[Array]) -> Array:
        """Return the coefficients of exact tables, in grid steps: (count,) int64.

        Parameters
        ----------
        tables : sequence of int64 arrays
            Counts of the configurations of each family, of the shape `Network.shape`.
        """
        return self.reading().shape.combined(tables)

    def table_weights(self, place: int) -> tuple[Array, Array]:
        """Return what turns coefficients into the table of a family, cells by coefficients, and by the number of rows.

        Returns
        -------
        (n_cells * n_levels, count) array, (n_cells * n_levels,) array
            The last node's levels run fastest.
        """
        shape = self.network.shape(place)
        n_cells = prod(shape)
        places = {one: index for index, one in enumerate(self.coefficients)}
        found = np.zeros((n_cells, self.count))
        for one in self._within(place):
            if one:
                factors = [
                    basis(levels)[dict(one).get(member, 0)]
                    for member, levels in zip(self.network.family(place), shape, strict=True)
                ]
                found[:, places[one]] = reduce(np.multiply.outer, factors).ravel() / n_cells
        return found, np.full(n_cells, 1.0 / n_cells)

    def tables(self, values: Array, n_rows: float) -> list[Array]:
        """Return the table of every family, which agree with each other: (n_cells, n_levels) arrays.

        Parameters
        ----------
        values : (count,) array
            Coefficients, with noise or without.
        n_rows : float
            Number of rows that the tables add up to.
        """
        found = []
        for place, node in enumerate(self.network.nodes):
            weights, alone = self.table_weights(place)
            found.append((weights @ values + alone * n_rows).reshape(-1, node.n_levels))
        return found

    def _within(self, place: int) -> list[Coefficient]:
        """Coefficients within a family."""
        members = self.network.family(place)
        functions = [range(self.network.nodes[member].n_levels) for member in members]
        return [
            tuple(sorted((member, chosen) for member, chosen in zip(members, choice, strict=True) if chosen))
            for choice in product(*functions)
        ]

    def _factor(self, place: int, function: int) -> str:
        node = self.network.nodes[place]
        return node.name if node.n_levels == 2 else f"{node.name}[{function}]"


@lru_cache(maxsize=16)
def _reading(sums: NetworkSums, papers: bool) -> Configurations:
    """Made once: how far a row moves coefficients takes long to find."""
    nodes = sums.network.nodes
    return Configurations(
        Coefficients(
            levels=tuple(node.n_levels for node in nodes),
            families=tuple(sums.network.family(place) for place in range(len(nodes))),
            coefficients=sums.coefficients,
            places=sums.families,
            papers=papers,
        )
    )


def sums_of(network: Network, *, sized: bool) -> NetworkSums | tuple[Problem, ...]:
    """Return the coefficients of a network, or say why they are too many."""
    wide = [
        Problem(
            where=network.nodes[place].name,
            what=f"its family has {prod(network.shape(place))} coefficients, more than {MOST_OF_FAMILY}",
            remedy="Index it by fewer parents, or by coarser ones.",
        )
        for place in range(len(network.nodes))
        if prod(network.shape(place)) > MOST_OF_FAMILY
    ]
    if wide:
        return tuple(wide)
    sums = NetworkSums(network=network, sized=sized)
    if sums.count <= MOST_COEFFICIENTS:
        return sums
    what = f"its families have {sums.count} coefficients, more than {MOST_COEFFICIENTS}"
    return (Problem(where="model", what=what, remedy="Index nodes by fewer parents, or leave mechanism out."),)


__all__ = ["NetworkSums", "sums_of"]
