"""What the papers' rule and a draw by rejection are charged, and refusals of OPS."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

EPSILON = 1.0
TIMES = {"replace": 4, "add_remove": 2}


def logistic():
    """Three coefficients: no sums of its rows will do, and no grid."""
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        slopes = pm.TruncatedNormal("slopes", 0, 1, lower=-1, upper=1, shape=3)
        rows = pm.Data("x", rng.uniform(-1, 1, (60, 3)))
        pm.Bernoulli("y", logit_p=pm.math.dot(rows, slopes), observed=rng.integers(0, 2, 60))
    return model


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Truncated("p", pm.Beta.dist(1, 1), 0.1, 0.9), observed=np.repeat([0, 1], [70, 30]))
    return model


def found(model, neighbours, *, papers=True):
    """Return T by the rule with what is proved, T as it is charged, and what the report says that one row moves."""
    bounds, most = {"x": (-1, 1)} if "x" in model else {}, 100 if neighbours == "add_remove" else None
    domain = dp.Domain(bounds=bounds, neighbours=neighbours, n_max=most)
    proved = dp.sensitivity(model, domain)
    ledger = dp.Ledger(EPSILON, neighbours=neighbours)
    trace = dp.sample(
        1, epsilon=EPSILON, step=dp.OPS(papers=papers), model=model, domain=domain, ledger=ledger, progressbar=False
    )
    sampler = trace.dp.report().record["sampler"]
    rule = (2 * proved.log_likelihood.value if papers else proved.range.value) / EPSILON
    return rule, 1 / sampler["power"], dict(sampler["facts"])["one row moves"]


@pytest.mark.parametrize("papers", [True, False])
@pytest.mark.parametrize("neighbours", TIMES)
def test_the_report_says_how_many_times_the_bound_is_charged(neighbours, papers):
    rule, charged, says = found(logistic(), neighbours, papers=papers)
    assert charged / rule == pytest.approx(TIMES[neighbours], rel=1e-5)
    bound = rule / 2 if papers else rule
    assert f"{TIMES[neighbours]} times the bound {bound:.6g}, proved" in says


def test_from_sums_the_rule_is_what_is_charged():
    rule, charged, says = found(coin(), "replace")
    assert charged == pytest.approx(rule, rel=1e-6) and "times" not in says


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


def too_wide():
    """Data that nobody may see could take too long."""
    b = pm.TruncatedNormal("b", 0, 3, lower=-5.0, upper=5.0, shape=100)
    pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((20_000, 100))) @ b, observed=np.zeros(20_000, dtype=int))


def not_normal():
    b = pm.Beta("b", 2, 2, shape=3)
    pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((9, 3))) @ b, observed=np.zeros(9, dtype=int))


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
        (too_wide, {"delta": 1e-6}, "rejection may need 1e"),
        (not_normal, {"delta": 1e-6}, "needs normal priors"),
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
