"""What a likelihood family must say about itself to be released as statistics.

Which likelihoods have a family: those of the package, and those that were registered from outside.

Rows drawn by NumPy, where its generator has no call for a likelihood.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, override

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import ArgumentError, Problem
from pymc_dp.families._counts import clipped_to_simplex, multinomial_logp, on_the_simplex
from pymc_dp.families.conjugate_form import ConjugateForm
from pymc_dp.families.features import BoundedFeatures, RowStatistic, SumStatistic
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array

Tensors = Sequence[TensorVariable]
Moments = tuple[list[TensorVariable], list[list[TensorVariable]]]


class Family(ABC):
    """One likelihood: the statistic of a row, and the distribution of its sum given the parameters.

    All tensors are per cell: a parameter has shape (n_cells,) or (1,), with a trailing axis where the likelihood
    has one.

    Attributes
    ----------
    distribution : str
        Name of the PyTensor random operation that the family recognises.
    event_ndims : tuple of int
        Number of trailing axes of each parameter.
    base : float or None
        The constant term of one row's log-likelihood, which `plugin_logp` leaves out; None where rows differ in it.
    conjugate : tuple of ConjugateForm
        One for each parameter that has a conjugate prior, which `TemperedGibbs` draws exactly.
    """

    distribution: ClassVar[str]
    event_ndims: tuple[int, ...]
    base: ClassVar[float | None] = None
    conjugate: ClassVar[tuple[ConjugateForm, ...]] = ()

    @abstractmethod
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        """Choose the statistic of a row, or say why there is none."""

    def admitted(self, low: float, high: float) -> tuple[float, float]:
        """Return bounds as near to given ones as `statistic` takes them; those given where it takes none near them."""
        return low, high

    @abstractmethod
    def supported(self, parameters: Tensors) -> TensorVariable:
        """Whether the parameters are ones of the likelihood: (n_cells or 1,) booleans."""

    @abstractmethod
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """Log-likelihood of rows with these exact sums, up to a constant.

        Parameters
        ----------
        parameters : tensors of the family
        statistic : RowStatistic
        sums : (n_cells, n_statistics) tensor, in units of the data, offsets of squares removed
        sizes : (n_cells,) tensor
            Number of rows per cell.

        Returns
        -------
        (n_cells,) tensor
        """

    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        """Draw rows, one for each entry of the parameters, which are those of PyTensor's random operation.

        Densities of sums of few whole numbers need it; parameters are invalid nowhere that a sampler can be.
        """
        raise NotImplementedError(f"{type(self).__name__} draws no rows.")

    @property
    def draws_rows(self) -> bool:
        """Whether there is a `draw`."""
        return type(self).draw is not Family.draw

    def conjugate_in(self, slot: int) -> ConjugateForm | None:
        """Return what makes one parameter conjugate, where something does."""
        return next((form for form in self.conjugate if form.slot == slot), None)

    def signature(self) -> list[str]:
        """Return the trailing axes of each parameter, as in the signature of a gufunc."""
        return [("()", "(k)", "(k,k)")[ndim] for ndim in self.event_ndims]


class CountFamily(Family):
    """A family whose sufficient statistic is a table of counts."""

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        """Probabilities: none below 0, and their sum is 1."""
        return on_the_simplex(parameters[-1])

    def probabilities(self, parameters: Tensors) -> TensorVariable:
        """Probability of each level, (n_cells or 1, n_levels): the last parameter, where nothing else is said."""
        return clipped_to_simplex(parameters[-1])

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``sum_k s_k log p_k``."""
        return multinomial_logp(self.probabilities(parameters), sums)


class MomentFamily(Family):
    """A family whose sufficient statistics are sums of powers of a bounded value."""

    @abstractmethod
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """Mean vector and covariance matrix of one row's *clamped* statistic.

        In units of `statistic.scales` (so that values lie in [-1, 1] around the centre), without the offset of squares.
        """


MOST_VALUES = 256
"""Of a sum of whole numbers, up to which all of them are added up."""
MOST_COUNT = 1024
"""Largest value of a row, up to which those below its bounds are added up one by one."""


class WholeFamily(MomentFamily):
    """A family of whole numbers, of which there are finitely many between public bounds."""

    def few_values(self, statistic: RowStatistic, sizes: Array) -> Array:
        """Whether a sum of so many rows has so few values that its density is exact: booleans.

        Parameters
        ----------
        statistic : RowStatistic
        sizes : array
            Public numbers of rows, or such as are drawn or read off a release.
        """
        if not isinstance(statistic, BoundedMoments) or statistic.high > MOST_COUNT:
            return np.zeros(np.shape(sizes), dtype=bool)
        spread = np.asarray(sizes) * (statistic.high - statistic.low)
        found: Array = (spread > 0) & (spread < MOST_VALUES)
        return found

    @abstractmethod
    def log_masses(self, parameters: Tensors, statistic: BoundedMoments) -> TensorVariable:
        """Log probability of every value of a *clamped* row, ``low..high``: (n_cells, n_values) tensor.

        Parameters are (n_cells, 1) tensors.
        """


class VectorFamily(Family):
    """A family whose rows are vectors, and whose sufficient statistics are many sums of bounded numbers."""

    @abstractmethod
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> tuple[TensorVariable, TensorVariable]:
        """Mean vectors (n, n_sums) and covariance matrices (n, n_sums, n_sums) of one row's *clamped* statistic.

        In units of `statistic.scales`, centres not subtracted.
        """

    def shapes(self, statistic: SumStatistic) -> list[tuple[int | None, ...]]:
        """Return the shape of each parameter of one cell: vectors are as long as rows."""
        return [(statistic.width,) * ndim for ndim in self.event_ndims]


FAMILIES: dict[str, Family] = {}
"""By the name of PyTensor's random operation. `register` adds to it; nobody else does."""


def register(*families: Family) -> None:
    """Make families known everywhere: to releases, samplers, ``dp.explain``, records and saved files.

    Parameters
    ----------
    *families : Family
        Each of a likelihood that has none yet.

    Raises
    ------
    ArgumentError
        If a likelihood has a family already. What is released of it must not depend on the order of imports.

    Notes
    -----
    **Guarantee.** That of sums does not rest on what a family says of its density: bounded features are clamped and
    rounded to integers, whatever they are. It does rest on `BoundedFeatures.pairing` and on the closed forms of ranges,
    where a family gives some: their proof is the family's own.
    """
    for family in families:
        if family.distribution in FAMILIES:
            known = type(FAMILIES[family.distribution]).__qualname__
            raise ArgumentError(
                f"The likelihood {family.distribution!r} has a family already, {known}. Register a family once, of a "
                "likelihood that has none."
            )
        FAMILIES[family.distribution] = family


def names() -> str:
    """Return the likelihoods by their names in PyMC, for texts."""
    return ", ".join(sorted(type(family).__name__ for family in FAMILIES.values()))


MOST_RATE = 1e18
"""Beyond, where no posterior is, NumPy draws no counts."""


def drawn_levels(rng: np.random.Generator, p: Array) -> Array:
    """Draw one level per row of (n, n_levels) probabilities."""
    below = np.cumsum(p, axis=-1)
    found: Array = (rng.random((len(p), 1)) * below[:, -1:] >= below[:, :-1]).sum(axis=-1).astype(np.float64)
    return found


def drawn_counts(rng: np.random.Generator, rate: Array) -> Array:
    """Draw one Poisson count per rate."""
    return np.asarray(rng.poisson(np.minimum(rate, MOST_RATE)))


__all__ = [
    "FAMILIES",
    "MOST_RATE",
    "BoundedFeatures",
    "BoundedMoments",
    "CountFamily",
    "Family",
    "LevelCounts",
    "MomentFamily",
    "Moments",
    "RowStatistic",
    "Tensors",
    "VectorFamily",
    "WholeFamily",
    "drawn_counts",
    "drawn_levels",
    "names",
    "register",
]
