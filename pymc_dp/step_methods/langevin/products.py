"""Sums of products of rows' gradients, beside sums of these: compiled, as whole numbers, and their noised release."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pymc_dp.step_methods.row_functions.clipped_sums import AT_ONCE


@numba.njit(error_model="numpy")
def add_products(written: Any, count: int, ratio: float, total: Any) -> None:
    """Add the first `count` rows to `total`, and their products, times a ratio and rounded, to the matrix behind them.

    Of several rows at once, as sums of whole numbers are the same in any order; there is no rest. Of the matrix, whose
    rows follow one another, the lower triangle counts.
    """
    size, whole = written.shape[1], -(-count // AT_ONCE) * AT_ONCE
    written[count:whole] = 0.0
    products = total[size:].reshape((size, size))
    for i in range(0, whole, AT_ONCE):
        a, b, c, d = written[i], written[i + 1], written[i + 2], written[i + 3]
        for j in range(size):
            total[j] += (a[j] + b[j]) + (c[j] + d[j])
            by_a, by_b, by_c, by_d = ratio * a[j], ratio * b[j], ratio * c[j], ratio * d[j]
            of_j = products[j]
            for k in range(j + 1):
                first, second = np.rint(by_a * a[k]) + np.rint(by_b * b[k]), np.rint(by_c * c[k]) + np.rint(by_d * d[k])
                of_j[k] += first + second


@numba.njit(error_model="numpy")
def release_products(slope: Any, size: int, plan: Any, rng: Any) -> None:
    """Turn the sum of products behind a sum of gradients of `size` entries into a noised mean over a batch; in place.

    The noise has the same deviation in every direction of the space of symmetric matrices. Its Euclidean norm is
    Frobenius', where an entry off the diagonal counts twice: such an entry gets 1 / √2 of the noise of one on it.
    """
    clip, batch_size = plan.clip, float(plan.batch_size)
    unit = clip.unit * clip.unit / clip.products / batch_size
    on, off = plan.products / unit, plan.products * np.sqrt(0.5) / unit
    products = slope[size:].reshape((size, size))
    for i in range(size):
        for j in range(i + 1):
            seen = products[i, j]
            if plan.centred:
                seen -= slope[i] * slope[j] * clip.products / batch_size
                seen *= batch_size / (batch_size - 1)
            seen = unit * (seen + (on if i == j else off) * rng.standard_normal())
            products[i, j] = products[j, i] = seen


__all__ = ["add_products", "release_products"]
