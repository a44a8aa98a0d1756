"""Mechanisms with one mistake each: every one must be found by the audit named, which lets the right one through."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pymc_dp.accounting import ComposedEvent, SelfComposedEvent, pure_epsilon
from pymc_dp.accounting.events import DiscreteLaplaceEvent
from pymc_dp.accounting.totals import Total
from pymc_dp.audit import audit, compare_with_event, fuzz_sensitivity, product
from pymc_dp.families.statistic import GRID, BoundedMoments
from pymc_dp.release import blocks as layout
from pymc_dp.release import plan
from pymc_dp.release.noise import GAUSSIAN, LAPLACE, sums_sensitivity
from pymc_dp.testing import insecure_randomness
from tests.accounting.oracle import laplace as laplace_event
from tests.audit import pipeline
from tests.audit.pipeline import INF, NAN
from tests.audit.test_quadrature import counts_loss

# Found by black-box runs of the whole release.


def black_box(seed, line, table, neighbour, mechanism=None):
    """Noise is seeded, so that the outcome of a test does not change from day to day."""
    held = iter(range(1000))

    def seeded(rows, runs):
        with insecure_randomness(seed + next(held)):
            return (mechanism or line.mechanism)(rows, runs)

    return audit(seeded, table, neighbour, epsilon=line.epsilon, delta=line.delta, vectorised=True, progressbar=False)


def dies(monkeypatch, seed, mutate, line, table, neighbour):
    right = black_box(seed, line, table, neighbour)
    assert right.passed, right.report()
    mutate(monkeypatch)
    mutant = black_box(seed, line, table, neighbour)
    assert not mutant.passed, mutant.report()
    assert "claim disproved" in mutant.report()


def believe(monkeypatch):
    """The accountant believes what the plan claims."""
    nothing = Total(epsilon=0.0, delta=0.0, accountant="pure")
    monkeypatch.setattr(plan, "total_epsilon", lambda event, delta: nothing)


def scaled_noise(factor):
    def mutate(monkeypatch):
        right = LAPLACE.calibrate
        monkeypatch.setattr(LAPLACE, "calibrate", lambda sensitivity, eps: factor * right(sensitivity, eps))
        believe(monkeypatch)

    return mutate


@pytest.mark.parametrize(
    "factor", [0.5, 0.8, 0.5**0.5], ids=["noise halved", "noise 20% short", "scale read as standard deviation"]
)
def test_noise_that_is_short(monkeypatch, seed, factor):
    dies(monkeypatch, seed, scaled_noise(factor), pipeline.bernoulli("replace"), [(0,)], [(1,)])


def test_sensitivity_left_out_of_the_scale(monkeypatch, seed):
    """noise_multiplier used as the scale: right for one count only."""

    def mutate(monkeypatch):
        right = LAPLACE.calibrate
        monkeypatch.setattr(LAPLACE, "calibrate", lambda sensitivity, eps: right(1, eps))
        believe(monkeypatch)

    dies(monkeypatch, seed, mutate, pipeline.poisson("replace"), [(5,)], [(100,)])


def test_one_sided_shift_of_a_table(monkeypatch, seed):
    """Δ = 1 for a table of K > 2 counts: each count alone looks right."""

    def mutate(monkeypatch):
        right = layout.counts_sensitivity
        wrong = {"l1": 1, "shifts": (1,)}
        monkeypatch.setattr(layout, "counts_sensitivity", lambda *a, **k: replace(right(*a, **k), **wrong))

    dies(monkeypatch, seed, mutate, pipeline.categorical("replace"), [(0,), (1,)], [(2,), (1,)])


def test_seed_reused(monkeypatch, seed):
    """Two variables with the same noise: its difference shows both rows."""

    def mutate(monkeypatch):
        def reused(sums, scale):
            return sums + LAPLACE.simulated(np.random.default_rng(hold["seed"]), scale, sums.shape)

        monkeypatch.setattr(LAPLACE, "add", reused)

    line = pipeline.two_variables("replace")
    hold = {"seed": seed}
    right = line.mechanism

    def new_seed(rows, runs):
        hold["seed"] += 1
        return right(rows, runs)

    table, neighbour = [(0, 1)], [(1, 1)]
    assert black_box(seed, line, table, neighbour, new_seed).passed
    mutate(monkeypatch)
    found = black_box(seed, line, table, neighbour, new_seed)
    assert found.epsilon_lower > 5, found.report()


def test_budget_not_split_between_variables(monkeypatch, seed):
    def mutate(monkeypatch):
        right = LAPLACE.calibrate
        monkeypatch.setattr(LAPLACE, "calibrate", lambda sensitivity, eps: right(sensitivity, 2 * eps))
        believe(monkeypatch)

    dies(monkeypatch, seed, mutate, pipeline.two_variables("replace"), [(0, 0)], [(1, 1)])


def test_release_projected_by_the_data(monkeypatch, seed):
    """Counts cut at what the data allow, instead of at the public number of rows."""

    def mutate(monkeypatch):
        right = LAPLACE.add
        monkeypatch.setattr(LAPLACE, "add", lambda sums, scale: np.clip(right(sums, scale), 0, 2 * sums))

    dies(monkeypatch, seed, mutate, pipeline.bernoulli("replace"), [(0,), (0,)], [(1,), (0,)])


def test_exact_count_released_beside(monkeypatch, seed):
    """Under add_remove the number of rows is private; a mutant releases it as it is."""

    def mutate(monkeypatch):
        right = LAPLACE.add

        def forgets_sizes(sums, scale):
            return sums.copy() if sums.shape[1] == 1 else right(sums, scale)

        monkeypatch.setattr(LAPLACE, "add", forgets_sizes)

    dies(monkeypatch, seed, mutate, pipeline.normal("add_remove"), [(5.0,), (5.0,)], [(5.0,)])


# The same for Gaussian noise, at a δ that 20,000 runs can see.


@pytest.mark.parametrize(
    ("kind", "row", "other"),
    [(pipeline.bernoulli, 0, 1), (pipeline.categorical, 0, 2), (pipeline.normal_mean, 5.0, 100.0)],
)
def test_gaussian_noise_short_by_the_root_of_two(monkeypatch, seed, kind, row, other):
    """A variance read as twice what it is, or the shift of one count charged where a row moves two."""

    def mutate(monkeypatch):
        right = GAUSSIAN.add
        monkeypatch.setattr(GAUSSIAN, "add", lambda sums, scale: right(sums, scale / 2**0.5))

    line = kind("replace").with_gaussian_noise(0.05)
    dies(monkeypatch, seed, mutate, line, [(row,)], [(other,)])


def test_gaussian_sensitivity_of_one_count_for_a_table(monkeypatch, seed):
    def mutate(monkeypatch):
        right, wrong = layout.counts_sensitivity, {"l2_squared": 1, "shifts": (1,)}
        monkeypatch.setattr(layout, "counts_sensitivity", lambda *a, **k: replace(right(*a, **k), **wrong))

    line = pipeline.categorical("replace").with_gaussian_noise(0.05)
    dies(monkeypatch, seed, mutate, line, [(0,), (1,)], [(2,), (1,)])


# Found by fuzzing the sensitivity of sums.

VALUES = [(x,) for x in (-1e9, 0.0, 5.0, 20.0, 52.5, 100.0, 1e9, INF, NAN)]


@dataclass(frozen=True)
class Sum:
    """A small copy of the sum of one bounded column, with a place for each mistake."""

    low: float = 5.0
    high: float = 100.0
    clamp: bool = True
    replace_nan: bool = True
    clamp_by_data: bool = False

    @property
    def statistic(self):
        return BoundedMoments(low=self.low, high=self.high, centre=0.0, unit=2**-20, half_width=100.0, powers=(1,))

    def __call__(self, rows):
        values = np.array([row[0] for row in rows], dtype=float)
        if self.replace_nan:
            values = np.where(np.isnan(values), (self.low + self.high) / 2, values)
        low, high = self.low, self.high
        if self.clamp_by_data and len(values):
            low, high = values.min(), values.max()
        if self.clamp:
            values = np.minimum(np.maximum(values, low), high)
        with np.errstate(invalid="ignore"):
            return np.rint(values / self.statistic.unit).sum()


def sensitivity_of(statistic, relation="replace", *, sizes_known=None):
    known = relation == "replace" if sizes_known is None else sizes_known
    return sums_sensitivity(statistic, relation, sizes_known=known).l1


@pytest.mark.parametrize("mistake", [{"clamp": False}, {"replace_nan": False}, {"clamp_by_data": True}], ids=str)
def test_clamp_missing_nan_kept_or_clamp_by_data(mistake):
    def fuzz(total):
        return fuzz_sensitivity(total, VALUES, claimed=sensitivity_of(total.statistic))

    assert fuzz(Sum()).passed and fuzz(Sum()).sensitivity == 95 * 2**20
    assert not fuzz(Sum(**mistake)).passed


def test_index_not_clamped():
    """A category out of range must fall to level 0, not into a neighbouring cell or out of the table."""
    levels = np.arange(3)

    def table(rows, clamp=True):
        counts = np.zeros(8, dtype=int)
        for (k,) in rows:
            if clamp:
                counts[k if k in levels else 0] += 1
            else:
                counts[: k + 1] += 1
        return counts

    corners = [(k,) for k in (-1, 0, 1, 2, 3, 7)]
    assert fuzz_sensitivity(table, corners, claimed=2).passed
    assert not fuzz_sensitivity(lambda rows: table(rows, clamp=False), corners, claimed=2).passed


def grouped_sums(statistic):
    """Sums per private cell; a row is (cell, value)."""

    def sums(rows):
        table = np.zeros((2, len(statistic.powers)))
        for cell, value in rows:
            k = np.rint((np.clip(value, statistic.low, statistic.high) - statistic.centre) / statistic.unit)
            steps = {1: k, 2: np.rint(k**2 / GRID) - statistic.offset}
            table[cell] += [steps[power] for power in statistic.powers]
        return table

    return sums


GROUPED = [(cell, value) for cell in (0, 1) for value in (0.0, 5.0, 28.75, 52.5, 100.0)]
UNCENTRED = BoundedMoments(low=5, high=100, centre=0, unit=1.0, half_width=100, powers=(1,))
BOTH_POWERS = BoundedMoments(
    low=5, high=100, centre=52.5, unit=47.5 / GRID, half_width=47.5, powers=(1, 2), offset=GRID // 2
)
SQUARES = BoundedMoments(low=5, high=100, centre=0, unit=100 / GRID, half_width=100, powers=(2,), offset=GRID // 2)


@pytest.mark.parametrize("statistic", [UNCENTRED, BOTH_POWERS, SQUARES], ids=["sum", "both powers", "squares"])
def test_width_of_the_bounds_taken_for_a_private_group(statistic):
    """(5, 100): 95 where a row changes its value, 200 where it takes it to another cell."""
    right = sensitivity_of(statistic, sizes_known=False)
    fuzz = {"corner_rows": GROUPED, "sizes": (1, 2)}
    found = fuzz_sensitivity(grouped_sums(statistic), claimed=right, **fuzz)
    assert found.passed and found.sensitivity >= right * (1 - 1e-6)
    mutant = sensitivity_of(statistic, sizes_known=True)  # u - l
    assert not fuzz_sensitivity(grouped_sums(statistic), claimed=mutant, **fuzz).passed


def test_largest_value_taken_for_the_width():
    """max(|l|, |u|) where u - l is due: too little as soon as the bounds have two signs."""
    total = Sum(low=-100.0, high=100.0)
    assert fuzz_sensitivity(total, VALUES, claimed=sensitivity_of(total.statistic)).passed
    assert not fuzz_sensitivity(total, VALUES, claimed=total.statistic.magnitude).passed


def test_lower_bound_used_twice(monkeypatch):
    total = Sum()
    assert fuzz_sensitivity(total, VALUES, claimed=sensitivity_of(total.statistic)).passed
    right = BoundedMoments.reach.fget
    monkeypatch.setattr(BoundedMoments, "reach", property(lambda self: (right(self)[0],) * 2))
    for relation in ("replace", "add_remove"):
        claimed = sensitivity_of(total.statistic, relation)
        assert not fuzz_sensitivity(total, VALUES, claimed=claimed, relation=relation).passed


def test_width_of_the_bounds_taken_under_add_remove():
    """Sup - inf is the sensitivity of a row that is replaced; one that is added brings its whole value."""
    total = Sum()
    options = {"relation": "add_remove", "sizes": (1, 3)}
    found = fuzz_sensitivity(total, VALUES, claimed=sensitivity_of(total.statistic, "add_remove"), **options)
    assert found.passed and found.sensitivity == 100 * 2**20
    assert not fuzz_sensitivity(total, VALUES, claimed=total.statistic.spread, **options).passed


def test_float_sums_instead_of_integer_sums():
    """Values in [0, 1]: a float64 sum moves by more than 1, because adding rounds; a sum of grid steps does not."""
    corners = [(1.0,), (3 * 2.0**-52,), (0.0,)]

    def float_sum(rows):
        total = 0.0
        for (x,) in rows:
            total += x
        return total

    def integer_sum(rows):
        return sum(round(x * GRID) for (x,) in rows)

    options = {"sizes": (1, 2, 3), "tries": 300}
    assert fuzz_sensitivity(integer_sum, corners, claimed=GRID, **options).passed
    found = fuzz_sensitivity(float_sum, corners, claimed=1, **options)
    assert not found.passed and found.sensitivity > 1


# Found by exact losses beside the event that is charged.


def test_count_dropped_in_composition(monkeypatch):
    event = SelfComposedEvent(event=laplace_event(3.0, 1), count=3)
    loss = product(*[counts_loss(3.0)] * 3)
    assert compare_with_event(loss, event).passed
    monkeypatch.setattr("pymc_dp.accounting.pure.leaves", lambda event: {event.event: 1})
    monkeypatch.setattr("pymc_dp.accounting.zcdp.leaves", lambda event: {event.event: 1})
    monkeypatch.setattr("pymc_dp.accounting.pld.leaves", lambda event: {event.event: 1})
    assert not compare_with_event(loss, event).passed


def test_shifts_of_a_table_charged_once():
    """One shift of 1 charged for a table in which a row moves two counts."""
    loss = product(counts_loss(2.0), counts_loss(2.0))
    right = DiscreteLaplaceEvent(scale=2.0, shifts=(1, 1))
    assert compare_with_event(loss, right).passed
    assert not compare_with_event(loss, DiscreteLaplaceEvent(scale=2.0, shifts=(1,))).passed


def test_one_table_charged_for_two():
    events = tuple(DiscreteLaplaceEvent(scale=4.0, shifts=(1,)) for _ in range(2))
    loss = product(counts_loss(4.0), counts_loss(4.0))
    assert compare_with_event(loss, ComposedEvent(events=events)).passed
    assert pure_epsilon(events[0]) < loss.epsilon
    assert not compare_with_event(loss, events[0]).passed
