import numpy as np
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from tests.step_methods.annealing.conftest import annealing, normal, poisson, student
from tests.step_methods.conftest import bernoulli

pytestmark = pytest.mark.usefixtures("paid")

NAN, INF = np.nan, np.inf




def test_a_row_without_a_finite_log_likelihood_moves_no_more_than_is_charged():
    run = annealing(student([0.5, 1.0]), Domain(bounds={"y": (-4, 3)}), evidence=True)
    places = {"mu": np.array([0.0, 1.0, -3.0, 3.0])}
    (likelihood,) = run.likelihoods.held
    (column,) = likelihood.rows.columns
    found = []
    for value in (1.0, NAN, INF, -4.0, 3.0):
        column[1] = value
        found.append(run.likelihood.at(places, run.sums))
    assert all(np.isfinite(one).all() for one in found)
    pairs = [one - other for one in found for other in found]
    assert max(np.ptp(pair) for pair in pairs) <= run.sensitivity.value
    assert max(abs(pair).max() for pair in pairs) <= run.sensitivity.sensitivity
