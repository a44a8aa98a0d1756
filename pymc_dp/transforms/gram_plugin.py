"""The plug-in form of a regression: projected sums are treated as exact, rows' log-likelihood as quadratic.

For a normal response it is a quadratic; for others see ``families.polynomial``.

Where sums of predictors and sums with the response lie in a released vector of a regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.gram import GramSums, Response, quadratic
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.released_logp import held

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GramLayout:
    """Places of the sums of one statistic.

    Attributes
    ----------
    statistic : GramSums
    """

    statistic: GramSums

    @cached_property
    def first(self) -> Index:
        """(n_cells, per_cell) places of sums of first order, that of u at last."""
        return self._table("first", self.statistic.per_cell if self.statistic.constant else 0)

    @cached_property
    def second(self) -> Index:
        """(n_blocks, products) places of sums of products."""
        return self._table("second", self.statistic.products)

    @cached_property
    def predictors(self) -> Index:
        """Places of what predictors alone add up to: sizes, sums of t, sums of t_i t_j."""
        sizes = np.arange(self.statistic.count)[self.statistic.parts["sizes"]]
        return np.concatenate([sizes, self.first[:, :-1].ravel(), self.second[:, : self.pairs].ravel()])

    @cached_property
    def responses(self) -> Index:
        """(1, k) places of sums with u: those of cells, then Σ t u, then Σ u²; with `apart` one row per cell."""
        first, second = self.first[:, -1:], self.second[:, self.pairs :]
        if not self.statistic.apart:
            first = first.T
        return np.concatenate([first, second], axis=1) if self.statistic.constant else second

    @property
    def pairs(self) -> int:
        """Sums of products of predictors with one another, of a block."""
        d = self.statistic.width
        return 0 if self.statistic.known else d * (d + 1) // 2

    def _table(self, part: str, columns: int) -> Index:
        places = np.arange(self.statistic.count)[self.statistic.parts[part]]
        return places.reshape((-1, columns)) if columns else places.reshape((len(self.statistic.cells), 0))


def plugin_logp(
    layout: GramLayout,
    response: Response,
    value: TensorVariable,
    sizes: TensorVariable | None,
    a: TensorVariable,
    w: TensorVariable,
    sd: TensorVariable,
    reach: float,
    gram: Array | None = None,
) -> TensorVariable:
    """Log-likelihood of rows with these sums, a () tensor, without terms free of the parameters.

    Parameters
    ----------
    value : (count,) tensor
    sizes : (n_cells,) tensor or None
        Where they are public; else they are taken from `value`.
    a, w, sd
        Of scaled predictors: (n_cells,), (d,) or (n_cells, d), and () tensors.
    gram : (n_cells, 1 + d, 1 + d) array, optional
        Known sums of products of (1, t).
    """
    n, t, tt, u, tu, uu = _sums(layout, value, sizes, gram)
    slopes = w if layout.statistic.apart else w[None]
    within = (tt * slopes[:, :, None] * slopes[:, None, :]).sum()
    first = (n * a + (t * slopes).sum(axis=-1)).sum()
    second = (n * a**2 + 2 * a * (t * slopes).sum(axis=-1)).sum() + within
    cross = (a * u).sum() + (slopes * tu).sum()
    if response.likelihood == "normal":
        return -n.sum() * pt.log(sd) - 0.5 * (uu.sum() - 2 * cross + second) / sd**2
    one, two = quadratic(response, reach)
    (centre,), (half,) = layout.statistic.response.centres, layout.statistic.response.halves
    # y = centre + half u.
    return one[1] * first + one[2] * second + two[1] * (centre * first + half * cross)


def _sums(
    layout: GramLayout, value: TensorVariable, sizes: TensorVariable | None, gram: Array | None
) -> tuple[TensorVariable, ...]:
    """Sizes, Σt, Σttᵀ, Σu, Σtu and Σu², the first of cells, products of blocks; zeros for what is not released."""
    statistic = layout.statistic
    d, n_cells = statistic.width, len(statistic.cells)
    first, second = value[layout.first], value[layout.second]
    n = value[statistic.parts["sizes"]] if sizes is None else sizes
    if gram is not None:
        t, tt = held(gram[:, 0, 1:]), held(gram[:, 1:, 1:])
        tt = tt if statistic.apart else tt.sum(axis=0)[None]
    else:
        rows, columns = np.triu_indices(d)
        place = np.empty((d, d), dtype=int)
        place[rows, columns] = place[columns, rows] = np.arange(layout.pairs)
        t = first[:, :-1] if statistic.constant else pt.zeros((n_cells, d))
        tt = second[:, place]
    u = first[:, -1] if statistic.constant else pt.zeros(n_cells)
    uu = second[:, -1] if statistic.square else pt.zeros(1)
    return n, t, tt, u, second[:, layout.pairs : layout.pairs + d], uu


def projected(layout: GramLayout, value: Array, sizes: Array | None, noise: float, gram: Array | None = None) -> Array:
    """Let sums leave second moments of (1, t, u) that are positive definite: no variance below the noise.

    Means stay as they are; what products leave about them loses its negative directions, with `apart` cell by cell.
    """
    statistic = layout.statistic
    d, found = statistic.width, value.copy()
    if sizes is None:
        found[statistic.parts["sizes"]] = np.maximum(found[statistic.parts["sizes"]], 0.0)
    n = found[statistic.parts["sizes"]] if sizes is None else sizes
    if layout.first.size:
        found[layout.first] = np.clip(found[layout.first], -n[:, None], n[:, None])
    first = np.zeros((len(n), d + 1))
    first[:, d] = found[layout.first[:, -1]] if statistic.constant else 0.0
    if gram is not None:
        first[:, :d] = gram[:, 0, 1:]
    elif statistic.constant:
        first[:, :d] = found[layout.first[:, :-1]]
    about = np.einsum("ci,cj,c->cij", first, first, 1 / np.maximum(n, 1.0))
    total = n.copy()
    if not statistic.apart:
        about, total = about.sum(axis=0)[None], n.sum(keepdims=True)
        gram = None if gram is None else gram.sum(axis=0)[None]
    for block, places in enumerate(layout.second):
        known = None if gram is None else gram[block, 1:, 1:]
        found[places] = _projected_block(layout, found[places], about[block], float(total[block]), noise, known)
    return found


def _projected_block(
    layout: GramLayout, products: Array, about: Array, n: float, noise: float, known: Array | None
) -> Array:
    d, pairs, square = layout.statistic.width, layout.pairs, layout.statistic.square
    rows, columns = np.triu_indices(d)
    matrix = np.zeros((d + 1, d + 1))
    if known is None:
        matrix[rows, columns] = matrix[columns, rows] = products[:pairs]
    else:
        matrix[:d, :d] = known
    matrix[d, :d] = matrix[:d, d] = products[pairs : pairs + d]
    matrix[d, d] = products[-1] if square else n
    left = matrix - about
    if known is None:
        values, vectors = np.linalg.eigh(left)
        matrix = (vectors * np.maximum(values, noise)) @ vectors.T + about
    else:  # nothing but the square can give way
        explained = left[d, :d] @ np.linalg.pinv(left[:d, :d]) @ left[:d, d]
        matrix[d, d] = max(matrix[d, d], explained + noise + about[d, d])
    found = products.copy()
    found[:pairs] = matrix[rows, columns][:pairs]
    found[pairs : pairs + d] = matrix[d, :d]
    if square:
        found[-1] = matrix[d, d]
    return found


__all__ = ["GramLayout", "Index", "plugin_logp", "projected"]
