"""Whether what is written by hand is a density of its column: expectations over its values rest on that.

A log-likelihood with an event indicator, ``log(rate) - rate * t`` where it happened and ``-rate * t`` where it did not,
is none of t for rows of the second kind. What the model expects of a score is then not 0, and scores that are clipped
such that they stay centred lead elsewhere, with no sign of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.custom import CustomDistRV
from scipy.special import logsumexp

from pymc_dp.errors import Problem
from pymc_dp.gradients.responses import VALLEYS
from pymc_dp.gradients.whole_values import values_within
from pymc_dp.inspection.findings import Observed, RowInspection, RowTerm
from pymc_dp.inspection.interpreted import plain_draw, plain_function
from pymc_dp.inspection.rows import Array, Column, rebuild
from pymc_dp.simulation.columns import draw_columns

ROWS, DRAWS, SEED = 16, 16, 20_251_127
LARGEST, SHARE = np.log(1.1), 0.03
"""Logarithm of the mass that a density may have, and part of the made-up rows that may have more: it is by quadrature.

It may have less, where bounds cut some off.
"""


def not_densities(inspection: RowInspection) -> Iterator[Problem]:
    """Yield likelihoods by hand whose values have more mass than 1 in some made-up rows. Reads no private value.

    Not looked at are vectors, and what no prior can be drawn for or NumPy cannot evaluate.
    """
    for term, item in zip(inspection.terms, inspection.observed, strict=True):
        if not isinstance(item.variable.owner.op, CustomDistRV) or item.variable.type.ndim != 1:
            continue
        masses = _log_masses(inspection, term, item)
        if masses.size and float(np.mean(masses > LARGEST)) > SHARE:
            yield Problem(
                where=item.name,
                what="exp(logp) adds up to more than 1, but gradients need a density of this column",
                remedy=f"If rows are censored, pm.Censored({item.name!r}, dist, lower=None, upper=end), where end = "
                "pm.Data('end', ...) is their own value, and the latest one for others. Else complete logp, as with "
                "-log(k!) of a count, and dtype='int64'.",
                kind="cause",
            )


def _log_masses(inspection: RowInspection, term: RowTerm, item: Observed) -> Array:
    """Return the logarithms of the masses of made-up rows under draws from the prior; empty where that cannot be."""
    column = next(one for one in inspection.columns if one.leaf is item.leaf)
    leaves = [one.leaf for one in inspection.columns]
    stands = {leaf: pt.tensor(shape=(None,) * leaf.type.ndim, dtype=leaf.type.dtype) for leaf in leaves}
    rng = np.random.default_rng(SEED)
    found = list[Array]()
    try:
        (graph,), _ = rebuild([term.logp], stands)
        function = plain_function([*inspection.stand_ins, *stands.values()], graph)
        drawn = plain_draw(inspection.model.free_RVs, SEED, DRAWS)
        held = draw_columns(inspection, {}, n_rows=ROWS, rng=rng)
        for one in inspection.columns:
            if one.leaf in held and one.integer and one.bounds is None and not one.public:  # a flag, most likely
                held[one.leaf] = rng.integers(0, 2, held[one.leaf].shape).astype(one.leaf.type.dtype)
        for place in range(DRAWS):
            at = [one[place] for one in drawn]

            def logs(values: Array, at: list[Array] = at) -> Array:
                many = {leaf: np.repeat(one, values.shape[1], axis=0) for leaf, one in held.items()}
                many[item.leaf] = values.ravel().astype(item.leaf.type.dtype)
                return np.asarray(function(*at, *(many[leaf] for leaf in stands))).reshape(values.shape)

            with np.errstate(all="ignore"):
                found.append(_mass(logs, column))
    except (NotImplementedError, TypeError, ValueError):
        return np.zeros(0)
    masses = np.concatenate(found)
    return masses[~np.isnan(masses)]


def _mass(logs: Callable[[Array], Array], column: Column) -> Array:
    """Return the logarithms of the masses of `ROWS` densities."""
    if column.integer:
        values = values_within(column)
        return np.zeros(0) if values is None else logsumexp(logs(np.tile(values, (ROWS, 1))), axis=1)
    from pymc_dp.gradients.density_nodes import nodes_of  # Numba, which most models do not need

    breaks = np.tile((0.0, *(column.bounds or ())), (ROWS, 1))
    return nodes_of(logs, column.bounds, breaks, 0, VALLEYS, by_hand=True)[2]


__all__ = ["not_densities"]
