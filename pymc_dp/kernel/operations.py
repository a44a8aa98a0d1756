"""All operations by which anything leaves private rows. Each: check, cost, pay, read, enforce, sum exactly, draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast, final

import numpy as np

from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Grant, own_event, repeated
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.kernel.accounting.events import ApproximateEvent, BoundedRangeEvent, SubsampledGaussianEvent
from pymc_dp.kernel.accounting.totals import total_epsilon
from pymc_dp.kernel.arguments import flag, positive, whole
from pymc_dp.kernel.ball import NormalInBall
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.payer import FLOAT64, HARDENED, Array, Pay
from pymc_dp.kernel.rowmap import RowMap
from pymc_dp.kernel.shapes import FACTOR, Psd
from pymc_dp.kernel.sums import Sums, widest
from pymc_dp.kernel.table import Table

MOST_NOISE = 2.0**56
"""Standard deviation of the noise of a batch, in units: 2^62 is 64 of them."""
TAIL = 12
"""Standard deviations within which discrete noise and rounded normal noise are compared."""


def discrete_batches(epsilon: float, delta: float, entries: int, steps: int, scale: float) -> tuple[float, float]:
    """Return the (ε, δ) of `steps` batches with discrete noise, from what PLD finds with continuous noise.

    With s = `scale` whole units, η = d T t² / (8 s²), τ = 2.1 d T e^(-t²/2), t = 12: (ε + 2η, e^η (δ + e^ε τ) + τ).
    Continuous noise rounded to units is post-processing; given the batch, each step of both differs by a factor within
    e^(±η/T) off a set of mass τ/T; that is mixed over batches, and chained over steps.
    """
    if scale < 2.0**20:
        raise ArgumentError(f"Discrete noise of batches needs a scale of 2^20 units, got {scale:g}.")
    eta = Fraction(entries * steps * TAIL**2, 8) / Fraction(scale) ** 2
    mass = 2.1 * entries * steps * math.exp(-(TAIL**2) / 2)
    wide = math.exp(float(eta)) * (delta + math.exp(epsilon) * mass) + mass
    return float_up(decimal(epsilon) + 2 * eta), wide * (1 + 1e-9)


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

    # Batches.

    def batch_event(
        self, scale: float, *, rate: float | None = None, size: int | None = None
    ) -> SubsampledGaussianEvent:
        """Return what a step on a batch costs, with noise of `scale` norms: Poisson of a rate, or of a size."""
        if (rate is None) == (size is None):
            raise ArgumentError("A batch has a rate, or a size. Give one of them.")
        (scale,) = positive(scale=scale)
        if rate is not None:
            neighbours: Any = self.neighbours
            return SubsampledGaussianEvent(
                noise_multiplier=scale, sampling="poisson", sample_rate=positive(rate=rate)[0], neighbours=neighbours
            )
        return SubsampledGaussianEvent(
            noise_multiplier=scale,
            sampling="without_replacement",
            population=self.n_rows,
            batch_size=whole("size", size),
            neighbours="replace",
        )

    def grant_batches(
        self, event: SubsampledGaussianEvent, steps: int, *, entries: int, delta: float, label: str = "kernel"
    ) -> Grant:
        """Pay for `steps` batches of `entries` numbers with discrete noise (`hardened`), whose losses are counted at δ.

        Charged is the (ε, δ) of all of them together: that of continuous noise, and what `discrete_batches` adds.
        """
        if type(event) is not SubsampledGaussianEvent:
            raise ArgumentError(
                f"event must be a SubsampledGaussianEvent, as batch_event returns, got a {type(event).__name__}."
            )
        event = cast(SubsampledGaussianEvent, own_event(event))
        (delta,), steps, entries = positive(delta=delta), whole("steps", steps), whole("entries", entries)
        epsilon = total_epsilon(repeated(event, steps), delta).epsilon
        scale = event.noise_multiplier * UNITS
        loss, failure = discrete_batches(epsilon, delta, entries, steps, scale)
        self._charge(ApproximateEvent(epsilon=loss, delta=failure), label)
        return self._kept(Grant(event, steps, entries=entries))

    def batch(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        size: int | Psd,
        *,
        bound: float,
        scale: float,
        rate: float | None = None,
        rows: int | None = None,
        hardened: bool = False,
        pay: Pay = None,
    ) -> Array:
        """Return the noised sum of a secret batch of rows: vectors shortened to an L2 norm of `bound`.

        Parameters
        ----------
        size : int or Psd
            Of the vectors; or of matrices as in `sums`, whose vectors are in units of the root of `bound`.
        scale : float
            Of the noise, over `bound`.
        rate : float, optional
            Each row is in the batch by itself with this probability.
        rows : int, optional
            The batch is uniform among all of this size; replace alone.
        hardened : bool
            Discrete noise by OpenDP, paid for by `grant_batches`. Else normals of the secure generator, rounded to
            whole units, which is post-processing: arithmetic float64.

        Notes
        -----
        **Guarantee.** That of `SubsampledGaussianEvent`: rows move the sum by a norm of whole numbers, checked on
        these. Persons, kinds and unequal noise are refused.
        """
        (bound, scale), hardened = positive(bound=bound, scale=scale), flag("hardened", hardened)
        if rate is not None:
            (rate,) = positive(rate=rate)
        if rows is not None:
            rows = whole("rows", rows)
        if self._table.persons or type(self._table) is not Table:
            raise ArgumentError("A batch is of rows that are units.")
        event = self.batch_event(scale, rate=rate, size=rows)
        psd = size if type(size) is Psd else None  # exactly: another class would hold rows otherwise
        count, units = (whole("size", size), UNITS) if psd is None else (psd.facts.size, FACTOR**2)
        given = self._prepared(rowmap, parameters, count if psd is None else widest(psd))
        if hardened and not (type(pay) is Grant and count <= pay.entries):
            raise ArgumentError(f"Discrete noise of a batch of {count} numbers is paid for by grant_batches.")
        scales = np.full(count, scale * units) if psd is None else psd.scales(scale * units)
        if not scales.max() <= MOST_NOISE:  # noise is cut at 2^62, before it is added
            raise ArgumentError(f"The noise of a batch is too large for whole numbers, with scale={scale:g}.")
        self._pay(pay, event, "batch", HARDENED if hardened else FLOAT64)

        def work() -> Array:
            n = self._table._n
            table = self._table._batch(draw.poisson_batch(n, rate) if rate is not None else draw.batch_of(n, rows or 0))
            if psd is None:
                total = self._vector(rowmap, given, count, bound, "gaussian", UNITS, table)
            else:
                total = self._shaped(rowmap, given, psd, None, 1, 0, table)[0]
            return draw.noised(total, "gaussian", scales) if hardened else total + draw.rounded_normals(scales)

        return np.asarray(self._read(work) * (bound / units))
