"""What exact sums say about one parameter, family by family, in the form that its conjugate prior has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.families.features import BoundedFeatures
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Exact sums of one observed variable, and its other parameters in each cell.

    Attributes
    ----------
    table : TableLikelihood
    sums : ExactSums
        **Private**.
    given : sequence of arrays that broadcast to the cells
    """

    table: TableLikelihood
    sums: ExactSums
    given: Sequence[Array]

    @property
    def rows(self) -> Array:
        """Number of rows of each cell."""
        return self.sums.sizes

    @property
    def total(self) -> Array:
        """Sum of the first statistic of the rows, about 0."""
        statistic = self.table.statistic
        centre = statistic.centre if isinstance(statistic, BoundedMoments) else 0.0
        return self.sums.sums[:, 0] + centre * self.rows

    @property
    def origin(self) -> float:
        """Where squares of a (log-)normal variable are taken about."""
        statistic = self.table.statistic
        if isinstance(statistic, BoundedMoments):
            return statistic.centre
        assert isinstance(statistic, BoundedFeatures)
        last = statistic.features[-1]
        return last.argument if last.transform == "log_square" else 0.0

    @property
    def line(self) -> Array:
        """Sum of a (log-)normal variable about `origin`; 0 where it is the mean and only squares are held."""
        statistic, none = self.table.statistic, np.zeros(len(self.rows))
        if isinstance(statistic, BoundedMoments):
            return self.sums.sums[:, 0] if 1 in statistic.powers else none
        assert isinstance(statistic, BoundedFeatures)
        plain = statistic.features[0].transform == "log"
        return self.sums.sums[:, 0] - self.origin * self.rows if plain else none

    def squares(self, mean: Array) -> Array:
        """Sum of squares of a (log-)normal variable about a mean.

        Squares rounded to their grid can add up to less than 0, by less than the slack of the range.
        """
        away = mean - self.origin
        return np.maximum(self.sums.sums[:, -1] - 2 * away * self.line + self.rows * away**2, 0.0)


Pair = tuple[Array, Array]

CHANCES: dict[str, Callable[[Evidence], Pair]] = {
    "bernoulli": lambda e: (e.sums.sums[:, 1], e.sums.sums[:, 0]),
    "binomial": lambda e: (e.total, e.rows * e.given[0] - e.total),
    "geometric": lambda e: (e.rows, e.total - e.rows),
    "negative_binomial": lambda e: (e.rows * e.given[0], e.total),
}
"""Exponents (a, b) of a likelihood ``p^a (1 - p)^b``."""

POWERS: dict[str, Callable[[Evidence], Pair]] = {
    "poisson": lambda e: (e.total, e.rows),
    "exponential": lambda e: (e.rows, e.total),
    "gamma": lambda e: (e.rows * e.given[0], e.total),
    "invgamma": lambda e: (e.rows * e.given[0], e.total),
    "weibull": lambda e: (e.rows, e.total),
    "laplace": lambda e: (e.rows, e.total),
    "halfnormal": lambda e: (e.rows / 2, e.total / 2),
    "normal": lambda e: (e.rows / 2, e.squares(e.given[0]) / 2),
    "lognormal": lambda e: (e.rows / 2, e.squares(e.given[0]) / 2),
}
"""Shape and rate (a, b) of a likelihood ``t^a e^(-b t)``, t the power `ORDERS` of the parameter."""

ORDERS: dict[str, float] = {
    "poisson": 1.0,
    "exponential": -1.0,
    "gamma": -1.0,
    "invgamma": 1.0,
    "laplace": -1.0,
    "halfnormal": -2.0,
    "normal": -2.0,
    "lognormal": -2.0,
}
"""The power of the parameter that is a rate or a precision; that of a Weibull is minus its shape."""


__all__ = ["CHANCES", "ORDERS", "POWERS", "Evidence"]
