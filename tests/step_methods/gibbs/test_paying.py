"""What pays for scans: a pool where ranges depend on the state, and what it buys; grants where they do not."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.step_methods.gibbs.paying import GAIN
from pymc_dp.step_methods.gibbs.tempered import largest_beta

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1, "chains": 1, "tune": 0}
GROUP = np.arange(400) % 8
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


def hierarchy() -> tuple[pm.Model, dp.Domain]:
    """Normal rows of eight public groups."""
    rows = np.random.default_rng(1).normal(0.3 * GROUP / 8, 1.0)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0, 1), pm.HalfNormal("spread", 1)
        groups = pm.Truncated("groups", pm.Normal.dist(mean, spread), -3, 3, shape=8)
        pm.Normal("y", groups[pm.Data("g", GROUP)], pm.Uniform("sd", 0.3, 3), observed=rows)
    return model, dp.Domain(bounds={"y": (-4, 4)}, public=["g"])


def shares() -> tuple[pm.Model, None]:
    """A probability for each group, of whose range nothing depends on the state."""
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1, 1), 0.05, 0.95, shape=8)
        pm.Bernoulli("y", p[pm.Data("g", GROUP)], observed=GROUP % 3 == 0)
    return model, None


def bound(made, budget, steps=1000):
    """A step that is priced, and what β would be by the largest ranges alone."""
    model, domain = made
    step = dp.TemperedGibbs()
    step, _ = step.bound(step.inspect(model, domain), budget, chains=1, steps=steps)
    return step, largest_beta(step.scan.ranges, budget, steps, step.scan.slacks)


@pytest.mark.parametrize("budget", [dp.Budget(1.0), dp.Budget(2.0, 1e-6)])
def test_a_pool_has_twice_the_power_on_a_hierarchical_normal(budget):
    step, fixed = bound(hierarchy(), budget)
    assert step.payment.spending is not None and step.beta > 2 * fixed


@pytest.mark.parametrize("budget", [dp.Budget(1.0), dp.Budget(2.0, 1e-6)])
def test_ranges_that_depend_on_no_state_are_paid_for_by_grants(budget):
    step, fixed = bound(shares(), budget)
    assert step.payment.spending is None and step.beta == pytest.approx(fixed, rel=1e-6)


def test_a_pool_lasts_on_tables_of_the_prior():
    """Planned to last on nine of ten."""
    ended = 0
    for seed in range(6):
        model, domain = hierarchy()
        with model:
            drawn = pm.draw(model["y"], random_seed=seed)
        model.rvs_to_values[model["y"]].data = np.clip(drawn, -4, 4)
        with dp.testing.insecure_randomness(seed):
            idata = dp.sample(
                60, model=model, domain=domain, step=dp.TemperedGibbs(), epsilon=5.0, ledger=dp.Ledger(5.0), **QUIET
            )
        ended += idata["posterior"].sizes["draw"] < 60
    assert ended <= 2 and GAIN > 1


def test_a_draw_by_a_grant_at_a_state_of_a_larger_range_has_less_power(monkeypatch):
    """Whatever the plan missed: no draw uses more than the grant, and no chain ends."""
    model, domain = shares()
    step = dp.TemperedGibbs()
    step, _ = step.bound(step.inspect(model, domain), dp.Budget(1.0), chains=1, steps=5)
    (one,) = step.scan.plan.priced
    asked = step.scan.updates[0].asked(step.scan.points.values(step.prior_model.initial_point()), 0)
    made = []
    monkeypatch.setattr(type(asked), "_make", lambda self, beta, pay: made.append(beta))
    asked.draw(0.5, None, one.most)
    asked.draw(0.5, None, one.most / 4)
    assert made[0] == 0.5 and made[1] == pytest.approx(0.125, rel=1e-3)
    assert asked.event(made[1]).eta <= type(one)(most=one.most / 4, slack=one.slack).event(0.5).eta
