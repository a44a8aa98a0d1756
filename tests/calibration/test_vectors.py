"""Simulation-based calibration of likelihoods whose rows are vectors, on grids of one or two unknown numbers."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.inspection.rows import unwrap
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.privatize import plan_for
from tests.paid import draw_release

Array = np.ndarray
N_SIMULATIONS, N_ROWS, EPSILON = 300, 200, 0.5
TRIALS, SHAPE = 5, np.array([0.2, 0.3, 0.5])
EDGES = ((0, 1), (1, 2), (2, 3), (3, 0))
CORRELATED = np.array([[1.0, 0.4], [0.4, 1.0]])


@dataclass(frozen=True)
class Case:
    """A likelihood of one or two unknown numbers, each with a uniform prior.

    Attributes
    ----------
    build : adds prior and likelihood of given rows to the model of the context
    parameters : maps (n_points, n_unknown) prior probabilities to the parameters of the random operation
    simulate : rows of one vector each, given the parameters of one cell
    """

    build: Callable[[Any], None]
    parameters: Callable[[Array], list[Array]]
    simulate: Callable[..., Array]
    rows: Array
    unknown: int
    domain: dp.Domain
    noise: str = "laplace"


def build_multinomial(rows: Any) -> None:
    q = pm.Uniform("q")
    pm.Multinomial("y", TRIALS, pt.stack([q, 0.4 * (1 - q), 0.6 * (1 - q)]), observed=rows)


def build_normal(rows: Any) -> None:
    m, s = pm.Uniform("m", -1, 1), pm.Uniform("s", 0.5, 2)
    pm.MvNormal("y", m * pt.ones(2), s**2 * (0.4 + 0.6 * pt.eye(2)), observed=rows)


def build_known_normal(rows: Any) -> None:
    pm.MvNormal("y", pm.Uniform("m", -1, 1) * pt.ones(2), 0.4 + 0.6 * pt.eye(2), observed=rows)


def build_dirichlet(rows: Any) -> None:
    size = rows.type.shape[-1] or rows.get_value().shape[-1]
    share = pt.stack([1.0 * item for item in (SHAPE / SHAPE[:size].sum())[:size]])
    pm.Dirichlet("y", pm.Uniform("a", 1, 12) * share, observed=rows)


def multinomial(relation: dict[str, Any]) -> Case:
    return Case(
        build=build_multinomial,
        parameters=lambda u: [np.full(len(u), float(TRIALS)), u * [1, -0.4, -0.6] + [0, 0.4, 0.6]],
        simulate=lambda rng, _, p: rng.multinomial(TRIALS, p, N_ROWS),
        rows=np.zeros((N_ROWS, 3), dtype=np.int64),
        unknown=1,
        domain=dp.Domain(**relation),
    )


def normal(noise: str, *, known: bool) -> Case:
    def parameters(u: Array) -> list[Array]:
        spread = np.ones(len(u)) if known else 0.5 + 1.5 * u[:, 1]
        return [(2 * u[:, :1] - 1) * np.ones(2), spread[:, None, None] ** 2 * CORRELATED]

    return Case(
        build=build_known_normal if known else build_normal,
        parameters=parameters,
        simulate=lambda rng, mean, covariance: rng.multivariate_normal(mean, covariance, N_ROWS),
        rows=np.zeros((N_ROWS, 2)),
        unknown=1 if known else 2,
        domain=dp.Domain(bounds={"y": (-3, 3)}),
        noise=noise,
    )


def build_field(rows: Any) -> None:
    a, b = pm.Uniform("a", -1, 1), pm.Uniform("b", -2, 2)
    dp.markov.IsingField("y", a * pt.ones(4), b * pt.ones(4), edges=EDGES, observed=rows)


def field(noise: str, relation: dict[str, Any]) -> Case:
    """A cycle of four nodes with one parameter for all nodes and one for all edges, drawn by its enumeration."""
    states = (np.arange(16)[:, None] >> np.arange(4)) & 1
    nodes, pairs = states.sum(axis=1), np.sum([states[:, i] * states[:, j] for i, j in EDGES], axis=0)

    def simulate(rng: np.random.Generator, theta: Array, phi: Array) -> Array:
        p = np.exp(theta[0] * nodes + phi[0] * pairs)
        return states[rng.choice(16, N_ROWS, p=p / p.sum())]

    return Case(
        build=build_field,
        parameters=lambda u: [(2 * u[:, :1] - 1) * np.ones(4), (4 * u[:, 1:] - 2) * np.ones(4)],
        simulate=simulate,
        rows=np.zeros((N_ROWS, 4), dtype=np.int64),
        unknown=2,
        domain=dp.Domain(**relation),
        noise=noise,
    )


def dirichlet(noise: str, size: int) -> Case:
    return Case(
        build=build_dirichlet,
        parameters=lambda u: [(1 + 11 * u) * (SHAPE / SHAPE[:size].sum())[:size]],
        simulate=lambda rng, shape: rng.dirichlet(shape, N_ROWS),
        rows=np.full((N_ROWS, size), 1 / size),
        unknown=1,
        domain=dp.Domain(bounds={"y": (0.02, 0.95)}),
        noise=noise,
    )


CASES = {
    "Multinomial": multinomial({}),
    "Multinomial, add_remove": multinomial({"neighbours": "add_remove", "n_max": 3 * N_ROWS}),
    "MvNormal": normal("gaussian", known=False),
    "MvNormal of known covariance": normal("laplace", known=True),
    "Dirichlet": dirichlet("gaussian", 3),
    "Dirichlet of two entries": dirichlet("laplace", 2),
    "IsingField": field("gaussian", {}),
    "IsingField, add_remove": field("gaussian", {"neighbours": "add_remove", "n_max": 3 * N_ROWS}),
}


COUNTS = {1: 60, 2: 16}
"""Points of an axis of the grid, by the number of unknowns."""


class Releaser:
    """The release path of one model, planned once, and the density of what comes out at many parameters."""

    def __init__(self, case: Case) -> None:
        with pm.Model() as model:
            case.build(pm.Data("rows", case.rows))
        self.leaf, self.case = unwrap(model["rows"]), case
        delta = 1e-6 if case.noise == "gaussian" else 0.0
        options = {"epsilon": EPSILON, "delta": delta, "domain": case.domain}
        _, self.plan = plan_for(model, statistics=dp.Statistics(case.noise), **options)
        (table,) = self.plan.tables
        density = ReleaseDensity.of(table, noise_aware=True)
        value = pt.matrix("value", shape=(self.points, len(table.labels)))
        shapes = [np.shape(item)[1:] for item in case.parameters(np.full((1, case.unknown), 0.5))]
        inputs = [pt.tensor(f"p{i}", shape=(self.points, *shape), dtype="float64") for i, shape in enumerate(shapes)]
        density = replace(density, sizes=replace(density.sizes, bound=np.repeat(density.sizes.bound[:1], self.points)))
        logp = density.logp(value, *inputs)
        self.function = pytensor.function([value, *inputs], logp, mode="FAST_COMPILE", on_unused_input="ignore")

    @property
    def points(self) -> int:
        """Points of the grid, each of them a cell."""
        return COUNTS[self.case.unknown] ** self.case.unknown

    def __call__(self, rows: Array) -> Array:
        self.leaf.set_value(rows.astype(self.leaf.type.dtype))
        return draw_release(self.plan).values["y"]

    def below(self, release: Array, truth: Array) -> Array:
        """Posterior probability that each unknown number is below its true value, on a grid refined twice."""
        unknown, count = self.case.unknown, COUNTS[self.case.unknown]
        low, high = np.zeros(unknown), np.ones(unknown)
        for _ in range(3):
            middles = (np.arange(count) + 0.5) / count
            axes = [a + (b - a) * middles for a, b in zip(low, high, strict=True)]
            points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
            logp = self.function(np.repeat(release.reshape(1, -1), len(points), axis=0), *self.case.parameters(points))
            weights = np.exp(logp - logp.max()).reshape([count] * unknown)
            masses = [weights.sum(axis=tuple(set(range(unknown)) - {i})) / weights.sum() for i in range(unknown)]
            edges = [np.linspace(a, b, count + 1) for a, b in zip(low, high, strict=True)]
            found = [
                np.interp(t, edge, np.concatenate([[0], mass.cumsum()]))
                for t, edge, mass in zip(truth, edges, masses, strict=True)
            ]
            held = [np.flatnonzero(mass > 1e-7) for mass in masses]
            low = np.array([edge[max(h[0] - 1, 0)] for edge, h in zip(edges, held, strict=True)])
            high = np.array([edge[min(h[-1] + 2, count)] for edge, h in zip(edges, held, strict=True)])
        return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_posteriors_of_vectors_are_calibrated(name: str) -> None:
    """The rank of the truth among 99 posterior draws is uniform, and 90% intervals cover."""
    case, rng = CASES[name], np.random.default_rng(zlib.crc32(name.encode()))
    below = []
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):
        release = Releaser(case)
        for _ in range(N_SIMULATIONS):
            truth = rng.random((1, case.unknown))
            rows = case.simulate(rng, *(item[0] for item in case.parameters(truth)))
            kept = rng.integers(0, N_ROWS + 1) if case.domain.neighbours == "add_remove" else N_ROWS
            below.append(release.below(release(rows[:kept]), truth[0]))
    for found in np.array(below).T:
        observed = np.bincount(rng.binomial(99, found) // 10, minlength=10)
        covered = int(np.sum((found > 0.05) & (found < 0.95)))
        print(f"{name}: coverage {covered / N_SIMULATIONS:.3f}, ranks {observed}")
        assert stats.chisquare(observed).pvalue > 1e-4, observed
        assert stats.binomtest(covered, N_SIMULATIONS, 0.9).pvalue > 1e-4, covered
