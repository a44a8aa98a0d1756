"""Neighbours for tests of the kernel: rows whose numbers are any floats, and what two tables lead to, exactly."""

import os
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np

from pymc_dp.kernel import Column, Kernel, RowMap, Table, holder
from pymc_dp.kernel.account import Rehearsal

NASTY = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1.0, -1.0, 1e16, -1e16, 1e-9, 0.1, 37.5])
PAIRS = int(os.environ.get("PYMC_DP_PAIRS", "200"))
"""Of neighbours for each operation and relation; `make test-slow` takes 1,000."""
RELATIONS = ("replace", "add_remove", "persons")


class Lookup(RowMap):
    """A row map of any floats: a row is a number, and its numbers stand in a list."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers, dtype=float)
        self._types, self._wanted = (("i", "int64", ()),), ()

    def __call__(self, rows, parameters, out, *, by_blocks):
        out[:] = self.numbers[rows[0]]


holder.ROW_MAPS.add(Lookup)


def nasty(rng, *shape):
    plain = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape)
    return np.where(rng.random(shape) < 0.25, rng.choice(NASTY, shape), plain)


def table(rows, relation, *, cells=None, public=False, owner=None, weights=None, max_rows=3):
    columns = {"i": Column(np.asarray(rows, dtype=np.int64), 0, 10**6)}
    if cells is not None:
        columns["c"] = Column(np.asarray(cells, dtype=np.int64), *(() if public else (-1, 9)), public=public)
    if relation == "persons":
        return Table(columns, neighbours="add_remove", person=np.asarray(owner), max_rows=max_rows, weights=weights)
    return Table(columns, neighbours=relation, weights=weights)


def kernel(made):
    """A kernel whose charges are noted, and not refused."""
    return Kernel(made, Rehearsal(made.relation))


def pair(rng, relation, *, cells=None, public=False, weighted=False, most=12, count=400):
    """Two neighbouring tables of rows that stand for the numbers of `count`; and which numbers differ."""
    n = int(rng.integers(2, most))
    rows, own = rng.integers(0, count, n), None if cells is None else rng.integers(-1, cells + 1, n)
    weights = rng.choice([0.0, 1.0, 0.5, 0.3, np.nan, 2.0, -1.0], n) if weighted else None
    options = {"cells": own, "public": public, "weights": weights}
    if relation == "replace":
        others, place = rows.copy(), int(rng.integers(n))
        others[place] = rng.integers(0, count)
        other = dict(options)
        if own is not None and not public:
            other["cells"] = own.copy()
            other["cells"][place] = rng.integers(-1, cells + 1)
        if weighted:
            other["weights"] = weights.copy()
            other["weights"][place] = rng.choice([0.0, 1.0, 0.7])
        return table(rows, relation, **options), table(others, relation, **other)
    owner = rng.integers(0, 3, n)
    left = owner != owner[0] if relation == "persons" else np.arange(n) != 0
    if not left.any():
        left[-1], owner[-1] = True, 9
    first = table(rows, relation, owner=owner, **options)
    fewer = {name: value if value is None or name == "public" else value[left] for name, value in options.items()}
    return first, table(rows[left], relation, owner=owner[left] + 7, **fewer)


def exp_down(exponent):
    """A fraction just below e^exponent."""
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        value = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        return Fraction(value.exp()) * (1 - Fraction(1, 10**45))


def spread_of_ratios(one, two):
    """max_k (w_k / w'_k) / min_k (w_k / w'_k), exactly; both choices have to exclude the same candidates."""
    possible = one > 0
    assert ((two > 0) == possible).all()
    ratios = [Fraction(int(a), int(b)) for a, b in zip(one[possible], two[possible], strict=True)]
    return max(ratios) / min(ratios)
