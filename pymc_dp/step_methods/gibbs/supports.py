"""What values free variables may have, and what a table's parameters may then be: public boxes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.inspection.known_levels import levels_of
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.proofs.parameter_boxes import Box, boxes_of, check_bounds
from pymc_dp.transforms.likelihood import TableLikelihood


def box_of(prior: Prior) -> Box:
    """Bounds of a free variable; infinite where its prior gives none."""
    levels = levels_of(prior)
    if levels is not None:
        low, high = np.full(prior.shape, float(levels[0])), np.full(prior.shape, float(levels[-1]))
    elif prior.low is not None and prior.high is not None:
        low, high = np.array(prior.low, dtype=float), np.array(prior.high, dtype=float)
    else:
        low, high = np.full(prior.shape, -np.inf), np.full(prior.shape, np.inf)
    return Box(low=low, high=high)


def boxes_by_variable(prior_model: Model) -> dict[Variable, Box]:
    """Bounds of every free variable of a prior model."""
    return {prior.variable: box_of(prior) for prior in priors_of(prior_model)}


def table_boxes(table: TableLikelihood, free: Mapping[Variable, Box]) -> list[Box]:
    """Bounds of every parameter of a table in each of its cells.

    Raises
    ------
    UnknownOperation
        Naming the operation without a rule.
    """
    found = boxes_of(table.parameters, free)
    check_bounds(table.parameters, free, found)
    return [_per_cell(box, table.n_cells, ndim) for box, ndim in zip(found, table.family.event_ndims, strict=True)]


def _per_cell(box: Box, count: int, ndim: int) -> Box:
    """Give a parameter one entry per cell; `ndim` axes of it are no cells."""
    shape = (count, *box.low.shape[len(box.low.shape) - ndim :])
    return Box(
        low=np.broadcast_to(box.low, shape),
        high=np.broadcast_to(box.high, shape),
        feeds={name: np.broadcast_to(places, shape) for name, places in box.feeds.items()},
    )


__all__ = ["box_of", "boxes_by_variable", "table_boxes"]
