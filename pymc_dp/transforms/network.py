"""The released coefficients of a network as a random variable: their density given all conditional probabilities.

Let ``s_{jk}`` be the number of rows with level k of a node and configuration j of its parents, ``n_j`` that of the
configuration, p its conditional probabilities. Given the rows of all nodes before it, s is multinomial with mean
``n_j p_{jk}`` and covariance ``n_j (diag p_j - p_j p_j')``, independent over j and of everything else: treated as
normal, with the released size for ``n_j`` in the covariance. Tables are linear in the coefficients S, ``s = P S`` and
``n = Q S``, so that of the release ``Z = S + noise``

    ``(P - p Q) Z = (s - n p) + (P - p Q) noise``

has mean 0 and a known covariance, jointly for all nodes. For a given p it is Z itself up to a map whose determinant
does not depend on p: no coefficient is used twice, and noise that tables share is accounted for as shared. Coefficients
of parents that no edge joins enter through ``n_j`` alone: what the model says about them is not used, as if their exact
values had a flat prior; so does a private number of rows. Laplace noise is normal noise whose variance is exponential
(Andrews, Mallows 1974): a free variable for every coefficient.

References
----------
Zhang, Rubinstein, Dimitrakakis (2016), algorithm 2 (the plug-in form); Bernstein, Sheldon (2018), doi
10.48550/arXiv.1809.02188 (normal sums, exponential variances).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families import FAMILIES
from pymc_dp.families._counts import SMALLEST_PROBABILITY
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.quadrature import normal_logp
from pymc_dp.inspection.network import Network
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.noise import NOISES
from pymc_dp.release.record import TableRecord
from pymc_dp.release.tables import TablePlan
from pymc_dp.simulation.networks import draw_counts
from pymc_dp.transforms.likelihood import per_cell_parameters
from pymc_dp.transforms.released_logp import add_release, held, spread_out

TOLERANCE = 1e-5
"""By which probabilities may miss 1 in sum."""


def network_parameters(table: TablePlan) -> TensorVariable:
    """Return the conditional probabilities of all nodes in one vector: node by node, cell by cell, level by level."""
    found = []
    for observed, cells, node in zip(table.variables, table.parents, table.sums.network.nodes, strict=True):
        (p,) = per_cell_parameters(observed, cells)
        if FAMILIES[observed.distribution].event_ndims == (0,):
            p = pt.stack([1 - p, p], axis=-1)
        found.append(pt.broadcast_to(p, (cells.count, node.n_levels)).ravel())
    return pt.concatenate(found)


def observe_network(
    new: pm.Model, record: TableRecord, parameters: Variable, table: TablePlan, value: Array, *, noise_aware: bool
) -> None:
    """Add the released coefficients to the private model, with the unknown variances of Laplace noise."""
    density = NetworkDensity.of(table, noise_aware=noise_aware)
    with new:
        beside: list[Any] = [held(np.full(value.shape, density.scale))]
        if density.mixed:
            dims = (record.cell_dim, record.column_dim)
            beside.append(pm.Exponential(f"{record.name}_noise_variance", 1.0, dims=dims))
        add_release(record, [parameters, *beside], density, value)


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkDensity:
    """Distribution of the released coefficients of a network; holds public numbers only.

    Attributes
    ----------
    sums : NetworkSums
    n_rows : int
        Public number of rows; a bound on it where it is not `counted`.
    counted : bool
    scale : float
        Of the noise, in units of coefficients; 0 without noise.
    kind : {"laplace", "gaussian"}
    noise_aware : bool
        Else the plug-in form: tables of the release are treated as exact.
    increment : float
        Rows that tables of the plug-in form have more.
    """

    sums: NetworkSums
    n_rows: int
    counted: bool
    scale: float
    kind: str
    noise_aware: bool
    increment: float = 0.0

    @classmethod
    def of(cls, table: TablePlan, *, noise_aware: bool) -> NetworkDensity:
        """Take from a plan what is public."""
        scale = float(table.scales[0])
        return cls(
            sums=table.sums,
            n_rows=int(table.cells.groups[0]),
            counted=table.sizes_known,
            scale=scale,
            kind=table.kind,
            noise_aware=noise_aware and scale > 0,  # without noise, in tests, tables are exact
            increment=table.increment,
        )

    @property
    def mixed(self) -> bool:
        """Whether the variances of the noise are free variables."""
        return self.noise_aware and self.kind == "laplace"

    @property
    def signature(self) -> str:
        """Gufunc signature: probabilities, scales and variances of noise, to the released table."""
        return f"(p),(c,d){',(c,d)' if self.mixed else ''}->(c,d)"

    @cached_property
    def network(self) -> Network:
        """Nodes and edges."""
        return self.sums.network

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """All cells of all tables as functions of coefficients and of the number of rows: (n_p, count), (n_p,)."""
        found = [self.sums.table_weights(place) for place in range(len(self.network.nodes))]
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    @cached_property
    def configurations(self) -> Array:
        """Which configuration of parents each probability belongs to: (n_p,) integers, of no two nodes the same."""
        levels = [self.network.nodes[place].n_levels for place in range(len(self.network.nodes))]
        widths = np.repeat(levels, [self.network.n_cells(place) for place in range(len(levels))])
        return np.repeat(np.arange(len(widths)), widths)

    def logp(
        self,
        value: TensorVariable,
        probabilities: TensorVariable,
        scales: TensorVariable,
        variances: TensorVariable | None = None,
    ) -> TensorVariable:
        """Log density of the released coefficients: () tensor.

        Parameters
        ----------
        value : (count, 1) tensor
        probabilities : (n_p,) tensor
            As `network_parameters` returns them.
        scales : (count, 1) tensor
            They tell PyMC the shape of the release; their value is `scale`.
        variances : (count, 1) tensor, optional
            Of Laplace noise, in units of its own variance ``2 scale²``.
        """
        p = probabilities.reshape((self.network.n_probabilities,))
        totals = _added(self.configurations) @ p
        valid = pt.all(p >= 0) & pt.all(pt.abs(totals - 1) < TOLERANCE)
        # Outside of the support valid numbers stand in, so that no gradient is NaN.
        equal = 1 / _added(self.configurations).sum(axis=1)[self.configurations]
        safe = pt.clip(pt.switch(valid, p, equal), SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        z = value.reshape((self.sums.count,))
        if not self.noise_aware:
            return pt.switch(valid, self._plugin_logp(z, safe), -np.inf)
        spread = None if variances is None else variances.reshape((self.sums.count,))
        return pt.switch(valid, self._aware_logp(z, safe, spread), -np.inf)

    def random(self, *parameters: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw releases from the model: rows given the probabilities, then noise. Never a release of data."""
        batch, given = spread_out(parameters, (1, 2, 2)[: len(parameters)], size)
        drawn = np.empty((*batch, self.sums.count, 1))
        for place in np.ndindex(*batch):
            n_rows = self.n_rows if self.counted else int(rng.integers(self.n_rows + 1))
            tables = draw_counts(rng, self.network, given[0][place], n_rows)
            drawn[place] = self.sums.exact(tables)[:, None] * self.sums.step
        if self.mixed and len(given) > 2:
            deviations = self.scale * np.sqrt(2 * given[2])
            return drawn + deviations * rng.normal(size=drawn.shape)
        if self.scale > 0:
            step = self.sums.step
            drawn += NOISES[self.kind].simulated(rng, self.scale / step, drawn.shape) * step
        return drawn

    def residual(
        self, z: TensorVariable, p: TensorVariable, variances: TensorVariable | None = None
    ) -> tuple[TensorVariable, TensorVariable]:
        """Return released counts less what released sizes lead to expect, and their covariance given the probabilities.

        For all levels but the first of each configuration, whose count follows from the others.

        Parameters
        ----------
        z : (count,) tensor
        p : (n_p,) tensor
        variances : (count,) tensor, optional
        """
        weights, alone = self.tables
        added, kept = _added(self.configurations), self._kept
        sizes, size_alone = added @ weights, added @ alone
        of, weight = self.configurations[kept], p[kept]
        if self.counted:
            n_rows: Any = held(self.n_rows)
        else:  # the released number of rows, with its noise, stands in front
            n_rows, weights, sizes = 0.0, weights.copy(), sizes.copy()
            weights[:, 0], sizes[:, 0] = alone, size_alone
        released = pt.as_tensor(sizes) @ z + size_alone * n_rows
        rest = pt.as_tensor(weights[kept]) @ z + alone[kept] * n_rows - weight * released[of]
        left = weights[kept] - weight[:, None] * sizes[of]
        n = pt.maximum(released, 0.0)[of]
        same = (of[:, None] == of[None, :]).astype(float)
        covariance = pt.diag(n * weight) - same * (n * weight)[:, None] * weight[None, :]
        noise: Any = held(np.full(self.sums.count, self.scale**2))
        if variances is not None:
            noise = 2 * noise * variances
        return rest, covariance + (left * noise) @ left.T

    # --- internals ----------------------------------------------------------------------------------------------------

    def _plugin_logp(self, z: TensorVariable, p: TensorVariable) -> TensorVariable:
        """``sum h log p`` of tables whose cells are cut off at 0 and at the number of rows."""
        weights, alone = self.tables
        whole = (held(self.n_rows) if self.counted else z[0]) + held(self.increment)
        counts = pt.clip(pt.as_tensor(weights) @ z + alone * whole, 0.0, pt.maximum(whole, 0.0))
        return (counts * pt.log(p)).sum()

    def _aware_logp(self, z: TensorVariable, p: TensorVariable, variances: TensorVariable | None) -> TensorVariable:
        rest, covariance = self.residual(z, p, variances)
        return normal_logp(rest, covariance, pt.zeros_like(rest))

    @cached_property
    def _kept(self) -> Array:
        """Probabilities of all levels but the first of each configuration, whose count the others tell."""
        return np.flatnonzero(np.diff(self.configurations, prepend=-1) == 0)


def _added(configurations: Array) -> Array:
    """What adds up the levels of every configuration: (n_configurations, n_p)."""
    return (np.arange(configurations[-1] + 1)[:, None] == configurations).astype(float)


__all__ = ["NetworkDensity", "network_parameters", "observe_network"]
