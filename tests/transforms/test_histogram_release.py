"""Histograms from the model to the trace: chosen by themselves, told in explain, refitted by another likelihood."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.transforms.privatize import record_of
from tests.test_synthesize import traced
from tests.transforms.test_gaussian_release import SHORT
from tests.transforms.zoo import log_likelihoods, privatize

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
DOMAIN = dp.Domain(bounds={"income": (0, 100)})


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


@pytest.mark.slow
def test_explain_says_what_is_released_why_and_what_is_lost(rng):
    explained = dp.explain(incomes(rng), DOMAIN)
    text = " ".join(str(explained.full()).replace("│", " ").split())
    assert "StudentT, as a" in text and "one of 20 bins" in text
    for part in (
        "a StudentT likelihood has no finite sufficient statistics",
        "counted in 20 public bins (up to 100 where noise is small), cut from 5 to 95",
        "The position of a value within its bin is lost",
        "Statistics(mechanism=dp.Histogram(edges))",
        "bounds of income: (0, 100)",
    ):
        assert part in text, text
    without = dp.explain(incomes(rng))
    assert not without.ok
    (problem,) = without.problems
    assert problem.where == "income" and "whose bins must be public" in problem.what
    assert "Domain(bounds={'income': (low, high)})" in problem.remedy


def test_edges_alone_are_enough(rng):
    statistics = dp.Statistics(mechanism=dp.Histogram([20, 40, 60]))
    record = record_of(dp.privatize(incomes(rng), epsilon=1.0, statistics=statistics))[0]
    (table,) = record.tables
    assert "bins of income: cut at 20, 40, 60" in record.assumptions
    assert table.columns == ("count of (-inf, 20]", "count of (20, 40]", "count of (40, 60]", "count of (60, inf)")
    assert table.likelihood == "StudentT, as a histogram" and table.plan["statistic"]["edges"] == [20.0, 40.0, 60.0]
    assert table.sensitivities == ("Δ1 = 2: one row leaves one count and joins another",)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", ["StudentT", "mixture"])
def test_samples_of_a_histogram_find_the_parameters(name, rng):
    model = incomes(rng) if name == "StudentT" else mixed(np.r_[rng.normal(40, 5, 2000), rng.normal(70, 20, 1000)])
    with model:
        idata = dp.sample(epsilon=5.0, domain=DOMAIN, **(SHORT | {"draws": 60, "tune": 80}))
    assert abs(float(idata["posterior"]["mu"].mean()) - 40) < 2.5
    report = " ".join(str(idata.dp.report()).replace("│", " ").split())
    assert "StudentT, as" in report or "Mixture, as" in report
    assert idata.dp.epsilon == 5.0
    panels = dp.plots.release(idata, backend="none").viz["plot"]["income"]
    assert panels.size == 1  # of all bins of the one cell
    assert f"{100 if name == 'StudentT' else 101} statistics" in repr(dp.Release.of(idata))


def test_another_likelihood_is_fitted_to_the_same_bins(rng, tmp_path):
    private = dp.privatize(incomes(rng), epsilon=1.0, domain=DOMAIN)
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
    with pytest.raises(UnsupportedModelError, match=r"PyMC has no distribution function \(logcdf\) of a SkewNormal"):
        dp.condition(without, release)


def test_rows_of_a_plain_likelihood_are_made_anew_and_of_others_refused(rng):
    plain, composite = incomes(rng, 500), mixed(rng.normal(40, 5, 500))
    drawn = traced(plain, {"mu": ((), 40.0), "s": ((), 8.0)}, DOMAIN)
    rows = dp.synthesize(drawn, plain, random_seed=1)["income"]
    assert rows.shape == (500,) and abs(float(rows.median()) - 40) < 2
    idata = traced(composite, {"w": ((), 0.5), "mu": ((), 40.0)}, DOMAIN)
    with pytest.raises(UnsupportedModelError, match="rows cannot be drawn from a Mixture likelihood"):
        dp.synthesize(idata, composite)


def test_the_record_is_the_same_whatever_the_values_and_nothing_is_said_of_them(rng):
    wild = np.array([np.inf, -np.inf, 1e308, 987654.25, 5.0, 5.0])
    records = []
    for rows in (wild, np.full(6, 5.0)):
        with warnings.catch_warnings(record=True, action="always") as caught:
            private = privatize(incomes(rng, observed=rows), domain=DOMAIN)
        assert not caught
        records.append(record_of(private)[0].to_dict())
    assert records[0] == records[1]
