"""The mean of some rows that lies in the middle of all of them: others range least about it over points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymc_dp.inspection.rows import Array

MOST_POINTS = 512
"""Points at which rows are compared."""
MOST_CUTS = 50
"""Linear programs that are solved."""
NOTHING = 1e-9
"""Range, in nats, that is put down to rounding."""
NEAR = 2e-4
"""Relative difference of two ranges that is as good as none."""
WORST = 24
"""Columns of which conditions are added at a time."""


def middle(tried: Sequence[Array], enough: float = 0.0) -> dict[int, float]:
    """Return weights of columns whose weighted mean lies in the middle: the others range least about it over points.

    A linear program. Only those of its conditions, two points and a column each, that are broken are added, until none
    is, or until no column ranges by more than what is `enough`.
    """
    from scipy.optimize import linprog  # heavy, and not needed by most

    with np.errstate(all="ignore"):
        held = [found[:: max(1, len(found) // MOST_POINTS)] for found in tried]
        kept = np.flatnonzero(np.all([np.isfinite(found).all(axis=0) for found in held], axis=0))
    if not len(kept):
        return {0: 0.5, 1: 0.5}
    tables = [found[:, kept] for found in held]
    weights, aim, conditions, limits = np.eye(1, len(kept))[0], -1.0, list[Array](), list[Array]()
    for _ in range(MOST_CUTS):
        centred = [found - found @ weights[:, None] for found in tables]
        if max(float(np.ptp(one, axis=0).max()) for one in centred) <= max(aim * (1 + NEAR), enough) + NOTHING:
            break
        for table, one in zip(tables, centred, strict=True):
            worst = np.argsort(np.ptp(one, axis=0))[-WORST:]
            between = table[one.argmax(axis=0)[worst]] - table[one.argmin(axis=0)[worst]]
            conditions.append(np.column_stack([-between, np.full(len(worst), -1.0)]))
            limits.append(-between[np.arange(len(worst)), worst])
        solved = linprog(
            np.append(np.zeros(len(kept)), 1.0),
            A_ub=np.concatenate(conditions),
            b_ub=np.concatenate(limits),
            A_eq=np.append(np.ones(len(kept)), 0.0)[None],
            b_eq=[1.0],
        )
        if not solved.success:
            break
        weights, aim = np.where(solved.x[:-1] > NOTHING, solved.x[:-1], 0.0), float(solved.x[-1])
        weights /= weights.sum()
    return {int(kept[place]): float(weights[place]) for place in np.flatnonzero(weights)}


__all__ = ["middle"]
