"""Bounds that are enforced on the numbers that are summed over rows, whatever a compiled function returns.

A proof about a density says nothing about the floats that a compiled graph returns: they may underflow to minus
infinity, cancel, or depend on the order of a sum. So the number of every row is held within the interval that was
charged and rounded to a multiple of a public power of 2; sums are of whole numbers in int64, the same in whatever
order. What a compiled function returns then decides how good a draw is, never how private.

A norm that is enforced on the whole numbers that rows add to a sum, and a sum of them that nothing rounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

MOST_BITS = 44
"""Bits of the largest number of one row."""
SUM_BITS = 62
"""Bits of a sum over all rows."""
FEWEST_BITS = 8
LEAST_EXPONENT = -1022
"""Of a unit: smaller ones have no inverse."""


def bits_of(n_rows: int) -> int:
    """Return how many bits the number of one row may have, so that sums over rows stay within int64."""
    return max(FEWEST_BITS, min(MOST_BITS, SUM_BITS - max(1, n_rows).bit_length()))


def unit_of(size: float, n_rows: int) -> float:
    """Return a public power of 2, of which numbers up to `size` are few enough multiples to be summed in int64."""
    return 2.0 ** max(math.frexp(size)[1] - bits_of(n_rows), LEAST_EXPONENT)


ROOM = 1e-9
"""Share of the norm that rows are shortened by, so that no row is lost to the rounding of its own norm."""
MOST_BITS_OF_NORM = 32
"""Bits of the largest number of one row."""
EXACT_BITS = 53
"""Floats are exact for whole numbers of so many bits, and so are their sums, in any order."""
ROUNDING = 2.0**-EXACT_BITS


class Clip(NamedTuple):
    """How rows are clipped before they are summed: public numbers for compiled loops; made by `clip_to`.

    Attributes
    ----------
    unit : float
        Power of 2: entries of what a row adds are whole multiples of it.
    inverse : float
        1 / unit.
    bound : float
        Norm that longer rows are shortened to.
    most : float
        Largest sum of squares, as floats add it up, of the whole numbers of one row; a row with more adds nothing.
    products : float
        Power of 2: units of a product of two entries, over the unit squared.

    Notes
    -----
    **Guarantee.** With C the norm, d entries of a row and at most n rows in a sum, whatever the floats are that rows'
    gradients consist of (not finite, subnormal, of any size), and in whatever order and parts rows are summed:

    - *What a row adds* is a vector k of whole numbers, of which ``‖k‖ unit ≤ C``. The k that are summed are those whose
      squares are added up, after they were rounded. A float sum of d squares, which neither overflow where the sum is
      at most `most` nor underflow where they are not 0, is at least ``(1 - d 2⁻⁵³) ‖k‖²`` in any order; `most` is at
      most ``(1 - 2 (d + 2) 2⁻⁵³) (C / unit)²``. NaN is not at most anything. Shortening before it may round as it
      likes: it decides how few rows are lost, which are none but those with extreme entries.
    - *The sum* is exact. Entries of k are below ``2^bits`` and those of the sum below ``n 2^bits ≤ 2⁵³``, so each
      addition of floats is an addition of whole numbers.

    So a row that is added moves the sum by at most C in the Euclidean norm, one that is replaced by at most 2 C. Noise
    is to be added to the sum in units, before anything else is done with it. Not covered: the last bits of the draw of
    the noise itself, which is continuous and of float64; and run times.

    - *Products* of such rows (``clip_to(products=True)``): an entry is ``rint(k_i k_j products)``, whole and off by at
      most ½ (1 + 2⁻⁵⁰), so that the matrix of a row is off by E of Frobenius norm at most d / 2 of its units, which are
      at most ``4 C² 2^-bits``. As ‖k kᵀ‖ = ‖k‖², the matrix has norm at most C² once ``‖k‖² unit²`` is at most
      ``C² (1 - 2 d 2^-bits)`` and a little less, which `most` sees to. Sums of them are exact as well. Centred
      covariances of batches of n rows are a float function of both sums, of values at most n C² over n - 1: off by at
      most ``16 d 2⁻⁵³ C²`` at each of two neighbours, beside 2 E / (n - 1); both are made room for as well, being at
      most a share ``d (2 2^-bits + n 2⁻⁵⁰)`` of the ``4 C² / n`` that a row moves a covariance by.
    """

    unit: float
    inverse: float
    bound: float
    most: float
    products: float

    @property
    def product_unit(self) -> float:
        """Of entries of summed products."""
        return self.unit * self.unit / self.products


def clip_to(clip_norm: float, *, size: int, n_rows: int, products: bool = False) -> Clip:
    """Return how rows are clipped to a norm, before at most so many of them are summed.

    Parameters
    ----------
    clip_norm : float
        C, > 0.
    size : int
        Entries of a row, d.
    n_rows : int
        Most rows in one sum; public.
    products : bool
        Whether products of each row's entries are summed as well.

    Examples
    --------
    >>> clip = clip_to(1.0, size=3, n_rows=1000)
    >>> clip.unit == 2.0**-31, 1 - 3e-9 < clip.bound < 1, clip.most * clip.unit**2 < 1
    (True, True, True)
    """
    bits = min(MOST_BITS_OF_NORM, EXACT_BITS - n_rows.bit_length())
    unit = 2.0 ** (math.frexp(clip_norm)[1] - bits)
    share = 2 * (size + 2) * ROUNDING
    if products:
        share += size * (2 * 2.0**-bits + n_rows * 8 * ROUNDING) * (1 + 2.0**-20)
    most = max(0.0, (clip_norm / unit) ** 2 * (1 - share))
    bound = (math.sqrt(most) * (1 - ROOM) - math.sqrt(size) / 2) * unit
    return Clip(unit=unit, inverse=1 / unit, bound=max(0.0, bound), most=most, products=2.0**-bits)


__all__ = ["Clip", "bits_of", "clip_to", "unit_of"]
