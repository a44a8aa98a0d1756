"""Rows that a model does not expect: heavier tails, overdispersion, skewed columns. No private value is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.inspection.findings import Observed, RowInspection
from pymc_dp.inspection.row_density import unclamped
from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.columns import draw_columns, loose_columns
from pymc_dp.simulation.rows import DrawRows, Rows, draw_rows

OUTLIERS, FARTHER = 0.05, 4.0
"""Share of rows with heavier tails, and how many times as far from their mean these are."""
SPREAD, KINDS_OF_ROWS = 0.5, 6
"""How far towards other draws from the prior the parameters of overdispersed rows are, and of how many draws."""
SKEWED = 0.1
"""Median of a skewed column, as a share of the way from one bound to the other."""
HEAVIER, OVERDISPERSED, SKEWED_COLUMNS = "heavier tails", "overdispersed rows", "skewed columns"
OUTRIGHT = ("normal", "t", "studentt", "laplace", "logistic", "cauchy", "gumbel", "skewnormal", "asymmetriclaplace")
"""Likelihoods of any real number: how far a value is from another is then multiplied."""


def misfits(inspection: RowInspection, covariates: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds of misfit that rows of a model may have."""
    return (HEAVIER, OVERDISPERSED, *[SKEWED_COLUMNS] * bool(loose_columns(inspection, covariates)))


def drawn_as(kind: str, others: Sequence[Mapping[str, Array]]) -> DrawRows:
    """Return what draws rows of a kind.

    Parameters
    ----------
    kind : str
        One of `misfits`.
    others : sequence of mapping of str to array
        Draws from the prior, by the names of free variables: rows that do not fit are of these, or towards them.

    Notes
    -----
    Heavier tails: one row in twenty has its responses from other parameters; of real numbers, four times as far from
    where they would be. Overdispersed rows are of parameters a part of the way to those of other draws, by chance: what
    parameters can be is convex. Skewed columns are log-normal, from one bound on; responses are as the model says.
    """

    def draw(
        inspection: RowInspection,
        truth: Mapping[str, Array],
        covariates: Mapping[str, Any],
        *,
        n_rows: int,
        rng: np.random.Generator,
        width: float = 1.0,
    ) -> tuple[Rows, Rows]:
        beside = draw_columns(inspection, covariates, n_rows=n_rows, rng=rng, width=width)
        if kind == SKEWED_COLUMNS:
            beside = _skewed(inspection, covariates, beside, rng)
        at = [truth]
        if kind != SKEWED_COLUMNS:
            part = 1.0 if kind == HEAVIER else SPREAD
            chosen = rng.choice(len(others), size=min(KINDS_OF_ROWS, len(others)), replace=False)
            at += [_towards(truth, others[place], part) for place in chosen]
        tables = [draw_rows(inspection, one, covariates, n_rows=n_rows, rng=rng, beside=beside)[0] for one in at]
        of = rng.integers(len(at), size=n_rows)
        if kind == HEAVIER:
            of = np.where(rng.random(n_rows) < OUTLIERS, 1 + of % max(len(at) - 1, 1), 0) % len(at)
        rows = [_taken(columns, of) for columns in zip(*tables, strict=True)]
        if kind == HEAVIER:
            again = [draw_rows(inspection, truth, covariates, n_rows=n_rows, rng=rng, beside=beside)[0] for _ in "ab"]
            for place in _outright(inspection):
                far = tables[0][place] + FARTHER * (again[0][place] - again[1][place])
                rows[place] = np.where(_beside(of > 0, far), far, tables[0][place]).astype(far.dtype)
        return tuple(rows), tuple(
            column.clamped(values) for column, values in zip(inspection.columns, rows, strict=True)
        )

    return draw


def _taken(tables: Sequence[Array], of: Array) -> Array:
    """Return each row from one of several tables."""
    return np.stack(tables)[of, np.arange(len(of))]


def _beside(rows: Array, values: Array) -> Array:
    return rows.reshape(-1, *[1] * (values.ndim - 1))


def _towards(truth: Mapping[str, Array], other: Mapping[str, Array], part: float) -> dict[str, Array]:
    return {
        name: (value + part * (other[name] - value)).astype(np.asarray(value).dtype) for name, value in truth.items()
    }


def _outright(inspection: RowInspection) -> list[int]:
    """Places of columns whose values may be any real numbers."""
    held = {item.leaf for item in inspection.observed if _distribution(item) in OUTRIGHT}
    return [place for place, column in enumerate(inspection.columns) if column.leaf in held]


def _distribution(item: Observed) -> str:
    return str(getattr(unclamped(item.variable).owner.op, "name", "")).replace("_", "").lower()


def _skewed(
    inspection: RowInspection, covariates: Mapping[str, Any], drawn: Mapping[Variable, Array], rng: np.random.Generator
) -> dict[Variable, Array]:
    found = dict(drawn)
    for place in loose_columns(inspection, covariates):
        column = inspection.columns[place]
        values = found[column.leaf]
        share = np.minimum(SKEWED * rng.lognormal(size=values.shape), 1.0)
        if column.bounds is None:  # a norm
            found[column.leaf] = column.clamped((values * share).astype(values.dtype))
        else:
            low, high = column.ends if column.ranges else column.bounds
            found[column.leaf] = column.clamped((low + (high - low) * share).astype(values.dtype))
    return found


__all__ = ["HEAVIER", "OVERDISPERSED", "SKEWED_COLUMNS", "drawn_as", "misfits"]
