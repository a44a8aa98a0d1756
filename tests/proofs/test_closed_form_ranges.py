"""Closed-form ranges against known values, and against brute force over rows and parameters."""

import itertools
import math

import numpy as np
import pytest

from pymc_dp.families import FAMILIES
from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.proofs.closed_form_ranges import row_range

BINARY = LevelCounts(labels=("0", "1"))


def levels(count):
    return LevelCounts(labels=tuple(map(str, range(count))))


def counts(low, high):
    return BoundedMoments(low=low, high=high, centre=0.0, unit=1.0, half_width=(high - low) / 2, powers=(1,))


def values(low, high, powers=(1, 2)):
    half = (high - low) / 2
    return BoundedMoments(
        low=low, high=high, centre=(low + high) / 2, unit=half / GRID, half_width=half, powers=powers
    )  # fmt: skip


def box(low, high):
    return np.atleast_1d(np.asarray(low, dtype=float)), np.atleast_1d(np.asarray(high, dtype=float))


def found(distribution, statistic, boxes, neighbours="replace", moves=False, moving=None, normalised=True):
    family = FAMILIES[distribution]
    return row_range(family, statistic, boxes, neighbours=neighbours, moves=moves, moving=moving, normalised=normalised)


KNOWN = [
    ("bernoulli", BINARY, [box(0.05, 0.95)], 2.944439, 2 * 2.944439),
    ("bernoulli", BINARY, [box(0.2, 0.8)], math.log(4), 2 * math.log(4)),
    ("bernoulli", BINARY, [box(0.3, 0.6)], 1.695 / 2, 1.253),
    ("poisson", counts(0.0, 20.0), [box(0.5, 5.0)], 112.4 / 2, 46.05),
    ("normal", values(-3.0, 3.0), [box(-1, 1), box(1, 1)], 8.0, 12.0),
    ("normal", values(-3.0, 3.0), [box(-1, 1), box(0.5, 2)], 32.0, None),
]


@pytest.mark.parametrize(("distribution", "statistic", "boxes", "sensitivity", "value"), KNOWN)
def test_known_values_are_met(distribution, statistic, boxes, sensitivity, value):
    result = found(distribution, statistic, boxes)
    assert result.sensitivity == pytest.approx(sensitivity, rel=5e-4)
    if value is not None:
        assert result.value == pytest.approx(value, rel=5e-4)
    assert result.value <= 2 * result.sensitivity * (1 + 1e-6)


# --- brute force ------------------------------------------------------------------------------------------------------


def logp(distribution, x, theta):
    """Log-likelihood of rows (column) under parameter vectors (rows of theta)."""
    x = np.asarray(x)[:, None]
    if distribution == "bernoulli":
        return np.where(x == 1, np.log(theta[:, 0]), np.log1p(-theta[:, 0]))
    if distribution == "categorical":
        return np.log(theta[:, x[:, 0].astype(int)].T)
    if distribution == "poisson":
        return x * np.log(theta[:, 0]) - theta[:, 0] - np.vectorize(math.lgamma)(x + 1)
    return -((x - theta[:, 0]) ** 2) / (2 * theta[:, 1] ** 2) - np.log(theta[:, 1]) - 0.5 * math.log(2 * math.pi)


def brute(distribution, rows, thetas):
    """Largest range and size of d for rows in one cell, and of a row alone, from finitely many parameters."""
    table = logp(distribution, rows, thetas)
    pairs = table[:, None, :] - table[None, :, :]
    return (
        (pairs.max(axis=2) - pairs.min(axis=2)).max(),
        (table.max(axis=1) - table.min(axis=1)).max(),
        abs(pairs).max(),
        abs(table).max(),
    )


def axis(rng, low, high, extra=()):
    inner = [point for point in extra if low <= point <= high]
    return np.unique([low, high, *np.linspace(low, high, 13), *rng.uniform(low, high, 8), *inner])


def scenario(rng, distribution):
    """One cell: (statistic, boxes, rows, parameters)."""
    if distribution == "bernoulli":
        low, high = np.sort(rng.uniform(0.01, 0.99, 2))
        return BINARY, [box(low, high)], [0, 1], axis(rng, low, high)[:, None]
    if distribution == "categorical":
        size = int(rng.integers(2, 5))
        low = rng.dirichlet(np.ones(size)) * rng.uniform(0.1, 0.8)
        high = np.minimum(low + (1 - low.sum()), 1.0)
        spare = rng.dirichlet(np.full(size, 0.5), size=200) * (1 - low.sum())
        corners = np.eye(size) * (1 - low.sum())
        return levels(size), [(low[None], high[None])], list(range(size)), low + np.concatenate([spare, corners])
    if distribution == "poisson":
        first = int(rng.integers(0, 6))
        last = first + int(rng.integers(1, 15))
        low = rng.uniform(0.05, 6)
        high = low + rng.uniform(0.0, 10)
        rows = list(range(first, last + 1))
        return counts(float(first), float(last)), [box(low, high)], rows, axis(rng, low, high, rows)[:, None]
    first = rng.uniform(-5, 2)
    last = first + rng.uniform(0.5, 6)
    mean, sd = np.sort(rng.uniform(-6, 6, 2)), np.sort(rng.uniform(0.2, 4, 2))
    if rng.random() < 0.3:
        sd[1] = sd[0]
    elif rng.random() < 0.3:
        mean[1] = mean[0]
    rows = np.unique([first, last, *np.linspace(first, last, 21), *(m for m in mean if first <= m <= last)])
    thetas = np.array(list(itertools.product(axis(rng, *mean, rows), axis(rng, *sd))))
    return values(first, last), [box(*mean), box(*sd)], rows, thetas


@pytest.mark.parametrize("distribution", ["bernoulli", "categorical", "poisson", "normal"])
def test_no_row_and_no_parameter_exceeds_the_bounds(distribution, rng):
    for _ in range(60):
        statistic, boxes, rows, thetas = scenario(rng, distribution)
        same, alone, same_sup, alone_sup = brute(distribution, rows, thetas)
        replace = found(distribution, statistic, boxes)
        add = found(distribution, statistic, boxes, neighbours="add_remove")
        assert same <= replace.value * (1 + 1e-9) + 1e-12
        assert alone <= add.value * (1 + 1e-9) + 1e-12
        assert same_sup <= replace.sensitivity * (1 + 1e-9) + 1e-12
        assert alone_sup <= add.sensitivity * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("distribution", ["bernoulli", "categorical", "poisson", "normal"])
def test_rows_that_change_their_cell_are_covered(distribution, rng):
    """Cells with boxes of their own: a row leaves one and enters another."""
    for _ in range(25):
        seed, count = rng.integers(2**32), int(rng.integers(2, 4))
        first = scenario(np.random.default_rng(seed), distribution)
        cells = [first]
        while len(cells) < count:
            other = scenario(rng, distribution)
            if distribution == "categorical" and other[0] != first[0]:
                continue
            cells.append((first[0], other[1], first[2], other[3]))
        boxes = [
            tuple(np.concatenate([cell[1][place][end] for cell in cells]) for end in (0, 1))
            for place in range(len(first[1]))
        ]
        tables = [brute(distribution, first[2], cell[3]) for cell in cells]
        stays = max(table[0] for table in tables)
        leaves = max(a[1] + b[1] for a, b in itertools.combinations(tables, 2))
        held = found(distribution, first[0], boxes, moves=False)
        moved = found(distribution, first[0], boxes, moves=True)
        assert stays <= held.value * (1 + 1e-9)
        assert max(stays, leaves) <= moved.value * (1 + 1e-9)
        assert max(a[3] + b[3] for a, b in itertools.combinations(tables, 2)) <= moved.sensitivity * (1 + 1e-9)
        assert held.value <= moved.value


@pytest.mark.parametrize(
    ("distribution", "statistic", "boxes"),
    [
        ("bernoulli", BINARY, [box(0, 1)]),
        ("bernoulli", BINARY, [box(0, 0.5)]),
        ("bernoulli", BINARY, [box(0.5, 1)]),
        ("bernoulli", BINARY, [box(-0.1, 0.5)]),
        ("bernoulli", BINARY, [box(0.5, 1.1)]),
        ("categorical", levels(2), [(np.zeros((1, 2)), np.ones((1, 2)))]),
        ("poisson", counts(0.0, 5.0), [box(0, 5)]),
        ("poisson", counts(0.0, 5.0), [box(1, np.inf)]),
        ("poisson", counts(0.0, 5.0), [box(-1, 2)]),
        ("normal", values(-1.0, 1.0), [box(-1, np.inf), box(1, 2)]),
        ("normal", values(-1.0, 1.0), [box(-np.inf, np.inf), box(1, 1)]),
        ("normal", values(-1.0, 1.0), [box(-1, 1), box(0, 2)]),
        ("normal", values(-1.0, 1.0), [box(-1, 1), box(-1, 2)]),
    ],
)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_without_bounds_the_range_is_infinite(distribution, statistic, boxes, neighbours):
    assert found(distribution, statistic, boxes, neighbours).value == math.inf
