"""Tables of likelihoods with one unknown parameter per cell against the graph that they are tables of."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.release.plan import draw_release, plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.transforms.cell_tables import TableLogp
from pymc_dp.transforms.density import ReleaseDensity

pytestmark = pytest.mark.usefixtures("paid")

CELLS, ROWS = 3, 120
VALUE, SLOPE = 1e-6, 1e-5


def positive(name):
    return pm.Gamma(name, 2, 1, dims="at_cell")


def real(name):
    return pm.Normal(name, dims="at_cell")


def unit(name):
    return pm.Beta(name, 1, 1, dims="at_cell")


LIKELIHOODS = {
    "poisson": (lambda at, y: pm.Poisson("y", at, observed=y), positive, (0, 20), (0.5, 12.0)),
    "exponential": (lambda at, y: pm.Exponential("y", scale=at, observed=y), positive, (0, 10), (0.3, 10.0)),
    "half_normal": (lambda at, y: pm.HalfNormal("y", at, observed=y), positive, (0, 4), (0.3, 5.0)),
    "sd": (lambda at, y: pm.Normal("y", 0.5, at, observed=y), positive, (-4, 4), (0.2, 5.0)),
    "gamma": (lambda at, y: pm.Gamma("y", 2.0, at, observed=y), positive, (0.01, 10), (0.1, 10.0)),
    "mean": (lambda at, y: pm.Normal("y", at, 1.5, observed=y), real, (-4, 4), (-5.0, 5.0)),
    "log_normal": (lambda at, y: pm.LogNormal("y", at, 0.5, observed=y), real, (0.1, 10), (-3.0, 3.0)),
    "geometric": (lambda at, y: pm.Geometric("y", at, observed=y), unit, (1, 20), (0.05, 0.95)),
    "binomial": (lambda at, y: pm.Binomial("y", 7, at, observed=y), unit, None, (0.05, 0.95)),
    "negative_binomial": (lambda at, y: pm.NegativeBinomial("y", n=3, p=at, observed=y), unit, (0, 20), (0.05, 0.95)),
}


def observed(likelihood, prior, bounds, noise, neighbours, rng):
    """The density of a release of one likelihood, the released value, and a vector of the unknown parameter."""
    cell, y = np.resize(np.arange(CELLS), ROWS), rng.integers(1, 4, ROWS)
    with pm.Model(coords={"at_cell": range(CELLS)}) as model:
        at = prior("at")
        likelihood(at[pm.Data("cell", cell)], y)
    limits = {} if bounds is None else {"bounds": {"y": bounds}}
    hidden = neighbours == "add_remove"
    domain = dp.Domain(neighbours=neighbours, n_max=2 * ROWS if hidden else None, **limits)
    plan = plan_release(inspect(model, domain).sums, Statistics(noise=noise), 1.0, 0.0 if noise == "laplace" else 1e-5)
    value = draw_release(plan).values["y"]
    density = replace(ReleaseDensity.of(plan.tables[0], noise_aware=True), release=value)
    return density, pytensor.shared(value), pt.vector("unknown", shape=(CELLS,))


def parameters_of(name, unknown):
    """Parameters of each cell as the family has them."""
    return {
        "half_normal": [pt.constant([0.0]), unknown],
        "sd": [pt.constant([0.5]), unknown],
        "gamma": [pt.constant([2.0]), 1 / unknown],
        "mean": [unknown, pt.constant([1.5])],
        "log_normal": [unknown, pt.constant([0.5])],
        "binomial": [pt.constant([7.0]), unknown],
        "negative_binomial": [pt.constant([3.0]), unknown],
    }.get(name, [unknown])


@pytest.mark.few(1)
@pytest.mark.parametrize(("noise", "neighbours"), [("laplace", "add_remove"), ("gaussian", "replace")])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_values_and_slopes_are_those_of_the_graph(name, noise, neighbours, rng):
    likelihood, prior, bounds, (low, high) = LIKELIHOODS[name]
    density, value, unknown = observed(likelihood, prior, bounds, noise, neighbours, rng)
    given = parameters_of(name, unknown)
    logp, graph = density.logp(value, *given), density.graph(value, *given)
    assert isinstance(logp.owner.op, TableLogp)
    outputs = [logp, pt.grad(logp.sum(), unknown), graph, pt.grad(graph.sum(), unknown)]
    evaluate = plain_function([unknown], outputs)
    results = [np.array(evaluate(np.full(CELLS, at))) for at in np.linspace(low, high, 60)]
    found, slope, expected, steep = np.array(results).transpose(1, 0, 2)
    near = expected > expected.max(axis=0) - 50
    assert np.abs(found - expected)[near].max() < VALUE
    assert (np.abs(slope - steep) / np.maximum(1, np.abs(steep)))[near].max() < SLOPE
