"""Sums over a million rows: no order of them shows, and one of them moves no more than is booked."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.fuzz.engine import ROUNDING, ranges
from tests.fuzz.mutants import SummedInFloats, summed_by
from tests.fuzz.samplers import Gibbs, OneSample, Subject
from tests.fuzz.seen import Seen, watching

ROWS, WIDE = 1_000_000, 1e5
"""Numbers of this size leave a float sum of them few digits for what depends on the parameter."""


def laplace(relation: str) -> tuple[pm.Model, dp.Domain]:
    count = ROWS if relation == "replace" else 7
    with pm.Model() as model:
        pm.CustomDist("y", pm.Uniform("mu", 0, 1), logp=lambda v, mu: -abs(v - mu), observed=np.zeros(count))
    n_max = None if relation == "replace" else ROWS
    return model, dp.Domain(bounds={"y": (-WIDE, WIDE)}, neighbours=relation, n_max=n_max)


def weights(subject: Subject, tables: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
    """Log weights of the first draw on each table, and what is booked for it."""
    seen, found = Seen(), []
    table: dict[object, np.ndarray] = {}
    with watching(seen, table):
        for rows in tables:
            table[subject.columns[0].leaf] = rows
            subject.run(seen, 0)
            found.append(seen.calls[0])
    return [held for held, _ in found], found[0][1]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", [OneSample, pytest.param(Gibbs, marks=pytest.mark.slow)])
def test_the_order_of_a_million_rows_does_not_show_and_one_of_them_moves_what_is_booked(kind, relation, rng):
    subject = kind(*laplace(relation), grid=4, **({"uses": 1} if kind is Gibbs else {}))
    rows = rng.uniform(-WIDE, WIDE, ROWS)
    rows[:2] = -WIDE, WIDE
    less = rng.permutation(rows[1:])
    changed = less if relation == "add_remove" else np.append(less, WIDE)
    (one, shuffled, other), claimed = weights(subject, [rows, rng.permutation(rows), changed])
    assert (one == shuffled).all()
    used = float(ranges(one[None], other[None])[0, 0])
    assert 0.5 * claimed < used <= claimed * (1 + ROUNDING)


def test_a_sum_of_floats_shows_the_order_of_its_rows(rng):
    with summed_by(SummedInFloats):
        subject = OneSample(*laplace("replace"), grid=4)
        rows = rng.uniform(-WIDE, WIDE, ROWS)
        (one, shuffled), _ = weights(subject, [rows, rng.permutation(rows)])
    assert (one != shuffled).any()
