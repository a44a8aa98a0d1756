"""What is released beside a walk: at the scales that are charged, of rows and persons as bounded as is charged."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget, total_epsilon
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.integers import SCORE_UNITS
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.misfit import Residuals
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.persons import PersonParts
from pymc_dp.gradients.release import NoisedSums, units
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import BINS, Extras, Limits, Schedule, stages_of
from pymc_dp.gradients.tails import edges_of
from pymc_dp.gradients.weighted import WeightedParts
from pymc_dp.release.noise import GAUSSIAN
from pymc_dp.rows.gate import read
from pymc_dp.rows.persons import Grouped
from pymc_dp.testing import insecure_randomness, without_noise
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")
BUDGET = Budget(1.0, 1e-5)
ALL = Extras(weights=0.02, norms=0.04, squares=0.08, columns=0.015, moments=9, fit=0.02, checks=9)


def weighted(neighbours="replace"):
    rng = np.random.default_rng(3)
    with pm.Model() as model:
        pm.Data("w", rng.uniform(0, 4, models.ROWS))
        eta = pm.Normal("a") + pm.Data("x", rng.uniform(-1, 1, (models.ROWS, 2))) @ pm.Normal("b", shape=2)
        pm.Bernoulli("y", logit_p=eta, observed=rng.integers(0, 2, models.ROWS))
    n_max = 2 * models.ROWS if neighbours == "add_remove" else None
    bounds = {"x": (-1, 1), "w": (0, 4)}
    return model, dp.Domain(bounds=bounds, weights={"y": "w"}, neighbours=neighbours, n_max=n_max)


def of_persons():
    model, domain = models.bernoulli()
    with model:
        pm.Data("person", np.arange(models.ROWS) // 3)
    return model, replace(domain, neighbours="add_remove", n_max=20, unit=dp.Unit("person", max_rows=4))


def plain(neighbours="replace"):
    model, domain = models.bernoulli()
    return model, replace(domain, neighbours=neighbours, n_max=60 if neighbours == "add_remove" else None)


CHOICES = [
    (plain, {}),
    (lambda: plain("add_remove"), {"robust": True}),
    (plain, {"trust_model": True}),
    (plain, {"columns": {"x": pm.Uniform.dist(-1, 1, shape=3)}}),
    (plain, {"momentum_steps": 20}),
    (weighted, {}),
    (lambda: weighted("add_remove"), {}),
    (of_persons, {"robust": True}),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("build", "given"), CHOICES)
def test_a_walk_draws_the_noise_of_its_events_and_no_other(build, given, monkeypatch):
    """Every call for noise: its scale, and how many numbers it is for."""
    planned = Planned.of(dp.Gradients(steps=10, **given), interface_of(*build()), BUDGET)
    drawn = []

    def add(values, scale):
        drawn.append((scale, np.size(values)))
        return GAUSSIAN.add(values, scale)

    monkeypatch.setattr("pymc_dp.gradients.release.GAUSSIAN", SimpleNamespace(add=add))
    with insecure_randomness(1):
        planned.walk(planned.read())
    events = planned.schedule.event.events
    assert total_epsilon(planned.schedule.event, BUDGET.delta).epsilon <= BUDGET.epsilon
    size = planned.interface.size
    matrices = size * (size + 1) // 2
    wanted = Counter()
    for event in events:
        if event.coordinates == matrices and event.l2_squared >= SCORE_UNITS**2 * 2**10:  # of curvatures
            wanted[round(event.scale), matrices - size] += 1
            wanted[round(event.scale * np.sqrt(2)), size] += 1
        else:
            wanted[round(event.scale), event.coordinates] += 1
    assert Counter((round(scale), count) for scale, count in drawn) == wanted
    extras = planned.schedule.extras
    assert len(events) == sum(len(one.steps) + bool(one.curvature) for one in planned.schedule.stages) + sum(
        bool(one) for one in (extras.weights, extras.norms, extras.squares, extras.columns, extras.fit, extras.left_out)
    )


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_all_of_them_cost_the_budget_and_their_events_say_what_a_row_may_add(neighbours):
    schedule = Schedule.within(BUDGET, units(5, neighbours), 60, extras=ALL)
    assert 0.999 < total_epsilon(schedule.event, BUDGET.delta).epsilon <= 1.0
    assert sum(float(one.rho) for one in schedule.event.events) == pytest.approx(0.5 / schedule.multiplier**2, rel=1e-4)
    twice, both = (4, 2) if neighbours == "replace" else (1, 1)
    weights, columns, norms, *_, fit, squares = schedule.event.events
    unit = schedule.multiplier * SCORE_UNITS
    for event, share, moved, count in (
        (weights, ALL.weights, 1, 1),
        (columns, ALL.columns, twice, ALL.moments),
        (norms, ALL.norms, both, BINS),
        (fit, ALL.fit, twice, ALL.checks),
    ):
        assert (event.l2_squared, event.coordinates) == (moved * SCORE_UNITS**2, count)
        assert event.scale == pytest.approx(unit * np.sqrt(moved / share))
    assert squares.l2_squared == both * 2**59 and squares.coordinates == 15
    stages = stages_of(60, extras=ALL)
    assert sum(one.curvature + one.gradients for one in stages) == pytest.approx(1 - ALL.total)


def at_of(rows):
    return np.linspace(-0.6, 0.7, rows.interface.size)


def limits_of(rows, basis):
    size = rows.interface.size
    return Limits(scale=np.linspace(0.5, 2, size), clip_norm=1.0, clip_curvature=1.0, basis=basis * np.eye(size))


def released(build, kind, neighbours="replace", multiplier=1.0):
    """Return a function of a chunk that gives what is released of it, in units of one row, by name; and its columns."""
    interface = interface_of(*build())
    scores = RowScores.of(interface, mode="FAST_COMPILE")
    rows, moments = RowParts(rows=scores), Moments.of(interface.inspection, {})
    extras = replace(ALL, moments=moments.count, checks=Residuals.count, weights=0.02 * (kind == "weighted"))
    schedule = Schedule(
        stages=stages_of(10, extras=extras),
        units=units(interface.size, neighbours),
        multiplier=multiplier,
        extras=extras,
    )
    heavy = WeightedParts(parts=rows, place=interface.inspection.weight, largest=4.0) if kind == "weighted" else None
    parts = heavy or (PersonParts(parts=rows) if kind == "persons" else rows)
    at, limits = at_of(scores), limits_of(scores, 0.7)
    residuals, edges = Residuals(parts=rows), edges_of(0.4, 40.0)[:-1]

    def of(chunk):
        sums = NoisedSums(parts=parts, chunks=lambda: [chunk], schedule=schedule, threads=1, weighted=heavy)
        return {
            "norms": sums.norms(at, limits, edges)[0] / sums.largest,
            "columns": sums.moments(moments)[0],
            "fit": sums.fit(residuals, at, limits)[0],
        }

    of.schedule, of.sums = schedule, (parts, heavy, at, limits, residuals, edges, moments)
    return of, interface


STRANGE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30, -7.0, 0.0, 5.0)
"""In columns that no bound has held, as an error of the package might let through."""


def hostile(interface, count, rng):
    """Rows at the ends of bounds, and rows in which anything stands."""
    own = [read(column) for column in interface.inspection.columns]
    found = []
    for column, values in zip(interface.inspection.columns, own, strict=True):
        some = values[rng.integers(0, len(values), count)].astype(np.float64)
        if column.bounds is not None:
            low, high = (np.broadcast_to(np.asarray(end, dtype=float), some.shape) for end in column.bounds)
            pick = rng.integers(0, 4, (count, *[1] * (some.ndim - 1)))
            some = np.where(
                pick == 0, low, np.where(pick == 1, high, np.where(pick == 2, rng.choice([low, high]), some))
            )
        if np.dtype(column.leaf.type.dtype).kind == "f":
            strange = rng.random((count, *[1] * (some.ndim - 1))) < 0.3
            some = np.where(strange & (rng.random(some.shape) < 0.7), rng.choice(STRANGE, some.shape), some)
        found.append(some.astype(column.leaf.type.dtype))
    return found


def chunks_of(interface, kind, rng, count=90):
    rows = hostile(interface, count, rng)
    if kind != "persons":
        return [[column[row : row + 1] for column in rows] for row in range(count)]
    made = []
    for _ in range(count):
        length = int(rng.choice([1, 2, 5, 40]))
        taken = rng.integers(0, count, length) if rng.random() < 0.5 else np.full(length, rng.integers(count))
        made.append(Grouped([column[taken] for column in rows], np.array([0, length])))
    return made


BUILDS = [
    (models.bernoulli, "rows"),
    (models.normal, "rows"),
    (models.poisson, "rows"),
    (models.tobit, "rows"),
    (models.two, "rows"),
    (weighted, "weighted"),
    (models.bernoulli, "persons"),
    (models.normal, "persons"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("build", "kind"), BUILDS)
def test_no_pair_of_rows_moves_a_release_by_more_than_is_charged(build, kind, rng):
    """By brute force: what each of some hostile rows, or persons, adds, and every two of them."""
    of, interface = released(build, kind)
    with without_noise():
        added = [of(chunk) for chunk in chunks_of(interface, kind, rng)]
    replaced, removed = (units(interface.size, how) for how in ("replace", "add_remove"))
    for name, moved, alone, reached in (
        ("norms", replaced.counts_squared, removed.counts_squared, 1.0),
        ("columns", replaced.gradient_squared, removed.gradient_squared, 0.5),
        ("fit", replaced.gradient_squared, removed.gradient_squared, 0.05),
    ):
        whole = [np.rint(one[name] * SCORE_UNITS).astype(object) for one in added]
        squares = [int((one**2).sum()) for one in whole]
        pairs = [int(((one - other) ** 2).sum()) for one, other in combinations(whole, 2)]
        assert max(squares) <= alone and max(pairs) <= moved, name
        assert max(squares) > 0.98 * reached * alone, f"{name}: far less than is charged"
    assert any(not one["columns"].any() for one in added), "some rows are left out"


def test_what_is_said_of_the_noise_is_measured(rng):
    of, interface = released(models.bernoulli, "rows", multiplier=2.0)
    chunk = [read(column) for column in interface.inspection.columns]
    with without_noise():
        exact = of(chunk)
    with insecure_randomness(2):
        drawn = [of(chunk) for _ in range(150)]
    schedule = of.schedule
    for name, scale in (
        ("norms", schedule.norms_scale),
        ("columns", schedule.scale_of(schedule.extras.columns)),
        ("fit", schedule.scale_of(schedule.extras.fit)),
    ):
        noise = np.array([one[name] - exact[name] for one in drawn])
        assert noise.std() == pytest.approx(scale / SCORE_UNITS, rel=0.07)
        assert np.abs(noise.mean(axis=0)).max() < 5 * scale / SCORE_UNITS / np.sqrt(150)
    assert exact["norms"].sum() == models.ROWS and np.count_nonzero(exact["norms"]) > 2


def test_a_histogram_is_of_norms_without_limits_by_weight(rng):
    of, interface = released(weighted, "weighted")
    _, heavy, at, limits, _, edges, _ = of.sums
    chunk = [read(column) for column in interface.inspection.columns]
    with without_noise():
        found = of(chunk)["norms"] * 4.0
    free = replace(limits, clip_norm=1e6, clip_curvature=1e6, weighing=False)
    norms = np.linalg.norm(heavy.parts.scores(chunk, at, free) * 1e6, axis=1)
    wanted = np.histogram(norms, [*edges, np.inf], weights=chunk[interface.inspection.weight])[0]
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert np.count_nonzero(wanted) > 2
