"""From a model to the mode of its posterior: a walk on its rows' scores and curvatures, without noise."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits, stages_of
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.walk import walk
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.rows.gate import read
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")


class Exact:
    """Sums over all rows with next to no noise."""

    def __init__(self, parts, chunk):
        self.parts, self.chunk = parts, chunk

    def curvature(self, stage, at, limits):
        factors = self.parts.factors(self.chunk, at, limits)
        return np.einsum("nqd,nqe->de", factors, factors) * limits.clip_curvature, 1e-9

    def gradient(self, stage, step, at, limits):
        scores = self.parts.scores(self.chunk, at, limits)
        return scores.sum(axis=0) * limits.clip_norm

    def variance(self, stage, limits):
        return 1e-9

    def deviation(self, stage, limits):
        return 1e-9


PRIORS = {
    "bernoulli": ([0, 0, 0, 0], [1, 1, 1, 1]),
    "poisson": ([0, 0, 0, 0], [1, 0.4, 0.4, 0.4]),
    "normal": ([0, 0, 0, 0, 0], [2, 2, 2, 2, 1]),
}


@pytest.mark.parametrize(
    "build", [models.bernoulli, models.normal, pytest.param(models.poisson, marks=pytest.mark.slow)]
)
def test_a_walk_without_noise_tells_the_mode(build, rng, monkeypatch):
    model, domain = build()
    interface = interface_of(model, domain)
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    size = interface.size
    parts = RowParts(rows=rows)
    made = Simulated.of(rows, {}, rng)
    scale = made.scale
    monkeypatch.setattr("pymc_dp.gradients.schedule.CLIP_NORM", 1e5)
    monkeypatch.setattr("pymc_dp.gradients.schedule.CLIP_CURVATURE", 1e8)
    mean, deviations = map(np.array, PRIORS[build.__name__])
    prior = Prior(mean=mean / scale, precision=np.diag((scale / deviations) ** 2))
    chunk = [read(column) for column in interface.inspection.columns]
    limits = Limits(scale=scale, clip_norm=1e5, clip_curvature=1e8)
    releases = Exact(parts, chunk)
    found = walk(
        stages_of(60), prior, releases, limits=limits, n_rows=models.ROWS, bend=lambda at: made.bend(at * scale)
    )
    shapes = [part.shape for part in interface.parts]
    ends = np.cumsum([part.size for part in interface.parts])[:-1]
    logp = plain_function(model.value_vars, model.logp())

    def loss(at):
        return -float(logp(*(part.reshape(shape) for part, shape in zip(np.split(at, ends), shapes, strict=True))))

    # The path itself counts a quarter of the stage before twice; the posterior is of the last stage and the prior.
    mode = minimize(loss, np.zeros(size), method="BFGS").x
    own = np.linalg.solve(prior.precision + found.curvature, prior.weighted + found.slope) * scale
    np.testing.assert_allclose(own, mode, atol=2e-3)
