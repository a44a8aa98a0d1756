"""The public numbers of a chain of gradients: step sizes, noise, and the temperature of each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array

LARGEST_STABLE = 0.25
"""Default steps stay below this over N C²: where gradients have norm C, the log-likelihood bends by about N C²."""
HOT = 1.01
"""Temperature above which a step is reported."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """Public numbers of a chain, fixed before a row is read.

    Attributes
    ----------
    sizes : (steps,) array
        η of every step.
    sigma : float
        Standard deviation of the noise on every entry of the estimated gradient.
    temperature : (steps,) array
        Temperature that this noise alone would give a step; above 1 where it is more than the dynamics asks for.
    products : float
        Standard deviation of the noise on products of gradients, where they are released: on a diagonal entry of their
        sum over the square of the clip norm; or on one of a batch's covariance, times the batch size, over the same.
    centred : bool
        Whether it is the latter.
    """

    sizes: Array
    sigma: float
    temperature: Array
    products: float = 0.0
    centred: bool = False

    @property
    def shown(self) -> str:
        """First and last step size."""
        first, last = self.sizes[0], self.sizes[-1]
        return f"{last:.6g}" if first == last else f"{first:.6g}, falling to {last:.6g}"

    @property
    def warmth(self) -> tuple[tuple[str, str], ...]:
        """How far noise that protects the rows goes beyond what the dynamics asks for, as facts of the record."""
        hot = np.flatnonzero(self.temperature > HOT)
        if not hot.size:
            return ()
        until, steps = int(hot[-1]) + 1, len(self.temperature)
        text = f"up to {self.temperature.max():.3g}, above that of the target until step {until} of {steps}"
        return (("temperature of the noise", text),)


def algorithm_two(lipschitz: float, steps: int, epsilon: float, delta: float) -> float:
    """Return the standard deviation of algorithm 2's noise on an estimated gradient, whatever the step size.

    ``√(128 N T / τ · L² / ε² · log(2.5 N T / (τ δ)) · log(2 / δ))``, where N T / τ is the number of steps.

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithm 2. Its proof has 32 where 16 follows, so that it claims √2 times the ε that
    it shows.

    Examples
    --------
    >>> round(algorithm_two(1.0, 32561, 1.0, 1e-5) * 180 / 32561, 1)  # noise multiplier of a batch of 180 of 32561
    188.4
    """
    return math.sqrt(128 * steps * math.log(2.5 * steps / delta) * math.log(2 / delta)) * lipschitz / epsilon


__all__ = ["LARGEST_STABLE", "Course", "algorithm_two"]
