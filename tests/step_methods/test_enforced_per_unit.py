"""Samplers under a metric: no two tables lose more than ε per unit of their distance, and what says so is enforced."""

from functools import cache

import numpy as np
import pytest
from scipy import special

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.step_methods.gibbs.held_rows import HeldRows
from pymc_dp.step_methods.mode import AnnealedMode, CandidateMode, Draws, Grid, Points
from tests.step_methods.metric_rows import as_used, tables
from tests.step_methods.ops.test_per_unit import CASES, model_of

EPSILON = 0.5


@pytest.fixture
def blind(monkeypatch):
    """Whoever reads a column fails."""
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))


QUICK = ("a mean", "a slope, told apart", "a rate")
every_case = pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in QUICK)]
)


def bound(step, build, domain, epsilon=EPSILON):
    model = model_of(build)
    return step.bound(step.inspect(model, domain), Budget(epsilon), chains=1, steps=1)


def normalised(logs):
    return logs - special.logsumexp(logs, axis=0)


class Candidates:
    """The weights of all candidates."""

    def __init__(self, step):
        self.step, self.several, self.charged = step, [step.nodes], [EPSILON]

    def logs(self, table, times):
        nodes = self.step.nodes
        self.step.held = nodes.columns, nodes.weights([table[item.name] for item in self.step.density.columns])
        yield normalised(times * self.step.log_weights())


class Annealed:
    """The weights of all cells."""

    def __init__(self, step):
        self.step, self.several, self.charged = step, [step.posterior.nodes], [EPSILON]

    def logs(self, table, times):
        way, inverse = self.step.posterior, times * self.step.temperature.inverse
        held = way.nodes.columns, way.nodes.weights([table[item.name] for item in way.density.columns])
        prior, likelihood = way.density.held_sums(way.points, held, way.bound)
        yield normalised(inverse * (prior + likelihood))


class Gibbs:
    """The weights of all cells of each update, the others at either end or in the middle."""

    def __init__(self, step):
        self.step, self.several = step, [item.nodes for item in step.held]
        updates = step.scan.updates
        self.charged = [step.beta * sum(update.ranges) for update in updates] * 3

    def logs(self, table, times):
        for item in self.step.held:
            rows = [table[column.name] for column in item.columns]
            item.rows = HeldRows(columns=item.nodes.columns, weights=item.nodes.weights(rows))
        updates = self.step.scan.updates
        for share in (0.0, 1.0, 0.5):
            values = {item.name: item.knots[0] + share * (item.knots[-1] - item.knots[0]) for item in updates}
            for update in updates:
                beta = times * self.step.beta
                public = update.scores.at(update.points, values, {}, beta, 1)
                yield normalised((public + beta * update.rows_at(update.knots, values))[:, 0])


class Bits:
    """The accept bits of some moves, far and near."""

    def __init__(self, step):
        self.step, self.several = step, [step.ratio._nodes]
        rng, coefficients = np.random.default_rng(3), step.coefficients
        start = coefficients.start.values
        spots = [coefficients.at(start + size * rng.normal(size=start.shape)) for size in (1e-4, 0.1, 1.0, 2.0)]
        self.moves = [(one, two) for one in spots for two in spots if one is not two]
        self.charged = [step._between(*move) for move in self.moves]

    def logs(self, table, times):
        ratio = self.step.ratio
        ratio.hold([table[column.name] for column in ratio._rows._columns])
        for move in self.moves:
            odds = times * self.step._odds(*move)
            yield np.array([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)])


KINDS = {
    "candidates": lambda name: Candidates(bound(CandidateMode(Grid(cells=12, axes={})), *CASES[name])[0]),
    "annealed": lambda name: Annealed(bound(AnnealedMode(), *CASES[name])[0]),
    "gibbs": lambda name: Gibbs(bound(dp.TemperedGibbs(grid=16), *CASES[name])[0]),
    "bits": lambda name: Bits(bound(dp.BarkerMetropolis(), *CASES[name])[0]),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def audited(kind, name):
    return KINDS[kind](name)


def worst(found, domain, columns, rng, *, times=1.0, count=40):
    """Largest loss per unit of distance, as a share of what is charged."""
    most = 0.0
    for one, two in tables(columns, rng, count):
        apart = float(domain.metric.distance(*(as_used(found.several, table) for table in (one, two))).sum())
        losses = [
            float(np.abs(p - q).max()) for p, q in zip(found.logs(one, times), found.logs(two, times), strict=True)
        ]
        for loss, charged in zip(losses, found.charged, strict=True):
            if apart > 1e-9:
                most = max(most, (loss - 1e-11 * len(next(iter(one.values())))) / (charged * apart))
            else:
                assert loss < 1e-9
    return most


def columns_of(name):
    build, domain = CASES[name]
    return inspect(model_of(build), domain, per_unit=True).rows.columns


@pytest.mark.few(1)
@every_case
@every_kind
def test_no_two_tables_lose_more_than_is_charged_per_unit_of_their_distance(kind, name, rng):
    assert worst(audited(kind, name), CASES[name][1], columns_of(name), rng) <= 1 + 1e-6


@pytest.mark.few(1)
@every_kind
def test_whatever_a_density_returns_no_unit_costs_more(kind, rng, monkeypatch):
    """A compiled density with a jump, at which two rows that are almost alike differ by a lot."""
    found = KINDS[kind]("a mean")
    step = found.step

    def jumps(logs, points, x):
        return logs + 30 * np.sign(x) * np.sin(7 * points)

    if kind in ("candidates", "annealed"):
        density = step.density if kind == "candidates" else step.posterior.density
        true = density.each
        monkeypatch.setattr(
            density, "each", lambda at, rows: (true(at, rows)[0], jumps(true(at, rows)[1], at, rows[0][None]))
        )
    elif kind == "gibbs":
        (held,) = [item for update in step.scan.updates for item in update.held]
        true = held._each
        monkeypatch.setattr(held, "_each", lambda v, at, rows: jumps(true(v, at, rows), at[:, None], rows[0][None]))
    else:
        rows = step.ratio._rows
        true = rows.each
        x = step.ratio._nodes.columns[0]
        monkeypatch.setattr(
            rows, "each", lambda there, here: true(there, here) + 30 * np.sign(x) * (np.sin(there) - np.sin(here)).sum()
        )
        step.ratio._last = None
        found.charged = [step._between(*move) for move in found.moves]
    assert worst(found, CASES["a mean"][1], columns_of("a mean"), rng, count=80) <= 1 + 1e-6


def test_steps_to_the_other_place_and_back_cost_the_same():
    found = audited("bits", "a slope, added")
    step = found.step
    for here, there in found.moves:
        assert step._between(here, there) == step._between(there, here)
        assert step.ratio.moved(here, there) == -step.ratio.moved(there, here)


@pytest.mark.parametrize(
    ("step", "error", "text"),
    [
        (dp.BarkerMetropolis(clamp=1.0), ArgumentError, "says nothing about two rows that are close"),
        (dp.TemperedGibbs(), None, ""),
        (
            CandidateMode(
                Draws(values={"mu": np.zeros(3)}, epsilon=1.0, delta=0.0, guarantee="exact", neighbours="replace")
            ),
            ArgumentError,
            "do not add",
        ),
        (CandidateMode(Points(values={"mu": np.zeros(2**20)})), (ArgumentError, UnsupportedModelError), "candidate"),
    ],
)
def test_what_has_no_meaning_under_a_metric_is_refused(step, error, text, blind):
    build, domain = CASES["a mean"]
    if error is None:
        with pytest.raises(ArgumentError, match="does not grow in proportion"):
            step.bound(step.inspect(model_of(build), domain), Budget(1.0, 1e-6), chains=1, steps=1)
        return
    with pytest.raises(error, match=text):
        bound(step, build, domain)
