"""Public constants, from made-up rows alone."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.simulated import Simulated
from tests.gradients import models


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.simulated.DRAWS", 20)


def simulated(build, rng, covariates=None):
    rows = RowScores.of(interface_of(*build()), mode="FAST_COMPILE")
    return Simulated.of(rows, covariates or {}, rng)


def test_the_first_limit_is_the_size_of_curvatures_where_the_walk_begins(rng):
    """Bernoulli rows at p = 1/2: ‖x‖² / 4, in scaled coordinates."""
    made = simulated(models.bernoulli, rng)
    found = made.first(np.zeros(4))
    x = made.columns[0][:200]
    design = np.column_stack([np.ones(len(x)), x]) * found.scale
    assert found.clip_curvature == pytest.approx(np.mean(np.sum(design**2, 1)) / 4, rel=1e-9)
    assert found.basis is None and found.scale.shape == (4,) and (found.scale > 0).all()


def test_scaled_scores_have_about_unit_size(few, rng):
    """Of a normal response the mean square of the score of log sigma is 2, whatever the parameters."""
    found = simulated(models.normal, rng)
    assert found.scale[-1] == pytest.approx(2**-0.5, rel=0.01)


def test_no_row_is_read(few, rng, monkeypatch):
    rows = RowScores.of(interface_of(*models.groups()), mode="FAST_COMPILE")
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))
    made = Simulated.of(rows, {}, rng)
    made.first(np.zeros(made.rows.interface.size))


def test_the_same_whatever_the_rows_are(few):
    found = [
        simulated(lambda y=y: models.normal(y=y), np.random.default_rng(1)).first(np.zeros(5))
        for y in (np.zeros(models.ROWS), np.full(models.ROWS, 1e6))
    ]
    np.testing.assert_array_equal(found[0].scale, found[1].scale)
    assert found[0].clip_curvature == found[1].clip_curvature


def test_covariates_can_be_stated_and_have_to_be_where_nothing_bounds_them(few, rng):
    model, _ = models.bernoulli()
    rows = RowScores.of(interface_of(model), mode="FAST_COMPILE")
    with pytest.raises(UnsupportedModelError, match="how this private column is distributed"):
        Simulated.of(rows, {}, rng)
    found = Simulated.of(rows, {"x": pm.Normal.dist(0, 3, shape=3)}, rng)
    assert found.scale[1] < found.scale[0], "slopes of wide covariates have large scores"


def test_diagonals_follow_a_scale_and_variances_are_less(few, rng):
    made = simulated(models.normal, rng)
    near, far = np.zeros(5), np.r_[np.zeros(4), 1.0]
    slope, less = (np.diag(made.bend(at)) for at in (near, far))
    assert (slope > 0).all() and (less[:4] < 0.6 * slope[:4]).all(), "at a larger sigma a row says less of the mean"
    shares = made.shares(near)
    assert ((shares >= 0.05) & (shares <= 1 + 1e-9)).all() and shares.max() < 0.98


def test_shares_do_not_depend_on_how_wide_bounds_are(few, rng):
    """Columns ten times as wide, of rows that are as far from saturated: at the prior mean of a logistic model."""
    found = []
    for width in (1, 10):
        model, _ = models.bernoulli()
        domain = dp.Domain(bounds={"x": (-width, width)})
        rows = RowScores.of(interface_of(model, domain), mode="FAST_COMPILE")
        found.append(Simulated.of(rows, {}, np.random.default_rng(2)).shares(np.zeros(4)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_without_clipping_variance_and_slope_are_the_same(few, rng, monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.schedule.CLIP_NORM", 1e6)
    monkeypatch.setattr("pymc_dp.gradients.schedule.CLIP_CURVATURE", 1e6)
    made = simulated(models.bernoulli, rng)
    np.testing.assert_allclose(made.shares(np.zeros(4)), 1, rtol=1e-9)
    assert made.bend(np.zeros(4))[0, 0] / made.scale[0] ** 2 == pytest.approx(50, rel=1e-9), "200 rows of p (1 - p)"


def test_a_model_most_of_whose_rows_would_add_nothing_is_refused(few, rng):
    """Rates that overflow: every score is NaN, every row is left out, and no one may be told after the fact."""
    with pm.Model() as model:
        pm.Poisson("y", pt.exp(pm.Normal("a", 2000)), observed=np.ones(8, dtype=int))
    interface = interface_of(model, dp.Domain(bounds={"y": (0, 9)}))
    made = Simulated.of(RowScores.of(interface, mode="FAST_COMPILE"), {}, rng)
    with pytest.raises(UnsupportedModelError, match="scores that are not finite"):
        _ = made.scale


def test_a_prior_that_cannot_be_drawn_from_is_refused(few, rng):
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Flat("a"), observed=np.ones(8, dtype=int))
    with pytest.raises(UnsupportedModelError, match="cannot be drawn from"):
        Simulated.of(RowScores.of(interface_of(model), mode="FAST_COMPILE"), {}, rng)


def test_a_location_and_a_scale_are_not_related(few, rng):
    found = simulated(models.normal, rng)
    assert [list(one) for one in found.blocks] == [[0, 1, 2, 3], [4]]
    assert len(simulated(models.bernoulli, rng).blocks) == 1


def test_on_the_way_curvature_is_left_where_the_model_expects_more_than_bounds_hold(few, rng):
    found = simulated(models.normal, rng)
    within, beyond = (np.array([mean, 0, 0, 0, 0.0]) for mean in (0.0, 300.0))
    near, far = (found.bend(at)[0, 0] for at in (within, beyond))
    assert far == pytest.approx(near, rel=0.01)
