"""Sums of a normal value and of its square as one operation, against the same by small ones."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

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
