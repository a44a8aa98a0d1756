"""Sums of a regression are those that Python's own integers give, whatever the table holds."""

from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.families.gram import FINEST_BITS, GramSums, Source, grid_bits
from pymc_dp.kernel import gram_sums as gram_rows
from pymc_dp.kernel import tallies
from pymc_dp.rows.sums import sum_products

N_ROWS = 1100  # more than two chunks
HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, 1e16, 3.0, -3.0)
BOX = Source(name="x", centres=(50.0, 52.5, 0.0), halves=(50.0, 47.5, 1e-3))
BALL = Source(name="z", centres=(0.0,) * 4, halves=(2.5,) * 4, ball=True)
FLAG = Source(name="flag", centres=(0.5,), halves=(0.5,))
RESPONSE = Source(name="y", centres=(1.0,), halves=(3.0,))
STATISTIC = GramSums(sources=(BOX, BALL, FLAG), response=RESPONSE)
CELLS = ("a", "b", "c")
SHAPES = {
    "one cell": {},
    "sizes": {"sizes_known": False},
    "bare": {"constant": False, "square": False},
    "known": {"known": True},
    "private cells": {"cells": CELLS, "sizes_known": False},
    "apart": {"cells": CELLS, "sizes_known": False, "apart": True},
    "known apart": {"cells": CELLS, "known": True, "apart": True, "square": False},
    "apart, bare": {"cells": CELLS, "apart": True, "constant": False},
}


def table(rng: np.random.Generator, n_rows: int = N_ROWS) -> list[np.ndarray]:
    """Values inside and outside of bounds, and hostile ones; a flag; a response of float32."""
    box, ball = rng.normal(50, 60, (n_rows, 3)), rng.normal(0, 1.5, (n_rows, 4))
    for values in (box, ball):
        places = rng.random(values.shape) < 0.1
        values[places] = rng.choice(HOSTILE, places.sum())
    return [box, ball, rng.random(n_rows) < 0.4, rng.normal(1, 3, n_rows).astype(np.float32)]


def box_integers(source: Source, row: np.ndarray, bits: int) -> list[int]:
    found = []
    for value, centre, half in zip(np.float64(row), source.centres, source.halves, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            k = (value - centre) * (2.0**bits / half)
        found.append(0 if np.isnan(k) else round(min(max(k, -(2.0**bits)), 2.0**bits)))
    return found


def ball_integers(source: Source, row: np.ndarray, bits: int) -> list[int]:
    with np.errstate(over="ignore"):
        t = [
            0.0 if np.isnan(v) else float(np.clip(v * (1 / h), -1e150, 1e150))
            for v, h in zip(row, source.halves, strict=True)
        ]
    length = 0.0
    for item in t:
        length += item * item
    factor = 2.0**bits / float(np.sqrt(max(length, 1.0)))
    return [int(item * factor) for item in t]


def rows_of_integers(statistic: GramSums, arrays: list[np.ndarray]) -> list[list[int]]:
    """What stands for t and u of every row."""
    sources = (*statistic.sources, statistic.response)
    of = [ball_integers if source.ball else box_integers for source in sources]
    lines = zip(*[values.reshape(len(values), -1) for values in arrays], strict=True)
    return [
        [k for f, s, row in zip(of, sources, line, strict=True) for k in f(s, row, statistic.bits)] for line in lines
    ]


def slow_sums(statistic: GramSums, rows: list[list[int]], code: np.ndarray) -> list[int]:
    d, top = statistic.width, 2**statistic.bits
    tables = [dict.fromkeys(keys(d), 0) for _ in statistic.cells]
    for row, cell in zip(rows, code, strict=True):
        full = [*row, top]
        for i, j in keys(d):
            tables[cell][i, j] += full[i] * full[j]
    first = [*([] if statistic.known else range(d)), d] if statistic.constant else []
    pairs = [] if statistic.known else [(i, j) for i, j in keys(d) if j < d]
    second = [*pairs, *((i, d) for i in range(d)), *([(d, d)] if statistic.square else [])]
    ends = tables if statistic.apart else [{key: sum(t[key] for t in tables) for key in second}]
    return [
        *([] if statistic.sizes_known else [t[d + 1, d + 1] for t in tables]),
        *(t[i, d + 1] for t in tables for i in first),
        *(t[key] for t in ends for key in second),
    ]


def keys(d: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(d + 2) for j in range(i, d + 2)]


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(601)
    arrays = table(rng)
    return arrays, rows_of_integers(STATISTIC, arrays), rng.integers(0, len(CELLS), N_ROWS).astype(np.int32)


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_those_of_python_integers(hostile, shape):
    arrays, rows, code = hostile
    statistic = replace(STATISTIC, **SHAPES[shape])
    code = code if len(statistic.cells) > 1 else np.zeros_like(code)
    found = sum_products(statistic, arrays[:-1], arrays[-1], code if len(statistic.cells) > 1 else None)
    assert found.dtype == np.int64 and found.shape == (statistic.count,)
    assert found.tolist() == slow_sums(statistic, rows, code)


def test_neither_order_of_rows_nor_layout_nor_threads_make_a_difference(hostile, monkeypatch):
    arrays, _, code = hostile
    statistic = replace(STATISTIC, **SHAPES["private cells"])
    expected = sum_products(statistic, arrays[:-1], arrays[-1], code)
    order = np.random.default_rng(602).permutation(N_ROWS)
    other = [np.asfortranarray(values[order]) for values in arrays]
    for values in other:
        values.flags.writeable = False
    monkeypatch.setattr(tallies, "ROWS_PER_SPAN", 100)
    monkeypatch.setattr(tallies, "processors", lambda: 3)
    found = sum_products(statistic, other[:-1], other[-1], code[order])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", [2, 3, 50, 4100])
def test_no_row_leaves_its_ball(width):
    rng = np.random.default_rng(604)
    ball = Source(name="z", centres=(0.0,) * width, halves=(0.7,) * width, ball=True)
    statistic = GramSums(sources=(ball,), response=RESPONSE)
    rows = rng.normal(size=(20, width)) * np.geomspace(1e-3, 1e3, 20)[:, None]
    rows[:3] = np.array([[0.7 / np.sqrt(width)], [np.inf], [1e308]])
    rows[3:5] = 0.0
    rows[3, 0], rows[4, :2] = 0.7, (np.inf, -np.inf)
    held, lengths = np.zeros((width, 20)), np.zeros(20)
    gram_rows._loops().hold_ball(rows, np.full(width, 0.7), 2.0**statistic.bits, held, lengths)
    squares = [sum(int(k) ** 2 for k in held[:, i]) for i in range(20)]
    assert max(squares) <= 4**statistic.bits
    assert isqrt(squares[3]) >= 2**statistic.bits - 1 and held[0, 4] == -held[1, 4]
    assert min(squares[:3]) > Fraction(99, 100) * 4**statistic.bits


def test_more_rows_than_fit_are_refused_before_a_row_is_read():
    limit = 2**22
    assert grid_bits(limit - 1) == FINEST_BITS and grid_bits(limit) == FINEST_BITS - 1
    values = np.broadcast_to(np.nan, limit + 1)
    with pytest.raises(dp.errors.PrivacyError, match="2..32 rows"):
        sum_products(GramSums(sources=(FLAG,), response=RESPONSE), [values], values)
