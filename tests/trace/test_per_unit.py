"""What a trace under a metric says: ε per unit, and what that is for a whole row."""

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.trace.manifest import PRIVACY

METRIC = dp.metrics.L1("x")
DOMAIN = dp.Domain(bounds={"x": (-3, 3)}, metric=METRIC)
SHORT = {"progressbar": False, "compute_convergence_checks": False}


def model():
    with pm.Model() as found:
        pm.Normal("x", pm.Uniform("mu", -1, 1), 1.0, observed=np.linspace(-1, 1, 9))
    return found


@pytest.fixture(scope="module")
def drawn():
    ledger = dp.Ledger(0.5, metric=METRIC)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return dp.sample(epsilon=0.5, step=dp.OPS(grid=50), model=model(), domain=DOMAIN, ledger=ledger, **SHORT)


@pytest.fixture(scope="module")
def private():
    return dp.privatize(model(), epsilon=0.5, domain=DOMAIN, ledger=dp.Ledger(3.0))


@pytest.fixture(scope="module")
def released(private):
    short = {"draws": 5, "tune": 0, "chains": 1, "progressbar": False, "compute_convergence_checks": False}
    with pytensor.config.change_flags(mode="FAST_COMPILE"), private:
        return dp.scrub(pm.sample(step=pm.Metropolis(), **short), private)


@pytest.fixture(params=["drawn", "released"])
def trace(request):
    return request.getfixturevalue(request.param)


@pytest.mark.few(1)
def test_epsilon_is_for_a_row_and_said_per_unit_beside(trace):
    assert trace.dp.epsilon == 3.0
    assert trace.dp.epsilon_per_unit == 0.5
    assert trace.dp.metric == "|Δx|"
    assert trace.dp.neighbours == "replace"
    assert trace.dp.history["epsilon"].tolist() == [3.0]
    assert trace[PRIVACY].attrs["epsilon"] == 3.0
    assert trace[PRIVACY].attrs["epsilon_per_unit_of_metric"] == 0.5
    assert trace[PRIVACY].attrs["metric"] == "|Δx|"
