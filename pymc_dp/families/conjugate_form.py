"""What exact sums say of one parameter of a likelihood, in the form that its conjugate prior has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.families.features import BoundedFeatures, RowStatistic
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Exact sums of one observed variable, and its other parameters in each cell.

    Attributes
    ----------
    statistic : RowStatistic
    sums : (n_cells, n_statistics) array
        **Private**.
    sizes : (n_cells,) array
        **Private**. Number of rows of each cell.
    given : sequence of arrays that broadcast to the cells
        All parameters but the one that is drawn, in order.
    """

    statistic: RowStatistic
    sums: Array
    sizes: Array
    given: Sequence[Array]

    @property
    def rows(self) -> Array:
        """Number of rows of each cell."""
        return self.sizes

    @property
    def total(self) -> Array:
        """Sum of the first statistic of the rows, about 0."""
        statistic = self.statistic
        centre = statistic.centre if isinstance(statistic, BoundedMoments) else 0.0
        return self.sums[:, 0] + centre * self.rows

    @property
    def origin(self) -> float:
        """Where squares of a (log-)normal variable are taken about."""
        statistic = self.statistic
        if isinstance(statistic, BoundedMoments):
            return statistic.centre
        assert isinstance(statistic, BoundedFeatures)
        last = statistic.features[-1]
        return last.argument if last.transform == "log_square" else 0.0

    @property
    def line(self) -> Array:
        """Sum of a (log-)normal variable about `origin`; 0 where it is the mean and only squares are held."""
        statistic, none = self.statistic, np.zeros(len(self.rows))
        if isinstance(statistic, BoundedMoments):
            return self.sums[:, 0] if 1 in statistic.powers else none
        assert isinstance(statistic, BoundedFeatures)
        plain = statistic.features[0].transform == "log"
        return self.sums[:, 0] - self.origin * self.rows if plain else none

    def squares(self, mean: Array) -> Array:
        """Sum of squares of a (log-)normal variable about a mean.

        Squares rounded to their grid can add up to less than 0, by less than the slack of the range.
        """
        away = mean - self.origin
        return self.sums[:, -1] - 2 * away * self.line + self.rows * away**2


Pair = tuple[Array, Array]


@dataclass(frozen=True, kw_only=True)
class Chance:
    """A likelihood ``p^a (1 - p)^b`` of a probability p, whose conjugate prior is a beta distribution.

    Attributes
    ----------
    slot : int
        Which parameter p is.
    exponents : callable
        From an `Evidence` to (a, b) in each cell.
    """

    slot: int
    exponents: Callable[[Evidence], Pair]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A likelihood ``t^a e^(-b t)`` of a rate or a precision t, a power of the parameter, whose prior is gamma.

    Attributes
    ----------
    slot : int
        Which parameter.
    exponents : callable
        From an `Evidence` to (a, b) in each cell.
    power : float
        Power of the parameter that t is.
    times : int or None
        Which other parameter, a known number, the power is multiplied by; None for none.
    """

    slot: int
    exponents: Callable[[Evidence], Pair]
    power: float = 1.0
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A normal likelihood of the value or of its logarithm, as a function of its mean, whose prior is normal.

    Attributes
    ----------
    slot : int
        Which parameter the mean is.
    """

    slot: int


@dataclass(frozen=True, kw_only=True)
class Shares:
    """A likelihood of probabilities of levels that are counted, whose prior is a Dirichlet distribution.

    Attributes
    ----------
    slot : int
        Which parameter they are.
    """

    slot: int


ConjugateForm = Chance | Rate | Mean | Shares

__all__ = ["Chance", "ConjugateForm", "Evidence", "Mean", "Rate", "Shares"]
