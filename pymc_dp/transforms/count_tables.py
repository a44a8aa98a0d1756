"""Tables of noised counts of two levels: by their probability, for public and private sizes."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_tables import CellTables, Chart
from pymc_dp.transforms.interpreted import INTERPRETED
from pymc_dp.transforms.noise_aware import Sizes, size_nodes
from pymc_dp.transforms.noised_count import noise_numbers
from pymc_dp.transforms.panels import Evaluate, Panels, tabulate

LEAST, HALF = 1e-16, 0.5
"""Of a probability, and of the smaller one of two."""
LEAST_RATE = 1e-20
"""Of the largest rate."""


def count_tables(release: Array, scale: float, sizes: Sizes, chart: Chart) -> CellTables:
    """Tabulate what `noise_aware.counts_logp` returns.

    Parameters
    ----------
    release : (n_cells, 1 or 2) array
        Counts of the second level alone where the size is public.
    scale : float
    sizes : Sizes
    chart : Chart
        Of probabilities or of log odds.
    """
    evaluate = (_of_public_size if sizes.public else _of_private_size)(release, scale, sizes)
    left, right = (np.full(2 * len(release), np.sqrt(end)) for end in (LEAST, HALF))
    return CellTables(release=release, chart=chart, panels=tabulate(evaluate, left, right))


def _of_public_size(release: Array, scale: float, sizes: Sizes) -> Evaluate:
    from pymc_dp.transforms.count_table_kernels import noised_counts  # numba takes long to import

    noise = noise_numbers(sizes.kind, scale)

    def evaluate(rows: Array, u: Array) -> Array:
        cells = np.repeat(rows // 2, u.shape[1])
        odds = (np.log(u**2) - np.log1p(-(u**2))) * np.where(rows % 2, -1.0, 1.0)[:, None]
        sizes_of = np.asarray(sizes.bound, dtype=np.float64)[cells]
        found: Array = noised_counts(release[cells, 0], odds.ravel(), sizes_of, *noise)
        return found.reshape(u.shape)

    return evaluate


def _of_private_size(release: Array, scale: float, sizes: Sizes) -> Evaluate:
    from pymc_dp.transforms.count_table_kernels import counts_of_private_size

    nodes = size_nodes(pt.constant(release).sum(axis=-1), scale, 2, sizes)
    rates, log_weights = pytensor.function([], nodes, mode=INTERPRETED)()
    most = rates.max(axis=1)
    given = (rates, log_weights, most, *tables_by_rate(release, scale, sizes.kind, most))

    def evaluate(rows: Array, u: Array) -> Array:
        cells = np.repeat(rows // 2, u.shape[1])
        second = np.where((rows % 2 == 0)[:, None], u**2, 1 - u**2).ravel()
        first = np.where((rows % 2 == 0)[:, None], 1 - u**2, u**2).ravel()
        found: Array = counts_of_private_size(cells, first, second, *given)
        return found.reshape(u.shape)

    return evaluate


def tables_by_rate(release: Array, scale: float, kind: str, most: Array) -> tuple[Array, Array, Array]:
    """Tables of all Poisson counts of every cell, in the root of the rate over the largest one."""
    from pymc_dp.transforms.count_table_kernels import poisson_counts

    noise, values, top = noise_numbers(kind, scale), release.ravel(), np.log(np.repeat(most, release.shape[1]))

    def evaluate(rows: Array, u: Array) -> Array:
        at = np.repeat(rows, u.shape[1])
        found: Array = poisson_counts(values[at], top[at] + np.log(u**2).ravel(), *noise)
        return found.reshape(u.shape)

    ends = (np.full(len(values), np.sqrt(end)) for end in (LEAST_RATE, 1.0))
    panels: Panels = tabulate(evaluate, *ends)
    return panels.starts, panels.ends, panels.numbers


__all__ = ["count_tables", "tables_by_rate"]
