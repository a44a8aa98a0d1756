"""Regressions on continuous columns: products of clamped predictors and response, in place of a table of cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pymc_dp.errors import Problem, needs_bounds
from pymc_dp.families.cells import Cells
from pymc_dp.families.constants import number
from pymc_dp.families.feature_family import distinguishable
from pymc_dp.families.gram import MOST_PREDICTORS, GramSums, Source, grid_bits
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Column, known_rows
from pymc_dp.kernel.gram import FARTHEST

MOST_SUMS = 20_000
"""Numbers in one release."""


def gram_statistic(observed: Observed, cells: Cells, n_rows: int, noise: str) -> GramSums | Problem:
    """Choose the sums of a regression, or say why there are none. Reads no private value.

    Parameters
    ----------
    observed : Observed
        With a design.
    cells : Cells
        Of its discrete columns.
    n_rows : int
        That sums must have room for.
    noise : {"laplace", "gaussian"}
    """
    design = observed.design
    assert design is not None
    if problem := better_by_gradients(observed, noise):
        return problem
    response = _response(observed)
    if isinstance(response, Problem):
        return response
    sources = tuple(_source(item) for item in design.predictors)
    if problem := _unfit(observed, (*sources, response)):
        return problem
    known = design.public and all(column.public for column in observed.columns)
    statistic = GramSums(
        sources=sources,
        response=response,
        cells=cells.labels,
        sizes_known=cells.sizes is not None,
        known=known,
        longest=_longest(sources, design, grid_bits(n_rows)) if known else None,
        constant=design.constant or cells.count > 1 or cells.sizes is None,
        square=needs_square(observed),
        apart=design.apart and cells.count > 1,
        bits=grid_bits(n_rows),
    )
    if not known and statistic.width > MOST_PREDICTORS:
        return Problem(
            where=observed.name,
            what=f"{_unknown(observed, design)}, but the posterior can learn the products of at most {MOST_PREDICTORS} "
            "from noised sums",
            remedy="Release noised gradients, with a delta > 0: statistics=dp.Gradients(). Or use fewer predictors.",
        )
    statistic = replace(statistic, constant=statistic.constant or _shifted(statistic))
    if statistic.count > MOST_SUMS:
        return Problem(
            where=observed.name,
            what=f"its {design.width} predictors in {cells.count} cells need {statistic.count} sums, more than "
            f"{MOST_SUMS}",
            remedy="Use fewer predictors or fewer groups.",
        )
    return statistic


def better_by_gradients(observed: Observed, noise: str) -> Problem | None:
    """Refuse Gaussian noise on sums that put a polynomial in place of a likelihood; None for any others."""
    if noise != "gaussian" or not observed.by_polynomial:
        return None
    return Problem(
        where=observed.name,
        what=f"sums of a {observed.title} regression replace its likelihood by a polynomial; with a delta > 0, noised "
        "gradients of the likelihood itself are more accurate",
        remedy="Release these: dp.sample(model=model, epsilon=..., delta=..., statistics=dp.Gradients()), or "
        "dp.privatize with the same arguments. Or, at delta=0, sums with Laplace noise: statistics=dp.Statistics().",
    )


def _unknown(observed: Observed, design: Design) -> str:
    """Say why products of predictors are unknown: of private ones, or of public ones within private groups."""
    private = sum(item.width for item in design.predictors if not item.public)
    if private == design.width:
        return f"it has {private} private predictors"
    if private:
        return f"it has {design.width} predictors, {private} of them private"
    groups = " and ".join(column.name for column in observed.private_columns)
    return f"its {design.width} predictors are public, but the groups of its rows are not ({groups})"


def _longest(sources: tuple[Source, ...], design: Design, bits: int) -> tuple[float, float]:
    """Largest sums of |t| and of t² over public rows, each entry rounded up by a grid step."""
    parts = []
    for source, rows in zip(sources, map(known_rows, design.predictors), strict=True):
        t = (rows.reshape(len(rows), -1).astype(float) - np.array(source.centres)) / np.array(source.halves)
        farthest = FARTHEST if source.ball else 1.0  # as the kernel has it: squares that overflow would hide a row
        t = np.clip(np.nan_to_num(t), -farthest, farthest)
        length = np.maximum(np.sqrt((t * t).sum(axis=1, keepdims=True)), 1.0) if source.ball else 1.0
        parts.append(np.abs(t) / length + 2.0**-bits)
    lengths = np.concatenate(parts, axis=1)
    return float(lengths.sum(axis=1).max()), float((lengths * lengths).sum(axis=1).max())


def _shifted(statistic: GramSums) -> bool:
    """Whether t or u are not centred at 0: their sums tell something then, also where the model has no intercept."""
    return any(statistic.centres != 0) or statistic.response.centres != (0.0,)


def needs_square(observed: Observed) -> bool:
    """Whether a Normal regression has a standard deviation that is anything but a constant."""
    dispersion = None if observed.design is None else observed.design.dispersion
    return dispersion is not None and number(dispersion) is None


def _response(observed: Observed) -> Source | Problem:
    """Return where the observed value lies: a level 0 or 1, or between its public bounds."""
    if observed.distribution == "bernoulli":
        return Source(name=observed.name, centres=(0.5,), halves=(0.5,))
    if observed.bounds is None:
        return Problem(
            where=observed.name,
            what="its value has no bounds, so one row could move the sums by any amount",
            remedy=needs_bounds(observed.name, of="a public range") + ".",
        )
    low, high = observed.bounds
    if observed.distribution == "poisson":
        low, high = max(np.ceil(low), 0.0), float(np.floor(high))
        if low > 0 or high < 1:
            return Problem(
                where=observed.name,
                what=f"its bounds ({observed.bounds[0]:g}, {observed.bounds[1]:g}) do not fit a Poisson count",
                remedy="Give (0, high) with high >= 1.",
            )
    return _between(observed.name, low, high)


def _source(item: Column) -> Source:
    if item.norm is not None:
        return Source(name=item.name, centres=(0.0,) * item.width, halves=(item.norm,) * item.width, ball=True)
    assert item.bounds is not None
    return _between(item.name, *item.bounds, width=item.width)


def _between(name: str, low: float, high: float, width: int = 1) -> Source:
    half = (high - low) / 2
    return Source(name=name, centres=(low + half,) * width, halves=(half,) * width)


def _unfit(observed: Observed, sources: tuple[Source, ...]) -> Problem | None:
    """Refuse bounds that floats cannot tell apart."""
    for source in sources:
        for centre, half in zip(source.centres, source.halves, strict=True):
            if not distinguishable(centre, half):
                return Problem(
                    where=observed.name,
                    what=f"the bounds of {source.name!r} are too wide or too narrow for float64",
                    remedy="Measure the value in another unit.",
                )
    return None


__all__ = ["better_by_gradients", "gram_statistic", "needs_square"]
