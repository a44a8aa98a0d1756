"""Choices, accept bits and draws of which log weights are public linear functions of exact sums: rows are read once.

What a row adds is one of few whole vectors, or lies between them: a linear function of it is largest at a corner. So
the kernel computes itself how far neighbours move the log weights, and nothing has to be enforced beside the whole
numbers. The sums stay in here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np

from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Account
from pymc_dp.kernel.arguments import finite
from pymc_dp.kernel.choices import Penalty
from pymc_dp.kernel.conjugates import CONJUGATES, Conjugate, drawing
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.layout import Layout, numbers
from pymc_dp.kernel.payer import FLOAT64, HARDENED, Array, Pay, Payer, read_rows
from pymc_dp.kernel.tallies import LENGTHS, Rows

COARSE = 24
"""Bits of the largest move of a sum that noise is added to."""
DIGIT = 21


@final
class Totals:
    """Exact sums of a layout: rows are read when it is made, and nothing of them is shown.

    Parameters
    ----------
    layout : Layout
    rows : sequence of Rows
        For each tally; private.

    Raises
    ------
    PrivacyError
        If rows do not fit the layout; no text shows a value.
    """

    def __init__(self, layout: Layout, rows: Sequence[Rows]) -> None:
        if type(layout) is not Layout:
            raise ArgumentError("layout must be a Layout, and of no class derived from it.")

        def work() -> list[int]:
            if len(rows) != len(layout.tallies):
                raise PrivacyError(LENGTHS)
            counts = {len(held) for one in rows for held in one.values}
            if len(counts) != 1 or (layout.n_rows is not None and counts != {layout.n_rows}):
                raise PrivacyError(LENGTHS)
            parts = [tally.exact(own) for tally, own in zip(layout.tallies, rows, strict=True)]
            return [int(number) for part in parts for number in part.ravel()]

        self._layout, self._sums = layout, read_rows(work, PrivacyError)


@final
class ByTotals(Payer):
    """Exact sums, the account of their budget, and what may be made of them.

    Parameters
    ----------
    totals : Totals
    account : Account
        Of the layout's neighbours.
    stream : int, optional
        Which of several chains it is: only seeded randomness looks at it.
    """

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
        exponents, fixed, possible = self._candidates(coefficients, beta, public)
        event = self.layout.choice(exponents[possible], len(possible))
        self._pay(pay, event, "choose_by_sums")
        return self._chosen(exponents, fixed, possible)

    def barker(self, coefficients: Any, *, beta: float = 1.0, public: float = 0.0, pay: Pay = None) -> bool:
        """Draw Barker's bit, 1 / (1 + e^-λ), λ = public + beta Σ_j c_j S_j: a `choose` of two."""
        both = np.concatenate([np.zeros((1, self.layout.size)), self._row(coefficients)])
        exponents, fixed, possible = self._candidates(both, beta, np.array([0.0, finite("public", public)]))
        self._pay(pay, self.layout.choice(exponents), "barker")
        return bool(self._chosen(exponents, fixed, possible))

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

    def draw(self, families: Sequence[Conjugate], *, beta: float = 1.0, pay: Pay = None) -> list[Array]:
        """Draw once, exactly, from posteriors that are conjugate up to their boxes, at inverse temperature beta.

        Parameters
        ----------
        families : sequence of Conjugate
            Independent of each other given the sums.

        Notes
        -----
        **Guarantee.** Bounded range of the sum of their ranges (`Conjugate.range`), of coefficients as whole numbers.
        Arithmetic float64: the last bits are not covered.
        """
        families, unit = list(families), 2 ** (draw.SHIFT + self.layout.finer)
        if not families or any(type(family) not in CONJUGATES for family in families):
            raise ArgumentError("Each family must be one that is known, and of no class derived from it.")
        exponents = [self.layout.exponents(family.linear, beta) for family in families]
        self._pay(pay, drawing(self.layout, families, exponents), "draw_by_sums", FLOAT64)

        def work() -> list[Array]:
            found = []
            self._rng = rng = self._rng or draw.float_generator(self._stream)
            for family, own in zip(families, exponents, strict=True):
                found.append(family._draw(rng, np.array([one / unit for one in self._sums(own)])))
            return found

        return self._read(work)

    def _one(self, coefficients: Any, beta: float) -> Array:
        return self.layout.exponents(self._row(coefficients), beta)

    def _row(self, coefficients: Any) -> Array:
        found = numbers(coefficients)
        if found.shape != (self.layout.size,):
            raise ArgumentError(f"Coefficients must be {self.layout.size} numbers, one for each sum.")
        return found[None]

    def _candidates(self, coefficients: Any, beta: float, public: Any) -> tuple[Array, list[int], Array]:
        """Check candidates: exponents, those of what is public, and which are possible."""
        given = numbers(coefficients)
        if given.ndim != 2:
            raise ArgumentError("Coefficients must have a row for each candidate.")
        log_weights = draw.log_weights(public, (len(given),))
        draw.slack(len(given))  # refuses too many
        possible = log_weights > -np.inf
        given[~possible] = 0.0
        fixed = [value << self.layout.finer for value in draw.fixed_exponents(log_weights)]
        return self.layout.exponents(given, beta), fixed, possible

    def _chosen(self, exponents: Array, fixed: list[int], possible: Array) -> int:
        def work() -> int:
            found = [a + b for a, b in zip(self._sums(exponents), fixed, strict=True)]
            return int(draw.one_of(draw.weights_of(found, possible, self.layout.finer)[None])[0])

        return self._read(work)

    def _sums(self, exponents: Array) -> list[int]:
        """Return exact whole numbers Σ_j E_kj S_j. **Private**."""
        if not (np.abs(exponents) < 2.0**62).all():
            return list(np.frompyfunc(int, 1, 1)(exponents) @ np.array(self._totals._sums, dtype=object))
        held, sums = exponents.astype(np.int64), np.array(self._totals._sums, dtype=np.int64)
        digits = [0] * len(held)
        for k, part in enumerate(_digits(held)):
            for j, other in enumerate(_digits(sums)):
                digits = [a + (b << DIGIT * (k + j)) for a, b in zip(digits, (part @ other).tolist(), strict=True)]
        return digits


def _digits(numbers: Array) -> list[Array]:
    """Return whole numbers of 64 bits as three digits of 21 bits: sums of 2^20 products of two fit into 64 bits."""
    low = 2**DIGIT - 1
    return [numbers & low, numbers >> DIGIT & low, numbers >> 2 * DIGIT]
