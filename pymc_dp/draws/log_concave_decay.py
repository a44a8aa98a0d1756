"""What is known of a sum over rows at one point, and what it tells of how fast the sum's curvature decays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

MOST_DIMENSIONS = 64
"""Fourth moments of d coordinates are (d (d + 1) / 2)^2 numbers: 4e6 for 64."""
BLOCK = 4096
"""Rows whose products are held at a time."""
ROUNDING = 1 + 1e-9
"""Upwards, for what eigenvalues and sums of float64 may be off by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowCurvatures:
    """Curvatures at a point t of a log-likelihood ``sum_i f_i(<z_i, theta>)``.

    Row i must satisfy, for all numbers x, with ``g(s) = (e^-s + s - 1) / s^2``:

        f_i(<z_i, t> + x) <= f_i(<z_i, t>) + f_i'(<z_i, t>) x - c_i x^2 g(k_i |x|).

    Parameters
    ----------
    vectors : (n_rows, d) array
        z_i.
    curvatures : (n_rows,) array
        c_i >= 0, the temperature included: ``-beta f''``, or less.
    bends : (n_rows,) array
        k_i >= 0, finite, see `bends`. A smaller c_i may have a much smaller k_i; c_i = 0 has k_i = 0.
    """

    vectors: Array
    curvatures: Array
    bends: Array

    @property
    def curvature(self) -> Array:
        """Return H = sum_i c_i z_i z_i'."""
        return (self.vectors.T * self.curvatures) @ self.vectors

    def longest(self, metric: Array) -> float:
        """Return the largest ``k_i^2 z_i'A^-1 z_i`` where c_i > 0: times v'Av, no ``(k_i <z_i, v>)^2`` exceeds it."""
        lengths = (_whitened(self.vectors, metric) ** 2).sum(axis=1)
        return ROUNDING * float(np.max(np.where(self.curvatures > 0, self.bends**2 * lengths, 0.0), initial=0.0))

    def fourth_moment(self, metric: Array) -> float:
        """Return a number m with ``sum_i c_i k_i^2 <z_i, v>^4 <= m (v'Av)^2`` for all v."""
        return ROUNDING * _fourth_moment(_whitened(self.vectors, metric), self.curvatures * self.bends**2)


def bends(curvature: Array, relative_slope: Array, fall: Array, rise: Array) -> Array:
    """Return k_i for rows whose curvature is log-concave: the least that is proved.

    Parameters
    ----------
    curvature : (n_rows,) array
        ``c = -f''`` at the point, or any number between 0 and that. As everywhere here of f, not of beta f.
    relative_slope : (n_rows,) array
        ``|f''' / f''|`` at the point, or an upper bound.
    fall, rise : (n_rows,) arrays
        ``f'(-inf) - f'`` and ``f' - f'(inf)`` at the point, or lower bounds; both > 0 where c > 0, may be infinite.

    Returns
    -------
    (n_rows,) array

    Notes
    -----
    Let ``F(x) = f(eta) + f'(eta) x - f(eta + x) - c x^2 g(k x)`` for x >= 0; the other side is its mirror image. Then
    F(0) = F'(0) = 0 and ``F'' = -f''(eta + x) - c e^(-k x)``. The logarithm of -f'' is concave, that of ``c e^(-k x)``
    is linear, not above it at 0, and falls there at least as fast: so F'' changes its sign at most once, from + to -,
    and F' rises first and then falls, to ``rise - c / k`` at infinity. Where that is >= 0, so are F' and F. Hence ``k =
    max(relative slope, c / rise, c / fall)``. Logistic rows have ``max(p, 1 - p)``, between 1/2 and 1; the general
    ``|f'''| <= K |f''|`` gives K = 1.

    Examples
    --------
    >>> p = np.array([0.5, 0.9])
    >>> bends(p * (1 - p), np.abs(1 - 2 * p), p, 1 - p)
    array([0.5, 0.9])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.maximum(relative_slope, np.maximum(curvature / fall, curvature / rise))
    return np.where(curvature > 0, needed, 0.0)


def _whitened(vectors: Array, metric: Array) -> Array:
    """Return rows x_i with <x_i, u> = <z_i, v> where |u|^2 = v'Av."""
    return np.linalg.solve(np.linalg.cholesky(metric), vectors.T).T


def _fourth_moment(vectors: Array, weights: Array) -> float:
    """Bound ``sum_i w_i <x_i, u>^4`` over unit vectors u.

    It is the quadratic form of the matrix T of fourth moments at the unit vector of u's products. That vector has the
    component ``1 / sqrt(d)`` along e, the products of the identity over sqrt(d): with t = T e, T' what T is on all that
    is orthogonal to e, and r the part of t there, the form is at most ``e't / d + 2 sqrt((1 - 1/d) / d) |r| + (1 - 1/d)
    |T'|``. For rows that point in all directions alike it is about 3 / n where the longest row gives d / n.
    """
    d = vectors.shape[1]
    first, second = np.triu_indices(d)
    scale = np.where(first == second, 1.0, np.sqrt(2.0))
    moments = np.zeros((first.size, first.size))
    for start in range(0, len(vectors), BLOCK):
        part = slice(start, start + BLOCK)
        products = vectors[part][:, first] * vectors[part][:, second] * scale * np.sqrt(weights[part])[:, None]
        moments += products.T @ products
    identity = np.where(first == second, 1 / np.sqrt(d), 0.0)
    image = moments @ identity
    common = float(identity @ image)
    rest = image - common * identity
    others = moments - np.outer(identity, rest) - np.outer(rest, identity) - common * np.outer(identity, identity)
    widest = max(float(np.linalg.eigvalsh(others)[-1]), 0.0)
    return common / d + 2 * np.sqrt((1 - 1 / d) / d) * float(np.linalg.norm(rest)) + (1 - 1 / d) * widest
