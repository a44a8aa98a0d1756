"""How `dp.TemperedGibbs` draws each variable: what its report says, the range that is charged, and what is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1, "chains": 1, "tune": 0}
GROUP = np.array([2, 0, 1, 1] * 5)
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
GAMMA, DIRICHLET, GRID = "truncated gamma", "truncated Dirichlet", "exponential mechanism on a grid"
RANGE = 5 * np.log(3.0 / 0.2)
"""Of one element: counts up to 5, rates from 0.2 to 3. A row that is another may leave one and join another."""


def drawn(model, draws=2, domain=None, epsilon=1.0, **given):
    """The report's line on every variable, and the trace."""
    idata = dp.sample(draws, model=model, step=dp.TemperedGibbs(**given), epsilon=epsilon, domain=domain, **QUIET)
    facts = dict(idata.dp.report().record["sampler"]["facts"])
    return {name.removeprefix("update of "): text for name, text in facts.items()}, idata


def rates(make) -> pm.Model:
    """Counts of groups whose rates are made of `v`, and of others."""
    with pm.Model() as model:
        v = pm.Truncated("v", pm.Gamma.dist(2.0, 1.0), 0.2, 3.0, shape=3)
        u = pm.Truncated("u", pm.Gamma.dist(2.0, 1.0), 0.2, 3.0)
        z, flag = pm.Categorical("z", np.full(3, 1 / 3), shape=3), pm.Bernoulli("flag", 0.5)
        pm.Poisson("y", make(pm.Data("g", GROUP), v, u, z, flag), observed=np.arange(20) % 4)
    return model


RATES = {
    "an element for each row": (lambda g, v, u, z, flag: v[g], GAMMA, 1.59),
    "of a class": (lambda g, v, u, z, flag: v[z][g], GAMMA, 1.59),
    "of a class, twice": (lambda g, v, u, z, flag: v[z][g] * v[z][g], GRID, None),
    "pieces of two": (lambda g, v, u, z, flag: pt.concatenate([v, u[None]])[::-1][g], GAMMA, 1.59),
    "stacked": (lambda g, v, u, z, flag: pt.stack([u, v[1], v[2]])[g], GAMMA, 1.59),
    "switched": (lambda g, v, u, z, flag: pt.switch(flag, v, v[::-1])[g], GAMMA, 1.59),
    "a factor beside": (lambda g, v, u, z, flag: v[g] * u, GAMMA, None),
    "a root of a square": (lambda g, v, u, z, flag: (pt.sqrt(v) ** 2)[g], GAMMA, 1.59),
    "two elements": (lambda g, v, u, z, flag: v[g] * v[0], GRID, None),
    "one over another": (lambda g, v, u, z, flag: v[g] ** 2 / v[(g + 1) % 3], GRID, None),
    "two powers": (lambda g, v, u, z, flag: pt.switch(flag, v, v**2)[g], GRID, None),
    "a sum": (lambda g, v, u, z, flag: v[g] + v[0], GRID, None),
    "an exponential": (lambda g, v, u, z, flag: pt.exp(v)[g], GRID, None),
}  # fmt: skip


@pytest.mark.parametrize("name", RATES)
def test_rates_that_are_elements_or_powers_are_drawn_exactly(name):
    make, kind, times = RATES[name]
    lines, idata = drawn(rates(make), domain=dp.Domain(bounds={"y": (0, 5)}))
    assert lines["v"].startswith(f"{kind}; range ")
    if times is not None:
        assert float(lines["v"].split()[3]) == pytest.approx(times * RANGE, rel=0.01)
    assert ((idata["posterior"]["v"] >= 0.2) & (idata["posterior"]["v"] <= 3.0)).all()


def levels(make) -> pm.Model:
    """Levels of groups whose probabilities are made of `p`, and of others."""
    with pm.Model() as model:
        p = dp.TruncatedDirichlet("p", np.ones((3, 3)), lower=0.05)
        q, flag = dp.TruncatedDirichlet("q", np.ones(3), lower=0.05), pm.Bernoulli("flag", 0.5)
        pm.Categorical("y", make(pm.Data("g", GROUP), p, q, flag), observed=np.arange(20) % 3)
    return model


LEVELS = {
    "of groups": lambda g, p, q, flag: p[g],
    "stacked": lambda g, p, q, flag: pt.stack([q, p[1], p[2]])[g],
}
NOT_LEVELS = {
    "turned": lambda g, p, q, flag: p[:, ::-1][g],
    "one of two by a class": lambda g, p, q, flag: pt.stack([pt.switch(flag, p[0], q), p[1], p[2]])[g],
    "entry by entry of two": lambda g, p, q, flag: pt.stack([p[:, 0], p[::-1, 1], p[:, 2]], axis=1)[g],
}


@pytest.mark.parametrize("name", LEVELS)
def test_probabilities_that_are_whole_vectors_are_drawn_exactly(name):
    lines, idata = drawn(levels(LEVELS[name]))
    assert lines["p"].startswith(DIRICHLET)
    np.testing.assert_allclose(idata["posterior"]["p"].sum(axis=-1), 1.0)


@pytest.mark.parametrize("name", NOT_LEVELS)
def test_probabilities_made_of_others_are_refused(name):
    with pytest.raises(dp.errors.UnsupportedModelError, match="'p' is a dirichlet that is not itself the parameter"):
        drawn(levels(NOT_LEVELS[name]))


def test_kinds_of_whole_numbers_give_the_posterior_of_their_rows():
    """On a grid, at an ε at which nothing is tempered: draws of a share of zeros are those of its exact posterior."""
    y = np.array([0] * 60 + [3] * 40)
    with pm.Model() as model:
        pm.ZeroInflatedPoisson("y", pm.Uniform("share", 0.1, 0.9), 3.0, observed=y)
    with dp.testing.insecure_randomness(1):
        lines, idata = drawn(model, 200, dp.Domain(bounds={"y": (0, 8)}), epsilon=1e7, grid=200)
    assert lines["share"].startswith(GRID)
    at = np.linspace(0.1, 0.9, 4001)
    mass = np.exp(60 * np.log1p(-at * (1 - np.exp(-3))) + 40 * np.log(at) + 50)
    mean = (at * mass).sum() / mass.sum()
    deviation = np.sqrt(((at - mean) ** 2 * mass).sum() / mass.sum())
    assert abs(idata["posterior"]["share"].mean() - mean) < 5 * deviation / np.sqrt(200)
    assert idata["posterior"]["share"].std() == pytest.approx(deviation, rel=0.25)


def test_successes_of_trials_that_are_a_column_are_gone_through_row_by_row():
    """Exact sums of them would be of rows that are read with their own trials."""
    trials = np.array([3, 5, 4, 8] * 5)
    with pm.Model() as model:
        pm.Binomial("y", pm.Data("trials", trials), pm.Uniform("p", 0.1, 0.9), observed=trials // 2)
    lines, _ = drawn(model, domain=dp.Domain(bounds={"y": (0, 3), "trials": (3, 9)}))
    assert lines["p"].startswith(f"{GRID}, by rows")


def test_latents_of_rows_that_lie_far_apart_have_less_of_beta():
    """The kernel holds what a row adds below 2^13 nats; here a row moves its class by (900 / 5)^2 / 2 nats."""
    y = np.array([50.0, 950.0] * 6)
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=len(y))
        pm.Normal("y", pm.Uniform("mu", 0.0, 1000.0, shape=2)[z], 5.0, observed=y)
    with dp.testing.insecure_randomness(1):
        _, idata = drawn(model, 20, dp.Domain(bounds={"y": (0.0, 1000.0)}), epsilon=1e7)
    beta = float(dict(idata.dp.report().record["sampler"]["facts"])["beta"])
    assert 2.0**11 < beta * 1000.0**2 / 2 / 5.0**2 <= 2.0**14
    np.testing.assert_allclose(np.sort(idata["posterior"]["mu"][0, -1]), [50, 950], atol=20)


def test_levels_of_a_released_model_are_gone_through_at_no_cost():
    """A mixture of two known rates, of a release: the chance of each is that of the density of the release."""
    with pm.Model() as model:
        which = pm.Bernoulli("which", 0.5, shape=1)
        pm.Bernoulli("y", pt.switch(which[0], 0.55, 0.45), observed=np.arange(60) % 2)
    with dp.testing.insecure_randomness(2):
        private = dp.privatize(model, epsilon=0.3)
    logp = private.compile_logp()
    odds = float(logp({"which": np.array([1])}) - logp({"which": np.array([0])}))
    idata = pm.sample(400, step=dp.TemperedGibbs(model=private), model=private, random_seed=1, **QUIET)
    share = float(idata["posterior"]["which"].mean())
    assert abs(share - 1 / (1 + np.exp(-odds))) < 5 * 0.5 / np.sqrt(400) and 0.02 < share < 0.98


def test_an_infinite_discrete_variable_of_a_released_model_is_refused():
    with pm.Model() as model:
        pm.Bernoulli("y", 1 / (2.0 + pm.Poisson("k", 3.0)), observed=np.arange(60) % 2)
    private = dp.privatize(model, epsilon=0.3)
    with private, pytest.raises(dp.errors.UnsupportedModelError, match="'k' is discrete without a known finite set"):
        dp.TemperedGibbs()
