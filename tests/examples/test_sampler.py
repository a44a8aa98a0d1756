"""A sampler that was defined outside of the package is run, priced, listed and reported as those of the package are."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.step_methods.registered import SAMPLERS
from tests.examples.sampler import BernoulliWalk

SAMPLERS.remove(BernoulliWalk)  # known to the tests of this file alone
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::pymc_dp.errors.{name}")
    for name in ("WeakGuaranteeWarning", "RepeatedReleaseWarning")
]
N, HITS, DELTA = 400, 150, 1e-6
ROWS = np.repeat([1, 0], [HITS, N - HITS])


@pytest.fixture(autouse=True)
def known():
    SAMPLERS.append(BernoulliWalk)
    yield
    SAMPLERS.remove(BernoulliWalk)


def model():
    with pm.Model() as found:
        pm.Bernoulli("y", pm.Beta("p", 2, 2), observed=ROWS)
    return found


def test_explain_lists_it_with_its_price():
    found = dp.explain(model())
    assert "dp.sample(step=BernoulliWalk())" in found.methods
    (preview,) = (item for item in found.samplers if "BernoulliWalk" in item.call)
    assert preview.noise == "accept bits (Barker), for 1000 draws"
    assert preview.facts == (("one step", "moves a row's log-likelihood by at most 0.001"),)
    assert "step=BernoulliWalk()" in str(found.full()) and "stepwise, float64" in str(found.full())


@pytest.mark.slow
def test_it_samples_the_posterior_and_is_in_report_and_ledger():
    ledger = dp.Ledger(epsilon=100, delta=DELTA)
    with model():
        idata = dp.sample(
            epsilon=100,
            delta=DELTA,
            step=BernoulliWalk(),
            ledger=ledger,
            draws=4000,
            tune=200,
            chains=1,
            progressbar=False,
        )
    truth, drawn = stats.beta(2 + HITS, 2 + N - HITS), idata.posterior["p"]
    effective = float(az.ess(idata, var_names=["p"])["p"])
    assert effective > 100
    assert abs(float(drawn.mean()) - truth.mean()) < 4 * truth.std() / np.sqrt(effective)
    assert 0.8 < float(drawn.std()) / truth.std() < 1.2
    report = str(idata.dp.report())
    assert "BernoulliWalk" in report and "accept bits (Barker)" in report and "stepwise" in report
    assert "moves a row's log-likelihood by at most" in report
    assert "BernoulliWalk of p: epsilon=" in repr(ledger)
    assert 99 < idata.dp.epsilon <= ledger.spent.epsilon <= 100


def test_a_step_moves_no_row_further_than_was_paid_for():
    """What a bit says of one row more or in another's place, over many proposals, against the range of its event."""
    with model() as held:
        step = BernoulliWalk(epsilon=3.0, delta=DELTA, chains=1, model=held)
    step.setup_chain(np.random.default_rng(0), 0, 50)
    eta = step.event.event.eta
    assert total_epsilon(step.event, DELTA).epsilon <= 3.0
    at, seen = {step.key: np.array(0.3)}, []
    for _ in range(50):
        moved = step.advance(at)
        if moved is not at:
            p, q = (special.expit(float(item[step.key])) for item in (at, moved))
            rows = np.log(q / p), np.log1p(-q) - np.log1p(-p)  # what a hit says, and a miss
            seen.append([abs(rows[0]), abs(rows[1]), abs(rows[0] - rows[1])])
        at = moved
    assert len(seen) > 5 and np.max(seen) <= eta


def test_it_refuses_what_it_is_not_paid_for():
    with model() as held:
        step = BernoulliWalk(epsilon=1.0, delta=DELTA, chains=1, model=held)
    step.setup_chain(np.random.default_rng(0), 0, 2)
    point = {step.key: np.array(0.3)}
    for _ in range(2):
        point, _ = step.step(point)
    with pytest.raises(dp.BudgetExceeded):
        step.step(point)
