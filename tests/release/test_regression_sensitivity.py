"""No row moves the sums of a regression by more than is claimed, and the claim is little more than the worst row needs.

Worst pairs are looked for in real numbers, from many starts, and then go through the pass over rows.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.families.gram import GramSums, Source
from pymc_dp.rows.sums import sum_products

HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0, 1.0, -1.0, 5.0, 100.0, 1e-300)
CELLS = ("first", "second")
GAP = {1: 1.08, 2: 1.05}
WAYS = list(product([True, False], [True, False]))
PRIVATE = {"cells": CELLS, "sizes_known": False}


def boxes(width: int, low: float = 5.0, high: float = 100.0) -> Source:
    return Source(name="x", centres=((low + high) / 2,) * width, halves=((high - low) / 2,) * width)


def ball(width: int, name: str = "z") -> Source:
    return Source(name=name, centres=(0.0,) * width, halves=(2.5,) * width, ball=True)


def statistic_of(*sources: Source, constant: bool = True, square: bool = True, **changes) -> GramSums:
    response = Source(name="y", centres=(50.0,), halves=(50.0,))
    return GramSums(sources=sources, response=response, constant=constant, square=square, **changes)


class Search:
    """Rows z = (t, u) whose sums, or differences of them, are as long as can be found.

    `way` is "stay", "move" (to another cell), "apart" (the same, with all sums apart) or "add".
    """

    def __init__(self, statistic: GramSums, way: str, seed: int = 605) -> None:
        self.statistic, self.way = statistic, way
        self.rng = np.random.default_rng(seed)
        size = statistic.width + 1
        self.i, self.j = np.triu_indices(size)
        last = (self.i == size - 1) & (self.j == size - 1)
        self.weights = np.where(last, float(statistic.square), 1.0)

    @property
    def shared(self) -> tuple[bool, bool]:
        """Whether the two rows add to the same sums of first and of second order."""
        return self.way == "stay", self.way in ("stay", "move")

    def inside(self, z: np.ndarray) -> np.ndarray:
        z, place = z.copy(), 0
        for source in (*self.statistic.sources, self.statistic.response):
            part = z[:, place : place + source.width]
            if source.ball:
                part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1.0)
            else:
                np.clip(part, -1, 1, out=part)
            place += source.width
        return z

    def features(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes = np.full((len(z), 1), float(not self.statistic.sizes_known))
        first = np.concatenate([sizes, self.statistic.constant * z], axis=1)
        return first, self.weights * z[:, self.i] * z[:, self.j]

    def difference(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        """First order of a and of b, second order of a and of b: twice the same where they fall into one sum."""
        (first_a, second_a), (first_b, second_b) = self.features(a), self.features(b)
        if self.shared[0]:
            first_a = first_b = first_a - first_b
        if self.shared[1]:
            second_a = second_b = second_a - second_b
        if self.way == "add":
            first_b, second_b = 0 * first_b, 0 * second_b
        return first_a, first_b, second_a, second_b

    def length(self, parts: tuple[np.ndarray, ...], order: int) -> np.ndarray:
        alone = [part for part, shared in zip(parts[1::2], self.shared, strict=True) if not shared]
        counted = [parts[0], parts[2], *alone]
        return np.linalg.norm(np.concatenate(counted, axis=1), ord=order, axis=1)

    def uphill(self, z: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        matrix = np.zeros((len(z), z.shape[1], z.shape[1]))
        matrix[:, self.i, self.j] = second * self.weights
        matrix += matrix.transpose(0, 2, 1)
        return self.statistic.constant * first[:, 1:] + np.einsum("nij,nj->ni", matrix, z)

    def worst(self, order: int, starts: int = 40, steps: int = 120) -> tuple[np.ndarray, np.ndarray]:
        """Ascend from many starts, by shorter and shorter steps."""
        size = self.statistic.width + 1
        a, b = (self.rng.choice([-1.0, 0.0, 1.0], (starts, size)) for _ in range(2))
        a, b = (self.inside(z + self.rng.normal(0, 0.2, z.shape)) for z in (a, b))
        best, kept = np.full(starts, -1.0), (a, b)
        first_sign, second_sign = (1.0 if shared else -1.0 for shared in self.shared)
        for step in np.geomspace(1.0, 1e-3, steps):
            parts = self.difference(a, b)
            length = self.length(parts, order)
            better = (length > best)[:, None]
            best, kept = np.maximum(best, length), (np.where(better, a, kept[0]), np.where(better, b, kept[1]))
            slopes = [np.sign(part) if order == 1 else part for part in parts]
            up_a = self.uphill(a, slopes[0], slopes[2])
            up_b = self.uphill(b, -first_sign * slopes[1], -second_sign * slopes[3])
            a, b = (
                self.inside(z + step * g / (np.linalg.norm(g, axis=1, keepdims=True) + 1e-12))
                for z, g in ((a, up_a), (b, up_b))
            )
        top = best.argmax()
        return kept[0][top], kept[1][top]


def released(statistic: GramSums, row: np.ndarray, cell: int = 0) -> np.ndarray:
    """What one row, in the units of the table, adds to the sums, in Python's integers."""
    ends = np.cumsum([source.width for source in statistic.sources])
    arrays = [part[None, :] for part in np.split(row[:-1], ends[:-1])]
    cells = np.array([cell]) if len(statistic.cells) > 1 else None
    return sum_products(statistic, arrays, row[-1:], cells).astype(object)


def in_units(statistic: GramSums, z: np.ndarray) -> np.ndarray:
    centres = np.append(statistic.centres, statistic.response.centres)
    return centres + np.append(statistic.halves, statistic.response.halves) * z


def found(statistic: GramSums, way: str, order: int) -> int:
    """How far the worst pair moves the integers: in L1, or squared."""
    a, b = (in_units(statistic, z) for z in Search(statistic, way).worst(order))
    moved = released(statistic, a)
    if way != "add":
        moved = moved - released(statistic, b, cell=int(way != "stay"))
    return sum(abs(moved)) if order == 1 else sum(moved**2)


def assert_tight(statistic: GramSums, ways: tuple[str, ...], gap: dict[int, float] = GAP) -> None:
    sensitivity = statistic.reading().shape.move("add_remove" if ways == ("add",) else "replace")
    for order, claimed in ((1, sensitivity.l1), (2, sensitivity.l2_squared)):
        worst = max(found(statistic, way, order) for way in ways)
        assert worst <= claimed <= gap[order] ** order * worst, (order, (claimed / worst) ** (1 / order))


@pytest.mark.few(27)
@pytest.mark.parametrize("constant, square", WAYS)
@pytest.mark.parametrize("width", [1, 2, 3, 8])
@pytest.mark.parametrize("source", [boxes, ball])
def test_claims_in_one_cell_are_those_of_the_worst_pair(source, width, constant, square):
    assert_tight(statistic_of(source(width), constant=constant, square=square), ("stay",))


@pytest.mark.few(12)
@pytest.mark.parametrize("constant, square", WAYS)
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("source", [boxes, ball])
@pytest.mark.parametrize("apart", [False, True])
def test_claims_of_private_cells_are_those_of_the_worst_pair(source, width, constant, square, apart):
    statistic = statistic_of(source(width), constant=constant, square=square, apart=apart, **PRIVATE)
    assert_tight(statistic, ("stay", "apart" if apart else "move"))


@pytest.mark.parametrize("constant, square", WAYS)
@pytest.mark.parametrize("sources", [(boxes(4),), (ball(5),), (boxes(1), ball(3))], ids=["boxes", "ball", "both"])
def test_claims_of_a_row_added_are_those_of_the_longest_row(sources, constant, square):
    statistic = statistic_of(*sources, constant=constant, square=square, sizes_known=False)
    assert_tight(statistic, ("add",), {1: 1.001, 2: 1.001})


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("bounds", [(0.0, 100.0), (5.0, 100.0)])
@pytest.mark.parametrize("changes", [{}, {"constant": False}, PRIVATE, {**PRIVATE, "apart": True}], ids=str)
def test_no_pair_of_rows_exceeds_the_claims(changes, bounds, neighbours):
    statistic = statistic_of(boxes(2, *bounds), ball(3), **{**changes, "sizes_known": False})
    sensitivity, rng = statistic.reading().shape.move(neighbours), np.random.default_rng(606)
    rows = rng.choice(HOSTILE, (40, 6))
    rows[:20] = in_units(statistic, rng.choice([-1.0, 0.0, 1.0], (20, 6)))
    sums = [released(statistic, row, cell) for row, cell in zip(rows, rng.integers(0, 2, 40), strict=True)]
    moved = sums if neighbours == "add_remove" else [a - b for a in sums for b in sums]
    assert max(sum(abs(item)) for item in moved) <= sensitivity.l1
    assert max(sum(item**2) for item in moved) <= sensitivity.l2_squared


@pytest.mark.parametrize("constant, square", WAYS)
@pytest.mark.parametrize("source", [boxes(3), ball(3), boxes(1)], ids=["boxes", "ball", "one"])
def test_with_public_predictors_the_response_alone_moves(source, constant, square):
    statistic = statistic_of(source, constant=constant, square=square, known=True)
    sensitivity, width = statistic.reading().shape.move("replace"), source.width
    longest = np.full(width, 1 / np.sqrt(width) if source.ball else 1.0)
    sums = [released(statistic, in_units(statistic, np.append(longest, u))) for u in np.linspace(-1, 1, 201)]
    moved = [item - sums[-1] for item in sums]
    assert 0 <= sensitivity.l1 / max(sum(abs(item)) for item in moved) - 1 < 1e-3
    assert 0 <= sensitivity.l2_squared / max(sum(item**2) for item in moved) - 1 < 1e-3
    with pytest.raises(dp.errors.PrivacyError, match="public"):
        statistic.reading().shape.move("add_remove")


def test_public_cells_move_no_more_than_one():
    one = statistic_of(boxes(3), ball(2))
    for apart in (False, True):
        assert replace(one, cells=CELLS, apart=apart).reading().shape.move("replace") == one.reading().shape.move(
            "replace"
        )
