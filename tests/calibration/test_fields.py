"""90% intervals of the couplings of fields cover what they claim, each coupling unknown by itself."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest
from scipy import linalg, optimize

import pymc_dp as dp
from pymc_dp.inspection.rows import unwrap
from pymc_dp.transforms.privatize import plan_for
from tests.paid import draw_release

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
Array = np.ndarray
GRID = [(3 * r + c, 3 * r + c + 1) for r in range(3) for c in range(2)] + [(i, i + 3) for i in range(6)]
SQUARE = [(4 * r + c, 4 * r + c + 1) for r in range(4) for c in range(3)] + [(i, i + 4) for i in range(12)]
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]
Density = Callable[[Array], tuple[Array, Array]]


class Field:
    """Rows of a field, their release, and the posterior density of its parameters."""

    def __init__(self, n_nodes: int, edges: list[tuple[int, int]], n_rows: int, *, spread: float, noise: str) -> None:
        self.n_nodes, self.edges, self.n_rows, self.spread = n_nodes, edges, n_rows, spread
        with pm.Model() as model:
            theta = pm.Normal("theta", 0, spread, shape=n_nodes)
            phi = pm.Normal("phi", 0, spread, shape=len(edges))
            dp.markov.IsingField(
                "y", theta, phi, edges=edges, observed=pm.Data("rows", np.zeros((n_rows, n_nodes), int))
            )
        self.leaf, delta = unwrap(model["rows"]), 1e-6 if noise == "gaussian" else 0.0
        options = {"epsilon": 1.0, "delta": delta, "statistics": dp.Statistics(noise)}
        _, self.plan = plan_for(model, domain=None, **options)
        private = dp.privatize(model, **options)
        self.released = private.rvs_to_values[private["y"]]
        self.start = np.concatenate([np.ravel(value) for value in private.initial_point().values()])
        self.function = private.logp_dlogp_function(ravel_inputs=True)
        self.function.set_extra_values({})
        self.states = (np.arange(2**n_nodes)[:, None] >> np.arange(n_nodes)) & 1
        self.products = np.stack([self.states[:, i] * self.states[:, j] for i, j in edges], axis=1)

    def simulate(self, rng: np.random.Generator) -> Array:
        """Draw parameters from the prior and rows given these, release them, and return the parameters."""
        theta, phi = (rng.normal(0, self.spread, count) for count in (self.n_nodes, len(self.edges)))
        energy = self.states @ theta + self.products @ phi
        below = np.cumsum(np.exp(energy - energy.max()))
        rows = self.states[np.searchsorted(below, rng.random(self.n_rows) * below[-1])]
        self.leaf.set_value(rows.astype(self.leaf.type.dtype))
        self.released.set_value(draw_release(self.plan).values["y"])
        found = np.concatenate([theta, phi])
        self.start[: len(found)] = found  # near the mode; the variances of the noise start where PyMC does
        return found

    def mode(self) -> tuple[Array, Array]:
        """Return the mode, and the lower Cholesky factor of the inverse of the negative Hessian there."""

        def negative(x: Array) -> tuple[float, Array]:
            value, slope = self.function(x)
            return -float(value), -np.asarray(slope)

        found = optimize.minimize(negative, self.start, jac=True, method="BFGS", options={"gtol": 0.1}).x
        step = 1e-4
        hessian = [
            (negative(found + step * e)[1] - negative(found - step * e)[1]) / (2 * step) for e in np.eye(len(found))
        ]
        curvature = np.array(hessian)
        return found, linalg.cholesky(linalg.inv((curvature + curvature.T) / 2), lower=True)

    def draws(self, rng: np.random.Generator, count: int, *, steps: int = 6, size: float = 0.4) -> Array:
        """Draw by Hamiltonian Monte Carlo in coordinates in which the posterior is about standard normal."""
        centre, root = self.mode()
        z = rng.normal(size=len(centre))

        def at(z: Array) -> tuple[float, Array]:
            value, slope = self.function(centre + root @ z)
            return float(value), root.T @ slope

        found, (value, slope) = [], at(z)
        for _ in range(count):
            momentum = rng.normal(size=len(z))
            moved, energy, pull = z, value - momentum @ momentum / 2, slope
            length = size * rng.uniform(0.7, 1.3)
            for _ in range(steps):
                momentum = momentum + length / 2 * pull
                moved = moved + length * momentum
                ahead, pull = at(moved)
                momentum = momentum + length / 2 * pull
            if np.log(rng.random()) < ahead - momentum @ momentum / 2 - energy:
                z, value, slope = moved, ahead, pull
            found.append(centre + root @ z)
        return np.array(found)


def covered(
    name: str, field: Field, intervals: Callable[[np.random.Generator], tuple[Array, Array]], count: int
) -> Array:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    held = []
    with dp.testing.insecure_randomness(int(rng.integers(2**31))):
        for _ in range(count):
            truth = field.simulate(rng)
            low, high = intervals(rng)
            held.append((low[: len(truth)] < truth) & (truth < high[: len(truth)]))
    couplings = np.array(held)[:, field.n_nodes :]
    print(f"{name}: coverage of couplings {couplings.mean():.3f}, each {couplings.mean(axis=0).round(3)}")
    return couplings


@pytest.mark.slow
def test_intervals_of_a_small_field_cover_with_laplace_noise() -> None:
    """A cycle of four nodes, all of its parameters unknown; the variances of the noise are drawn, too."""
    field = Field(4, CYCLE, 500, spread=1.0, noise="laplace")

    def intervals(rng: np.random.Generator) -> tuple[Array, Array]:
        drawn = field.draws(rng, 350)[30:]
        return tuple(np.quantile(drawn, [0.05, 0.95], axis=0))

    assert 0.86 < covered("cycle of 4, Laplace", field, intervals, 200).mean() < 0.94


def normal(field: Field) -> Callable[[np.random.Generator], tuple[Array, Array]]:
    """Intervals of a normal posterior about its mode."""

    def intervals(rng: np.random.Generator) -> tuple[Array, Array]:
        centre, root = field.mode()
        sd = 1.6449 * np.sqrt((root**2).sum(axis=1))
        return centre - sd, centre + sd

    return intervals


@pytest.mark.exhaustive
def test_intervals_of_a_grid_cover_with_gaussian_noise() -> None:
    """A grid of 9 nodes and 12 edges; 21 unknown numbers, normal about their mode."""
    field = Field(9, GRID, 2000, spread=0.5, noise="gaussian")
    assert 0.86 < covered("grid of 9, Gaussian", field, normal(field), 100).mean() < 0.94


@pytest.mark.exhaustive
def test_intervals_of_a_field_of_the_most_nodes_cover() -> None:
    """A grid of 16 nodes, 2**16 states, and 24 edges; 40 unknown numbers, normal about their mode."""
    field = Field(16, SQUARE, 2000, spread=0.5, noise="gaussian")
    assert 0.86 < covered("grid of 16, Gaussian", field, normal(field), 40).mean() < 0.94
