"""What rows add: within the limits, centred, of each row alone."""

from functools import partial

import numpy as np
import pytest

from pymc_dp.gradients.integers import SCORE_UNITS, add_curvatures, add_scores
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.rows.gate import read
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")


def parts_of(build, limits=(1.0, 1.0), mode="FAST_COMPILE"):
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode=mode)
    scale = np.linspace(0.5, 2, interface.size)
    held = Limits(scale=scale, clip_norm=limits[0], clip_curvature=limits[1])
    return Held(RowParts(rows=rows), held), [read(column) for column in interface.inspection.columns]


class Held:
    """Parts of rows at limits that stay."""

    def __init__(self, parts, limits):
        self.rows, self.limits = parts.rows, limits
        self.scores, self.factors = partial(parts.scores, limits=limits), partial(parts.factors, limits=limits)


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.poisson, models.normal, models.ordered, models.groups, models.two])
def test_no_row_is_left_out_and_none_is_too_long(build, rng):
    parts, chunk = parts_of(build, limits=(0.3, 50.0))
    at = rng.normal(0, 0.5, parts.rows.interface.size)
    scores, factors = parts.scores(chunk, at), parts_of(build)[0].factors(chunk, at)
    assert scores.shape == (models.ROWS, len(at)) and factors.shape == (models.ROWS, parts.rows.count, len(at))
    norms = np.linalg.norm(scores, axis=1)
    assert 0.999 < norms.max() < 1
    curvatures = np.linalg.norm(np.einsum("nqd,nqe->nde", factors, factors), axis=(1, 2))
    assert 0.5 < curvatures.max() < 1
    for place in range(models.ROWS):
        total, matrix = np.zeros(len(at), dtype=np.int64), np.zeros((len(at),) * 2, dtype=np.int64)
        add_scores(scores[place : place + 1], total)
        add_curvatures(factors[place : place + 1], matrix)
        np.testing.assert_allclose(total / SCORE_UNITS, scores[place], atol=2 / SCORE_UNITS)
        assert matrix.any()
