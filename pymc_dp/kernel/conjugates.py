"""Exact draws of parameters that are independent given sums, from truncated conjugate distributions; float64.

The log-likelihood of a row is linear in whole numbers that it adds, and so is by how much neighbours move it. Its range
over a public box is convex in these, so that it is largest at two corners, where it has a closed form.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, override

import numpy as np

from pymc_dp.kernel.accounting.events import BoundedRangeEvent
from pymc_dp.kernel.arguments import word
from pymc_dp.kernel.corner_ranges import AT_ONCE, pairs_of
from pymc_dp.kernel.draw import SHIFT
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.layout import Block, Layout
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.payer import Array
from pymc_dp.kernel.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal

ROOM = 2.0**-40
"""For the floats of a range, over the largest sum of sizes: a thousand times what they err by."""
ROUNDED = 2.0**-48
"""What a sum of products of which some are below 0 errs by, over the sum of their sizes."""
LARGEST = 1e280
"""Of what rows of any table and a prior add up to: above it a float may become infinite, for some tables alone."""
BOXES = {"beta": (0.0, 1.0), "gamma": (0.0, math.inf), "normal": (-math.inf, math.inf)}


class Conjugate(ABC):
    """Parameters that are independent given the sums."""

    @property
    @abstractmethod
    def linear(self) -> Array:
        """Public coefficients of the sums: (m, size)."""

    @property
    @abstractmethod
    def public(self) -> tuple[Any, ...]:
        """All else that the range depends on."""

    def owned(self, layout: Layout) -> tuple[Array, int] | None:
        """Return of which of several things each sum is, where functions are of the sums of each; and how many."""
        return None

    @abstractmethod
    def range(self, layout: Layout, linear: Array) -> float:
        """Return by how much neighbours move the log-likelihood over the box at most, as a range; in nats."""

    @abstractmethod
    def check_floats(self, layout: Layout, linear: Array) -> None:
        """Refuse numbers that floats cannot hold for some table; before anything is paid."""

    @abstractmethod
    def _draw(self, rng: Any, sums: Array) -> Array:
        """Draw from the posterior of the `linear` functions of the sums. **Private** release."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class OneEach(Conjugate):
    """Parameters θ within [low, high], each of density ∝ prior exp(a φ(θ) + b ψ(θ)), a and b linear in the sums.

    ======  ==========================  ======================================
    kind    (φ, ψ)                      prior
    ======  ==========================  ======================================
    beta    (log θ, log(1 - θ))         θ^(prior_0 - 1) (1 - θ)^(prior_1 - 1)
    gamma   (log θ, -θ)                 θ^(prior_0 - 1) e^(-prior_1 θ)
    normal  (θ, -θ²/2)                  e^(prior_0 θ - prior_1 θ²/2)
    ======  ==========================  ======================================

    Parameters
    ----------
    low, high : (n,) arrays
        Public boxes; within (0, 1) or above 0 where φ asks for it.
    prior : (n, 2) array
    first, second : (n, size) arrays
        Public coefficients of a and b. Where all rows add up to less than 0, that counts as 0 for b, and for a of a
        beta.
    """

    kind: Literal["beta", "gamma", "normal"]
    low: Array
    high: Array
    prior: Array
    first: Array
    second: Array

    def __post_init__(self) -> None:
        word("kind", self.kind, BOXES)
        count = keep_floats(self, "low")[0]
        keep_floats(self, "high", count), keep_floats(self, "prior", count, 2)
        keep_floats(self, "second", *keep_floats(self, "first", count, None))
        least, most = BOXES[self.kind]
        if not ((least < self.low) & (self.low < self.high) & (self.high < most)).all():
            raise ArgumentError(f"Boxes must lie within ({least:g}, {most:g}), low < high.")
        if (self.prior[:, 1] < 0).any() or (self.kind == "beta" and not (self.prior > 0).all()):
            raise ArgumentError("Numbers of a prior of this kind must be greater.")

    @property
    @override
    def linear(self) -> Array:
        return np.concatenate([self.first, self.second])

    @property
    @override
    def public(self) -> tuple[Any, ...]:
        return self.kind, self.low, self.high, self.prior

    @override
    def range(self, layout: Layout, linear: Array) -> float:
        parts = [(block, own.reshape(len(own), block.cells, block.size)) for block, own in layout.parts(linear)]
        rows = MOST_ROWS if layout.n_rows is None else max(layout.n_rows, 1)
        least, rounded = (np.sum(each, axis=0) for each in zip(*(self._least(*part) for part in parts), strict=True))
        cut, left = (least > ROOM * rounded).any(axis=1), rows * least
        if self.kind != "beta":
            cut[0], left[0] = False, 0.0
        left[cut] = 0.0
        replace = layout.neighbours == "replace"
        return sum(self._range(*part, cut, left, replace=replace) for part in parts)

    def _range(self, block: Block, own: Array, cut: Array, left: Array, *, replace: bool) -> float:
        room = (np.abs(own) @ block.corners.room).reshape(2, -1, block.cells)
        ends = np.stack(self._terms(self.low)), np.stack(self._terms(self.high))
        far = np.maximum(*np.abs(ends))
        moved = own.any(axis=2).reshape(2, -1, block.cells).any(axis=0)
        loose = float((2 * far[:, :, None] * (room + left[:, :, None] * moved)).sum(axis=(0, 1)).max(initial=0.0))
        at = _needed(block.corners.at, own)
        a, b = np.einsum("kcj,vj->kcv", own, at).reshape(2, -1, block.cells, len(at))
        sizes = np.einsum("kcj,vj->kcv", np.abs(own), np.abs(at)).reshape(2, -1, block.cells, len(at))
        size = float((sizes * far[:, :, None, None]).sum(axis=(0, 1)).max(initial=0.0))
        stays = replace and block.groups.shape[1] == 1 and not block.absent.any()
        a, b = (each if stays else block.of_groups(each, together=replace) for each in (a, b))
        found = 0.0
        for one, two in _ways(block, a, every=at is not block.corners.at or not stays, replace=replace):
            x, y = ((each[:, :, one] - each[:, :, two] if replace else each) for each in (a, b))
            over = self._over(x, y)
            if cut[0]:  # where a sum below 0 counts as 0, a part of its move is left
                over = np.maximum(over, self._over(np.zeros_like(x), y))
            if cut[1]:
                over = np.maximum(over, self._over(x, np.zeros_like(y)))
            found = max(found, float(over.sum(axis=0).max(initial=0.0)))
        return found + (2 if replace else 1) * loose + ROOM * size

    def _least(self, block: Block, own: Array) -> tuple[Array, Array]:
        """Return how far below 0 one row may take a and b at most, (2, n), and the largest sum of sizes of each."""
        at = block.corners.at
        found, sizes = np.einsum("kcj,vj->kcv", own, at), np.einsum("kcj,vj->kcv", np.abs(own), np.abs(at))
        below = np.where(found == sizes, 0.0, ROUNDED * sizes) - found
        below = below.max(axis=2, initial=0.0) + np.abs(own) @ block.corners.room
        return below.max(axis=1).reshape(2, -1), sizes.reshape(2, -1).max(axis=1, keepdims=True)

    def _over(self, a: Array, b: Array) -> Array:
        """Return the range over the boxes of a φ + b ψ: it is at the ends, or where the slope is 0."""
        low, high = self.low[:, None, None], self.high[:, None, None]
        with np.errstate(all="ignore"):
            flat = np.clip(a / (a + b if self.kind == "beta" else b), low, high)
        flat[np.isnan(flat)] = np.broadcast_to(low, flat.shape)[np.isnan(flat)]
        one, two, three = (a * first + b * second for first, second in map(self._terms, (low, high, flat)))
        return np.asarray(np.maximum(np.maximum(one, two), three) - np.minimum(np.minimum(one, two), three))

    def _terms(self, points: Array) -> tuple[Array, Array]:
        if self.kind == "normal":
            return points, -(points**2) / 2
        return np.log(points), np.log1p(-points) if self.kind == "beta" else -points

    @override
    def check_floats(self, layout: Layout, linear: Array) -> None:
        count = len(self.low)
        least, most = layout.least_and_most(linear)
        rows = MOST_ROWS if layout.n_rows is None else max(layout.n_rows, 1)
        largest = np.abs(self.prior).T + rows * np.maximum(np.abs(least), np.abs(most)).reshape(2, count)
        if self.kind == "normal":  # of tables whose rows tell next to nothing b is that of the prior
            with np.errstate(all="ignore"):
                steep = np.where(self.prior[:, 1] > 0, largest[0] / self.prior[:, 1], 0.0)
            largest = np.concatenate([largest, steep[None]])
        if not (largest < LARGEST).all():
            raise ArgumentError("What the rows of some tables add up to is too large for floats. Take a smaller beta.")

    @override
    def _draw(self, rng: Any, sums: Array) -> Array:
        a, b = sums.reshape(2, -1)
        b = self.prior[:, 1] + np.maximum(b, 0.0)
        a = self.prior[:, 0] + (np.maximum(a, 0.0) if self.kind == "beta" else a)
        if self.kind == "beta":
            return np.asarray(truncated_beta(rng, a, b, self.low, self.high))
        if self.kind == "gamma":
            return np.asarray(truncated_gamma(rng, a, b, self.low, self.high))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            mean, sd = np.where(b > 0, np.clip(a / b, -LARGEST, LARGEST), 0.0), np.minimum(b**-0.5, LARGEST)
        return np.asarray(truncated_normal(rng, mean, sd, self.low, self.high))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Simplexes(Conjugate):
    """Probabilities p with p_k >= least_k, each vector of density ∝ Π p_k^(prior_k + N_k - 1), N_k linear in the sums.

    A row that adds d moves the log-likelihood by Σ d_k log p_k, of a range of Σ |d_k| log(top_k / least_k) at most,
    top_k what the other bounds leave. Of two rows that is reached where each adds to one level.

    Parameters
    ----------
    prior, least : (n, levels) arrays
        > 0; `least` adds up to less than 1.
    counts : (n, levels, size) array
        Public coefficients of N, >= 0.
    """

    prior: Array
    least: Array
    counts: Array

    def __post_init__(self) -> None:
        shape = keep_floats(self, "prior", None, None)
        keep_floats(self, "least", *shape), keep_floats(self, "counts", *shape, None)
        good = (self.prior > 0).all() and (self.least > 0).all() and (self.counts >= 0).all() and shape[1] >= 2
        if not good or not (self.least.sum(axis=1) < 1 - 1e-9).all():
            raise ArgumentError("prior and least must be > 0, of 2 levels or more, and least add up to less than 1.")

    @property
    @override
    def linear(self) -> Array:
        return self.counts.reshape(self.prior.size, -1)

    @property
    @override
    def public(self) -> tuple[Any, ...]:
        return self.prior, self.least

    @override
    def range(self, layout: Layout, linear: Array) -> float:
        wide = np.log1p((1 - self.least.sum(axis=1, keepdims=True)) / self.least).ravel()
        replace, total = layout.neighbours == "replace", 0.0
        for block, own in layout.parts(linear):
            at, room = block.corners
            if not own.any():
                continue
            held = np.abs(block.at_corners(own)) + ROOM * block.at_corners(own, np.abs(at))
            held += (own.reshape(len(own), block.cells, block.size) @ room)[:, :, None]
            alone = np.tensordot(wide, held, 1)
            total += max(_two_of_a_group(block, alone)) if replace else float(alone.max(initial=0.0))
        return total * (1 + ROOM)

    @override
    def check_floats(self, layout: Layout, linear: Array) -> None:
        least, most = layout.least_and_most(linear)
        if (least < 0).any():
            raise ArgumentError("A row may add less than 0 to a count.")
        rows = MOST_ROWS if layout.n_rows is None else max(layout.n_rows, 1)
        if not (self.prior.ravel() + rows * most < LARGEST).all():
            raise ArgumentError("What the rows of some tables add up to is too large for floats. Take a smaller beta.")

    @override
    def _draw(self, rng: Any, sums: Array) -> Array:
        return np.asarray(
            truncated_dirichlet(rng, self.prior + np.maximum(sums, 0.0).reshape(self.prior.shape), self.least)
        )


def _two_of_a_group(block: Block, alone: Array) -> list[float]:
    """Return the sum of the two largest numbers of corners of each group; one of them 0 where a row may be in none."""
    if block.groups.shape[1] == 1 and not block.absent.any():
        ways = list(np.sort(alone[block.groups[:, 0]], axis=1))
    else:
        ways = [np.sort(alone[np.unique(cells)].ravel()) for cells in block.groups]
        ways = [np.sort(np.append(one, 0.0)) if gone else one for one, gone in zip(ways, block.absent, strict=True)]
    return [float(one[-2:].sum()) if len(one) > 1 else 0.0 for one in ways]


CONJUGATES: tuple[type[Conjugate], ...] = (OneEach, Simplexes)
"""Exactly these, and `paths.Paths`: another class would state its own range."""


def drawing(layout: Layout, families: Sequence[Conjugate], exponents: Sequence[Array]) -> BoundedRangeEvent:
    """Return what a draw of all families together costs; refuse what floats cannot hold. `exponents` are those of each.

    They are independent given the sums, so that the ranges of their log densities add up.
    """
    total = 0.0
    for family, own in zip(families, exponents, strict=True):
        linear = own * 2.0 ** -(SHIFT + layout.finer)

        def priced(linear: Array, *_: Any, family: Conjugate = family) -> float:
            family.check_floats(layout, linear)
            return family.range(layout, linear)

        total += layout._remembered(priced, type(family), linear, *family.public)
    return BoundedRangeEvent(eta=max(total, 1e-300) * (1 + ROOM))


def keep_floats(self: object, name: str, *shape: int | None) -> tuple[int, ...]:
    """Make a field a copy of finite floats, of a shape; return that."""
    try:
        found = np.array(getattr(self, name), dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be an array of numbers.") from None
    shape = shape or (None,)
    fits = found.ndim == len(shape) and all(want in (None, own) for want, own in zip(shape, found.shape, strict=True))
    if not fits or not found.size or not np.isfinite(found).all():
        raise ArgumentError(f"{name} must be an array of finite numbers, of {len(shape)} axes that fit the others.")
    found.flags.writeable = False
    object.__setattr__(self, name, found)
    return found.shape


def _ways(block: Block, each: Array, *, every: bool, replace: bool) -> Iterator[tuple[Array, Array]]:
    """Yield pairs of corners that are compared, some at a time; without `replace` one, which does not count."""
    step = max(1, AT_ONCE // each[:, :, 0].size)
    if not replace:
        yield np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    elif every or not len(block.pairs):
        yield from pairs_of(each.shape[2], step)
    else:
        for start in range(0, len(block.pairs), step):
            yield block.pairs[start : start + step, 0], block.pairs[start : start + step, 1]


def _needed(at: Array, own: Array) -> Array:
    """Return corners that differ in what counts: two where one number of a row alone does, and differs."""
    used = (own != 0).any(axis=(0, 1)) & (np.ptp(at, axis=0) > 0)
    if used.sum() != 1:
        return at
    one = at[:, used][:, 0]
    return at[[int(one.argmin()), int(one.argmax())]]
