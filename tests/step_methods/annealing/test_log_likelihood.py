import numpy as np
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from tests.step_methods.annealing.conftest import annealing, normal, poisson, student
from tests.step_methods.conftest import bernoulli

pytestmark = pytest.mark.usefixtures("paid")

NAN, INF = np.nan, np.inf
# Model, its rows, what they are clamped to, bounds, log-density of a row at a place, ends of the places.
CASES = {
    "counts": (bernoulli, [0, 1, 1, 7], [0, 1, 1, 0], None, lambda x, p: stats.bernoulli.logpmf(x, p), [(0.05, 0.95)]),
    "poisson": (poisson, [0, 3, 99], [0, 3, 8], (0, 8), lambda x, rate: stats.poisson.logpmf(x, rate), [(0.5, 6)]),
    "normal": (normal, [0.3, -9.0, INF, NAN], [0.3, -2, 3, 0.5], (-2, 3), stats.norm.logpdf, [(-2, 2), (0.5, 2)]),
    "rows": (
        student,
        [0.3, -9, INF, NAN],
        [0.3, -4, 3, -0.5],
        (-4, 3),
        lambda x, m: stats.t.logpdf(x, 4, m),
        [(-3, 3)],
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_sums_and_rows_have_the_log_likelihood_of_all_rows_with_its_constant(name, rng):
    build, rows, held, bounds, density, ends = CASES[name]
    run = annealing(build(rows), None if bounds is None else Domain(bounds={"y": bounds}), evidence=True)
    names = [str(rv.name) for rv in run.prior_model.free_RVs]
    places = [rng.uniform(low, high, 7) for low, high in ends]
    found = run.likelihood.at(dict(zip(names, places, strict=True)), run.sums)
    found = found + run.likelihood.constant(run.sums) + run.likelihood.public_constant()
    expected = density(np.array(held)[:, None], *places).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


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
