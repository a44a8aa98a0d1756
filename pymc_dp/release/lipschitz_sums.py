"""How far released sums move per unit of a metric between rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.families.features import BoundedFeatures
from pymc_dp.families.histogram import Bins
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts, LevelCounts, OwnTotals
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.tallies import PerUnit
from pymc_dp.metrics import L1, L2, Extent, Geographic, Hamming, Metric
from pymc_dp.release.tables import TablePlan

MOST_STEPS = 2**60
STEPS_PER_STEP = {(1,): 1, (2,): 2, (1, 2): 3}
"""Steps that sums of powers move by at most where a value moves by one step of its own grid, and in proportion.

A square in steps, k² / GRID with |k| <= GRID, moves by ``m |k + k'| / GRID < 2 m`` where k moves by m. As a float it
moves by 2 m at most: where that is near, both squares are multiples of 2^-23, and rounded by half of that at most.
Rounding to even commutes with adding an even number, so that a rounded square moves by no more either."""

MOVED = "per unit of ρ that a row moves, and in proportion to it"
Names = Mapping[Variable, frozenset[str]]
"""What the columns of a table are called."""


def per_unit(table: TablePlan, metric: Metric, names: Names, extents: Mapping[str, Extent]) -> PerUnit | Problem:
    """Say how a metric bounds the sensitivity of what is released, or why it does not.

    Parameters
    ----------
    table : TablePlan
    metric : Metric
        In which every private column is.
    names : mapping of Variable to set of str
    extents : mapping of str to Extent
        Of the columns of numbers in the metric.

    Notes
    -----
    ρ is measured between rows as they are used: values clamped **and rounded** to the public grid of their sum. Two
    values that differ by less may round to places a step apart; measured between the values themselves, no sum of
    integers would be Lipschitz.

    A row gets to another one by changing its value, then its cell. Sums of single columns move in proportion to what
    the value moves, integers exactly so. What is only equal or not, by ``Hamming``, or ``L1`` of whole numbers, moves
    by no more than between any two rows, at a distance of its weight at least.
    """
    if not metric.columns:
        return PerUnit(steps=Fraction(0), least=Fraction(1), cell=Fraction(1))
    observed, statistic = table.observed, table.statistic
    if isinstance(statistic, OwnTotals | ExposedCounts):
        own = "totals" if isinstance(statistic, OwnTotals) else "exposures"
        return _refused(observed.name, f"its rows are counts with {own} of their own")
    others = [_name(item.leaf, item.name, metric, names) for item in observed.beside if not item.public]
    equal, value = dict[str, Fraction](), _name(observed.leaf, observed.name, metric, names)
    for name in [*others, value]:
        part = _part(metric, name)
        if isinstance(part, Hamming):
            equal[name] = decimal(part.weights[name])
        elif name in others:
            return _refused(name, f"the sums of its likelihood are not a smooth function of it ({part})")
    cell = min((equal[name] for name in others), default=None)
    if value in equal:
        return PerUnit(steps=Fraction(0), least=min(equal.values()), cell=cell)
    part = _part(metric, value)
    units = _weight(part, value, extents)
    if units is None:
        what = f"under the metric: nothing bounds it by {part}, because its range goes around the Earth, or to a pole"
        return Problem(where=value, what=what, remedy="Give narrower bounds (Domain) that fit the locations.")
    per_value = units
    if isinstance(statistic, LevelCounts) and not isinstance(statistic, Bins) and statistic.trials is None:
        return PerUnit(steps=Fraction(0), least=min([1 / per_value, *equal.values()]), cell=cell)
    step = _grid(statistic)
    if step is None:
        return _refused(value, f"its released statistic is not a sum of its values or of their squares ({part})")
    size, times = step
    steps = times * per_value / Fraction(size)
    return PerUnit(steps=steps, least=min(equal.values(), default=None), cell=cell)


def grid_of(table: TablePlan) -> float | None:
    """Return the step that values are rounded to, in their own unit; None where they are not: whole numbers on it."""
    statistic, found = table.statistic, _grid(table.statistic)
    if found is None:
        return None
    step, origin = found[0], statistic.centre if isinstance(statistic, BoundedMoments) else 0.0
    whole = np.dtype(table.observed.leaf.type.dtype).kind in "iub"
    return None if whole and step in (0.5, 1.0) and origin % step == 0 else step


def _grid(statistic: object) -> tuple[float, int] | None:
    """Step of a value's grid, and how many steps the sums move per step of it."""
    if isinstance(statistic, BoundedMoments):
        return statistic.unit, STEPS_PER_STEP[statistic.powers]
    if isinstance(statistic, BoundedFeatures) and len(statistic.features) == 1 and statistic.width == 1:
        (feature,) = statistic.features
        return (feature.unit, 1) if feature.transform == "identity" else None
    return None


def _weight(part: Metric, name: str, extents: Mapping[str, Extent]) -> Fraction | None:
    """Units that a value moves at most per unit of ρ; None where it may move by any number of them."""
    if isinstance(part, L1 | L2):
        return 1 / decimal(part.weights[name])
    assert isinstance(part, Geographic)
    found = part.steepest(float(name == part.latitude), float(name == part.longitude), extents)
    return Fraction(found) if math.isfinite(found) else None


def names_of(tables: Sequence[TablePlan]) -> Names:
    """Return what observed columns are called."""
    found: dict[Variable, frozenset[str]] = {}
    for observed in (table.observed for table in tables):
        found[observed.leaf] = found.get(observed.leaf, frozenset()) | {observed.name, str(observed.leaf.name)}
    return found


def _name(leaf: Variable, name: str, metric: Metric, names: Names) -> str:
    """Return what a metric calls a column."""
    return next(known for known in metric.columns if known in names.get(leaf, frozenset()) | {name})


def _part(metric: Metric, name: str) -> Metric:
    return next(part for part in metric.parts if name in part.columns)


def _refused(name: str, what: str) -> Problem:
    return Problem(
        where=name,
        what=f"under the metric: {what}",
        remedy=f"Measure it by dp.metrics.Hamming({name!r}), whose ε is for any change of it, or use dp.OPS().",
    )


def too_many_steps(name: str) -> Problem:
    """Return the problem of sums that a unit of a metric moves too far."""
    return Problem(
        where=name,
        what="under the metric: per unit of ρ its sums may move by more steps of their grid than integers hold",
        remedy="Give columns larger weights in the metric.",
    )


def extents_of(tables: Sequence[TablePlan], metric: Metric, names: Names) -> dict[str, Extent]:
    """Return what the columns of numbers in a metric can be, as their sums clamp them.

    Two sums of one column may clamp it to ranges of their own: it is then in the hull of these.
    """
    found: dict[str, Extent] = {}
    numbers = {name for part in metric.parts if not isinstance(part, Hamming) for name in part.columns}
    for table in tables:
        statistic = table.statistic
        for name in numbers & names[table.observed.leaf]:
            if isinstance(statistic, LevelCounts) and not isinstance(statistic, Bins):
                low, high = 0.0, statistic.n_levels - 1.0
            elif isinstance(statistic, BoundedMoments | BoundedFeatures):
                low, high = float(statistic.low), float(statistic.high)
            else:
                continue
            one = found.get(name, Extent(low=low, high=high))
            found[name] = Extent(low=min(one.low, low), high=max(one.high, high))
    return found | {name: Extent(low=-math.inf, high=math.inf) for name in numbers - found.keys()}


__all__ = ["MOST_STEPS", "MOVED", "extents_of", "grid_of", "names_of", "per_unit", "too_many_steps"]
