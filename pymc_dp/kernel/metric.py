"""ε per unit of a distance ρ = Σ_j w_j |x_j - y_j|: rows count for public nodes in whole shares, linear in between.

A limit on one row's numbers says nothing of two rows that are near each other. Numbers at nodes are public, and so is
how steep they are: the kernel computes that from the whole numbers that are summed, and divides by it. Nothing is
proved about the density, and nothing has to be enforced on a row but its place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pymc_dp.kernel import draw
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import PureEvent
from pymc_dp.kernel.arguments import positive, whole
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.operations import Kernel
from pymc_dp.kernel.payer import HARDENED, Array, Made
from pymc_dp.kernel.relations import PER_UNIT, l1_text
from pymc_dp.kernel.rowmap import RowMap
from pymc_dp.kernel.table import ByKind, places

BITS = 6
"""A real number is rounded to so many bits between two nodes; ρ is that of rows as they are rounded."""


def choose_per_unit(
    kernel: Kernel,
    rowmap: RowMap,
    parameters: Sequence[Any],
    candidates: int,
    *,
    weights: dict[str, float],
    beta: float,
    most: float,
    public: Any = None,
) -> tuple[int, float]:
    """Draw a candidate with probability ∝ exp(public_k + β Σ f_k), β lowered until it costs `most` per unit of ρ.

    Parameters
    ----------
    kernel : Kernel
        Of rows `by_kind`, under replace, whose account counts per unit of this metric.
    weights : dict of str to float
        w_j > 0 of every column: those of the metric by which the account counts.
    beta : float
        Inverse temperature, > 0.
    most : float
        Range of exponents per unit of ρ, above what whole weights add (`slack` / least distance of two rounded rows).

    Returns
    -------
    int, float
        The candidate, and the β that was used, which is public.

    Notes
    -----
    **Guarantee.** ε per unit of the distance of rounded rows, thus ε (ρ + Σ_j w_j h_j) of rows that differ, h_j the
    steps of `rounding`. Σ f moves between rows x, y over candidates by a vector of range Σ_j s_j |x_j - y_j| at most,
    s_j the largest range of a difference of neighbouring nodes along axis j over their distance: a multilinear function
    has convex combinations of these as slopes. Whole weights add `slack` whenever a row differs at all. Class exact.
    """
    (beta, most), candidates = positive(beta=beta, most=most), whole("candidates", candidates)
    laid = _laid_out(kernel, rowmap, parameters, candidates, weights)
    log_weights = draw.log_weights(public, (candidates,))
    eta = float(min(Fraction(most), Fraction(beta) * laid.steepest))
    event = PureEvent(epsilon=float_up(Fraction(eta) + laid.added))
    kernel._charge(event, "choose_per_unit", kernel.account.relation)
    kernel._made.append(Made("choose_per_unit", event, HARDENED))

    def work() -> int:
        held = _shares(laid.table, laid.bits).reshape(-1).astype(object)
        held = held @ laid.steps.reshape(-1, candidates).astype(object)
        return int(draw.one_of(draw.whole_weights(held, laid.span, eta, log_weights)[None])[0])

    return kernel._read(work), float(Fraction(eta) / laid.steepest)


def steepest_per_unit(
    kernel: Kernel, rowmap: RowMap, parameters: Sequence[Any], candidates: int, *, weights: dict[str, float]
) -> tuple[float, float]:
    """Return what `choose_per_unit` costs per unit of ρ at β = 1, and what whole weights add; it reads no row.

    Both are rounded up, and are the same for every table with these bounds: one made up tells them before any charge.
    """
    laid = _laid_out(kernel, rowmap, parameters, whole("candidates", candidates), weights)
    return float_up(laid.steepest), float_up(laid.added)


class _Laid(NamedTuple):
    """Numbers at nodes, and how steep they are: public."""

    table: ByKind
    steps: Array
    bits: list[int]
    span: int
    steepest: Fraction
    added: Fraction


def _laid_out(
    kernel: Kernel, rowmap: RowMap, parameters: Sequence[Any], candidates: int, weights: dict[str, float]
) -> _Laid:
    """Check what is weighed by what, and round the numbers of all kinds to whole ones. Reads no row."""
    if type(kernel) is not Kernel:
        raise ArgumentError("kernel must be a Kernel, and of no class derived from it.")
    table = kernel._table
    if type(table) is not ByKind or kernel.neighbours != "replace":
        raise ArgumentError("A metric weighs rows that are counted by kind, under replace.")
    if type(weights) is not dict or any(type(name) is not str for name in weights):
        raise ArgumentError("weights must be a dict of names of columns, each a str, to numbers.")
    weights = {name: positive(weight=weight)[0] for name, weight in weights.items()}
    if kernel.account.relation != f"{PER_UNIT}{l1_text(weights)}":
        raise PrivacyError(f"The account counts under {kernel.account.relation!r}, and pays for an L1 metric of that.")
    if set(weights) != set(table.columns):
        raise ArgumentError("The metric must weigh all columns of the table, and no other.")
    given = kernel._prepared(rowmap, parameters, candidates)
    shape = [len(axis) for axis in table.axes]
    kinds = {name: column.values for name, column in table.columns.items()}
    found = rowmap.on({name: kinds[name] for name, _, _ in rowmap._types}, given, candidates)
    found = np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)
    unit = max(float(np.abs(found).max()), 1e-290) / UNITS
    steps = np.rint(found / unit).astype(np.int64).reshape(*shape, candidates)
    bits = [0 if column.whole else BITS for column in table.columns.values()]
    slope, least = Fraction(0), Fraction(2**1000)
    for j, (axis, name) in enumerate(zip(table.axes, table.columns, strict=True)):
        if len(axis) > 1:
            step = (Fraction(axis[-1]) - Fraction(axis[0])) / (len(axis) - 1) * Fraction(weights[name])
            apart = np.diff(steps, axis=j)
            slope = max(slope, int((apart.max(axis=-1) - apart.min(axis=-1)).max()) / step)
            least = min(least, step / 2 ** bits[j])
    shares = 2 ** sum(bits)
    span = math.ceil((slope or 1) * shares)
    steepest = Fraction(span, shares) * Fraction(unit)
    return _Laid(table, steps, bits, span, steepest, draw.slack(candidates) / least)


def rounding(kernel: Kernel) -> dict[str, float]:
    """Return h_j of each column: two values that are rounded alike are no further apart; 0 for whole numbers."""
    table = kernel._table
    if type(table) is not ByKind:
        raise ArgumentError("Rows are not counted by kind here.")
    steps = [(axis[-1] - axis[0]) / max(len(axis) - 1, 1) for axis in table.axes]
    held = zip(table.columns.items(), steps, strict=True)
    return {name: 0.0 if column.whole else float(step) / 2**BITS for (name, column), step in held}


def _shares(table: ByKind, bits: Sequence[int]) -> Array:
    """Return the whole shares of rows that each node has. **Private**."""
    total = np.zeros([len(axis) for axis in table.axes], dtype=np.int64)
    for rows, _, _ in table._source._blocks(2**20):
        corners = []
        for axis, held, own in zip(table.axes, rows, bits, strict=True):
            last = len(axis) - 1
            place = np.clip(np.rint(places(axis, held) * 2**own), 0, last * 2**own).astype(np.int64)
            cell = np.minimum(place >> own, max(last - 1, 0))
            over = place - (cell << own)
            corners.append([(cell, 2**own - over), (np.minimum(cell + 1, last), over)])
        for chosen in itertools.product(*corners):
            np.add.at(total, tuple(cell for cell, _ in chosen), math.prod(share for _, share in chosen))
    return total
