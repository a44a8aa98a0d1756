"""Values that stand for all of a wide range of whole numbers, and what of a density by hand is no quantile."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.gradients import whole_values
from pymc_dp.gradients.interface import interface_of


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

    def dist(mean, size):
        return pm.Normal.dist(mean + pt.constant(x) * 2, 1.0, size=size)

    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("mu"), dist=dist, observed=np.zeros(n_rows))
    (one,) = interface_of(model, dp.Domain(bounds={"y": (-5, 5)})).responses
    assert one.quantile is None and one.breaks is not None
