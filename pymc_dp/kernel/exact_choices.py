"""Choices and accept bits of which log weights are public linear functions of exact sums: rows are read once.

What a row adds is one of few whole vectors, or lies between them: a linear function of it is largest at a corner. So
the kernel computes itself how far neighbours move the log weights, and only the whole numbers have to be enforced. The
sums stay in here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dp.kernel import draw, limbs
from pymc_dp.kernel.account import Account
from pymc_dp.kernel.arguments import finite, whole
from pymc_dp.kernel.choices import Penalty
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.exact_sums import RowSums, Totals, exact, products
from pymc_dp.kernel.layout import COARSE, Layout, given_candidates, numbers
from pymc_dp.kernel.payer import FLOAT64, HARDENED, Array, Pay, Payer


class ExactChoices(Payer):
    """Operations on exact sums whose outcomes are some of finitely many; see `totals.ByTotals`."""

    def __init__(self, totals: Totals, account: Account, stream: int | None = None) -> None:
        if type(totals) is not Totals:
            raise ArgumentError("totals must be Totals, and of no class derived from it.")
        neighbours = totals._layout.neighbours
        if account.relation != neighbours:
            raise PrivacyError(f"The account counts under {account.relation!r}, the sums under {neighbours!r}.")
        super().__init__(account, neighbours)
        self._totals, self._stream = totals, stream
        self._rng: np.random.Generator | None = None

    @property
    def neighbours(self) -> str:
        """Relation of neighbours."""
        return self._relation

    @property
    def layout(self) -> Layout:
        """What is public of the sums."""
        return self._totals._layout

    def exchange(self, totals: Totals) -> None:
        """Take other exact sums of the same rows from now on: of cells by what was released since, say.

        Nothing is charged: their rows were read, and nothing is released. That rows are the same is trusted.

        Raises
        ------
        PrivacyError
            If their neighbours or their number of rows are others.
        """
        if type(totals) is not Totals:
            raise ArgumentError("totals must be Totals, and of no class derived from it.")
        self._check_same(totals._layout)
        self._totals = totals

    def _check_same(self, layout: Layout) -> None:
        if (layout.neighbours, layout.n_rows) != (self.layout.neighbours, self.layout.n_rows):
            raise PrivacyError("Sums must be of the same rows: their neighbours, or their numbers of rows, are others.")

    def choose(self, coefficients: Any, *, beta: float = 1.0, public: Any = None, pay: Pay = None) -> int:
        """Draw a candidate with probability ∝ exp(public_k + beta Σ_j c_kj S_j).

        Parameters
        ----------
        coefficients : (n_candidates, size) array
            Public; those of excluded candidates do not count.
        beta : float
            > 0.
        public : (n_candidates,) array, optional
            Log weights that owe nothing to the rows; -inf excludes.

        Notes
        -----
        **Guarantee.** Bounded range `Layout.range` of the coefficients as whole numbers, and `draw.slack`: with these
        the exponents are exact, and a row adds a point of the hull of known corners, give or take the rounding of a
        square. Class exact.
        """
        exponents, log_weights = candidates_of(self.layout, coefficients, beta, public)
        possible = log_weights > -np.inf
        event = self.layout.choice(exponents[possible], len(possible))
        self._pay(pay, event, "choose_by_sums")
        return int(self._chosen(exponents, self._of_one, log_weights[None])[0])

    def choose_each(
        self, coefficients: Any, owners: Any, *, beta: float = 1.0, public: Any = None, n: int = 1, pay: Pay = None
    ) -> Array:
        """Draw a candidate for each of n elements, independent given the sums, as `choose` does.

        Parameters
        ----------
        coefficients : (n_candidates, size) array
            Public.
        owners : (size,) array
            The element that each sum counts for, -1 for none; all sums of a cell count for one.
        beta : float
            > 0.
        public : (n, n_candidates) array, optional
            Log weights that owe nothing to the rows; -inf excludes.
        n : int
            Used without `public`.

        Returns
        -------
        (n,) array of int

        Notes
        -----
        **Guarantee.** Bounded range `Layout.range_each`, and `draw.slack` for each element that a row may move. Class
        exact.
        """
        given = numbers(coefficients)
        if given.ndim != 2 or not len(given):
            raise ArgumentError("Coefficients must have a row for each candidate.")
        n = _elements(public, n)
        log_weights = draw.log_weights(public, (n, len(given)))
        draw.slack(len(given))  # refuses too many
        owners, exponents = self.layout.owners(owners, n), self.layout.exponents(given, beta)
        self._pay(pay, self.layout.choices(exponents, owners, log_weights > -np.inf), "choose_each")
        return self._chosen(exponents, owners, log_weights)

    def choose_for_each(
        self, rows: RowSums, coefficients: Any, *, beta: float = 1.0, public: Any = None, pay: Pay = None
    ) -> Array:
        """Draw a candidate for each row with probability ∝ exp(public_k + beta Σ_j c_kj s_j), s what it adds alone.

        Parameters
        ----------
        rows : RowSums
            Of the same rows; that they are is trusted.
        coefficients : (n_candidates, size) array
            Public, of the sums of the rows' own layout. A row in no cell chooses by what is public alone.
        beta : float
            > 0.
        public : (n_candidates,) array, optional
            Log weights that owe nothing to the rows; -inf excludes.

        Returns
        -------
        (n_rows,) array of int

        Notes
        -----
        **Guarantee.** That of one choice (`Layout.choice_for_each`): neighbours differ in one row,
        under replace alone, and choices are independent (parallel composition). Class exact.
        """
        if type(rows) is not RowSums:
            raise ArgumentError("rows must be RowSums, and of no class derived from it.")
        layout = rows._layout
        self._check_same(layout)
        given, log_weights = given_candidates(coefficients, public)
        possible = log_weights > -np.inf
        exponents, finer = layout.exponents_of_rows(given, beta, log_weights)
        self._pay(pay, layout.choice(exponents[possible], len(possible)), "choose_for_each")
        held = exponents * 2.0 ** (finer - layout.finer)
        fixed = np.array(draw.fixed_exponents(log_weights), dtype=np.int64) << finer

        def work() -> Array:
            chosen = [np.zeros(0, dtype=np.int64)]
            for own in rows._added(held):
                chosen.append(draw.one_of(draw.weights_of_rows(own + fixed, possible, finer)))
            return np.concatenate(chosen)

        return self._read(work)

    def barker(self, coefficients: Any, *, beta: float = 1.0, public: float = 0.0, pay: Pay = None) -> bool:
        """Draw Barker's bit, 1 / (1 + e^-λ), λ = public + beta Σ_j c_j S_j: a `choose` of two."""
        both = np.concatenate([np.zeros((1, self.layout.size)), self._row(coefficients)])
        exponents, log_weights = candidates_of(self.layout, both, beta, np.array([0.0, finite("public", public)]))
        self._pay(pay, self.layout.choice(exponents), "barker")
        return bool(self._chosen(exponents, self._of_one, log_weights[None])[0])

    def accept(self, coefficients: Any, *, beta: float = 1.0, public: float = 0.0, pay: Pay = None) -> bool:
        """Draw Metropolis's own bit, min(1, e^λ), λ as in `barker`; **guarantee** as of `Choices.accept`."""
        exponents, public = self._one(coefficients, beta), finite("public", public)
        self._pay(pay, self.layout.accepting(exponents, public), "accept")
        fixed = math.floor(Fraction(public) * 2 ** (draw.SHIFT + self.layout.finer))
        return self._read(lambda: draw.accepted((fixed + self._sums(exponents)[0]) >> self.layout.finer))

    def penalty(
        self,
        coefficients: Any,
        *,
        noise: float,
        most_noise: float | None = None,
        beta: float = 1.0,
        public: float = 0.0,
        pay: Pay = None,
    ) -> bool:
        """Draw the bit of the penalty method, λ as in `barker`; arguments and **guarantee** as of `Choices.penalty`.

        Sums are in coarser units, in which neighbours move them by 2^24 or so, and by one more for the rounding.
        """
        exponents, public = self._one(coefficients, beta), finite("public", public)
        moved = math.ceil(self.layout.range(np.concatenate([np.zeros_like(exponents), exponents])))
        coarser = max(0, moved.bit_length() - COARSE)
        units = Fraction(2 ** (draw.SHIFT + self.layout.finer), 2**coarser)
        bit = Penalty((moved >> coarser) + 2, units, 1.0, noise, most_noise, public)
        self._pay(pay, bit.event, "penalty", HARDENED if most_noise is None else FLOAT64)
        return self._read(lambda: bit.drawn(max(min(self._sums(exponents)[0] >> coarser, 2**62), -(2**62))))

    def _one(self, coefficients: Any, beta: float) -> Array:
        return self.layout.exponents(self._row(coefficients), beta)

    def _row(self, coefficients: Any) -> Array:
        found = numbers(coefficients)
        if found.shape != (self.layout.size,):
            raise ArgumentError(f"Coefficients must be {self.layout.size} numbers, one for each sum.")
        return found[None]

    @property
    def _of_one(self) -> Array:
        return np.zeros(self.layout.size, dtype=np.int64)

    def _chosen(self, exponents: Array, owners: Array, log_weights: Array) -> Array:
        """Draw a candidate of each element, of (K, size) exponents. **Private** release."""
        possible, finer = log_weights > -np.inf, self.layout.finer
        fixed = list(enumerate(limbs.digits_of(draw.fixed_floats(log_weights) * 2.0**finer)))

        def work() -> Array:
            digits = products(exponents, self._totals._sums, owners, len(log_weights))
            behind = limbs.behind_largest(limbs.added([*enumerate(digits), *fixed]), possible, finer)
            return draw.one_of(draw.weights_behind(behind, possible))

        return self._read(work)

    def _fixed(self, log_weights: Array) -> list[int]:
        """Return public log weights, less the largest, in units of exponents."""
        return [value << self.layout.finer for value in draw.fixed_exponents(log_weights)]

    def _added(self, exponents: Array, fixed: Sequence[int]) -> list[int]:
        """Return exponents of all candidates, with what is public of them. **Private**."""
        return [a + b for a, b in zip(self._sums(exponents), fixed, strict=True)]

    def _sums(self, exponents: Array) -> list[int]:
        """Return exact whole numbers Σ_j E_kj S_j. **Private**."""
        return exact(exponents, self._totals._sums)


def _elements(public: Any, n: int) -> int:
    """Return for how many elements candidates are chosen."""
    if public is None:
        return whole("n", n)
    try:
        shape = np.shape(public)
    except ValueError:
        shape = ()
    if len(shape) != 2 or not shape[0]:
        raise ArgumentError("public must be log weights of shape (n, n_candidates).")
    return shape[0]


def candidates_of(layout: Layout, coefficients: Any, beta: float, public: Any) -> tuple[Array, Array]:
    """Check candidates: exponents, and public log weights."""
    given, log_weights = given_candidates(coefficients, public)
    return layout.exponents(given, beta), log_weights
