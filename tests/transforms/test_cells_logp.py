"""Sums of a normal value and of its square as one operation, against the same by small ones."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp

from pymc_dp.families import Normal
from pymc_dp.families.statistic import GRID, BoundedMoments
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.density import ReleaseDensity

CELLS, LOW, HIGH, CENTRE, HALF = 4, -4.0, 5.0, 0.5, 4.5
SCALES = np.array([3.0, 3 * HALF, 3 * HALF**2])


def made(kind, rng, *, public=False, seen=False):
    size = np.array([30.0, 90.0, 200.0, 400.0])
    mean, sd = rng.normal(size=CELLS), rng.uniform(0.3, 2.0, CELLS)
    rows = [np.clip(rng.normal(m, s, int(n)), LOW, HIGH) - CENTRE for m, s, n in zip(mean, sd, size, strict=True)]
    offset = 0 if public else GRID // 2
    squares = [(x**2 - (0.0 if public else HALF**2 / 2)).sum() for x in rows]
    value = np.column_stack([size, [x.sum() for x in rows], squares]) + SCALES * rng.laplace(size=(CELLS, 3))
    sizes = Sizes(
        public=public,
        bound=size if public else np.full(CELLS, 900.0),
        n_private=3,
        rate=0.01,
        seen=size + rng.normal(size=CELLS) if seen else None,
        noise=4.0 if seen else 0.0,
        kind=kind,
    )
    statistic = BoundedMoments(
        low=LOW, high=HIGH, centre=CENTRE, unit=HALF / GRID, half_width=HALF, powers=(1, 2), offset=offset
    )
    density = ReleaseDensity(
        family=Normal(),
        statistic=statistic,
        sizes=sizes,
        scales=SCALES[public:],
        steps=np.full(3 - public, 1e-9),
        noise_aware=True,
    )
    return density, value[:, int(public) :], mean, sd


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("how", [{}, {"public": True}, {"seen": True}])
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "laplace, of free variances"])
def test_value_and_gradient_are_those_of_the_graph(kind, how, rng):
    noise, _, free = kind.partition(", ")
    density, value, mean, sd = made(noise, rng, **how)
    x, e = pt.matrix("x", shape=value.shape), pt.matrix("e", shape=(CELLS, 2))
    m, s = pt.vector("m", shape=(CELLS,)), pt.vector("s", shape=(CELLS,))
    inputs, beside = [m, s, *([e] if free else [])], [pt.constant(SCALES)] if free else []
    outputs = []
    for way in (density.logp, density.graph):
        logp = way(x, m, s, *beside, *inputs[2:])
        outputs += [logp, *pytensor.grad(logp.sum(), inputs)]
    function = plain_function([x, *inputs], outputs)
    more = [rng.exponential(size=(CELLS, 2))] if free else []
    for one, two in ((mean, sd), (mean + 0.3, 1.2 * sd), (mean - 1.5, 0.7 * sd), (mean + 3, sd + 5), (mean, sd + 1e4)):
        found = function(value, one, two, *more)
        (logp, *slopes), (expected, *others) = found[: len(found) // 2], found[len(found) // 2 :]
        np.testing.assert_allclose(logp, expected, rtol=1e-9)
        for slope, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-6, atol=1e-9 * np.abs(other).max())
    for wrong in ([mean, -sd, *more], *([[mean, sd, -more[0]], [mean, sd, more[0] + np.inf]] if free else [])):
        logp, *slopes = function(value, *wrong)[: len(inputs) + 1]
        assert (logp == -np.inf).all()
        assert not any(np.any(slope) for slope in slopes)


@pytest.mark.slow
def test_the_average_over_variances_is_the_density_with_laplace_noise(rng):
    """By as many quantiles of both as take turns in a Latin hypercube."""
    density, value, mean, sd = made("laplace", rng)
    e, points = pt.matrix("e", shape=(CELLS, 2)), 4000
    given = [pt.constant(item) for item in (value, mean, sd)]
    free = plain_function([e], density.logp(*given, pt.constant(SCALES), e))
    quantiles = -np.log((np.argsort(rng.random((2, points))).T + 0.5) / points)
    average = logsumexp([free(np.tile(item, (CELLS, 1))) for item in quantiles], axis=0) - np.log(points)
    np.testing.assert_allclose(average, plain_function([], density.logp(*given))(), atol=0.05)


@pytest.mark.few(1)
@pytest.mark.parametrize("public", [True, False])
def test_free_variances_are_finite_at_extreme_parameters_and_releases(public, rng):
    density, value, *_ = made("laplace", rng, public=public)
    inputs = [pt.matrix("x", shape=value.shape), pt.vector("m", shape=(CELLS,)), pt.vector("s", shape=(CELLS,))]
    inputs.append(pt.matrix("e", shape=(CELLS, 2)))
    logp = density.logp(*inputs[:3], pt.constant(SCALES), inputs[3])
    function = plain_function(inputs, [logp, *pytensor.grad(logp.sum(), inputs[1:])])
    for level in (-1e6, 0.0, 1e6):
        for at in (-1e3, 0.5, 6.0):
            for spread in (1e-9, 1e-3, 1.0, 1e6):
                for e in (0.0, 1e-12, 1.0, 1e3):
                    given = (np.full(CELLS, at), np.full(CELLS, spread), np.full((CELLS, 2), e))
                    assert all(np.isfinite(item).all() for item in function(value + level, *given)), (at, spread, e)


@pytest.mark.slow
def test_a_standard_deviation_of_all_cells_has_the_sum_of_slopes(rng):
    density, value, mean, sd = made("gaussian", rng)
    m, s = pt.vector("m", shape=(CELLS,)), pt.vector("s", shape=(1,))
    outputs = []
    for way in (density.logp, density.graph):
        outputs.append(pytensor.grad(way(pt.constant(value), m, s).sum(), s))
    found, expected = plain_function([m, s], outputs)(mean, sd[:1])
    np.testing.assert_allclose(found, expected, rtol=1e-8)
