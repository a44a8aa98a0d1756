"""Tables of noised counts of two levels: by their probability, for public and private sizes."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_tables import HALF, LEAST, CellTables, Chart
from pymc_dp.transforms.noise_aware import Sizes, size_nodes
from pymc_dp.transforms.noised_count import noise_numbers
from pymc_dp.transforms.panels import Evaluate, tabulate

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
    from pymc_dp.transforms.level_kernels import levels_of_private_size

    given = tables_by_rate(release, scale, sizes)

    def evaluate(rows: Array, u: Array) -> Array:
        cells = np.repeat(rows // 2, u.shape[1])
        ends = np.where((rows % 2 == 0)[:, None], [1 - u**2, u**2], [u**2, 1 - u**2])
        shares = np.ascontiguousarray(ends.reshape(2, -1).T)
        found: Array = levels_of_private_size(shares, release[cells], cells.astype(float), release, *given)[0]
        return found.reshape(u.shape)

    return evaluate


def tables_by_rate(release: Array, scale: float, sizes: Sizes) -> tuple[Array, ...]:
    """Return rates of all counts of a cell of private size, and tables of single counts: what kernels take.

    Returns
    -------
    tuple of arrays
        Roots of the rates over the largest one and logarithms of their weights, (n_cells, n_nodes); and `Panels` of the
        Poisson counts of every cell, one after the other, in the root of the rate over that largest one.
    """
    from pymc_dp.transforms.count_table_kernels import poisson_counts

    nodes = size_nodes(pt.constant(release).sum(axis=-1), scale, release.shape[1], sizes)
    rates, log_weights = plain_function([], nodes)()
    most = rates.max(axis=1)
    noise, values, top = noise_numbers(sizes.kind, scale), release.ravel(), np.log(np.repeat(most, release.shape[1]))

    def evaluate(rows: Array, u: Array) -> Array:
        at = np.repeat(rows, u.shape[1])
        found: Array = poisson_counts(values[at], top[at] + np.log(u**2).ravel(), *noise)
        return found.reshape(u.shape)

    panels = tabulate(evaluate, *(np.full(len(values), np.sqrt(end)) for end in (LEAST_RATE, 1.0)))
    return np.sqrt(rates / most[:, None]), log_weights, panels.starts, panels.ends, panels.numbers


__all__ = ["count_tables", "tables_by_rate"]
