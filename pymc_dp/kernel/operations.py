"""All operations by which anything leaves private rows. Each: check, cost, pay, read, enforce, sum exactly, draw."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, final

from pymc_dp.kernel import draw
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import BoundedRangeEvent
from pymc_dp.kernel.arguments import positive
from pymc_dp.kernel.ball import NormalInBall
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.payer import FLOAT64, Array, Pay
from pymc_dp.kernel.rowmap import RowMap
from pymc_dp.kernel.sums import Sums, widest


@final
class Kernel(Sums):
    """A table, the account of its budget, and every operation on them; see `Holder`, `Choices` and `Sums`."""

    def draw(
        self, rowmap: RowMap, parameters: Sequence[Any], family: NormalInBall, *, beta: float = 1.0, pay: Pay = None
    ) -> Array:
        """Draw once, exactly, from the posterior of a normal regression in a ball, at inverse temperature beta.

        Notes
        -----
        **Guarantee.** Bounded range beta times `NormalInBall.range`, times the rows of a person: whole numbers are held
        within the set whose vertices that is taken of. Arithmetic float64: the last bits are not covered.
        """
        (beta,) = positive(beta=beta)
        table = self._table
        if type(family) is not NormalInBall or table.weighted:
            raise ArgumentError("family must be one that is known, and rows must count once.")
        given = self._prepared(rowmap, parameters, widest(family.shape))
        family.check_floats(beta)
        wide = family.range(table.neighbours) * table.max_rows
        self._pay(pay, BoundedRangeEvent(eta=float_up(Fraction(beta) * wide)), "draw", FLOAT64)

        def work() -> Array:
            total = self._shaped(rowmap, given, family.shape, None, 1, 0)
            return family._draw(draw.float_generator(), total[0], beta)

        return self._read(work)
