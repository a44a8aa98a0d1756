"""Histograms from the model to the trace: chosen by themselves, told in explain, refitted by another likelihood."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.transforms.privatize import record_of
from tests.transforms.zoo import log_likelihoods

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


def test_edges_alone_are_enough(rng):
    statistics = dp.Statistics(mechanism=dp.Histogram([20, 40, 60]))
    record = record_of(dp.privatize(incomes(rng), epsilon=1.0, statistics=statistics))[0]
    (table,) = record.tables
    assert "bins of income: cut at 20, 40, 60" in record.assumptions
    assert table.columns == ("count of (-inf, 20]", "count of (20, 40]", "count of (40, 60]", "count of (60, inf)")
    assert table.likelihood == "StudentT, as a histogram" and table.plan["statistic"]["edges"] == [20.0, 40.0, 60.0]
    assert table.sensitivities == ("Δ1 = 2: one row leaves one count and joins another",)


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
