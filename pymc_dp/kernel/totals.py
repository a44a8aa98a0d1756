"""Draws and noised functions of exact sums. Choices and accept bits of these are in `exact_choices`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np

from pymc_dp.kernel import draw
from pymc_dp.kernel.arguments import positive, word
from pymc_dp.kernel.conjugates import CONJUGATES, Conjugate, drawing
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.exact_choices import ExactChoices, candidates_of
from pymc_dp.kernel.exact_sums import RowSums, Totals, products
from pymc_dp.kernel.layout import SHARE_BITS
from pymc_dp.kernel.limbs import as_floats
from pymc_dp.kernel.paths import Paths
from pymc_dp.kernel.payer import FLOAT64, Array, Pay
from pymc_dp.kernel.sums import ORDERS, Noise, log_mean_exp

FAMILIES = (*CONJUGATES, Paths)
"""Exactly these."""


@final
class ByTotals(ExactChoices):
    """Exact sums, the account of their budget, and what may be made of them.

    Parameters
    ----------
    totals : Totals
    account : Account
        Of the layout's neighbours.
    stream : int, optional
        Which of several chains it is: only seeded randomness looks at it.
    """

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
        families = list(families)
        if not families or any(type(family) not in FAMILIES for family in families):
            raise ArgumentError("Each family must be one that is known, and of no class derived from it.")
        exponents = [self.layout.exponents(family.linear, beta) for family in families]
        self._pay(pay, drawing(self.layout, families, exponents), "draw_by_sums", FLOAT64)

        def work() -> list[Array]:
            found = []
            self._rng = rng = self._rng or draw.float_generator(self._stream)
            for family, own in zip(families, exponents, strict=True):
                found.append(family._draw(rng, self._parameters(family, own)))
            return found

        return self._read(work)

    def _parameters(self, family: Conjugate, exponents: Array) -> Array:
        """Return what sums make of the linear functions of a family, as floats. **Private**."""
        bits, owned = draw.SHIFT + self.layout.finer, family.owned(self.layout)
        if owned is None:
            return np.array([one / 2**bits for one in self._sums(exponents)])
        return as_floats(products(exponents, self._totals._sums, *owned), bits)

    def soft_max(
        self,
        coefficients: Any,
        *,
        beta: float = 1.0,
        public: Any = None,
        noise: Noise,
        scale: float,
        pay: Pay = None,
    ) -> float:
        """Return a noised log mean exp over candidates of public_k + beta Σ_j c_kj S_j, in nats.

        Parameters
        ----------
        coefficients : (n_candidates, size) array
            Public; those of excluded candidates do not count.
        beta : float
            > 0.
        public : (n_candidates,) array, optional
            Log weights that owe nothing to the rows; -inf excludes, and counts as 0 in the mean.
        scale : float
            Of the noise, over what neighbours move it by.

        Notes
        -----
        **Guarantee.** ε = 1 / scale or ρ = 1 / (2 scale²). It moves by no more than the largest move of an exponent, in
        whole units rounded down, and 4 units: one for that rounding, one for rounding the logarithm, and two for
        floats (`Layout.soft_max_move`). Class exact.
        """
        exponents, log_weights = candidates_of(self.layout, coefficients, beta, public)
        possible = log_weights > -np.inf
        exponents, fixed = exponents[possible], self._fixed(log_weights[possible])
        coarser, moved = self.layout.soft_max_move(exponents)
        (scale,), kind = positive(scale=scale), word("noise", noise, ORDERS)
        self._pay(pay, self.layout.soft_max(exponents, kind, scale), "soft_max")
        unit = Fraction(2**coarser, 2 ** (draw.SHIFT + self.layout.finer))

        def work() -> int:
            sums = [one >> coarser for one in self._added(exponents, fixed)]
            found = max(min(log_mean_exp(sums, float(1 / unit)), 2**62), -(2**62))
            return int(draw.noised(np.array([found]), kind, scale * moved)[0])

        return float(self._read(work) * unit) + float(log_weights.max()) + math.log(possible.mean())

    def shares(
        self, coefficients: Any, *, beta: float = 1.0, public: Any = None, scale: float, pay: Pay = None
    ) -> Array:
        """Return noised weights of candidates ∝ exp(public_k + beta Σ_j c_kj S_j) that add up to 1 without the noise.

        Parameters
        ----------
        coefficients, beta, public
            As of `soft_max`.
        scale : float
            Of discrete Laplace noise, over what neighbours move all weights by, in L1.

        Returns
        -------
        (n_candidates,) array
            Multiples of 2^-40; not projected. Of excluded candidates exactly 0.

        Notes
        -----
        **Guarantee.** ε = 1 / scale: `Layout.shares_move`. Class exact.
        """
        exponents, log_weights = candidates_of(self.layout, coefficients, beta, public)
        possible = log_weights > -np.inf
        exponents, fixed = exponents[possible], self._fixed(log_weights[possible])
        moved, found, (scale,) = self.layout.shares_move(exponents), np.zeros(len(possible)), positive(scale=scale)
        self._pay(pay, self.layout.shares(exponents, scale), "shares")

        def work() -> Array:
            sums = self._added(exponents, fixed)
            top = max(sums)
            behind = [max((one - top) >> self.layout.finer, -(2**60)) for one in sums]
            weights = np.exp(np.array(behind) * 2.0**-draw.SHIFT)
            shares = np.floor(weights / weights.sum() * 2.0**SHARE_BITS).astype(np.int64)
            return draw.noised(shares, "laplace", scale * moved)

        found[possible] = self._read(work) * 2.0**-SHARE_BITS
        return found


__all__ = ["FAMILIES", "ByTotals", "RowSums", "Totals"]
