"""Published tables that were changed after the noise was added, as far as the values show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi

import numpy as np
from scipy.special import ndtr

from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array

CHANCE = 1e-4
"""Of values such as these, below which they are taken for changed."""
FAR = 10.0
"""Standard deviations of noise by which a published sum does not differ from that of the cells."""
INSTEAD = (
    "Use the values as they were noised: such files are often called noisy measurements. If there are none, say "
    "postprocessed=True; the posterior is then approximate."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Summed:
    """A table of noised sums of cells.

    Attributes
    ----------
    name : str
    values, scales : (n_sums,) arrays
    places : (n_cells,) array of int
        Which sum each cell is in.
    """

    name: str
    values: Array
    scales: Array
    places: Array


def require_unchanged(
    name: str, values: Array, scales: Array, sums: Sequence[Summed], *, kind: str, whole: bool
) -> None:
    """Refuse tables that noise alone would leave so with a probability below `CHANCE`.

    Parameters
    ----------
    name : str
    values, scales : (n_cells,) arrays
    sums : sequence of Summed
    kind : {"laplace", "gaussian"}
    whole : bool
        Whether the noise is of whole numbers.

    Raises
    ------
    ArgumentError

    Notes
    -----
    Of values x with discrete noise of scale s: multiples of g have a probability of about ``g^-n`` where s >= g; a zero
    comes with values below 0, whatever the exact counts are (`_below`); a sum over exactly noised cells hits their sum
    with at most ``1 / sqrt(2π Var)``. Continuous noise leaves no whole numbers at all.
    """
    for text in (
        _rounded(name, values, scales, whole=whole),
        *(_rounded(one.name, one.values, one.scales, whole=whole) for one in sums),
        _cut_off(name, values, scales, kind=kind, whole=whole),
        *(_not_summed(name, values, scales, one, kind=kind, whole=whole) for one in sums),
    ):
        if text:
            raise ArgumentError(f"{text}. {INSTEAD}")


def _rounded(name: str, values: Array, scales: Array, *, whole: bool) -> str:
    noised = values[scales > 0]
    integers = bool((noised == np.rint(noised)).all())
    if not whole:
        if integers and len(noised):
            return (
                f"values[{name!r}] are whole numbers, which continuous noise never leaves: they were rounded, or the "
                'noise is "discrete gaussian" or "discrete laplace"'
            )
        return ""
    if not integers:
        return (
            f"values[{name!r}] are not all whole numbers, which discrete noise on counts leaves: give sums in units of "
            'the grid of their noise, or noise="gaussian" or "laplace", if it was continuous'
        )
    large = np.abs(noised[noised != 0])
    step = int(np.gcd.reduce(np.minimum(large, 2.0**62).astype(np.int64))) if len(large) else 0
    if step > 1 and (scales[scales > 0] >= step).sum() * log(step) > -log(CHANCE):
        return f"values[{name!r}] are all multiples of {step}: they were rounded"
    return ""


def _cut_off(name: str, values: Array, scales: Array, *, kind: str, whole: bool) -> str:
    noised = scales > 0
    zero = noised & (values == 0)
    if (values[noised] < 0).any() or not zero.any():
        return ""
    unlikely = np.log1p(-_below(scales[zero], kind)).sum() if whole else -np.inf
    if unlikely < log(CHANCE):
        return f"values[{name!r}] hold zeros and nothing below 0, which noise leaves as well: they were cut off at 0"
    return ""


def _below(scales: Array, kind: str) -> Array:
    """Return the least probability that a noised count that is 0 or less is below 0, for exact counts up to 4 scales.

    Counts that are larger are 0 or less once in 30,000 times (Gaussian), or in the same proportion (Laplace).
    """
    if kind == "laplace":
        return np.exp(-1 / scales)
    away = 4 + 0.5 / scales
    return np.asarray(np.clip(ndtr(-away) / ndtr(-away + 1 / scales), 1e-6, 1 - 1e-6))


def _not_summed(name: str, values: Array, scales: Array, one: Summed, *, kind: str, whole: bool) -> str:
    factor = 2.0 if kind == "laplace" else 1.0
    count = len(one.values)
    off = one.values - np.bincount(one.places, values, count)
    variance = factor * (one.scales**2 + np.bincount(one.places, scales**2, count))
    if (np.abs(off) > FAR * np.sqrt(variance) + 1e-6 * np.abs(one.values)).any():
        return f"{one.name} does not hold sums of the cells of {name}, by far more than the noise"
    exact = (np.abs(off) <= 1e-9 * np.abs(one.values)) & (variance > 0)
    chances = np.minimum(1.0, 1 / np.sqrt(2 * pi * variance[exact])) if whole else np.zeros(exact.sum())
    if exact.all() and len(chances) and np.log(np.maximum(chances, 1e-300)).sum() < log(CHANCE):
        return f"{one.name} holds exactly the sums of the cells of {name}, though both were noised: they were raked"
    return ""


__all__ = ["Summed", "require_unchanged"]
