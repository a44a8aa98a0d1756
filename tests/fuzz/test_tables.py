"""Likelihoods of exact sums: whole numbers as they come in, but a density of them in floats, of ten million rows."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.families.statistic import GRID
from pymc_dp.transforms import likelihood
from tests.fuzz.engine import ROUNDING, Found, compare
from tests.fuzz.samplers import Gibbs, OneSample, Subject

MANY = 10_000_000
UNIT = (0.0, 1.0)


def between(low: float, high: float) -> object:
    """A parameter without a conjugate form: it is drawn on a grid."""
    return low + (high - low) * pm.Uniform("u", 0, 1)


def normal(low: float, high: float, rows: int = 7) -> tuple[pm.Model, dp.Domain]:
    with pm.Model() as model:
        pm.Normal("y", between(low, high), 1.0, observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": UNIT})


def normal_of_two(low: float, high: float, least: float, most: float, rows: int = 7) -> tuple[pm.Model, dp.Domain]:
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", low, high), pm.Uniform("sd", least, most), observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": UNIT})


def poisson(low: float, high: float, most: int, rows: int = 7) -> tuple[pm.Model, dp.Domain]:
    with pm.Model() as model:
        pm.Poisson("y", between(low, high), observed=np.zeros(rows, dtype=int))
    return model, dp.Domain(bounds={"y": (0, most)})


def bernoulli(low: float, high: float, rows: int = 7) -> tuple[pm.Model, dp.Domain]:
    with pm.Model() as model:
        pm.Bernoulli("y", between(low, high), observed=np.zeros(rows, dtype=int))
    return model, dp.Domain()


def sums_of(first: list[int], one_row: list[int], subject: Subject) -> Found:
    """Compare tables of which one has `one_row` more than the other in its sums."""
    with pytest.MonkeyPatch.context() as patch:
        tables = iter([[first], [list(map(sum, zip(first, one_row, strict=True)))]])
        patch.setattr(likelihood, "sum_rows", lambda *args, **options: np.array(next(tables), dtype=np.int64))
        return compare(subject, [], [])


EDGE = [MANY, -MANY * GRID], [0, 2 * GRID]
"""Number of rows and sum of the values about the middle of their bounds; all at one end, then one at the other."""
SQUARES = [*EDGE[0], MANY * GRID], [*EDGE[1], 0]

TRIED: dict[str, tuple[Callable[[], tuple[pm.Model, dp.Domain]], list[int], list[int]]] = {
    "normal": (lambda: normal(-1, 1), *EDGE),
    "normal, far mean": (lambda: normal(999, 1001), *EDGE),
    "normal of two": (lambda: normal_of_two(-1, 1, 0.5, 2), *SQUARES),
    "normal, small sd": (lambda: normal_of_two(0, 1, 1e-6, 1e-5), *SQUARES),
    "poisson": (lambda: poisson(0.5, 5, 10), [MANY, 0], [0, 10]),
    "bernoulli": (lambda: bernoulli(0.05, 0.95), [MANY, 0], [-1, 1]),
    "bernoulli, small": (lambda: bernoulli(1e-12, 1e-11), [MANY, 0], [-1, 1]),
}
SOME = 200_000
FEW_EDGE = [SOME, -SOME * GRID], [0, 2 * GRID]
ROUNDED: dict[str, tuple[Callable[[], tuple[pm.Model, dp.Domain]], list[int], list[int]]] = {
    "normal, mean further away": (lambda: normal(1e6, 1e6 + 1, SOME), *FEW_EDGE),
    "normal, a thousand rows": (lambda: normal(1e6, 1e6 + 1, 1000), [1000, -1000 * GRID], [0, 2 * GRID]),
    "normal of two, far mean": (
        lambda: normal_of_two(99, 100, 0.5, 1, SOME),
        [*FEW_EDGE[0], SOME * GRID],
        [*FEW_EDGE[1], 0],
    ),
    "poisson, large rates": (lambda: poisson(1e9, 2e9, 1000, SOME), [SOME, 0], [0, 1000]),
    "bernoulli, nearly known": (lambda: bernoulli(0.5, 0.5 + 1e-6, SOME), [SOME, 0], [-1, 1]),
}
"""Of which floats of so many rows have few digits left for one of them: refused, or their rounding is charged."""
DROWNED = ("normal, mean further away", "normal, a thousand rows")


def assert_holds(kind, case, **settings) -> None:
    make, first, row = case
    model, domain = make()
    subject = kind(model, domain, **settings)
    found = sums_of(first, row, subject)
    assert 0.5 * found.claimed < found.used <= found.claimed * (1 + ROUNDING)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", TRIED)
def test_one_row_of_ten_million_moves_no_more_than_is_booked(name):
    assert_holds(OneSample, TRIED[name])


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["normal", "poisson", "bernoulli"])
def test_a_conditional_of_ten_million_rows_moves_no_more(name):
    assert_holds(Gibbs, TRIED[name])


@pytest.mark.parametrize("name", [name for name in ROUNDED if name not in DROWNED])
def test_rounding_of_a_density_of_sums_is_within_what_is_booked(name):
    assert_holds(OneSample, ROUNDED[name], grid=32)


@pytest.mark.parametrize("name", DROWNED)
def test_sums_beside_which_one_row_has_no_digits_are_refused(name):
    make, _, _ = ROUNDED[name]
    model, domain = make()
    with pytest.raises(UnsupportedModelError, match="no digits left"):
        OneSample(model, domain, grid=32)
