"""OPS draws every likelihood with a conjugate prior exactly, from sums of the rows, at the price of their range."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.gibbs import conjugate_draws
from pymc_dp.step_methods.mode import AnnealedMode
from pymc_dp.step_methods.ops.from_sums import ConjugatePosterior
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet
from tests.step_methods.gibbs.conjugate_pairs import PAIRS
from tests.step_methods.ops.models import bound

DRAWS = 600


def posterior(step):
    assert isinstance(step.posterior.form, ConjugatePosterior)
    return step.posterior.form


def drawn(step, name, rng, count=DRAWS):
    return np.array([step.draw(rng)[name] for _ in range(count)])


def follows(sample, height, low, high):
    """Kolmogorov-Smirnov against an unnormalised log-density on an interval."""
    grid = np.linspace(low, high, 4001)
    heights = height(grid)
    mass = np.cumsum(np.exp(heights - heights.max()))
    return stats.kstest(sample, lambda v: np.interp(v, grid, mass / mass[-1])).pvalue > 0.001


@pytest.fixture(scope="module")
def model_of():
    def make(name, rows):
        pair = PAIRS[name]
        with pm.Model() as model:
            pair.likelihood("y", pair.prior("v"), pm.Data("rows", rows))
        return model, {} if pair.bounds is None else {"y": pair.bounds}

    return make


def rows_of(pair):
    kind = int if all(isinstance(row, int) for row in pair.rows) else float
    return np.resize(np.array(pair.rows, dtype=kind), 40)


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", PAIRS)
def test_draws_follow_prior_times_tempered_likelihood(name, relation, model_of, rng):
    pair, rows = PAIRS[name], rows_of(PAIRS[name])
    model, bounds = model_of(name, rows)
    n_max = 50 if relation == "add_remove" else None
    step, event = bound(model, Domain(bounds=bounds, neighbours=relation, n_max=n_max), 0.8)
    (update,), beta = posterior(step).updates, step.temperature.inverse
    assert type(update).__name__ == pair.law
    assert 0 < beta <= 1 and event.event.eta == pytest.approx(min(0.8, step.range.value))
    sample = drawn(step, "v", rng)
    assert pair.ends[0] <= sample.min() and sample.max() <= pair.ends[1]
    assert follows(sample, lambda v: pair.log_prior(v) + beta * pair.log_row(rows[:, None], v).sum(axis=0), *pair.ends)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", PAIRS)
def test_what_one_row_moves_is_charged(name, relation, model_of):
    """The largest range among rows at extremes, over a grid of the variable."""
    pair = PAIRS[name]
    model, bounds = model_of(name, rows_of(pair))
    n_max = 50 if relation == "add_remove" else None
    step, _ = bound(model, Domain(bounds=bounds, neighbours=relation, n_max=n_max), 1.0, read=False)
    posterior(step)
    rows, places = np.array(pair.rows, dtype=float), np.linspace(*pair.ends, 2001)
    heights = pair.log_row(rows[:, None], places)
    if relation == "replace":
        heights = (heights[:, None] - heights[None, :]).reshape(-1, len(places))
    reached = np.ptp(heights, axis=1).max() / step.range.value
    assert 0.9 < reached <= 1 + 1e-9


def test_closed_forms_of_three_likelihoods(rng):
    """Binomial and beta, exponential and gamma, Weibull and uniform: by the distributions of the textbooks."""
    n = 50
    hits, waits, lives = np.arange(n) % 5, np.linspace(0.1, 2.5, n), np.linspace(0.3, 1.9, n)
    with pm.Model() as model:
        pm.Binomial("y", 4, pm.Truncated("p", pm.Beta.dist(2.0, 3.0), 0.05, 0.95), observed=hits)
        rate = pm.Truncated("rate", pm.Gamma.dist(2.0, np.float64(1.5)), 0.2, 4.0)
        pm.Exponential("w", rate, observed=waits)
        pm.Weibull("l", 1.5, pm.Uniform("scale", 0.4, 3.0), observed=lives)
    step, _ = bound(model, Domain(bounds={"w": (0, 3), "l": (0.2, 2)}), 500.0)
    assert step.temperature.inverse == 1 and len(posterior(step).updates) == 3
    sample = [step.draw(rng) for _ in range(DRAWS)]
    found = {name: np.array([one[name] for one in sample]) for name in ("p", "rate", "scale")}
    laws = {
        "p": (stats.beta(2 + hits.sum(), 3 + (4 - hits).sum()), (0.05, 0.95)),
        "rate": (stats.gamma(2 + n, scale=1 / (1.5 + waits.sum())), (0.2, 4.0)),
    }
    for name, (law, ends) in laws.items():
        low, high = law.cdf(ends)
        assert stats.kstest(found[name], lambda v: (law.cdf(v) - low) / (high - low)).pvalue > 0.001  # noqa: B023
    power = stats.gamma(n - 1 / 1.5, scale=1 / (lives**1.5).sum())  # of scale^-1.5
    low, high = power.cdf(3.0**-1.5), power.cdf(0.4**-1.5)
    assert stats.kstest(found["scale"] ** -1.5, lambda t: (power.cdf(t) - low) / (high - low)).pvalue > 0.001
    pairs = np.corrcoef(np.stack(list(found.values())))
    assert np.abs(pairs - np.eye(3)).max() < 4.5 / np.sqrt(DRAWS)  # independent given the rows


def test_elements_of_one_variable_and_a_factor(rng):
    """A rate for each group, times a public exposure."""
    group, counts = np.arange(60) % 3, (7 * np.arange(60)) % 5
    with pm.Model() as model:
        rate = pm.Truncated("rate", pm.Gamma.dist(2.0, np.float64(1.0)), 0.1, 5.0, shape=3)
        pm.Poisson("y", 2.0 * rate[pm.Data("group", group)], observed=counts)
    step, _ = bound(model, Domain(bounds={"y": (0, 8)}, public=["group"]), 1000.0)
    assert step.temperature.inverse == 1 and posterior(step).updates[0].links[0].parameter is not None
    sample = drawn(step, "rate", rng)
    for place in range(3):
        total, n = counts[group == place].sum(), (group == place).sum()
        law = stats.gamma(2 + total, scale=1 / (1 + 2 * n))
        low, high = law.cdf([0.1, 5.0])
        assert stats.kstest(sample[:, place], lambda v: (law.cdf(v) - low) / (high - low)).pvalue > 0.001  # noqa: B023


def test_multinomial_rows_are_drawn_at_the_price_of_their_trials(rng):
    rows = np.array([[3, 0, 0], [1, 2, 0], [0, 1, 2], [2, 1, 0]])
    with pm.Model() as model:
        shares = TruncatedDirichlet("shares", np.array([1.0, 2.0, 1.5]), 0.1)
        pm.Multinomial("y", 3, shares, observed=pm.Data("d", rows))
    step, _ = bound(model, Domain(), 500.0)
    assert step.range.value == pytest.approx(3 * 2 * np.log(0.8 / 0.1), rel=1e-4)
    sample = drawn(step, "shares", rng)
    plain = rng.dirichlet(np.array([1.0, 2.0, 1.5]) + rows.sum(axis=0), 20_000)
    plain = plain[(plain >= 0.1).all(axis=1)]
    assert all(stats.ks_2samp(sample[:, k], plain[:, k]).pvalue > 0.001 for k in range(3))


def test_a_tempered_prior_of_the_annealed_mode(rng):
    """(prior x likelihood)^β of a rate, β far above 1."""
    waits = np.linspace(0.1, 2.5, 20)
    with pm.Model() as model:
        pm.Exponential("w", pm.Truncated("rate", pm.Gamma.dist(2.0, np.float64(1.5)), 0.2, 4.0), observed=waits)
    found = AnnealedMode().inspect(model, Domain(bounds={"w": (0, 3)}))
    step, _ = AnnealedMode().bound(found, Budget(60.0), chains=1, steps=1)
    with opened_gate():
        step.load()
    beta = step.temperature.inverse
    assert beta > 2 and posterior(step)
    height = lambda r: beta * (np.log(r) - 1.5 * r + 20 * np.log(r) - waits.sum() * r)  # noqa: E731
    assert follows(drawn(step, "rate", rng), height, 0.2, 4.0)


def test_a_narrow_prior_pays_by_its_shape_where_there_is_a_delta(rng):
    """The log of a log-normal in wide bounds: log-concavity needs less than the range, and the draw is the same."""
    rows = np.exp(np.linspace(-1, 1.2, 200))
    with pm.Model() as model:
        mean = pm.TruncatedNormal("mean", 0.2, np.float64(0.1), lower=-9, upper=9)
        pm.LogNormal("y", mean, 0.8, observed=rows)
    public = Domain(bounds={"y": (0.2, 5)})
    pure, _ = bound(model, public, 1.0, read=False)
    step, event = bound(model, public, 1.0, 1e-6)
    beta, spread = step.temperature.inverse, np.log(25) / 0.64
    assert step.range.value == pytest.approx(18 * spread) and step.temperature.rule.startswith("log-concavity")
    assert beta * spread * 0.1 <= event.event.mu < 1.6 * beta * spread * 0.1 and beta > 2 * pure.temperature.inverse
    height = lambda m: -((m - 0.2) ** 2) / 0.02 - beta * ((np.log(rows)[:, None] - m) ** 2).sum(axis=0) / 1.28  # noqa: E731
    assert posterior(step) and follows(drawn(step, "mean", rng), height, -9, 9)


@pytest.mark.parametrize(("origin", "count"), [(0.0, 40), (1e9, 100_000), (1e12, 10_000)])
def test_rows_far_from_0_move_a_mean_no_further(origin, count, monkeypatch):
    """Beside 1e12 no float has a digit left for one of many rows, nor a float32 for the temperature."""
    rows = np.full(count, origin + 0.5)
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mean", origin, origin + 1), 1.0, observed=pm.Data("rows", rows))
    step, event = bound(model, Domain(bounds={"y": (origin, origin + 1)}), 0.8, read=False)
    drawn_from = []
    monkeypatch.setattr(conjugate_draws, "truncated_normal", lambda rng, *law: drawn_from.append(law) or law[2])
    for share in (0.1, 0.37, 0.8):
        rows[: int(share * count)] = origin + 1
        for rows[0] in (origin, origin + 1):
            model["rows"].set_value(rows)
            with opened_gate():
                step.load()
            step.draw(np.random.default_rng(1))
        (one, sd, low, high), (other, *same) = drawn_from[-2:]
        assert same == [sd, low, high]
        assert 0.999 < abs(one - other) / sd**2 * (high - low) / event.event.eta <= 1


REFUSED = {
    "both of a normal": lambda d: pm.Normal("y", pm.Uniform("m", -1, 1), pm.Uniform("s", 0.5, 2), observed=d),
    "a product": lambda d: pm.Exponential("y", pm.Uniform("a", 0.5, 1) * pm.Uniform("b", 0.5, 1), observed=d),
    "a hyperparameter": lambda d: pm.Exponential(
        "y", pm.Truncated("a", pm.Gamma.dist(2.0, pm.Uniform("b", 0.5, 1)), 0.2, 4.0), observed=d
    ),
    "another prior": lambda d: pm.Exponential("y", pm.TruncatedNormal("a", 1, 1, lower=0.5, upper=2), observed=d),
    "a power that vanishes in floats": lambda d: pm.Weibull("y", 90.0, pm.Uniform("s", 1, 1e4), observed=d),
    "an unknown shape": lambda d: pm.Gamma("y", pm.Uniform("a", 1, 2), pm.Uniform("b", 0.5, 1), observed=d),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_product_of_conjugate_forms_is_drawn_in_another_way(name):
    with pm.Model() as model:
        REFUSED[name](np.linspace(0.1, 0.9, 20))
    step, _ = bound(model, Domain(bounds={"y": (0.1, 1)}), 1.0, grid=20, read=False)
    assert not isinstance(getattr(step.posterior, "form", None), ConjugatePosterior)


def test_the_papers_sensitivity_has_no_closed_form_there(model_of):
    model, bounds = model_of("exponential", rows_of(PAIRS["exponential"]))
    step, _ = bound(model, Domain(bounds=bounds), 1.0, papers=True, read=False)
    assert np.isfinite(step.range.sensitivity) and not hasattr(step.posterior, "form")
