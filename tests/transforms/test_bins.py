"""Histograms: probabilities of bins by SciPy, their derivatives, and releases of them that are fitted."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.pytensorf import rewrite_pregrad

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import rebuild
from pymc_dp.release.plan import plan_release
from pymc_dp.transforms.bins import bin_probabilities
from tests.families.laws import LAWS, A
from tests.transforms.zoo import log_likelihoods

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
EDGES = (-40.0, -3.0, -1.0, 0.0, 0.25, 0.5, 1.0, 2.5, 7.0, 40.0, 1e3)
HIGHEST = 1e-7
"""PyMC takes some constants of the normal law, sqrt(2) among them, as 32-bit floats."""
QUICK = (
    *("Normal", "StudentT", "Gumbel", "LogNormal", "Weibull", "Uniform", "Poisson", "Geometric"),
    *("ZeroInflatedPoisson", "HurdleGamma", "NormalMixture", "Censored", "Truncated", "CustomDist of a transform"),
)
WEIGHTED = np.linspace(1, 2, len(EDGES) + 1)


def compiled(names):
    """Probabilities, and derivatives of their sum with weights, of several laws by one function of their parameter."""
    with pm.Model() as model:
        a = pm.Normal("a")
        for name in names:
            LAWS[name][0](name.replace(" ", "_") + "_y", a)
    plan = plan_release(inspect(model).sums, dp.Statistics(mechanism=dp.Histogram(EDGES)), 1.0)
    at = pt.dscalar()
    graphs = [
        rebuild([bin_probabilities(table.observed, table.cells, table.statistic)], {a: at})[0][0]
        for table in plan.tables
    ]
    totals = [rewrite_pregrad((graph[0] * WEIGHTED).sum()) for graph in graphs]  # as PyMC does
    slopes = [pytensor.grad(total, at, disconnected_inputs="ignore", return_disconnected="zero") for total in totals]
    function = plain_function([at], [*graphs, *slopes])

    def evaluate(value):
        with np.errstate(all="ignore"):
            found = function(value)
        return np.array([item[0] for item in found[: len(names)]]), np.array(found[len(names) :])

    return evaluate, [table.observed.title for table in plan.tables]


@pytest.fixture(scope="module")
def quick():
    return compiled(QUICK)


def check_probabilities(names, found):
    for name, p in zip(names, found, strict=True):
        with np.errstate(all="ignore"):
            expected = np.diff([0, *LAWS[name][1].cdf(np.array(EDGES)), 1])
        assert (p >= 0).all() and p.sum() == pytest.approx(1, abs=1e-12), name
        np.testing.assert_allclose(p, expected, rtol=0, atol=HIGHEST, err_msg=name)
        lower = np.array(EDGES) <= -1  # where the distribution function itself is small, so are errors
        np.testing.assert_allclose(p[:-1][lower], expected[:-1][lower], rtol=2e-5, atol=1e-300, err_msg=name)


def check_slopes(names, evaluate, step=1e-6):
    slopes = evaluate(A)[1]
    expected = (evaluate(A + step)[0] - evaluate(A - step)[0]) @ WEIGHTED / (2 * step)
    for name, slope, other in zip(names, slopes, expected, strict=True):
        assert slope == pytest.approx(other, rel=5e-3, abs=1e-6), name
    for extreme in (A, 1e-8, 300.0):
        assert np.isfinite(evaluate(extreme)[1]).all()


@pytest.mark.slow
def test_probabilities_are_those_of_scipy_far_into_the_tails(quick):
    check_probabilities(QUICK, quick[0](A)[0])


@pytest.mark.slow
def test_derivatives_are_finite_outside_of_the_support_too(quick):
    check_slopes(QUICK, quick[0])


@pytest.mark.slow
def test_all_other_likelihoods_with_a_distribution_function():
    names = [name for name in LAWS if name not in QUICK]
    assert len(names) > 5
    evaluate, _ = compiled(names)
    check_probabilities(names, evaluate(A)[0])
    check_slopes(names, evaluate)


INCOMES = dp.Domain(bounds={"income": (0, 100)})


def incomes(rng, n=3000, observed=None):
    income = rng.standard_t(4, n) * 8 + 40 if observed is None else observed
    with pm.Model() as model:
        pm.StudentT("income", 4.0, mu=pm.Normal("mu", 50, 20), sigma=pm.HalfNormal("s", 20), observed=income)
    return model


def mixed(observed):
    with pm.Model() as model:
        w, mu = pm.Beta("w", 2, 2), pm.Normal("mu", 50, 20)
        parts = [pm.Normal.dist(mu, 5.0), pm.Normal.dist(70.0, 20.0)]
        pm.Mixture("income", pt.stack([w, 1 - w]), parts, observed=observed)
    return model


def test_edges_alone_are_enough(rng):
    statistics = dp.Statistics(mechanism=dp.Histogram([20, 40, 60]))
    record = dp.Release.of(dp.privatize(incomes(rng), epsilon=1.0, statistics=statistics)).record
    (table,) = record.tables
    assert "bins of income: cut at 20, 40, 60" in record.assumptions
    assert table.columns == ("count of (-inf, 20]", "count of (20, 40]", "count of (40, 60]", "count of (60, inf)")
    assert table.likelihood == "StudentT, as a histogram" and table.plan["statistic"]["edges"] == [20.0, 40.0, 60.0]
    assert table.sensitivities == ("Δ1 = 2: one row leaves one count and joins another",)


def test_another_likelihood_is_fitted_to_the_same_bins(rng, tmp_path):
    private = dp.privatize(incomes(rng), epsilon=1.0, domain=INCOMES)
    path = dp.Release.of(private).save(tmp_path / "release.json")
    release = dp.Release.load(path)
    same = dp.condition(incomes(rng, observed=np.zeros(2)), release)
    at = {"mu": np.array(41.0), "s_log__": np.array(2.0)}
    assert log_likelihoods(same, [at])["income"] == pytest.approx(log_likelihoods(private, [at])["income"], rel=1e-12)
    other = dp.condition(mixed(np.zeros(3)), release)
    found = log_likelihoods(other, [{"w_logodds__": np.array(0.0), "mu": np.array(mu)} for mu in (10.0, 40.0)])
    assert np.isfinite(found["income"]).all() and found["income"][1] > found["income"][0] + 50
    with pm.Model() as without:
        pm.SkewNormal("income", mu=pm.Normal("mu"), sigma=1.0, alpha=1.0, observed=np.zeros(2))
    with pytest.raises(
        dp.errors.UnsupportedModelError, match=r"PyMC has no distribution function \(logcdf\) of a SkewNormal"
    ):
        dp.condition(without, release)
