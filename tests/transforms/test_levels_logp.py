"""Counts of all levels as one operation, against the same by small ones."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

from pymc_dp.families import Categorical
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.level_densities import PublicLevels
from pymc_dp.transforms.released_logp import held

CELLS, LEVELS = 4, 4


def made(kind, scale, rng, *, public=False, seen=False, levels=LEVELS):
    shares = rng.dirichlet(np.ones(levels), size=CELLS)
    size = np.array([3.0, 80.0, 400.0, 5000.0])
    release = rng.poisson(size[:, None] * shares) + np.rint(scale * rng.normal(size=shares.shape))
    sizes = Sizes(
        public=public,
        bound=size if public else np.full(CELLS, 9000.0),
        n_private=CELLS,
        rate=0.001,
        seen=size + np.rint(2 * rng.normal(size=CELLS)) if seen else None,
        noise=2.0 if seen else 0.0,
        kind=kind,
    )
    statistic = LevelCounts(labels=tuple("abcd")[:levels])
    given = {"family": Categorical(), "statistic": statistic, "sizes": sizes, "noise_aware": True}
    scales = np.full(levels, scale)
    return ReleaseDensity(**given, scales=scales, steps=np.ones(LEVELS), release=release), shares


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("how", [{}, {"seen": True}, {"public": True}, {"levels": 2}, {"levels": 2, "public": True}])
@pytest.mark.parametrize("scale", [1.5, 14.0])
def test_value_and_gradient_are_those_of_the_graph(kind, how, scale, rng):
    density, shares = made(kind, scale, rng, **how)
    p, value = pt.matrix("p", shape=shares.shape), held(density.release)
    outputs = []
    for way in (density.logp, density.graph):
        logp = way(value, p)
        ops = [var.owner.op for var in ancestors([logp]) if var.owner is not None]
        assert any(isinstance(op, PublicLevels) for op in ops) == (way == density.logp)
        outputs += [logp, pytensor.grad(logp.sum(), p)]
    function = plain_function([p], outputs)
    exact = bool(how.get("public"))
    for mixed in (0.0, 0.05, 0.6):
        at = (1 - mixed) * shares + mixed * rng.dirichlet(np.ones(shares.shape[1]), size=CELLS)
        logp, slope, expected, other = function(at)
        if exact:
            np.testing.assert_allclose(logp, expected, rtol=1e-9)
            np.testing.assert_allclose(slope, other, rtol=1e-6, atol=1e-9)
            continue
        # Tables are allowed an error of 5e-8, more far below the largest value; slopes of the graph one of 2e-5 in
        # standard deviations of a count under wide noise (`test_noised_count`).
        np.testing.assert_allclose(logp, expected, atol=1e-6 * max(1, abs(expected).max() / 50))
        spread = np.minimum(scale, np.sqrt(density.sizes.bound[:, None] * at))
        assert (np.abs(slope - other) * at < 2e-5 * np.maximum(1, spread) + 2e-6 * np.abs(other * at)).all()
