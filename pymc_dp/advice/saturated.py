"""Priors under which most rows are nearly certain, so that rows say next to nothing: by made-up rows alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp._display import shorten
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import Observed, RowInspection
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.row_density import per_row, unclamped
from pymc_dp.inspection.rows import Array, reached, rebuild
from pymc_dp.simulation.columns import draw_columns, draw_evenly, undeclared
from pymc_dp.simulation.prior import ParameterDraws, draw_prior, not_drawn
from pymc_dp.transforms.prior_model import shared_prior_model

DRAWS, ROWS = 100, 100
"""From the prior, and made-up rows at each of them."""
CERTAIN, MOST = 0.01, 0.5
"""Probability of an outcome, or of all others, below which a row is saturated; share of such rows that is named."""
MANY_NAMES = 4
CHANCES = ("bernoulli", "binomial", "categorical")
"""Likelihoods whose last parameter is a probability, or one of each outcome."""


def saturated(inspection: RowInspection) -> list[str]:
    """Name priors under which most made-up rows have an outcome that is nearly certain. Reads no private value.

    Nothing is said of what cannot be made up: columns without bounds, or priors that cannot be drawn from.

    Parameters
    ----------
    inspection : RowInspection
    """
    asked = [item for item in inspection.observed if _name(item) in CHANCES]
    if not asked or inspection.problems or undeclared(inspection, {}, "dp.explain"):
        return []
    try:
        prior = shared_prior_model(inspection)
        if not_drawn(prior):
            return []
        rng = np.random.default_rng(0)
        draws, rows = draw_prior(prior, rng, DRAWS), _rows(inspection, rng)
        found = [(item, _share(inspection, item, draws, rows)) for item in asked]
    except (NotImplementedError, TypeError, ValueError, IndexError, PrivacyError):  # what cannot be made up
        return []
    return [_line(inspection, item, share) for item, share in found if share > MOST]


def _name(item: Observed) -> str:
    return str(getattr(unclamped(item.variable).owner.op, "name", ""))


def _rows(inspection: RowInspection, rng: np.random.Generator) -> dict[Variable, Array]:
    """Make up all columns, observed ones too: a likelihood may depend on another response."""
    rows = draw_columns(inspection, {}, n_rows=ROWS, rng=rng)
    beside = (column for column in inspection.columns if column.leaf not in rows)
    return rows | {column.leaf: column.clamped(draw_evenly(column, ROWS, rng)) for column in beside}


def _share(inspection: RowInspection, item: Observed, draws: ParameterDraws, rows: dict[Variable, Array]) -> float:
    """Return the share of made-up rows with an outcome that is nearly certain."""
    chance, free = _chance(inspection, item), inspection.model.free_RVs
    stand_ins = [rv.type() for rv in free]
    columns = {leaf: pt.constant(values, dtype=leaf.type.dtype) for leaf, values in rows.items()}
    others = {other.variable: columns[other.leaf] for other in inspection.observed}
    (graph,), _ = rebuild([chance], {**dict(zip(free, stand_ins, strict=True)), **others, **columns})
    if inspection.hidden & set(reached([graph], ())):
        return 0.0
    function = plain_function(stand_ins, graph)
    several, counts = _name(item) == "categorical", list[float]()
    for place in range(DRAWS):
        with np.errstate(all="ignore"):
            found = np.asarray(function(*(draws.values[str(rv.name)][place] for rv in free)))
        most = found.max(axis=-1) if several else np.maximum(found, 1 - found)
        counts.append(float(np.mean(most > 1 - CERTAIN)))
    return float(np.mean(counts))


def _chance(inspection: RowInspection, item: Observed) -> Variable:
    variable = per_row(unclamped(item.variable), inspection.axis.beside(unclamped(item.variable)))
    parameters = variable.owner.op.dist_params(variable.owner)
    chance: Variable = parameters[-1]
    return chance


def _line(inspection: RowInspection, item: Observed, share: float) -> str:
    names, ends = _and(shorten(list(_behind(inspection, item)), MANY_NAMES)), (CERTAIN, 1 - CERTAIN)
    return (
        f"the priors of {names} are so wide that {share:.0%} of made-up rows have a probability of {item.name} below "
        f"{ends[0]:g} or above {ends[1]:g}: such rows say next to nothing, and intervals by noised gradients may be "
        "too narrow; take narrower priors"
    )


def _behind(inspection: RowInspection, item: Observed) -> Iterator[str]:
    """Free variables that a likelihood depends on."""
    below = set(ancestors([unclamped(item.variable)]))
    return (str(rv.name) for rv in inspection.model.free_RVs if rv in below)


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


__all__ = ["saturated"]
