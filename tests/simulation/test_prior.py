"""Parameters of a model as positions of its value variables: drawn from the prior, or given."""

import numpy as np
import pymc as pm

from pymc_dp.simulation.prior import draw_prior, draws_at


def test_given_values_have_the_positions_of_the_same_draws_from_the_prior():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        shift = pm.Normal("shift", 0, scale, shape=2)
    beside = [2 * shift + scale]
    drawn = draw_prior(model, np.random.default_rng(1), 4, beside)
    same = draws_at(model, drawn.values, beside)
    np.testing.assert_allclose(same.positions, drawn.positions)
    np.testing.assert_allclose(same.beside[0], drawn.beside[0])
    assert same.shapes == drawn.shapes


def test_values_without_a_position_are_left_out():
    with pm.Model() as model:
        pm.HalfNormal("scale")
    found = draws_at(model, {"scale": np.array([1.0, 0.0, 2.0])})
    assert found.values["scale"].tolist() == [1.0, 2.0]
    np.testing.assert_allclose(found.positions, [[0.0], [np.log(2.0)]])
