"""Tables of noised counts of two levels against the graph that they are tables of."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.cell_tables import Chart
from pymc_dp.transforms.level_kernels import table_logp
from pymc_dp.transforms.noise_aware import counts_logp
from pymc_dp.transforms.tabulated import LOG_ODDS, count_tables

CELLS = 4
VALUE, SLOPE = 1e-6, 1e-5


def released(rng, n, scale, kind, *, public, seen=False):
    """A made-up release of two counts, of that many rows in every cell."""
    p = rng.uniform(0.02, 0.98, CELLS)
    noise = rng.normal if kind == "gaussian" else rng.laplace
    counts = rng.binomial(n, p)
    release = np.rint(np.stack([n - counts, counts], axis=1) + noise(scale=scale, size=(CELLS, 2)))
    sizes = Sizes(
        public=public,
        bound=np.full(CELLS, n if public else 3 * n + 10),
        n_private=CELLS,
        rate=0.001,
        kind=kind,
        seen=np.full(CELLS, n + scale) if seen else None,
        noise=scale if seen else 0.0,
    )
    return (release[:, 1:] if public else release), sizes, p


def evaluated(tables, at, chart: Chart):
    panels, release = tables.panels, tables.release
    return table_logp(at, release, release, chart.numbers, panels.starts, panels.ends, panels.numbers)


def graph_of(release, scale, sizes):
    """Log densities and their slopes in the log odds, evaluated without a compiler."""
    x = pt.vector("x", shape=(CELLS,))
    p = pt.stack([pt.sigmoid(-x), pt.sigmoid(x)], axis=-1)
    logp = counts_logp(pt.constant(release), p, scale, sizes)
    return plain_function([x], [logp, pt.grad(logp.sum(), x)])


def around(p, n):
    """Log odds: many about those of the counts, and some on all sides."""
    near = np.linspace(-10, 10, 25)[:, None] / np.sqrt(max(n, 1) * p * (1 - p))
    return np.concatenate([np.log(p / (1 - p)) + near, np.repeat(np.linspace(-30, 30, 13), CELLS).reshape(-1, CELLS)])


CASES = [("private", n, scale) for n in (0, 5, 1000, 10_000_000) for scale in (0.5, 5.0, 30.0)]
CASES += [("public", n, scale) for n in (0, 5, 1000, 10_000_000) for scale in (0.5, 5.0)]
CASES += [("seen", n, 5.0) for n in (5, 1000)]


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("size", "n", "scale"), CASES)
def test_values_and_slopes_are_those_of_the_graph(size, n, scale, kind, rng):
    release, sizes, p = released(rng, n, scale, kind, public=size == "public", seen=size == "seen")
    tables, graph = count_tables(release, scale, sizes, LOG_ODDS), graph_of(release, scale, sizes)
    points = around(p, n)
    expected, slopes = (np.array(item) for item in zip(*map(graph, points), strict=True))
    found, steep = (np.array(i) for i in zip(*(evaluated(tables, at, LOG_ODDS) for at in points), strict=True))
    near = expected > expected.max(axis=0) - 50
    assert np.abs(found - expected)[near].max() < VALUE
    assert (np.abs(steep - slopes) / np.maximum(1, np.abs(slopes)))[near].max() < SLOPE


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("public", [True, False])
def test_far_out_densities_are_finite_and_slopes_point_back(kind, public, rng):
    release, sizes, _ = released(rng, 1000, 1.0, kind, public=public)
    tables = count_tables(release, 1.0, sizes, LOG_ODDS)
    distances = np.array([20.0, 25.0, 30.0, 36.0, 40.0, 60.0, 700.0, 1e5])
    for sign in (1.0, -1.0):
        values, slopes = zip(*(evaluated(tables, np.full(CELLS, sign * at), LOG_ODDS) for at in distances), strict=True)
        assert np.isfinite(values).all() and (np.diff(values, axis=0) < VALUE).all()
        assert (sign * np.array(slopes) < SLOPE).all()
        if kind == "gaussian":  # no noise explains all counts: a density falls by about a count per unit
            assert (np.abs(slopes) > 1).all()
