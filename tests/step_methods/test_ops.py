"""OPS: exact draws, and what they cost, on the worst data sets."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats

from pymc_dp.accounting import Budget
from pymc_dp.audit.quadrature import compare_with_event, density_loss
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.gibbs import conjugate_draws
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.grid import GridPosterior
from pymc_dp.transforms.likelihood import ExactSums
from tests.step_methods.conftest import bernoulli, domain


def bound(model, public, epsilon=1.0, delta=0.0, steps=1, read=True, **settings):
    step, event = OPS(**settings).bound(inspect(model, public).sums, Budget(epsilon, delta), chains=1, steps=steps)
    if read:
        with opened_gate():
            step.load()
    return step, event


def draws(step, count, rng):
    one = [step.posterior.draw(rng, step.sums, step.temperature.inverse, step.temperature.prior) for _ in range(count)]
    return {name: np.array([item[name] for item in one]) for name in one[0]}


def law(step, monkeypatch):
    """Parameters of the truncated beta that the step draws from."""
    seen = []
    monkeypatch.setattr(conjugate_draws, "truncated_beta", lambda rng, *args: seen.append(args) or np.full(1, 0.5))
    step.posterior.draw(None, step.sums, step.temperature.inverse, step.temperature.prior)
    monkeypatch.undo()
    return tuple(float(np.ravel(item)[0]) for item in seen[0])


def log_density(a, b, low, high):
    x = low + (high - low) * (1 - np.cos(np.linspace(0, math.pi, 400_001))) / 2  # fine at both ends
    unnormalised = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)
    top = unnormalised.max()
    mass = np.trapezoid(np.exp(unnormalised - top), x)
    return lambda theta: (a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta) - top - math.log(mass)


def loss(one, other, monkeypatch):
    (a, b, low, high), (c, d, *_) = law(one, monkeypatch), law(other, monkeypatch)
    return density_loss(log_density(a, b, low, high), log_density(c, d, low, high), [(low, high)])


WORST = [([0], [1]), ([1] * 20, [1] * 19 + [0]), ([0] * 100, [0] * 99 + [1]), ([0, 1] * 30, [0, 1] * 29 + [0, 0])]


@pytest.mark.few(1)
@pytest.mark.parametrize("papers", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.05, 0.95), (0.3, 0.6)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_no_replaced_row_shows_more_than_claimed(low, high, epsilon, papers, monkeypatch):
    for rows, neighbour in WORST:
        one, event = bound(bernoulli(rows, low, high), None, epsilon, papers=papers)
        other, same = bound(bernoulli(neighbour, low, high), None, epsilon, papers=papers)
        assert event == same
        found = compare_with_event(loss(one, other, monkeypatch), event)
        assert found.passed, found.report()


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_added_row_shows_more_than_claimed(delta, monkeypatch):
    for rows in ([0], [1] * 20, [0] * 100, [0, 1] * 30):
        for added in (0, 1):
            one, event = bound(bernoulli(rows, 0.1, 0.8), domain("add_remove"), 1.0, delta)
            other, _ = bound(bernoulli([*rows, added], 0.1, 0.8), domain("add_remove"), 1.0, delta)
            found = compare_with_event(loss(one, other, monkeypatch), event)
            assert found.passed, found.report()


def test_the_claim_is_nearly_reached_on_the_worst_data(monkeypatch):
    """Theory: .50 .73 .89 .97 of the claim at n = 1, 20, 100, 500."""
    shares = []
    for n in (1, 20, 100, 500):
        one, _ = bound(bernoulli([1] * n), None, 1.0)
        other, _ = bound(bernoulli([1] * (n - 1) + [0]), None, 1.0)
        shares.append(loss(one, other, monkeypatch).epsilon)
    np.testing.assert_allclose(shares, [0.50, 0.73, 0.89, 0.97], atol=0.006)


def test_the_adversary_of_figure_8_reaches_twice_the_sensitivity(monkeypatch):
    """Foulds et al. 2016, figure 8: a = .1, T = 1, 2 log 9 = 4.394."""
    n = 5000
    one, _ = bound(bernoulli([1] * n, 0.1, 0.9), None, 5.0, papers=True)
    other, _ = bound(bernoulli([1] * (n - 1) + [0], 0.1, 0.9), None, 5.0, papers=True)
    assert one.temperature.inverse == 1
    assert 4.39 < loss(one, other, monkeypatch).epsilon <= 2 * math.log(9)


def test_temperatures_are_those_of_the_papers_and_of_the_range():
    step, _ = bound(bernoulli([0, 1], 0.2, 0.8), None, 1.0, papers=True)
    assert round(1 / step.temperature.inverse, 2) == 2.77  # Foulds et al. 2016, figure 1
    step, _ = bound(bernoulli([0, 1], 0.3, 0.6), None, 1.0)
    assert round(1 / step.temperature.inverse, 3) == 1.253  # theory 1: 1.695 by twice the sensitivity
    papers, _ = bound(bernoulli([0, 1], 0.3, 0.6), None, 1.0, papers=True)
    assert round(1 / papers.temperature.inverse, 3) == 1.695
    generous, event = bound(bernoulli([0, 1], 0.3, 0.6), None, 10.0)
    assert generous.temperature.inverse == 1 and event.event.eta == pytest.approx(1.253, abs=1e-3)
    many, _ = bound(bernoulli([0, 1]), None, 1.0, 1e-6, steps=100)
    single, _ = bound(bernoulli([0, 1]), None, 1.0, 0.0, steps=100)
    assert many.temperature.inverse > 1.5 * single.temperature.inverse


def errors(rule, epsilon, model, truth, draw_sums, count, rng, public=None):
    step, _ = bound(model, public, epsilon, read=False, papers=rule)
    found = []
    for _ in range(count):
        step.sums = [draw_sums()]
        found.append(abs(next(iter(draws(step, 1, rng).values())).item() - truth))
    return np.mean(found), np.std(found) / math.sqrt(count)


@pytest.mark.parametrize(("n", "expected"), [(10, 0.372), (100, 0.247), (1000, 0.066), (10_000, 0.018)])
def test_errors_of_the_papers_rule_are_those_measured(n, expected, rng):
    """theory.md 2 and Foulds et al. 2016: p = .1, a = .05, ε = .1, 1000 seeds."""

    def sums():
        ones = rng.binomial(n, 0.1)
        return ExactSums(sums=np.array([[n - ones, ones]], dtype=float), sizes=np.array([float(n)]))

    mean, error = errors(True, 0.1, bernoulli([0] * 10), 0.1, sums, 1000, rng)
    assert abs(mean - expected) < 3 * math.hypot(error, 0.0005)


def test_range_accounting_errs_less(rng):
    """A Poisson rate in [.5, 5], counts in 0..20: T falls from 112 / ε to 46 / ε."""
    with pm.Model() as model:
        pm.Poisson("y", pm.Truncated("rate", pm.Gamma.dist(2.0, 1.0), 0.5, 5.0), observed=np.array([1, 2]))
    public = Domain(bounds={"y": (0, 20)})

    def sums():
        return ExactSums(sums=np.array([[float(rng.poisson(2.0, 1000).sum())]]), sizes=np.array([1000.0]))

    (papers, s1), (ours, s2) = (errors(rule, 1.0, model, 2.0, sums, 400, rng, public) for rule in (True, False))
    assert ours < papers - 3 * math.hypot(s1, s2)


def test_draws_have_the_tempered_posterior(rng):
    answers = np.arange(200) % 4 == 0
    for papers in (False, True):
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Truncated("p", pm.Beta.dist(3.0, 2.0), 0.05, 0.95), observed=answers.astype(int))
        step, _ = bound(model, None, 1.0, papers=papers)
        beta = step.temperature.inverse
        a, b = (beta * 2 + 1, beta + 1) if papers else (3.0, 2.0)
        found = stats.beta(a + beta * 50, b + beta * 150)
        cdf = lambda x, f=found: (f.cdf(x) - f.cdf(0.05)) / (f.cdf(0.95) - f.cdf(0.05))  # noqa: E731
        assert stats.kstest(draws(step, 2000, rng)["p"], cdf).pvalue > 0.001


def test_a_normal_mean_and_a_rate_are_drawn_exactly(rng):
    with pm.Model() as model:
        pm.Normal("x", pm.TruncatedNormal("mu", 1.0, 2.0, lower=-2, upper=3), 1.5, observed=np.linspace(-2, 2.5, 46))
        pm.Poisson("k", pm.Truncated("rate", pm.Gamma.dist(2.0, 3.0), 0.1, 6.0), observed=np.arange(46) % 3)
    step, _ = bound(model, Domain(bounds={"x": (-4, 4), "k": (0, 10)}), 500.0)
    assert step.temperature.inverse == 1
    found = draws(step, 2000, rng)
    precision = 1 / 4 + 46 / 2.25
    mean = (1 / 4 + np.linspace(-2, 2.5, 46).sum() / 2.25) / precision
    assert stats.kstest(found["mu"], stats.norm(mean, precision**-0.5).cdf).pvalue > 0.001
    total = (np.arange(46) % 3).sum()
    gamma = stats.gamma(2 + total, scale=1 / (3 + 46))
    assert stats.kstest(found["rate"], gamma.cdf).pvalue > 0.001


def test_levels_are_drawn_from_the_truncated_simplex(rng):
    from pymc_dp.transforms.restricted_priors import TruncatedDirichlet

    with pm.Model() as model:
        p = TruncatedDirichlet("p", np.array([1.0, 2.0, 1.0]), 0.02)
        pm.Categorical("y", p, observed=np.repeat([0, 1, 2], [10, 50, 40]))
    step, _ = bound(model, None, 1000.0)
    found = draws(step, 1500, rng)["p"]
    exact = stats.dirichlet([11.0, 52.0, 41.0])  # the bounds cut off next to nothing
    np.testing.assert_allclose(found.mean(axis=0), exact.mean(), atol=4 * np.sqrt(exact.var().max() / 1500))


def test_two_parameters_are_drawn_from_a_grid(rng):
    rows = rng.normal(0.3, 1.0, 400)
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", -1, 1), pm.Uniform("sd", 0.5, 2), observed=rows)
    step, _ = bound(model, Domain(bounds={"y": (-6, 6)}), 1000.0, grid=200)
    assert step.temperature.inverse == 1
    found = draws(step, 300, rng)
    spread = rows.std()
    assert abs(found["mu"].mean() - rows.mean()) < 4 * spread / math.sqrt(400 * 300)
    assert abs(found["sd"].mean() - spread * (1 + 0.75 / 400)) < 4 * spread / math.sqrt(800 * 300) + 0.002
    assert abs(found["mu"].std() / (spread / 20) - 1) < 0.15


def test_a_link_is_drawn_from_a_grid_and_costs_no_more_than_claimed(rng):
    losses = []
    for rows in ([1] * 50, [1] * 49 + [0]):
        with pm.Model() as model:
            pm.Bernoulli("y", logit_p=pm.Uniform("eta", -2, 1), observed=np.array(rows))
        step, event = bound(model, None, 0.5, grid=2000)
        held = [item for one in step.sums for item in (one.sums, one.sizes)]
        weights = step.posterior.form.prior_logp + step.temperature.inverse * step.posterior.form._likelihood(
            step.posterior.form.points, *held
        )
        losses.append(weights - special.logsumexp(weights))
    assert step.range.value == pytest.approx(3.0, rel=2e-3)  # the range of the logit, over the middles of the cells
    assert np.abs(losses[0] - losses[1]).max() <= 0.5 == event.event.eta
    assert np.abs(draws(step, 200, rng)["eta"] - 0.2).max() < 2.3


def test_a_row_may_change_its_group():
    groups = [0, 0, 1, 1, 1]
    private, _ = bound(bernoulli([0, 1, 0, 1, 1], 0.3, 0.6, groups=groups), None, 1.0)
    public, _ = bound(bernoulli([0, 1, 0, 1, 1], 0.3, 0.6, groups=groups), Domain(public=("group",)), 1.0)
    moved = 2 * math.log(2)  # log p runs over log 2 in either group
    assert private.range.value == pytest.approx(moved)
    assert public.range.value == pytest.approx(math.log(0.6 / 0.4) + math.log(0.7 / 0.3))


def refusal(model, public=None):
    with pytest.raises((UnsupportedModelError, ArgumentError)) as refused:
        bound(model, public, read=False)
    return "\n".join(map(str, getattr(refused.value, "problems", [refused.value])))


def test_refusals_say_the_way_out():
    with pm.Model() as plain:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1]))
    assert "dp.truncate(model, {'p': (0.01, 0.99)})" in refusal(plain)
    with pm.Model() as hierarchical:
        p = pm.Beta("p", pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1), shape=3)
        pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 2]))], observed=np.array([0, 1, 1]))
    text = refusal(hierarchical)
    assert "dp.TemperedGibbs()" in text and "p: its prior" in text
    with pm.Model() as potential:
        p = pm.Uniform("p", 0.1, 0.9, shape=3)
        pm.Potential("pull", -((p - 0.5) ** 2).sum())
        pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 2]))], observed=np.array([0, 1, 1]))
    assert "Potential" in refusal(potential)
    with pytest.raises(ArgumentError, match="delta=1e-06 would buy nothing"):
        bound(bernoulli([0, 1]), None, 1.0, 1e-6, papers=True)
    with pytest.raises(ArgumentError, match="papers must be True or False, got 'yes'"):
        OPS(papers="yes")
    with pytest.raises(ArgumentError, match="grid must be in 2..1048576, got 1"):
        OPS(grid=1)


def test_one_prior_of_two_likelihoods_has_no_conjugate_form():
    """A uniform prior is conjugate to each of them: their sums may not be added up."""
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
        pm.Normal("x", p, 0.5, observed=np.array([0.0, 1.0, 1.0]))
    step, _ = bound(model, Domain(bounds={"x": (0, 1)}))
    assert isinstance(step.posterior.form, GridPosterior)


def test_probabilities_that_do_not_add_up_cost_what_normalising_them_may_move():
    with pm.Model() as model:
        e = pm.Uniform("e", 1e-7, 9.1e-6)
        pm.Categorical("y", p=pt.stack([e, 1 - 1e-7 - 0 * e]), observed=np.array([0, 1]))
    step, _ = bound(model, None, 1e-3, grid=1000)
    p = np.stack([step.posterior.form.points[:, 0], np.full(1000, 1 - 1e-7)], axis=1)
    ratio = np.log(p[:, 0]) - np.log(p[:, 1])
    assert 4.4 < np.ptp(ratio) <= step.range.value < 1.01 * np.ptp(ratio)


@pytest.mark.parametrize(
    "transform", [pm.distributions.transforms.ordered, pm.distributions.transforms.Interval(0.2, 0.4)]
)
def test_transforms_set_by_hand_are_refused_because_they_may_restrict_the_prior(transform):
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9, shape=2, default_transform=transform)
        pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 1]))], observed=np.array([0, 1, 1]))
    text = refusal(model)
    assert "under a transform of its own" in text and "transform of its own" in text


def test_what_no_row_touches_is_drawn_from_its_prior(rng):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("p", 0.1, 0.9), observed=np.array([0, 1, 1]))
        pm.Uniform("u", -5, 5)
        pm.Truncated("t", pm.Uniform.dist(0.2, 0.3), lower=0.1, upper=0.9)
        pm.Dirichlet("q", np.full(4, 0.003))
    step, _ = bound(model, None)
    found = draws(step, 1000, rng)
    assert stats.kstest(found["u"], stats.uniform(-5, 10).cdf).pvalue > 0.001
    assert stats.kstest(found["t"], stats.uniform(0.2, 0.1).cdf).pvalue > 0.001
    assert (found["q"] > 0).all() and np.isfinite(
        step.values.move(model.initial_point(), {name: value[0] for name, value in found.items()})["q_simplex__"]
    ).all()


def test_models_without_anything_to_learn_are_refused():
    with pm.Model() as empty:
        pm.Bernoulli("y", 0.3, observed=np.array([0, 1]))
    assert "no free variable" in refusal(empty)
    with pm.Model() as apart:
        pm.Bernoulli("y", 0.3, observed=np.array([0, 1]))
        pm.Uniform("u", 0, 1)
    assert "free variable" in refusal(apart)
    with pm.Model() as impossible:
        e = pm.Uniform("e", 0.1, 0.4)
        pm.Categorical("y", p=pt.stack([e, 0.3 + 0 * e]), observed=np.array([0, 1]))
    assert "no valid parameters" in refusal(impossible)


@pytest.mark.parametrize("ends", [(-np.float64(1e200), np.float64(1e200)), (-1e30, 1e30)])
def test_extreme_supports_are_refused_and_do_not_crash(ends):
    with pm.Model() as mean:
        pm.Normal("x", pm.Uniform("mu", *ends), 1e-6, observed=np.array([0.0, 1.0]))
    with pm.Model() as spread:
        pm.Normal("x", 0.0, pm.Uniform("s", 0.1, ends[1]), observed=np.array([0.0, 1.0]))
    for model in (mean, spread):  # a grid of so wide cells sees no difference between rows, or an endless one
        try:
            step, _ = bound(model, Domain(bounds={"x": (-1, 1)}), read=False)
            assert step.range.value < math.inf
        except UnsupportedModelError as refused:
            assert "free variable" in str(refused) or "by any amount" in str(refused)


def test_a_remedy_names_what_the_table_depends_on():
    with pm.Model() as model:
        pm.Normal("a")
        pm.Bernoulli("y", pm.Uniform("p", 0, 1), observed=np.array([0, 1]))
    assert "{'p': (0.01, 0.99)}" in refusal(model)
