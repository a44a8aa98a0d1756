"""Every conditional by quadrature on adversarial neighbours: its true loss is never above what is paid for it."""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.transforms.truncate import truncate
from tests.step_methods.gibbs.conftest import bound

pytestmark = pytest.mark.usefixtures("paid")


def test_a_dirichlet_moves_by_no_more_than_its_range(rng):
    """The log-ratio of two neighbours is β log(p_1 / p_2) plus a constant, whatever the counts."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        pm.Categorical("y", p, observed=pm.Data("d", np.array([0, 1, 1, 2, 1])))
    step, _ = bound(truncate(model, {"p": (0.1, None)}), epsilon=1e9)
    (update,) = step.scan.updates
    # Two components move, the third at its least: log(p_1 / p_2) runs over +-log(.8 / .1).
    assert update.ranges[0] == pytest.approx(2 * math.log(8), rel=1e-4)
    drawn = np.array([update.draw(rng, {}, step.sums, 1.0) for _ in range(50)])
    assert (drawn >= 0.1).all() and np.allclose(drawn.sum(axis=1), 1)


@pytest.mark.parametrize("public", [True, False])
def test_rows_that_change_their_group_are_paid_for(public):
    """A row under a private column leaves one group and enters another; under a public one it stays."""
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.5, shape=2)
        pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1]))], observed=pm.Data("d", np.array([0, 1])))
    step, _ = bound(model, Domain(public=["g"] if public else []), epsilon=1e9)
    (paid,) = step.scan.updates[0].ranges
    stays = math.log(0.5 / 0.1) + math.log(0.9 / 0.5)
    assert paid == pytest.approx(stays if public else max(stays, 2 * math.log(5)), rel=1e-9)
