"""Values of responses and their weights: expectations over them are those of the model."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.gradients import whole_values
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_parts import expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.rows.gate import read
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")


def at_some_point(build, rng, scale=0.3):
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    columns = [read(column)[:32] for column in interface.inspection.columns]
    start = 1.0 * np.arange(interface.size) / interface.size
    return expected(rows, columns, start + rng.normal(0, scale, interface.size), np.ones(interface.size))


@pytest.mark.few(1)
@pytest.mark.parametrize("build", models.ALL)
def test_weights_add_up_and_scores_have_mean_zero(build, rng):
    """Where a response is censored its score jumps, and equidistant nodes are off by a share of their distance."""
    found = at_some_point(build, rng).responses
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-9)
    mean = np.einsum("nb,nbq->nq", found.weights, found.scores)
    spread = np.sqrt(np.einsum("nb,nbq->nq", found.weights, found.scores**2))
    assert np.abs(mean / np.maximum(spread, 1e-9)).max() < (0.03 if build is models.tobit else 1e-4)


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.bernoulli, models.poisson, models.negative_binomial, models.ordered])
def test_information_is_the_slope_of_the_score(build, rng):
    """E s sᵀ = -E ds/dη: the values of discrete responses stay, and their weights are those of the point."""
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    columns = [read(column)[:32] for column in interface.inspection.columns]
    ones, step = np.ones(interface.size), 1e-4
    at = np.linspace(-0.5, 0.5, interface.size) + rng.normal(0, 0.1, interface.size)
    found = expected(rows, columns, at, ones)
    weights, scores = found.responses.weights, found.responses.scores
    information = np.einsum("nb,nbi,nbj->nij", weights, scores, scores)
    whole = np.einsum("nqd,nqp,npe->de", found.jacobian, information, found.jacobian)
    for k, shift in enumerate(step * np.eye(interface.size)):
        ends = [expected(rows, columns, at + sign * shift, ones) for sign in (1, -1)]
        means = [np.einsum("nb,nbq,nqd->d", weights, end.responses.scores, end.jacobian) for end in ends]
        np.testing.assert_allclose((means[1] - means[0]) / (2 * step), whole[:, k], rtol=1e-4, atol=1e-4)


def clamped_model(bounds):
    with pm.Model() as model:
        pm.Poisson("y", pt.exp(pm.Normal("a")), observed=np.arange(32) % 4)
    return model, dp.Domain(bounds={"y": bounds})


def test_counts_beyond_a_bound_are_counted_there():
    interface = interface_of(*clamped_model((1, 3)))
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    columns = [read(column) for column in interface.inspection.columns]
    found = expected(rows, columns, np.array([np.log(2.0)]), np.ones(1)).responses
    p = np.exp(-2) * np.array([1 + 2, 2])
    np.testing.assert_allclose(found.weights[0], [*p, 1 - p.sum()], rtol=1e-12)
    np.testing.assert_allclose(found.scores[0, :, 0], [-1, 0, 1], atol=1e-12, err_msg="0 is clamped to 1")


@pytest.mark.parametrize("most", [300, 1000, 4095, 2**14 - 1])
def test_some_values_stand_for_all_of_a_wide_range(most):
    """Means and variances of counts are those of all values, to a percent: of Poisson, Binomial and wide ones."""
    column = SimpleNamespace(bounds=(0, most), integer=True)
    values = whole_values.some_within(column)
    widths, every = whole_values.widths_of(values), np.arange(most + 1)
    few = whole_values.MOST_VALUES * max(1, np.sqrt(most / whole_values.CLOSE))
    assert len(values) <= few and values[0] == 0 and values[-1] == most
    assert widths.sum() == pytest.approx(most + 1)
    for mean in (3, 30, most / 10, most / 3, 0.8 * most):
        for known in (stats.poisson(mean), stats.binom(most, mean / most), stats.nbinom(5, 5 / (5 + mean))):
            part, whole = known.pmf(values) * widths, known.pmf(every)
            exact = np.average(every, weights=whole)
            variance = np.average((every - exact) ** 2, weights=whole)
            assert np.average(values - exact, weights=part) == pytest.approx(0, abs=0.015 * np.sqrt(variance))
            assert np.average((values - exact) ** 2, weights=part) == pytest.approx(variance, rel=0.015)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_no_quantile_holds_a_row_that_a_function_has_written(n_rows):
    """Nodes of made-up rows would follow from it, and with them all that is taken for public."""
    x = np.linspace(0.3, 0.4, n_rows)
    with pm.Model() as model:
        pm.CustomDist(
            "y",
            pm.Normal("mu"),
            dist=lambda mean, size: pm.Normal.dist(mean + pt.constant(x) * 2, 1.0, size=size),
            observed=np.zeros(n_rows),
        )
    (one,) = interface_of(model, dp.Domain(bounds={"y": (-5, 5)})).responses
    assert one.quantile is None and one.breaks is not None
