"""Log weights of annealed particles by exact sums: linear functions of these, along paths that are public."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant
from pymc_dp.kernel.layout import SHARE_BITS
from pymc_dp.samplers.gibbs_sums import Choice, GibbsSums

Values = Mapping[str, Array]
UNBOUNDED = Problem(
    where="model",
    what="one row can move its log-likelihood by any amount",
    remedy="Bound the parameter space by public numbers, with dp.truncate, away from the ends of their range.",
)


class Noised(NamedTuple):
    """What was released with discrete Laplace noise, and the scale of that."""

    value: Any
    scale: float


class SumPaths:
    """Σ_j s_j l(θ_ij) of particles i, whose states and shares s are public, as linear functions of the kernel's sums.

    Parameters
    ----------
    of : GibbsSums
    slopes : callable
        From the values of all variables to the derivatives of the log-likelihoods in their sums, one after the other.
    states : sequence of Values
        Public, at which ranges are looked at.
    bases : sequence of float
        The constant term of one row's log-likelihood, for each table.

    Attributes
    ----------
    range : float
        How far neighbours move the sum of l, as a range over all parameters: the largest that was found.

    Notes
    -----
    **Guarantee.** That of the kernel's operations. Nothing in here can make one cost more than was paid.
    """

    def __init__(
        self, of: GibbsSums, slopes: Callable[[Values], Array], states: Sequence[Values], bases: Sequence[float]
    ) -> None:
        self.of, self._slopes, self._base = of, slopes, of.sums.of_rows(bases)
        found = self.at(states)
        if not np.isfinite(found).all():
            raise UnsupportedModelError([UNBOUNDED])
        self.range = Choice(of=of, coefficients=found, public=np.zeros(len(found))).range()

    def at(self, states: Sequence[Values]) -> Array:
        """Return coefficients of the log-likelihood at each of some states: (n_states, size)."""
        return self.of.sums.whole(np.stack([self._slopes(values) for values in states])) + self._base


@dataclass(frozen=True, eq=False)
class WeighedSums:
    """Particles with log weights Σ_j c_ij S_j.

    Attributes
    ----------
    paths : SumPaths
    coefficients : (n_particles, size) array
    """

    paths: SumPaths
    coefficients: Array

    def choose(self, most: float, pay: Grant) -> int:
        """Draw a particle by its weight; of a lower power where the range is above `most`, which is paid for."""
        count = len(self.coefficients)
        asked = Choice(of=self.paths.of, coefficients=self.coefficients, public=np.zeros(count))
        return int(asked.draw(1.0, pay, most))

    def soft_max(self, scale: float) -> Noised:
        """Return the log of the mean weight with discrete Laplace noise, of a scale over what a row moves it by."""
        layout = self.paths.of.sums.layout
        coarser, moved = layout.soft_max_move(layout.exponents(self.coefficients, 1.0))
        found = self.paths.of.kernel.soft_max(self.coefficients, noise="laplace", scale=scale)
        return Noised(found, scale * float(layout.nats(moved * 2.0**coarser)))

    def weights(self, scale: float) -> Noised:
        """Return the normalised weights with discrete Laplace noise, of a scale over what a row moves them by."""
        layout = self.paths.of.sums.layout
        moved = layout.shares_move(layout.exponents(self.coefficients, 1.0))
        return Noised(self.paths.of.kernel.shares(self.coefficients, scale=scale), scale * moved * 2.0**-SHARE_BITS)


__all__ = ["SumPaths", "WeighedSums"]
