"""A likelihood that was defined outside of the package goes wherever those of the package go."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.families import FAMILIES, names, register
from tests.examples.likelihood import Pareto

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::pymc_dp.errors.{name}")
    for name in ("WeakGuaranteeWarning", "RepeatedReleaseWarning")
]
PARETO = FAMILIES.pop("pareto")  # known to the tests of this file alone
N, LOW, HIGH = 400, 1.0, 20.0
ROWS = np.clip(1 + np.random.default_rng(1).pareto(3.0, size=N), LOW, HIGH)
DOMAIN = dp.Domain(bounds={"y": (LOW, HIGH)})
NUTS = {"tune": 300, "draws": 500, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 1}


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(FAMILIES, "pareto", PARETO)


def model(scale=1.0, low=0.5):
    with pm.Model() as found:
        alpha = pm.Uniform("alpha", low, 10)
        pm.Pareto("y", alpha, scale, observed=ROWS)
    return found


def posterior():
    """Mean and sd of the posterior without privacy: a gamma distribution, of which the bounds cut off nothing."""
    return stats.gamma(N + 1, scale=1 / np.log(ROWS).sum()).stats()


def close(drawn, errors=5.0):
    mean, variance = posterior()
    effective = float(az.ess(drawn, var_names=["alpha"])["alpha"])
    assert abs(float(drawn.posterior["alpha"].mean()) - mean) < errors * np.sqrt(variance / effective) + 0.02
    assert 0.85 < float(drawn.posterior["alpha"].std()) / np.sqrt(variance) < 1.15


def test_explain_knows_what_is_released_and_which_methods_fit():
    found = dp.explain(model(), DOMAIN)
    assert found.ok
    assert {"dp.sample()", "dp.sample(step=dp.OPS())", "dp.sample(step=dp.TemperedGibbs())"} <= set(found.methods)
    assert "sum (log x - 1.49787)" in str(found.full()) and "log x" in str(found.layout.tables[0].by_cells[1].labels)
    assert found.layout.tables[0].by_cells[0] is FAMILIES["pareto"]


@pytest.mark.slow
def test_noise_hides_next_to_nothing_at_a_large_budget(capsys):
    ledger = dp.Ledger(epsilon=100)
    with model():
        idata = dp.sample(epsilon=100, domain=DOMAIN, ledger=ledger, **NUTS)
    close(idata)
    report = str(idata.dp.report())
    assert "pareto" in report and "sum (log x - 1.49787)" in report and "ε = 100" in report
    assert "statistics of y: epsilon=100" in repr(ledger)
    assert ledger.spent.epsilon == 100


def test_a_scan_draws_exactly_from_sums():
    """Of a parameter whose prior is conjugate, given exact sums: no row is held, and no grid is laid."""
    with model():
        idata = dp.sample(
            epsilon=1e6, domain=DOMAIN, step=dp.TemperedGibbs(), draws=500, tune=0, chains=2, cores=1, progressbar=False
        )
    close(idata)
    facts = dict(dp.TemperedGibbs().preview(model(), DOMAIN, dp.Budget(1.0, 0.0)).facts)
    assert "truncated gamma" in str(facts) and "any two rows that there may be" in str(facts)


def test_a_density_that_needs_more_than_its_sum_is_refused():
    with pm.Model() as two:
        pm.Pareto("y", pm.Uniform("alpha", 0.5, 10), pm.Uniform("m", 0.1, 1), observed=ROWS)
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        dp.privatize(two, epsilon=1, domain=DOMAIN)
    assert "the scale m of a Pareto likelihood" in str(refused.value.problems)
    with pytest.raises(dp.errors.UnsupportedModelError, match="reach below the scale m = 2"):
        dp.privatize(model(scale=2.0), epsilon=1, domain=DOMAIN)


def test_a_likelihood_is_registered_once():
    assert "Pareto" in names()
    for taken in (Pareto(), FAMILIES["poisson"]):
        with pytest.raises(dp.errors.ArgumentError, match=r"has a family already"):
            register(taken)
