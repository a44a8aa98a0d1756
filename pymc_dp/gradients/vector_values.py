"""Values of a continuous response whose entries depend on each other, at levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymc_dp.gradients.joint import MANY, picked
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.inspection.rows import Array

LEAST = 3.4e-6
"""Level of the values that are farthest out: 4.5 standard deviations of a normal one."""


def vectors_of(rows: RowScores, place: int, at: Array, columns: Sequence[Array], levels: Array) -> tuple[Array, Array]:
    """Return entries of a response, (n_rows, entries), at levels (n_rows, 1 + entries) of the point and of each entry.

    And what each of these rows counts: points far out have little mass, and are taken more often than by it.
    """
    one, call, held = rows.interface.responses[place], rows.quantiles[place], list(columns)
    assert call is not None
    least = 0.5 / MANY if rows.alike else LEAST  # of many rows, what single ones are off by cancels
    held[one.place] = np.clip(levels[:, 1:], least, 1 - least).astype(one.column.leaf.type.dtype)
    (found,) = call(at, *held)
    if one.log_weights is None:
        return found, np.ones(len(at))
    values, logs = np.split(found, [found.shape[1] // (1 + one.entries) * one.entries], axis=1)
    often = np.exp((logs - logs.max(axis=1, keepdims=True)) / 2)  # roots of the masses
    rest, chosen = np.arange(len(at)), picked(often / often.sum(axis=1, keepdims=True), levels[:, :1])[:, 0]
    return values.reshape(len(at), -1, one.entries)[rest, chosen], often[rest, chosen]


__all__ = ["vectors_of"]
