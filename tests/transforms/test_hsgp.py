"""A basis that is placed by public bounds is that of PyMC, and is all that is accepted of one on rows."""

import re

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.usefixtures("interpreted")
RNG = np.random.default_rng(12)
ENDS = [(0.0, 1.0), (-1.0, 2.0), (0.0, 4.0)]
X = RNG.uniform(*np.transpose(ENDS), (20, 3))
BOUNDS = {"X": (0, 1), "y": (-4, 4)}


def covariance(dims, **given):
    return 2.0**2 * pm.gp.cov.Matern52(dims, ls=0.5, **given)


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann", "dirichlet-neumann"])
@pytest.mark.parametrize("m", [[5], [4, 3], [3, 2, 4]])
def test_the_basis_is_that_of_pymc_placed_by_the_bounds(m, boundary):
    ends, rows = ENDS[: len(m)], X[:, : len(m)]
    with pm.Model():
        ours = dp.models.HSGP(m=m, c=1.5, bounds=ends, cov_func=covariance(len(m)), boundary=boundary)
        other = pm.gp.HSGP(m=m, c=1.5, cov_func=covariance(len(m)), boundary=boundary)
        other.prior_linearized(np.transpose(ends))
        for found, expected in zip(ours.prior_linearized(rows), other.prior_linearized(rows), strict=True):
            np.testing.assert_allclose(found.eval(), expected.eval(), rtol=1e-12, atol=1e-13)


def test_values_beyond_the_bounds_are_clamped():
    with pm.Model():
        gp = dp.models.HSGP(m=[3], L=[2.0], bounds=[(0, 1)], cov_func=covariance(1))
        basis, _ = gp.prior_linearized(np.array([[-5.0], [0.0], [1.0], [9.0]]))
    found = basis.eval()
    np.testing.assert_array_equal(found[[0, 3]], found[[1, 2]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bounds": [(0, 1), (0, 1)]}, "a pair for each of the 1 columns"),
        ({"bounds": [(1, 0)]}, "low < high"),
        ({"bounds": [(0, 10)], "c": None, "L": [2.0]}, "at least that of the bounds, [5.0]"),
    ],
)
def test_bounds_that_say_nothing_are_refused(given, words):
    with pm.Model(), pytest.raises(dp.errors.ArgumentError, match=re.escape(words)):
        dp.models.HSGP(**{"m": [3], "c": 1.5, "cov_func": covariance(1), **given})


def curve(make):
    with pm.Model() as model:
        f = make().prior("f", X=pm.Data("X", X[:, :1]))
        pm.Normal("y", f, pm.HalfNormal("sd", 1), observed=RNG.normal(size=20))
    return model


REMEDY = {
    "HSGP": lambda: dp.models.HSGP(m=[40], c=2.0, bounds=[(0, 1)], cov_func=covariance(1)),
    "HSGPPeriodic": lambda: dp.models.HSGPPeriodic(m=5, bounds=(0, 1), cov_func=pm.gp.cov.Periodic(1, period=1, ls=1)),
}
PYMC = {
    "HSGP": lambda: pm.gp.HSGP(m=[5], c=2.0, cov_func=covariance(1)),
    "HSGPPeriodic": lambda: pm.gp.HSGPPeriodic(m=5, cov_func=pm.gp.cov.Periodic(1, period=1, ls=1)),
}


@pytest.mark.parametrize("relation", [{}, {"neighbours": "add_remove", "n_max": 50}], ids=["replace", "add_remove"])
@pytest.mark.parametrize("name", PYMC)
def test_what_the_refusal_tells_to_write_is_accepted(name, relation):
    domain = dp.Domain(bounds=BOUNDS, **relation)
    refused, accepted = (dp.explain(curve(kind[name]), domain, delta=1e-6) for kind in (PYMC, REMEDY))
    assert not refused.gradients.fits and accepted.gradients.fits
    problem = next(one for one in refused.problems if one.kind == "cause")
    bounds = "bounds=[(0, 1)]" if name == "HSGP" else "bounds=(0, 1)"
    assert f"dp.models.{name}(" in problem.remedy and bounds in problem.remedy
