"""What the papers' rule is charged, and refusals of OPS."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

EPSILON = 1.0


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Truncated("p", pm.Beta.dist(1, 1), 0.1, 0.9), observed=np.repeat([0, 1], [70, 30]))
    return model


def test_from_sums_the_rule_is_what_is_charged():
    trace = dp.sample(
        1, epsilon=EPSILON, step=dp.OPS(papers=True), model=coin(), ledger=dp.Ledger(EPSILON), progressbar=False
    )
    sampler = trace.dp.report().record["sampler"]
    rule = 2 * dp.sensitivity(coin()).log_likelihood.value / EPSILON
    assert 1 / sampler["power"] == pytest.approx(rule, rel=1e-6)
    assert "times" not in dict(sampler["facts"])["one row moves"]


def test_temperatures_are_those_of_the_papers_and_of_the_range():
    def temperature(low, high, epsilon=1.0, **given):
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Truncated("p", pm.Beta.dist(1.0, 1.0), low, high), observed=np.array([0, 1]))
        tree = dp.sample(
            1, epsilon=epsilon, step=dp.OPS(**given), model=model, ledger=dp.Ledger(epsilon), progressbar=False
        )
        return 1 / tree.dp.report().record["sampler"]["power"], tree.dp.epsilon

    assert temperature(0.2, 0.8, papers=True)[0] == pytest.approx(2.77, abs=0.005)  # Foulds et al. 2016, figure 1
    assert temperature(0.3, 0.6)[0] == pytest.approx(1.253, abs=0.0005)  # theory 1: 1.695 by twice the sensitivity
    assert temperature(0.3, 0.6, papers=True)[0] == pytest.approx(1.695, abs=0.0005)
    assert temperature(0.3, 0.6, 10.0) == pytest.approx((1.0, 1.253), abs=0.001)


def plain():
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1]))


def hierarchical():
    p = pm.Beta("p", pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1), shape=3)
    pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 2]))], observed=np.array([0, 1, 1]))


def potential():
    p = pm.Uniform("p", 0.1, 0.9, shape=3)
    pm.Potential("pull", -((p - 0.5) ** 2).sum())
    pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 2]))], observed=np.array([0, 1, 1]))


def own_transform():
    """It may restrict the prior."""
    p = pm.Uniform("p", 0.1, 0.9, shape=2, default_transform=pm.distributions.transforms.ordered)
    pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 1]))], observed=np.array([0, 1, 1]))


def coefficients():
    b = pm.Normal("b", 0, 3, shape=3)
    pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((20, 3))) @ b, observed=np.zeros(20, dtype=int))


def within_bounds():
    """Log-concave with a bounded range, and too many parameters for a grid."""
    b = pm.TruncatedNormal("b", 0, 3, lower=-5.0, upper=5.0, shape=3)
    pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((20, 3))) @ b, observed=np.zeros(20, dtype=int))


def discrete():
    b = pm.Uniform("b", -1, 1, shape=3)
    pm.Bernoulli(
        "y",
        logit_p=b[pm.Data("g", np.arange(9) % 3)] * pm.math.tanh(pm.Poisson("k", 2)),
        observed=np.zeros(9, dtype=int),
    )


@pytest.mark.parametrize(
    ("build", "given", "words"),
    [
        (plain, {}, "dp.truncate(model, {'p': (0.01, 0.99)})"),
        (hierarchical, {}, "dp.TemperedGibbs()"),
        (potential, {}, "Potential"),
        (own_transform, {}, "transform of its own"),
        (coefficients, {"delta": 1e-6}, "dp.truncate(norms=)"),
        (coefficients, {"assume_converged": True}, "dp.truncate(model, {'b': (-10, 10)})"),
        (within_bounds, {"delta": 1e-6}, "dp.OPS(assume_converged=True)"),
        (within_bounds, {}, "dp.BarkerMetropolis()"),
        (discrete, {"assume_converged": True, "papers": True}, "it is discrete"),
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_refusals_say_the_way_out_and_cost_nothing(build, given, words, monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))
    with pm.Model() as model:
        build()
    delta = given.pop("delta", 0.0)
    ledger, domain = dp.Ledger(3.0, delta), dp.Domain(norms={"x": 1.0} if "x" in model else {})
    with pytest.raises(dp.errors.PrivacyError) as refused:
        dp.sample(1, epsilon=3.0, delta=delta, step=dp.OPS(**given), model=model, domain=domain, ledger=ledger)
    assert words in "\n".join([str(refused.value), *map(str, getattr(refused.value, "problems", ()))])
    assert ledger.history == []


@pytest.mark.parametrize(
    ("given", "words"),
    [({"papers": "yes"}, "papers must be True or False, got 'yes'"), ({"grid": 1}, "grid must be in 2")],
)
def test_arguments_are_checked(given, words):
    with pytest.raises(dp.errors.ArgumentError, match=words):
        dp.OPS(**given)
